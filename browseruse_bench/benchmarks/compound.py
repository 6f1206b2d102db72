"""Which requirements ask for several things: read by rules from their English wording.

An item is compound if two of the results that it asks for can come out differently. One figure
for each of many things is one result over one scope; opening a page in order to read something
there is no second result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from browseruse_bench.benchmarks.requirement_words import (
    ALSO_NOUNS,
    ARTICLES,
    AUXILIARIES,
    BE,
    CRITERIA,
    DETERMINERS,
    ING,
    MEANS,
    OPENERS,
    PARTICIPLES,
    THIRD,
    VERBS,
    WH,
)

Kind = Literal["sentences", "actions", "clauses", "values", "extras"]


@dataclass(frozen=True)
class Cue:
    """A place at which a second result is asked for."""

    kind: Kind
    words: str
    """The words at that place."""

    @property
    def reason(self) -> str:
        """Why it counts, for the author."""
        return {
            "sentences": f"a second sentence asks for more: “{self.words}”",
            "actions": f"asks for a second action: “{self.words}”",
            "clauses": f"asks that something else be so, too: “{self.words}”",
            "values": f"asks for several values: “{self.words}”",
            "extras": f"asks for something beside: “{self.words}”",
        }[self.kind]


def cues(requirement: str) -> tuple[Cue, ...]:
    """Where a requirement asks for more than one result; empty: it is one thing over one scope.

    Only English is read: a text of which less than half the letters are Latin gives none
    (`is_read` tells).
    """
    if not is_read(requirement):
        return ()
    found: list[Cue] = []
    for number, sentence in enumerate(_sentences(_masked(requirement))):
        if number and (_CLARIFIES.search(sentence) or not _asks(sentence)):
            continue
        if number and not _BRANCH.match(sentence):
            found.append(Cue("sentences", _excerpt(sentence.split())))
        found += _Sentence(sentence).cues()
    return tuple(dict.fromkeys(found))


def is_read(requirement: str) -> bool:
    """Whether the rules know the language of this text."""
    letters = [c for c in requirement if c.isalpha()]
    return 2 * sum(c < "\u0250" for c in letters) >= len(letters)


_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|(?<![\w])[‘'][^‘’'\n]{1,80}[’'](?!\w)|«[^»]*»")
_QUOTATION = "Xx"
_EXAMPLES = re.compile(
    r",?\s*\b(?:such as|like|e\.g\.,?|for example,?|for instance,?)\s[^.;:()]*?"
    r"(?=[.;:()]|,? (?:and|but) (?:record|explain|note|state|the|each|which|also)\b|$)"
)
_BRACKETS = re.compile(r"\(([^()]*)\)")
_PHRASES = re.compile(
    r"\b(?:and/or|terms and conditions|pros and cons|back and forth|nothing else"
    r"|between [^,;]{1,40}? and (?=\S)|up and running|question and answer|food and drink"
    r"|bed and breakfast|arts and crafts|search and rescue|research and development"
    r"|and (?:nothing else|no others?|no more|only (?:these|those|that|them)|so on|the like))\b",
    re.IGNORECASE,
)
_CLARIFIES = re.compile(
    r"\b(?:optional|not (?:needed|required|necessary)|(?:does|do|need) not (?:count|matter)"
    r"|(?:is|are) (?:fine|enough|allowed|acceptable|accepted|helpful|sufficient)"
    r"|(?:may|can)\b[^.]*\bbe (?:used|marked|left|noted)|counts? as|suffices?)\b",
    re.IGNORECASE,
)
"""What a later sentence says that asks for nothing, but says what is enough."""
_BRANCH = re.compile(r"(?:if|otherwise|when|where|else)\b", re.IGNORECASE)


def _masked(text: str) -> str:
    """The text without what looks like a list and is none: quotations, examples, set phrases."""
    text = _QUOTED.sub(f" {_QUOTATION} ", " ".join(text.split()))
    text = _BRACKETS.sub(lambda m: f" : {m[1]} ; " if _is_list(m[1]) else " ", text)
    text = _EXAMPLES.sub(" ", text)
    return _PHRASES.sub(" ", text)


def _is_list(inside: str) -> bool:
    """Whether a bracket lists what is asked for, and neither examples nor alternatives."""
    words = inside.split()
    return (
        inside.count(",") + inside.count("/") * 0 >= 2
        and not re.match(r"(?:e\.g|for example|such as|or\b|if\b|not\b|whether\b|i\.e)", inside)
        and not re.search(r"\bor\b", inside)
        and len(words) > 2
        and not all(_is_name(word.strip(",")) for word in words if word.strip(","))
    )


def _sentences(text: str) -> list[str]:
    parts = re.split(r"(?<=[a-z0-9)”\"%])[.!?]\s+(?=[A-Z“\"])|;\s+(?=[a-z]+\b)", text)
    return [part.strip(" .;") for part in parts if len(part.split()) > 1]


def _asks(sentence: str) -> bool:
    """Whether it has a verb, so that it can ask for anything."""
    words = [token.lower() for token in _TOKEN.findall(sentence)]
    return any(w in VERBS or w in THIRD or w in PARTICIPLES or w in AUXILIARIES for w in words)


_TOKEN = re.compile(r"[A-Za-z0-9$€£#@%][\w’'./&%+-]*[\w%+]|[A-Za-z0-9&]|[,:;]")


def _is_name(token: str) -> bool:
    """A proper name, a number, a code, a quotation: one of the things, not one of its values."""
    return bool(re.match(r"[A-Z$€£#@0-9×]", token)) or "_" in token


def _excerpt(tokens: Sequence[str]) -> str:
    words = " ".join(tokens[:9])
    words = re.sub(r" ([,:;])", r"\1", words).replace(_QUOTATION, "“…”")
    return f"{words} …" if len(tokens) > 9 else words


class _Sentence:
    """The tokens of one sentence, and what its coordinators join."""

    def __init__(self, sentence: str) -> None:
        self.tokens: list[str] = _TOKEN.findall(sentence)
        self.words = [token.lower() for token in self.tokens]
        self.imperative = self._is_imperative()
        self.conditional = bool(_BRANCH.match(sentence))

    def cues(self) -> Iterator[Cue]:
        for at, word in enumerate(self.words):
            if word in ("and", "&", "plus") or self._phrase(at, "as well as", "along with"):
                yield from self._joined(at)
            elif word == ",":
                yield from self._after_comma(at)
            elif word == "including" and at and self.words[at - 1] != ",":
                yield self._cue("extras", at)
            elif word == ":":
                yield from self._after_colon(at)
            elif word == "but" and "also" in self.words[at : at + 8]:
                yield self._cue("clauses", at)
            elif word == "while" and self._word(at + 1) in ING:
                yield self._cue("extras", at)
            elif word == "whether" and "whether" in self.words[:at]:
                yield self._cue("values", at)

    def _phrase(self, at: int, *phrases: str) -> bool:
        return any(self.words[at : at + len(p.split())] == p.split() for p in phrases)

    def _cue(self, kind: Kind, at: int) -> Cue:
        return Cue(kind, _excerpt(self.tokens[at:]))

    def _word(self, at: int) -> str:
        return self.words[at] if 0 <= at < len(self.words) else ""

    def _is_imperative(self) -> bool:
        """Whether it says "Record the price", perhaps after "On the page, ..."."""
        starts = [0, *(i + 1 for i, w in enumerate(self.words) if w == ",")][:4]
        return any(self._is_base(self._skip(start)) for start in starts)

    def _skip(self, at: int) -> int:
        """The first place from `at` on that is no adverb and no joining word."""
        while self._word(at) in ("also", "then", "and", "briefly", "both") or (
            self._word(at).endswith("ly") and self._word(at) not in ("only", "reply", "supply")
        ):
            at += 1
        return at

    def _is_base(self, at: int) -> bool:
        word = self._word(at)
        if word not in VERBS or self._word(at - 1) in ARTICLES:
            return False
        following = self._word(at + 1)
        return (
            word not in ALSO_NOUNS
            or following in DETERMINERS
            or (at + 1 < len(self.tokens) and _is_name(self.tokens[at + 1]) and at == 0)
            or (at == 0 and following not in ("of", ",", "and"))
        )

    def _verb(self, at: int) -> str | None:
        """The verb that stands at a place, in a form that a coordination can go on with."""
        word, following = self._word(at), self._word(at + 1)
        if word == "to" and following in VERBS:
            return following
        if self.imperative and self._is_base(at):
            return word
        if word in THIRD and not self.imperative:
            verb = THIRD[word]
            nouns = verb in ALSO_NOUNS
            return verb if not nouns or following in DETERMINERS else None
        if word in PARTICIPLES and any(w in BE for w in self.words[:at]):
            return PARTICIPLES[word]
        return None

    def _joined(self, at: int) -> Iterator[Cue]:
        """What stands after a coordinator: an action, a clause, a question or a value."""
        start = self._skip(at + (2 if self._phrase(at, "along with") else 1))
        if self._phrase(at, "as well as"):
            start = self._skip(at + 3)
        verb = self._verb(start)
        if verb is not None:
            if not self._is_means(at, verb):
                yield self._cue("actions", start)
        elif self._word(start).endswith("ing"):
            if ING.get(self._word(start)) and any(w in ING for w in self.words[:at]):
                yield self._cue("extras", start)
        elif self._is_clause(start):
            yield self._cue("clauses", start)
        elif self._word(start) in WH:
            yield self._cue("values", start)
        elif self._lists_values(at, start):
            yield self._cue("values", self._list_start(at))
        elif self._repeats_article(at, start):
            yield self._cue("values", start)

    def _is_means(self, at: int, verb: str) -> bool:
        """Whether what stands before a second verb is only the way to it."""
        before = [
            (i, found) for i in range(at) if (found := self._verb(i) or self._opening_verb(i))
        ]
        counted = re.search(r"\b(?:at least|exactly|all|two|three|four|five|\d+)\b", self._said(at))
        return (
            bool(before)
            and all(found in MEANS for _, found in before)
            and not counted
            and verb not in ("open", "keep", "leave")
        )

    def _opening_verb(self, at: int) -> str | None:
        word = self.words[at]
        if self.imperative:
            return word if at == 0 and word in VERBS else None
        return THIRD.get(word)

    def _said(self, at: int) -> str:
        return " ".join(self.words[:at])

    def _is_clause(self, start: int) -> bool:
        """Whether a new subject and its verb follow: "and each listing is open"."""
        if self._word(start) not in DETERMINERS and not self._word(start).isdigit():
            return False
        for word in self.words[start + 1 : start + 14]:
            if word in (",", ";", ":", "and", "or") or word in CRITERIA - {"for", "of", "in", "on"}:
                return False
            if word in AUXILIARIES or (word in THIRD and THIRD[word] not in ALSO_NOUNS):
                return True
        return False

    def _list_start(self, at: int) -> int:
        """Where the list begins whose last element a coordinator adds."""
        start = at
        while start and (
            self._word(start - 1) == ","
            or not (
                self._word(start - 1) in CRITERIA | OPENERS | AUXILIARIES | {";"}
                or self._is_governor(start - 1)
            )
        ):
            start -= 1
        return start

    def _is_governor(self, at: int) -> bool:
        word = self._word(at)
        return (
            (self.imperative and self._is_base(at))
            or word in THIRD
            and (THIRD[word] not in ALSO_NOUNS or self._word(at + 1) in DETERMINERS)
            or word in PARTICIPLES
            or word in ING
        )

    def _lists_values(self, at: int, start: int) -> bool:
        """Whether a coordinator joins values that are asked for, rather than names or criteria."""
        first = self._list_start(at)
        governor = self._word(first - 1)
        if governor in CRITERIA or (governor == "" and not self._subject_is_asked()):
            return False
        if self._word(first) == "exactly" or not self._word(start):
            return False
        listed = self.tokens[first:at]
        ends = (
            [
                token
                for token, following in zip(listed, [*listed[1:], ","], strict=True)
                if following == "," and token != ","
            ]
            if listed
            else []
        )
        return bool(ends) and not all(_is_name(token) for token in (*ends, self.tokens[start]))

    def _repeats_article(self, at: int, start: int) -> bool:
        """Whether "the A ... and the B" are both what one verb asks for."""
        article = self._word(start)
        if article not in ("the", "a", "an", "one", "at", "exactly", "any", "its"):
            return False
        return any(
            word == article and (self._is_governor(i - 1) or self._word(i - 1) in OPENERS)
            for i, word in enumerate(self.words[:at])
            if i
        )

    def _subject_is_asked(self) -> bool:
        """Whether the subject of the sentence is what must be so: "Name and price are stated"."""
        return any(word in BE for word in self.words)

    def _after_comma(self, at: int) -> Iterator[Cue]:
        start = at + 1
        word = self._word(start)
        if (
            word in ("with", "including", "without", "plus")
            or self._phrase(start, "each with")
            or (self._word(self._skip(start)) in ING and word != "using")
        ):
            yield self._cue("extras", start)
        elif word == "then" or (self.imperative and self._is_base(start)):
            verb = self._verb(self._skip(start))
            opener = self.conditional or (at < 12 and not any(self._verb(i) for i in range(at)))
            self.conditional = False
            if verb is not None and not opener and not self._is_means(at, verb):
                yield self._cue("actions", start)

    def _after_colon(self, at: int) -> Iterator[Cue]:
        rest = self.tokens[at + 1 :]
        rest = rest[: rest.index(";")] if ";" in rest else rest
        if rest.count(",") >= 2 or (rest.count(",") and "and" in rest):
            heads = [rest[0], *(rest[i + 1] for i, t in enumerate(rest[:-1]) if t == ",")]
            heads = [h for h in heads if h not in ("and", "or")]
            if not all(_is_name(head) for head in heads):
                yield Cue("values", _excerpt(rest))
