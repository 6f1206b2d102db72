"""What is doubtful about a rubric that loads: advice for publishers', refused in a release.

The rules read the wording, so they can be wrong. An author who looked at a remark and keeps the
item writes a waiver into the rubric: the rule, the items and the reason. A waiver is shown
wherever the rubric is, and one that answers no remark is a problem itself. What needs no
reading cannot be waived.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from browseruse_bench.benchmarks.compound import cues
from browseruse_bench.benchmarks.overlap import overlaps
from browseruse_bench.benchmarks.requirement_words import (
    ALSO_NOUNS,
    ARTICLES,
    AUXILIARIES,
    CRITERIA,
    ING,
    PARTICIPLES,
    THIRD,
    VERBS,
)
from browseruse_bench.records.rubric import (
    CANARY,
    MARKER,
    AnswerCheck,
    Rubric,
    StateCheck,
    UrlCheck,
    Waiver,
)
from browseruse_bench.records.task import Task

RULES = {
    "compound": "an item asks for several results that can come out differently; split it",
    "overlap": "two items ask for the same, so that one defect costs points twice",
    "refers": "an item leans on another one, so that one defect costs points twice",
    "nothing_done": "an attempt that does nothing may meet the item",
    "given_away": "the task's text says what the answer is",
    "empty_check": "a site that nobody touched may give no rows, too",
    "start_page": "the page on which the attempt begins meets the check",
    "canary": "the canary stands in a text of the rubric",
    "no_evidence": "the item does not say which kind of evidence shows it",
    "uncited": "no item stands on the fact",
    "stale_waiver": "the waiver answers no remark",
}
"""Name of each rule -> what it finds."""
WAIVABLE = frozenset(["compound", "overlap", "refers", "nothing_done", "given_away", "empty_check"])
"""Rules that judge by the wording or by what may be so; all others are certain."""


@dataclass(frozen=True)
class Remark:
    """One doubt about a rubric."""

    rule: str
    """A key of RULES."""
    part: str
    """The field of the rubric that it is about: "items", "facts", "waivers"."""
    ids: tuple[str, ...]
    """The items or facts that it is about; empty: the rubric."""
    field: str | None
    text: str
    """Why, in words that may quote the rubric."""
    waiver: Waiver | None = None
    """What the author said to it."""


def lint(rubric: Rubric, task: Task | None = None) -> tuple[Remark, ...]:
    """All that is doubtful about a rubric, by rule and then by place; the same each time.

    Args:
        rubric: one that loads.
        task: the task it belongs to; without it, what hangs on the task is not looked at.
    """
    remarks = [
        *_compound(rubric),
        *_overlap(rubric),
        *_refers(rubric),
        *_nothing_done(rubric),
        *_given_away(rubric, task),
        *_easy_checks(rubric, task),
        *_canary(rubric),
        *_no_evidence(rubric),
        *_uncited(rubric),
    ]
    return tuple(_waived(remarks, rubric.waivers or ()))


def _waived(remarks: list[Remark], waivers: tuple[Waiver, ...]) -> Iterator[Remark]:
    used: set[int] = set()
    for remark in remarks:
        at = next((n for n, w in enumerate(waivers) if _answers(w, remark)), None)
        if at is None or remark.rule not in WAIVABLE:
            yield remark
        else:
            used.add(at)
            yield Remark(
                remark.rule, remark.part, remark.ids, remark.field, remark.text, waivers[at]
            )
    for n, waiver in enumerate(waivers):
        if n not in used:
            known = waiver.rule in WAIVABLE
            why = "there is no such remark" if known else f"'{waiver.rule}' cannot be waived"
            yield Remark("stale_waiver", "waivers", waiver.items, None, f"waives nothing: {why}")


def _answers(waiver: Waiver, remark: Remark) -> bool:
    return waiver.rule == remark.rule and set(waiver.items) == set(remark.ids)


def _compound(rubric: Rubric) -> Iterator[Remark]:
    for item in rubric.items:
        found = cues(item.requirement)
        if found:
            reasons = "; ".join(dict.fromkeys(cue.reason for cue in found[:3]))
            yield Remark("compound", "items", (item.id,), "requirement", reasons)


def _overlap(rubric: Rubric) -> Iterator[Remark]:
    for overlap in overlaps(rubric):
        yield Remark("overlap", "items", overlap.items, None, overlap.reason)


def _refers(rubric: Rubric) -> Iterator[Remark]:
    for item in rubric.items:
        for other in rubric.items:
            pattern = rf"(?<![\w.-]){re.escape(other.id)}(?![\w-])"
            if other.id != item.id and re.search(pattern, item.requirement):
                text = f"names {other.id}: what is wrong there is wrong here, too"
                yield Remark("refers", "items", (item.id, other.id), "requirement", text)


# Do nothing, earn nothing

_NEGATIVE = re.compile(
    r"\b(?:(?:do|does|did|is|are|was|were|has|have|must|should|may|can)(?: ?n[o’']t|n[’']t)\b"
    r"|cannot\b|never\b|avoid(?:s|ed)?\b|refrain(?:s|ed)?\b|neither\b)"
    r"|^(?:no|nothing|nobody|none|without)\b",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"^(?:if|when|whenever|unless|in case|should|where)\b", re.IGNORECASE)
_OTHERWISE = re.compile(r"\b(?:otherwise|else|if not|or else)\b|; ?(?:if|when)\b", re.IGNORECASE)
_BEFORE_NOUNS = ARTICLES | {"each", "every", "any", "final", "written", "whole"}
_NOTHING_ELSE = re.compile(r"\bnothing else\b|\bno others?\b", re.IGNORECASE)


def _nothing_done(rubric: Rubric) -> Iterator[Remark]:
    """Items that hold where nothing happened: "does not log in", "if there is a pop-up, ..."."""
    for item in rubric.items:
        text = " ".join(item.requirement.split())
        negative = _NEGATIVE.search(_NOTHING_ELSE.sub("", text))
        if negative is not None and not _asks_before(text[: negative.start()]):
            words = f"says only what is not so (“{negative.group()}”): nothing done, nothing wrong"
            yield Remark("nothing_done", "items", (item.id,), "requirement", words)
        elif (condition := _CONDITION.match(text)) and not _OTHERWISE.search(text):
            words = f"asks for something only “{condition.group().lower()}”: where that never is, it holds"
            yield Remark("nothing_done", "items", (item.id,), "requirement", words)


def _asks_before(text: str) -> bool:
    """Whether something is asked for, or a clause begun, before a negation: then it is a claim
    of the agent's that something is not so, or a mere aside.
    """
    words = re.findall(r"[\w’'-]+", text.casefold())
    for before, word in zip(["", *words], words, strict=False):
        noun = word in ALSO_NOUNS or THIRD.get(word) in ALSO_NOUNS
        if word in AUXILIARIES | CRITERIA or (
            (word in VERBS or word in THIRD or word in PARTICIPLES or word in ING)
            and not (noun and before in _BEFORE_NOUNS)
        ):
            return True
    return False


def _easy_checks(rubric: Rubric, task: Task | None) -> Iterator[Remark]:
    for item in rubric.items:
        if isinstance(item.check, StateCheck) and not item.check.equals:
            text = "the check asks for no rows, which an untouched site may give"
            yield Remark("empty_check", "items", (item.id,), "check.equals", text)
        elif isinstance(item.check, UrlCheck) and task is not None:
            for address in (task.start_url, task.website):
                if address and _is_at(item.check, address):
                    text = f"the attempt begins at {address}, which meets the check"
                    yield Remark("start_page", "items", (item.id,), "check", text)
                    break


def _is_at(check: UrlCheck, address: str) -> bool:
    parts = urlsplit(address if "://" in address else f"http://{address}")
    try:
        host = parts.hostname or ""
    except ValueError:
        return False
    path = parts.path.rstrip("/")
    same_path = check.path is None or check.path.rstrip("/") == path
    return host == check.host.casefold() and same_path and not check.query


# What the task gives away


def _given_away(rubric: Rubric, task: Task | None) -> Iterator[Remark]:
    if task is None:
        return
    for item in rubric.items:
        # One of several candidates that the task names is no gift where other words are to be seen.
        if isinstance(item.check, AnswerCheck) and set(item.check.seen or ()) <= set(
            item.check.values
        ):
            given = [_given(str(value), task.task) for value in item.check.values]
            if all(given):
                text = f"the task itself says {', '.join(f'“{word}”' for word in given if word)}"
                yield Remark("given_away", "items", (item.id,), "check.values", text)
    cited = {id_ for item in rubric.items if item.check is None for id_ in item.facts}
    for fact in rubric.facts:
        given = [_given(str(value), task.task) for value in fact.values]
        if fact.id in cited and given and all(given):
            text = f"the task itself says {', '.join(f'“{word}”' for word in given if word)}"
            yield Remark("given_away", "facts", (fact.id,), "values", text)


def _given(value: str, text: str) -> str | None:
    """The alternative of a value that the text states; None: it states none.

    Short numbers and yes or no, which stand in any text, do not count.
    """
    folded = " ".join(text.casefold().split())
    for alternative in value.split(MARKER):
        word = " ".join(alternative.casefold().split())
        telling = len(re.findall(r"\d", word)) > 2 or len(re.findall(r"[^\W\d_]", word)) > 3
        whole = rf"(?<!\w){re.escape(word)}(?!\w)"
        if telling and word not in ("true", "false", "none", "null") and re.search(whole, folded):
            return alternative.strip()
    return None


# What is certain


def _canary(rubric: Rubric) -> Iterator[Remark]:
    tokens = [re.escape(rubric.canary)] if rubric.canary else []
    pattern = re.compile("|".join([*tokens, CANARY.pattern]), re.IGNORECASE)
    for part, id_, text in _texts(rubric):
        if pattern.search(re.sub(r"\s", "", text)):
            ids = (id_,) if id_ else ()
            yield Remark("canary", part, ids, None, "holds a canary, which a judge may repeat")


def _texts(rubric: Rubric) -> Iterator[tuple[str, str | None, str]]:
    """(field, id, all its words) of each element of a rubric but the canary."""
    for part in ("items", "facts", "rulings"):
        for element in getattr(rubric, part):
            yield part, element.id, element.as_line()
    for part in ("answers", "paths", "failures", "false_claims", "waivers"):
        for element in getattr(rubric, part) or ():
            yield part, None, element.as_line()
    yield "task_id", None, rubric.task_id
    yield "text", None, rubric.text or ""


def _no_evidence(rubric: Rubric) -> Iterator[Remark]:
    silent = [
        item.id
        for item in rubric.items
        if item.check is None and "evidence" not in item.model_fields_set
    ]
    text = "missing: page, visual or deliverable; without it page is meant"
    if len(silent) > 1 and len(silent) == len(rubric.items):
        yield Remark("no_evidence", "items", (), "evidence", f"{text} (all items)")
    else:
        for id_ in silent:
            yield Remark("no_evidence", "items", (id_,), "evidence", text)


def _uncited(rubric: Rubric) -> Iterator[Remark]:
    cited = {id_ for item in rubric.items for id_ in item.facts}
    beside = {id_ for claim in rubric.false_claims for id_ in claim.facts}
    for fact in rubric.facts:
        if fact.id not in cited | beside:
            text = "no item and no false claim stands on it"
            yield Remark("uncited", "facts", (fact.id,), None, text)
