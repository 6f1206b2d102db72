"""Which items of a rubric ask for the same: one defect would then be paid for twice.

Three signs, each explained: the same fact or the same check under two items, nearly the same
words, and an item about one summary, brief or document that gathers what the others ask for.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from browseruse_bench.benchmarks.requirement_words import ING, PARTICIPLES, THIRD, VERBS
from browseruse_bench.records.rubric import MARKER, AnswerCheck, Check, Item, Rubric, UrlCheck

SAME_WORDS = 0.55
"""Share of the rarer words, of the item that has fewer, from which two items are alike."""

_STOP = frozenset(
    [
        "a",
        "an",
        "the",
        "and",
        "or",
        "of",
        "to",
        "in",
        "on",
        "at",
        "for",
        "from",
        "by",
        "with",
        "without",
        "as",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "being",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "each",
        "every",
        "any",
        "all",
        "both",
        "one",
        "two",
        "three",
        "which",
        "who",
        "what",
        "how",
        "why",
        "whether",
        "when",
        "where",
        "if",
        "than",
        "then",
        "so",
        "not",
        "no",
        "only",
        "also",
        "least",
        "most",
        "more",
        "other",
        "another",
        "same",
        "such",
        "into",
        "about",
        "around",
        "between",
        "per",
        "their",
        "his",
        "her",
        "them",
        "they",
        "user",
        "agent",
        "session",
        "task",
        "final",
        "answer",
        "result",
        "response",
        "work",
        "provide",
        "include",
        "record",
        "state",
        "list",
        "identify",
        "find",
        "report",
        "give",
        "show",
        "note",
    ]
)
_EVERYWHERE = frozenset(
    [
        "page",
        "open",
        "tab",
        "link",
        "title",
        "name",
        "url",
        "date",
        "price",
        "concise",
        "final",
        "combine",
        "complete",
        "short",
        "clear",
        "official",
        "search",
        "public",
        "browser",
        "google",
        "best",
        "top",
        "select",
        "one",
        "first",
        "time",
        "detail",
        "require",
        "request",
        "each",
    ]
)
"""Words that tell no item from another."""
_DELIVERED = (
    r"(?:summar(?:y|ies)|brief(?:ing)?|roundup|plan|document|doc|memo|itinerary|report|synthesis"
    r"|overview|write-?up|response|output|message|shortlist|recommendation)"
)
_IS_DELIVERED = re.compile(
    r"(?:return|present|produce|deliver|compile|create|provide|give|write|prepare|build|collect)s?\b"
    rf"|(?:the|a|an|one)\b(?:\W+[\w’'-]+){{0,7}}?\W+{_DELIVERED}\b",
    re.IGNORECASE,
)
_GATHERS = re.compile(
    rf"\b{_DELIVERED}\b(?:\W+\w+){{0,10}}?\W+(?:that\s+)?(?:combin|includ|contain|cover|integrat"
    r"|consolidat|ties?\b|bring|begin|present|captur|populated)\w*",
    re.IGNORECASE,
)
_GATHERS_ALL = re.compile(
    r"\b(?:all|both|every) (?:of )?(?:the )?(?:\w+ ){0,2}?(?:findings|results|information|details"
    rf"|result groups|sections|components|items)\b.*\b{_DELIVERED}\b"
    rf"|\b{_DELIVERED}\b.*\b(?:all|both|every) (?:of )?(?:the )?(?:\w+ ){{0,2}}?(?:findings|results"
    r"|information|details|result groups|sections|components|items)\b",
    re.IGNORECASE,
)
_KEEPS_OPEN = re.compile(r"(?:open|keep|leave|use|browser)\b.*\btabs?\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z0-9$][\w’'.-]*\w|\w")


@dataclass(frozen=True)
class Overlap:
    """Two items that ask for the same, and what shows it."""

    items: tuple[str, str]
    reason: str


def overlaps(rubric: Rubric) -> tuple[Overlap, ...]:
    """The pairs of items that one defect would break both, in the order of the items."""
    found = [*_same_facts(rubric), *_same_checks(rubric), *_same_words(rubric)]
    order = {item.id: n for n, item in enumerate(rubric.items)}
    first: dict[tuple[str, str], Overlap] = {}
    for overlap in found:
        first.setdefault(overlap.items, overlap)
    return tuple(sorted(first.values(), key=lambda o: [order[item] for item in o.items]))


def _pairs(rubric: Rubric) -> Iterator[tuple[Item, Item]]:
    return itertools.combinations(rubric.items, 2)


# Facts and checks


def _same_facts(rubric: Rubric) -> Iterator[Overlap]:
    """Pairs that stand on the same value of the same fact.

    A fact of several values (a row of a table) may serve several items, each with another value.
    """
    facts = {fact.id: fact for fact in rubric.facts}
    for one, other in _pairs(rubric):
        for id_ in one.facts:
            if id_ not in other.facts:
                continue
            written = {_folded(value): value for value in facts[id_].values}
            values = set(written)
            both = _used(one, values) & _used(other, values)
            if both or (len(values) <= 1 and _may_use(one, values) and _may_use(other, values)):
                what = f"“{written[min(both)]}” of fact {id_}" if both else f"fact {id_}"
                yield Overlap((one.id, other.id), f"both stand on {what}")


def _used(item: Item, values: Set[str]) -> set[str]:
    """The values that an item's check or wording asks for."""
    if isinstance(item.check, AnswerCheck):
        return {part for value in item.check.values for part in _alternatives(value)} & values
    text = f" {_folded(item.requirement)} "
    return {v for v in values if re.search(rf"(?<!\w){re.escape(v)}(?!\w)", text)}


def _may_use(item: Item, values: Set[str]) -> bool:
    """Whether an item that names no value of a fact can be about its only one."""
    return item.check is None or bool(_used(item, values))


def _same_checks(rubric: Rubric) -> Iterator[Overlap]:
    for one, other in _pairs(rubric):
        if one.check is not None and other.check is not None:
            reason = _alike(one.check, other.check)
            if reason is not None:
                yield Overlap((one.id, other.id), reason)


def _alike(one: Check, other: Check) -> str | None:
    if one.as_json() == other.as_json():
        return "both have the same check"
    if isinstance(one, UrlCheck) and isinstance(other, UrlCheck):
        if one.model_copy(update={"when": other.when}).as_json() == other.as_json():
            return "both ask for the same address: open at the end, it was open at some time"
    elif isinstance(one, AnswerCheck) and isinstance(other, AnswerCheck):
        values = [{_folded(value) for value in check.values} for check in (one, other)]
        if values[0] <= values[1] or values[1] <= values[0]:
            shared = ", ".join(sorted(values[0] & values[1]))
            return f"one statement of “{shared}” in the answer meets both checks"
    return None


def _folded(value: object) -> str:
    return " ".join(str(value).casefold().split())


def _alternatives(value: object) -> list[str]:
    return [_folded(part) for part in str(value).split(MARKER)]


# Wording


class _Wording:
    """What the requirements of a rubric say, in stems, and how rare each stem is in it."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.stems = {id_: frozenset(_stems(text)) for id_, text in texts.items()}
        self.names = {id_: frozenset(_names(text)) for id_, text in texts.items()}
        self.gathered = {
            id_: frozenset(_stems(part))
            for id_, text in texts.items()
            if (part := _gathered(text)) is not None
        }
        """Items that gather what others ask for -> the stems of what they gather."""
        self._n_of = Counter(stem for found in self.stems.values() for stem in found)
        self._n_of_single = Counter(
            stem for id_, found in self.stems.items() if id_ not in self.gathered for stem in found
        )

    def spelled(self, stems: Iterable[str]) -> str:
        """A few words that have these stems, as they are first written."""
        words: dict[str, str] = {}
        for text in self.texts.values():
            for word in re.split(r"[^\w’'.$]+", text):
                words.setdefault(_stem(word), word.rstrip("."))
        return ", ".join(words.get(stem, stem) for stem in sorted(stems)[:6])

    def weight(self, stems: Iterable[str]) -> float:
        """How much these stems tell: the fewer items have one, the more."""
        n = len(self.stems) + 1
        return sum(math.log(n / self._n_of[stem]) + 0.1 for stem in sorted(stems))

    def alike(self, one: str, other: str) -> frozenset[str]:
        """The shared stems, if the items say nearly the same; else none."""
        if _are_parallel(self.texts[one], self.texts[other]):
            return frozenset()
        lead = _lead(self.texts[one], self.texts[other])
        left, right = self.stems[one] - lead, self.stems[other] - lead
        least = min(self.weight(left), self.weight(right))
        apart = (left - right) & self.names[one] and (right - left) & self.names[other]
        shared = left & right
        if apart or not least or self.weight(shared) / least < SAME_WORDS:
            return frozenset()
        return shared

    def sources(self, gathering: str) -> dict[str, frozenset[str]]:
        """The earlier items whose results an item gathers, each with the stems that show it;
        none unless they are two and told apart.
        """
        found: dict[str, frozenset[str]] = {}
        for id_ in itertools.takewhile(lambda id_: id_ != gathering, self.texts):
            text = self.texts[id_]
            if id_ in self.gathered or (
                _KEEPS_OPEN.match(text) and "tab" not in self.stems[gathering]
            ):
                continue
            shared = self.stems[id_] & self.gathered[gathering]
            if telling := frozenset(stem for stem in shared if self._tells(stem, id_)):
                found[id_] = telling
        told_apart = {stem for telling in found.values() for stem in telling}
        return found if len(found) > 1 and len(told_apart) > 1 else {}

    def _tells(self, stem: str, id_: str) -> bool:
        """Whether a stem is of few items, or a name of no more than half of them."""
        n = self._n_of_single[stem]
        half = (len(self.texts) - len(self.gathered) + 1) / 2
        return (
            stem not in _COMMON
            and not stem.isdigit()
            and (n <= 2 or (stem in self.names[id_] and n <= half))
        )


def _gathered(text: str) -> str | None:
    """What an item about one summary or document gathers; None if it is no such item."""
    if not _IS_DELIVERED.match(text):
        return None
    found = _GATHERS.search(text)
    if found is not None and re.search(r",| and | with ", text[found.end() :]):
        return text[found.end() :]
    return text if _GATHERS_ALL.search(text) else None


def _same_words(rubric: Rubric) -> Iterator[Overlap]:
    wording = _Wording({item.id: item.requirement for item in rubric.items})
    for one, other in _pairs(rubric):
        shared = wording.alike(one.id, other.id)
        if shared:
            reason = f"both ask in nearly the same words: {wording.spelled(shared)}"
            yield Overlap((one.id, other.id), reason)
    for gathering in wording.gathered:
        for source, shared in wording.sources(gathering).items():
            words = wording.spelled(shared)
            reason = f"{gathering} gathers again what {source} asks for: {words}"
            yield Overlap((source, gathering), reason)


def _are_parallel(one: str, other: str) -> bool:
    """Whether two sentences are one pattern about two things: no defect breaks both."""
    left, right = _all_stems(one), _all_stems(other)
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < 0.6:
        return False
    return any(
        _tells(left[i:j]) and _tells(right[k:n])
        for tag, i, j, k, n in matcher.get_opcodes()
        if tag == "replace"
    )


def _tells(stems: Iterable[str]) -> bool:
    """Whether any of the stems is about a thing, and not only a verb or a filler."""
    return any(stem not in _STOP and stem not in _VERB_STEMS for stem in stems)


def _lead(one: str, other: str) -> frozenset[str]:
    """The stems that two sentences begin with alike."""
    pairs = zip(_all_stems(one), _all_stems(other), strict=False)
    return frozenset(same[0] for same in itertools.takewhile(lambda p: p[0] == p[1], pairs))


def _all_stems(text: str) -> list[str]:
    return [_stem(word) for word in _WORD.findall(text)]


def _stems(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        for part in re.split(r"[-/]", word):
            stem = _stem(part)
            if stem and stem not in _STOP_STEMS and part.lower() not in _STOP:
                yield stem


def _names(text: str) -> Iterator[str]:
    """Stems of what is written like a name or a number, the first word aside."""
    for word in _WORD.findall(text)[1:]:
        if re.match(r"[A-Z0-9$]", word):
            yield from (stem for part in re.split(r"[-/]", word) if (stem := _stem(part)))


def _stem(word: str) -> str:
    word = word.lower().strip("’'")
    for ending in ("'s", "’s", "ings", "ing", "ies", "ied", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending) + ("y" if ending in ("ies", "ied") else "")
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


_VERB_STEMS = frozenset(_stem(form) for form in (*VERBS, *THIRD, *PARTICIPLES, *ING))
_STOP_STEMS = frozenset(_stem(word) for word in _STOP)
_COMMON = frozenset(_stem(word) for word in _EVERYWHERE)
