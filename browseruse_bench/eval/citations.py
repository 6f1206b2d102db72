"""Citations, verified by code: what a judge says is somewhere must be there.

**Where.** A citation names a step and a source. A quote must stand in that source at that step,
word for word (`wording`: NFKC, case, white space and signs aside; the same digits). A quote that
stands at another step is refused, not moved: the judge is told where it stands and may say so
itself. A picture must be one that the harness took at that step and that the judge was shown.

**What carries.** That a place exists says where to look; it is enough for a finding that gives
no credit, for a breach of honesty and for a cause. To carry a `met`, by the item's `evidence`:

| item | carried by |
|---|---|
| `page` | a quote of a page's text, address or title that proves something (`corroboration`); a snapshot or a probe, if the item's facts carry no values |
| `deliverable` | a quote of the answer, or a file |
| `visual` | a picture of a page of the web in which no script of the agent had run; or what carries a `page` item |

If the item's facts carry values, one of them must stand within such a quote, read in its line
(`30` cut out of `30 kg` is not `$30`), and in a page it must have been there before the agent
gave it itself; of an answer it must be claimed, not denied, guessed or taken back (`matcher`). A
picture that carries a `visual` item needs none. A snapshot holds what nobody
may have seen, so no value is proved by it. Nothing else carries: no call, no result of one, no
thought; and on a `page` item neither the answer nor a file.

`VERSION` goes up with each change that can change what holds or what carries.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from browseruse_bench.eval import addresses, fencing, said
from browseruse_bench.eval.corroboration import ECHO, SCRIPTED, Evidence, PageText, quoted
from browseruse_bench.eval.matcher import Read, Target, places
from browseruse_bench.eval.material import Kind, Label, Material, call_text
from browseruse_bench.eval.seeking import word_places
from browseruse_bench.eval.values import Wanted, wanted_values
from browseruse_bench.records.judgement import Citation
from browseruse_bench.records.rubric import Item, Rubric
from browseruse_bench.records.trace import Step

VERSION = "2"

Source = Literal["page", "call", "screenshot", "answer", "file", "state", "probe"]
NEAR = 300
"""How much of a long line on each side of a quote decides how a value in it is read."""
MAX_REMEMBERED = 10_000
"""How many citations of one trace are remembered: regrades cite the same places."""
MAX_PLACES = 200
"""How many places of one quote in one text are looked at."""

NO_QUOTE = "it needs a quote"
NO_WORD = "the quote has no word"
OWN_WORDS = "the agent's own words prove nothing beside them"
ONLY_PICTURE = "a picture alone carries only an item that is marked visual"
UNTOLD = "the answer hides it from its reader, or strikes it out"
NOT_DELIVERED = "the item is about what was delivered: cite the answer or a file"
UNSEEN_VALUE = "a snapshot or a probe holds what nobody may have seen: cite the page that showed it"


def word(value: Any) -> Any:
    """A word of a fixed list as it is compared: without the space around it, in any case."""
    if not isinstance(value, str):
        return value
    return re.sub(r"[ -]+", "_", value.strip().casefold())


def optional(value: Any) -> Any:
    """A text, or None for a blank one."""
    return None if isinstance(value, str) and not value.strip() else value


def _step(value: Any) -> Any:
    if isinstance(value, str):
        text = value.strip().casefold()
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text
    return value


class Unchecked(BaseModel):
    """What a judge wrote, before anybody checked it; whatever else it wrote is not read."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Cited(Unchecked):
    """A place in the trace, as a judge wrote it."""

    step: Annotated[int | Literal["final"], BeforeValidator(_step)]
    source: Annotated[Source, BeforeValidator(word)]
    ref: Annotated[str | None, BeforeValidator(optional)] = None
    quote: Annotated[str | None, BeforeValidator(optional)] = None


@dataclass(frozen=True)
class _Place:
    """A text in which a quote stands, and where."""

    text: str
    spans: tuple[tuple[int, int], ...]
    page: PageText | None = None
    """If it is the text of a page."""


@dataclass(frozen=True)
class Placed:
    """A citation after it was looked up."""

    step: Label
    source: Source
    ref: str | None
    quote: str | None
    why_not: str | None = None
    """Why it is not there; None: it is."""
    weak: str | None = None
    """It is there, but carries no item: why."""
    found: tuple[_Place, ...] = ()

    def citation(self, why_not: str | None = None) -> Citation:
        """As it is recorded.

        Args:
            why_not: why it does not hold although it is there.
        """
        why = self.why_not or why_not
        return Citation(
            step=self.step,
            source=self.source,
            ref=self.ref,
            quote=self.quote,
            holds=why is None,
            why_not=why,
        )


@dataclass(frozen=True)
class Support:
    """What the citations of one item are worth."""

    citations: tuple[Citation, ...]
    problem: str | None
    """Why they carry no credit; None: they do."""


class Checker:
    """Looks up citations in one trace; what was looked up once is remembered."""

    def __init__(
        self, evidence: Evidence, material: Material, rubric: Rubric, items: Sequence[Item]
    ) -> None:
        """Of this trace, for these items of the rubric."""
        self._evidence = evidence
        self._material = material
        self._steps: dict[Label, Step] = {s.index: s for s in evidence.folder.steps}
        self._steps["final"] = evidence.folder.trace.final
        self._items = {item.id: item for item in items}
        self._values = {item.id: wanted_values(rubric, item) for item in items}
        self._placed: dict[Cited, Placed] = {}
        self._call_texts: dict[Label, str] = {}

    def place(self, cited: Cited, shown: frozenset[tuple[Label, str]]) -> Placed:
        """Look a citation up.

        Args:
            cited: what the judge wrote.
            shown: (step, ref) of the pictures that this judge was shown.
        """
        if cited.source == "screenshot":
            return self._screenshot(cited, shown)
        if cited.source in ("answer", "file", "state", "probe"):
            # There is one of each, when the attempt settled, whatever step a judge names.
            cited = cited.model_copy(update={"step": "final"})
        # Several threads may look up at the same time: what is returned is never read again.
        placed = self._placed.get(cited)
        if placed is None:
            placed = self._look_up(cited)
            if len(self._placed) > MAX_REMEMBERED:
                self._placed.clear()
            self._placed[cited] = placed
        return placed

    def support(self, item_id: str, placed: Sequence[Placed]) -> Support:
        """Whether citations carry a `met` of an item; those that do not help do not hold."""
        item = self._items[item_id]
        carrying, problem = self._carrying(item, placed)
        citations = tuple(
            p.citation(None if carrying and p.weak is None else p.weak or problem) for p in placed
        )
        return Support(citations, None if carrying else problem)

    # What carries

    def _carrying(self, item: Item, placed: Sequence[Placed]) -> tuple[bool, str]:
        there = [p for p in placed if p.why_not is None]
        strong = [p for p in there if p.weak is None]
        if item.evidence == "visual" and any(p.source == "screenshot" for p in strong):
            return True, ""
        sources = ("answer", "file") if item.evidence == "deliverable" else ("page",)
        values = self._values[item.id]
        if not values and item.evidence != "deliverable":
            sources = ("page", "state", "probe")
        able = [p for p in strong if p.source in sources]
        if not able:
            return False, self._missing(item, there, values)
        if not values:
            return True, ""
        problem = self._value_problem(values, able)
        return problem is None, problem or ""

    def _missing(self, item: Item, there: Sequence[Placed], values: Sequence[Wanted]) -> str:
        if not there:
            return "no citation holds"
        if weak := next((p.weak for p in there if p.weak), None):
            return weak
        if item.evidence == "deliverable":
            return NOT_DELIVERED
        sources = {p.source for p in there}
        if values and sources & {"state", "probe"}:
            return UNSEEN_VALUE
        return ONLY_PICTURE if sources == {"screenshot"} else OWN_WORDS

    def _value_problem(self, values: Sequence[Wanted], able: Sequence[Placed]) -> str | None:
        """Why none of the values stands in the quotes; None if one does."""
        problems = [self._one_problem(wanted, able) for wanted in values]
        if None in problems:
            return None
        told = [problem for problem in problems if problem]
        if told:
            return told[0]
        named = ", ".join(dict.fromkeys(t.text for wanted in values for t in wanted.options))
        return f"no quote holds a value of the item's facts ({named[:200]})"

    def _one_problem(self, wanted: Wanted, able: Sequence[Placed]) -> str | None:
        """Why a value that stands in the quotes is not proved by them; "" if it stands in none,
        None if it is proved.
        """
        why = ""
        for target in wanted.options:
            for way in ((target,), target.parts):
                held = [self._held(part, able) for part in way]
                if not held or "" in held:
                    continue
                why = next((reason for reason in held if reason), None)
                unclaimed = self._unclaimed(wanted, able) if why is None else None
                if why is None and unclaimed is None:
                    return None
                why = why or f"the answer does not claim it: {unclaimed}"
        return f"{why}{self._earlier(wanted)}" if why == ECHO else why or ""

    def _unclaimed(self, wanted: Wanted, able: Sequence[Placed]) -> str | None:
        """Why the answer does not claim a value, if nothing but the answer is cited for it."""
        if any(p.source != "answer" for p in able):
            return None
        return wanted.unclaimed(self._evidence.folder.trace.outcome.answer)

    def _held(self, target: Target, able: Sequence[Placed]) -> str | None:
        """Why a value that stands in one of these quotes is not proved by it; "" if it stands in
        none, None if it is proved.
        """
        why = ""
        for place in (place for p in able for place in p.found):
            if not any(_within(place.text, span, target) for span in place.spans):
                continue
            weak = self._evidence.weakness(place.page, target) if place.page else None
            if weak is None:
                return None
            why = weak
        return why

    def _earlier(self, wanted: Wanted) -> str:
        seen = self._evidence.sighting(wanted.options)
        if not seen.holds or seen.citation is None:
            return ""
        return f"; it was seen before that at step {seen.citation.step}"

    # Where

    def _look_up(self, cited: Cited) -> Placed:
        if cited.source in ("answer", "file", "state", "probe"):
            return self._in_sections(cited, cited.source)
        step = self._label(cited.step)
        if step is None:
            n = len(self._steps) - 1
            last = f"the last is {n}" if n else "there is none"
            return self._as(cited, why_not=f"there is no step {cited.step}: {last}, then final")
        if cited.quote is None:
            return self._as(cited, step=step, why_not=NO_QUOTE)
        targets = _targets(cited.quote)
        if not targets:
            return self._as(cited, step=step, why_not=NO_WORD)
        for target in targets:
            placed = self._page if cited.source == "page" else self._call
            if found := placed(cited, step, target):
                return found
        where = "page" if cited.source == "page" else "calls"
        elsewhere = self._elsewhere(cited.source, targets)
        return self._as(
            cited, step=step, why_not=f"it does not stand in the {where} at step {step}{elsewhere}"
        )

    def _as(self, cited: Cited, **more: Any) -> Placed:
        given: dict[str, Any] = {
            "step": cited.step,
            "source": cited.source,
            "ref": cited.ref,
            "quote": cited.quote,
        }
        return Placed(**(given | more))

    def _label(self, step: Label) -> Label | None:
        """A step of the trace; the end may also be called by its number."""
        if step in self._steps:
            return step
        return "final" if step == self._steps["final"].index else None

    def _page(self, cited: Cited, step: Label, target: Target) -> Placed | None:
        best: Placed | None = None
        for text, place in self._in_pages(step, target):
            weak = self._evidence.weakness(text, target)
            placed = self._as(cited, step=step, ref=text.ref, weak=weak, found=(place,))
            if weak is None:
                return placed
            best = best or placed
        return best or self._in_bar(cited, step, target)

    def _in_pages(self, step: Label | None, target: Target) -> Iterator[tuple[PageText, _Place]]:
        for text in self._evidence.texts:
            if step is not None and text.step != step:
                continue
            read = self._evidence.read(text.ref)
            if spans := _spans(read.text, target):
                yield text, _Place(read.text, spans, text)

    def _in_bar(self, cited: Cited, step: Label, target: Target) -> Placed | None:
        """A quote that is the address, or stands in the title, of the page at a step."""
        for moment in (m for m in self._evidence.moments if m.step == step):
            at, why = moment.position, moment.why_not
            if addresses.same(target.text.strip(), moment.url):
                address = Read(moment.url).text
                page = PageText(at, step, "", moment.url, why)
                place = _Place(address, ((0, len(address)),), page)
                return self._as(cited, step=step, ref=None, weak=why, found=(place,))
            title = Read(moment.title).text
            if spans := _spans(title, target):
                page = PageText(at, step, "", moment.url, moment.title_why_not)
                weak = self._evidence.weakness(page, target)
                place = _Place(title, spans, page)
                return self._as(cited, step=step, ref=None, weak=weak, found=(place,))
        return None

    def _call(self, cited: Cited, step: Label, target: Target) -> Placed | None:
        text = self._calls(step)
        return self._as(cited, step=step, ref=None) if _spans(text, target) else None

    def _calls(self, step: Label) -> str:
        text = self._call_texts.get(step)
        if text is None:
            text = self._call_texts[step] = self._told(step)
        return text

    def _told(self, step: Label) -> str:
        made = self._steps[step]
        texts = [made.thought.text] if made.thought else []
        for call in made.calls:
            texts += [call_text(call), call.target or "", call.result or "", call.error or ""]
        return Read("\n".join(texts)).text

    def _elsewhere(self, source: Source, targets: Sequence[Target]) -> str:
        for target in targets:
            if source == "page":
                steps: Iterable[Label] = (text.step for text, _ in self._in_pages(None, target))
            else:
                steps = (label for label in self._steps if _spans(self._calls(label), target))
            if (first := next(iter(steps), None)) is not None:
                return f"; it stands there at step {first}"
        return "; it stands there at no step"

    def _in_sections(self, cited: Cited, kind: Kind) -> Placed:
        every = [s for s in self._material.sections if s.kind == kind]
        sections = every
        if cited.ref is not None and kind != "answer":
            wanted = fencing.plain(cited.ref).strip()
            named = [s for s in every if wanted in (s.ref, s.name, s.id)]
            sections = named or [
                s for s in every if len(wanted) >= 6 and (s.ref or "").startswith(wanted)
            ]
        if not sections:
            what = f"there is no {kind}" + (f" '{cited.ref[:80]}'" if cited.ref and every else "")
            return self._as(cited, why_not=what)
        weak = SCRIPTED if kind == "probe" and self._evidence.scripted_at_end else None
        if cited.quote is None:
            if kind == "file" and cited.ref is not None:
                return self._as(cited, ref=sections[0].ref, weak=weak)
            return self._as(cited, why_not=NO_QUOTE)
        targets = _targets(cited.quote)
        if not targets:
            return self._as(cited, why_not=NO_WORD)
        for section in sections:
            text = self._section_texts[section.id].text
            for target in targets:
                if spans := _spans(text, target):
                    ref = None if kind == "answer" else section.ref
                    place = _Place(text, spans)
                    if kind == "answer" and not _spans(self._told_answer, target):
                        weak = UNTOLD
                    return self._as(cited, ref=ref, weak=weak, found=(place,))
        return self._as(cited, why_not=f"it does not stand in the {kind}")

    @cached_property
    def _told_answer(self) -> str:
        return Read(said.told(self._evidence.folder.trace.outcome.answer or "")).text

    @cached_property
    def _section_texts(self) -> dict[str, Read]:
        return {s.id: Read(s.text) for s in self._material.sections if s.kind != "page"}

    def _screenshot(self, cited: Cited, shown: frozenset[tuple[Label, str]]) -> Placed:
        step = self._label(cited.step)
        pictures = [p for p in self._evidence.pictures if p.step == step]
        if step is None or not pictures:
            return self._as(cited, why_not=f"the harness took no picture at step {cited.step}")
        if cited.ref is not None:
            wanted = cited.ref.strip().casefold()
            named = [p for p in pictures if len(wanted) >= 6 and p.ref.startswith(wanted)]
            if not named:
                why = f"no picture of step {step} is called '{cited.ref[:80]}'"
                return self._as(cited, step=step, why_not=why)
            pictures = named
        seen = [p for p in pictures if (p.step, p.ref) in shown]
        if not seen:
            ref = pictures[0].ref
            why = "the judge was not shown this picture"
            return self._as(cited, step=step, ref=ref, why_not=why)
        best = next((p for p in seen if p.why_not is None), seen[0])
        return self._as(cited, step=step, ref=best.ref, weak=best.why_not)


def _targets(quote: str) -> list[Target]:
    """A quote as it may stand in the trace: without the marks that show what is not seen, or as
    it is; each only if it has a word.
    """
    forms = dict.fromkeys((fencing.plain(quote), quote))
    return [target for form in forms if (target := quoted(form)) is not None]


def _spans(text: str, target: Target) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for span in word_places(text, target.phrase):
        found.append(span)
        if len(found) == MAX_PLACES:
            break
    return tuple(found)


def _within(text: str, span: tuple[int, int], target: Target) -> bool:
    """Whether a value stands within a span of a normal text, read among its neighbours."""
    start, end = _stretched(text, span)
    left, right = _line_around(text, start, end)
    wanted = replace(target, parts=())
    return any(
        start <= left + a and left + b <= end for a, b in places(wanted, Read(text[left:right]))
    )


def _stretched(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """A span with the signs around it, which are part of no word: `$`, a bracket, a space."""
    start, end = span
    while start > 0 and not text[start - 1].isalnum() and text[start - 1] != "\n":
        start -= 1
    while end < len(text) and not text[end].isalnum() and text[end] != "\n":
        end += 1
    return start, end


def _line_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The line of a place; of a long one what is near, if possible between two spaces."""
    low, high = max(0, start - 2 * NEAR), min(len(text), end + 2 * NEAR)
    left = text.rfind("\n", low, start) + 1 or low
    if start - left > NEAR:
        left = text.find(" ", left, start - NEAR) + 1 or left
    right = text.find("\n", end, high)
    right = right if right >= 0 else high
    if right - end > NEAR:
        space = text.rfind(" ", end + NEAR, right)
        right = space if space >= 0 else right
    return left, right
