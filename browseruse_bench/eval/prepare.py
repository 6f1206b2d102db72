"""Evidence for a judge: a pure function of (trace, rubric, budget), made once per trace.

`select` decides what of a trace is shown, `assemble` writes it down:

- the task and the rubric are no part of it: they are never clipped;
- what an agent did and said (arguments, results, thoughts) is cut in the middle, each to the
  same length, until all of it fits; none of that carries a finding;
- page texts, the answer, files and states share a budget each. The longest are cut first, in the
  middle; the lines around values of the rubric stay. The last page comes before the others;
- of pictures the first and the last are kept, then those of states whose text holds values of
  the rubric, then others, evenly spread. Only pictures that follow each other and are equal are
  merged, so a later return to a state is still seen;
- whatever is left out is listed: to the judge, and in the judgement.

Equal input gives equal bytes. `VERSION` goes up with each change of what is shown.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise

from browseruse_bench.eval import fencing
from browseruse_bench.eval.addresses import same
from browseruse_bench.eval.corroboration import Evidence
from browseruse_bench.eval.material import Kind, Label, Material, Part, Section, Shot
from browseruse_bench.eval.values import Wanted, wanted_values
from browseruse_bench.models.base import Image
from browseruse_bench.records.rubric import Item, Rubric

VERSION = "1"

Range = tuple[int, int]
WINDOW = 200
"""Characters that stay on each side of a value when a text is cut."""
MAX_LINES = 60
"""Of the list of what was left out."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most that one request holds of a trace. Characters are of the trace's own text: about
    four of them are a token.
    """

    images: int = 50
    image_bytes: int = 8_000_000
    """Of all pictures together."""
    steps: int = 250
    call_chars: int = 80_000
    """Calls, their results, thoughts, addresses."""
    page_chars: int = 400_000
    answer_chars: int = 40_000
    file_chars: int = 80_000
    state_chars: int = 40_000
    """Snapshots and probes."""
    chunk_chars: int = 120_000
    """Where a trace is divided: text of one request that rates pieces."""
    chunk_images: int = 16
    rated_chars: int = 4_000_000
    """Text of all such requests of one trace together."""
    rated_images: int = 200
    item_chars: int = 120_000
    """Text of the pieces that one item is then judged on."""
    item_images: int = 12

    def text_only(self) -> Budget:
        """The same without pictures, for a model that reads none. Items that are `visual` can
        then be met by text alone.
        """
        return replace(self, images=0, image_bytes=0, chunk_images=0, rated_images=0, item_images=0)

    def of(self, kind: Kind) -> int:
        """Characters of all sections of a kind."""
        return {
            "page": self.page_chars,
            "answer": self.answer_chars,
            "file": self.file_chars,
            "state": self.state_chars,
            "probe": self.state_chars,
        }[kind]


@dataclass(frozen=True)
class Choice:
    """What of a trace is shown."""

    ranges: Mapping[str, tuple[Range, ...]]
    """Section -> the parts of its text; a section that is not named is left out."""
    shots: frozenset[str]
    steps: frozenset[Label]
    """Steps whose calls are shown."""
    field_chars: int
    """The most that is shown of one argument, result or thought."""


@dataclass(frozen=True)
class Prepared:
    """A trace as a judge reads it."""

    parts: tuple[str | Image, ...]
    shown: frozenset[tuple[Label, str]]
    """(step, ref) of the pictures that can be cited."""
    left_out: tuple[str, ...]
    """One line each, in the harness's own words."""


def fair_cap(lengths: Collection[int], budget: int) -> int:
    """The greatest length to which all texts can be cut so that together they fit."""
    left, n = budget, len(lengths)
    for length in sorted(lengths):
        if length * n > left:
            return left // n
        left -= length
        n -= 1
    return max(lengths, default=0)


def select(evidence: Evidence, material: Material, rubric: Rubric, budget: Budget) -> Choice:
    """What is shown of a trace when it is shown as a whole."""
    needs = Needs(evidence, rubric)
    steps = _steps(material, needs, budget)
    ranges: dict[str, tuple[Range, ...]] = {}
    for kind in ("page", "answer", "file", "state", "probe"):
        sections = [s for s in material.of(kind) if s.step in steps]
        ranges |= _cut(sections, budget.of(kind), needs)
    return Choice(
        ranges=ranges,
        shots=_pictures([s for s in material.shots if steps & set(s.steps)], needs, budget),
        steps=steps,
        field_chars=field_cap(material.parts, steps, budget),
    )


def field_cap(parts: Iterable[Part], steps: Collection[Label], budget: Budget) -> int:
    """To how many characters each argument, result and thought of these steps is cut."""
    lengths = [len(f.text) for part in parts if part.step in steps for f in part.fields]
    return fair_cap(lengths, budget.call_chars)


def clipped(material: Material, choice: Choice, items: Iterable[Item]) -> str:
    """Why a choice may lack what one of these items needs; "" if it cannot.

    Pictures count only where an item stands on pictures alone: no other item can be met by one.
    State does not count: a rubric asks for what it needs of a database by a check, which reads
    all of it.
    """
    if len(choice.steps) < len(material.parts):
        return "more steps than are shown at a time"
    for section in material.sections:
        shown = sum(end - start for start, end in choice.ranges.get(section.id, ()))
        if section.kind in ("state", "probe") or section.same_as is not None:
            continue
        if shown < len(section.text):
            return f"more text than is shown at a time ({section.kind})"
    visual = any(item.evidence == "visual" for item in items)
    if visual and len(choice.shots) < len(material.shots):
        return "more pictures than are shown at a time"
    return ""


class Needs:
    """Where in a trace the values of a rubric stand; asked only where something must go."""

    def __init__(self, evidence: Evidence, rubric: Rubric, items: Sequence[Item] = ()) -> None:
        """Of these items; default: of all that no code check settles."""
        chosen = items or [item for item in rubric.items if item.check is None]
        self._evidence = evidence
        self._values: list[Wanted] = [v for i in chosen for v in wanted_values(rubric, i)]
        names = {name for item in chosen for name in item.facts}
        self._urls = {fact.url for fact in rubric.facts if fact.url and fact.id in names}

    def places(self, section: Section) -> list[Range]:
        """What surrounds the first place of each value in a page's text, as long as it proves
        something there.
        """
        if section.kind != "page" or section.ref is None:
            return []
        text = next(
            t for t in self._evidence.texts if (t.step, t.ref) == (section.step, section.ref)
        )
        if text.why_not is not None:
            return []
        normal = self._evidence.read(section.ref).text
        lines: set[int] = set()
        for target in (target for wanted in self._values for target in wanted.options):
            place = self._evidence.place(section.ref, target)
            if place is not None and self._evidence.weakness(text, target) is None:
                lines.add(normal.count("\n", 0, place[0]))
        return list(_around(section.text, sorted(lines))) if lines else []

    @cached_property
    def steps(self) -> dict[Label, int]:
        """How many values each step's page shows; an address of a fact counts as one."""
        counts: dict[Label, int] = {}
        for text in self._evidence.texts:
            held = sum(
                any(self._evidence.place(text.ref, target) for target in wanted.options)
                for wanted in self._values
            )
            named = any(same(url, text.url) for url in self._urls)
            if held or named:
                counts[text.step] = counts.get(text.step, 0) + held + named
        return counts


def _steps(material: Material, needs: Needs, budget: Budget) -> frozenset[Label]:
    labels: list[Label] = [part.step for part in material.parts]
    if len(labels) <= budget.steps:
        return frozenset(labels)
    needed = needs.steps
    wanted = [i for i, label in enumerate(labels) if needed.get(label)]
    return frozenset(labels[i] for i in spread(len(labels), wanted, most=budget.steps))


def spread(n: int, needed: Sequence[int], *, most: int) -> list[int]:
    """The places of 0..n-1 that are kept, in the order in which they are: the last, the first,
    the needed ones, then always the one farthest from what is kept (of several the earliest).
    """
    order = list(dict.fromkeys([n - 1, 0])) if n else []
    distance = {i: min(abs(i - kept) for kept in order) for i in needed if i not in order}
    while distance and len(order) < most:
        best = max(distance, key=lambda i: (distance[i], -i))
        order.append(best)
        del distance[best]
        for i in distance:
            distance[i] = min(distance[i], abs(i - best))
    # Of a gap its middle is the farthest: an agent decides how many places there are, so no
    # place may be compared with every other one.
    gaps = [gap for a, b in pairwise(sorted(order)) for gap in _gap(a, b)]
    heapq.heapify(gaps)
    while gaps and len(order) < most:
        _, middle, a, b = heapq.heappop(gaps)
        order.append(middle)
        for gap in (*_gap(a, middle), *_gap(middle, b)):
            heapq.heappush(gaps, gap)
    return order[:most]


def _gap(a: int, b: int) -> tuple[tuple[int, int, int, int], ...]:
    """What lies between two kept places: the wider, then the earlier comes first."""
    half = (b - a) // 2
    return ((-half, a + half, a, b),) if half else ()


def _pictures(shots: Sequence[Shot], needs: Needs, budget: Budget) -> frozenset[str]:
    n_bytes = sum(shot.n_bytes for shot in shots)
    if len(shots) <= budget.images and n_bytes <= budget.image_bytes:
        return frozenset(shot.id for shot in shots)
    needed = needs.steps
    wanted = [i for i, shot in enumerate(shots) if any(needed.get(s) for s in shot.steps)]
    kept: list[str] = []
    left = budget.image_bytes
    for i in spread(len(shots), wanted, most=budget.images):
        if shots[i].n_bytes <= left:
            kept.append(shots[i].id)
            left -= shots[i].n_bytes
    return frozenset(kept)


def _cut(sections: Sequence[Section], budget: int, needs: Needs) -> dict[str, tuple[Range, ...]]:
    """The parts of these sections that fit; those of the end come before the others."""
    last = [s for s in sections if s.step == "final"]
    others = [s for s in sections if s.step != "final"]
    ranges: dict[str, tuple[Range, ...]] = {}
    left = budget
    for group, share in ((last, budget // 2 if others else budget), (others, budget)):
        cap = fair_cap([len(s.text) for s in group], min(share, left))
        for section in group:
            ranges[section.id] = cut(section, cap, needs)
            left -= min(cap, len(section.text))
    return ranges


def cut(section: Section, limit: int, needs: Needs) -> tuple[Range, ...]:
    """The parts of a text that stay: its beginning, its end, and what surrounds values."""
    text = section.text
    if len(text) <= limit:
        return ((0, len(text)),) if text else ()
    left = limit * 3 // 10
    windows: list[Range] = []
    for start, end in needs.places(section):
        if end - start <= left:
            windows.append((start, end))
            left -= end - start
    head, tail = limit * 45 // 100 + left, limit * 25 // 100
    return _joined(text, [(0, head), *windows, (len(text) - tail, len(text))])


def _around(text: str, lines: Iterable[int]) -> Iterator[Range]:
    starts = [0, *(found.end() for found in re.finditer("[\n\r\u2028\u2029]", text))]
    for n in lines:
        start = starts[min(n, len(starts) - 1)]
        end = starts[n + 1] if n + 1 < len(starts) else len(text)
        yield max(0, start - WINDOW), min(len(text), min(end, start + 2000) + WINDOW)


def stretches(text: str, size: int) -> list[Range]:
    """A text in parts of about a size, which begin and end between words."""
    ends = [0]
    while ends[-1] < len(text):
        end = _between_words(text, min(ends[-1] + size, len(text)), -1)
        ends.append(end if end > ends[-1] else min(ends[-1] + size, len(text)))
    return list(pairwise(ends))


def _joined(text: str, ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Ranges in order, none within another, which begin and end between words."""
    joined: list[Range] = []
    for start, end in sorted(ranges):
        start, end = _between_words(text, start, 1), _between_words(text, end, -1)
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif start < end:
            joined.append((start, end))
    return tuple(joined)


def _between_words(text: str, at: int, way: int) -> int:
    """The nearest place between two words, at most 80 characters on: no number is cut."""
    for place in range(at, at + 80 * way, way):
        if place <= 0 or place >= len(text):
            return min(max(place, 0), len(text))
        if text[place - 1].isspace() or text[place].isspace():
            return place
    return at


# Writing down


def assemble(material: Material, choice: Choice, fence: str, *, named: bool = False) -> Prepared:
    """The trace as text and pictures, in its own order.

    Args:
        material: the trace.
        choice: what of it is shown.
        fence: the token around all data.
        named: whether each piece is shown with the name by which it is rated.
    """
    writer = _Writer(fence, named)
    for part in material.parts:
        sections = [s for s in material.sections if s.step == part.step]
        shots = [s for s in material.shots if s.step == part.step and s.id in choice.shots]
        shown = [s for s in sections if choice.ranges.get(s.id)]
        if part.step not in choice.steps and not shown and not shots:
            continue
        title = "The state at the end" if part.step == "final" else f"Step {part.step}"
        writer.say(f"## {title}")
        if part.step in choice.steps:
            writer.fields(part, choice.field_chars)
        for section in sections:
            writer.section(section, choice.ranges.get(section.id, ()), choice)
        for shot in shots:
            writer.shot(shot)
    shown_shots = [s for s in material.shots if s.id in choice.shots]
    return Prepared(
        parts=writer.done(),
        shown=frozenset((step, shot.ref) for shot in shown_shots for step in shot.steps),
        left_out=left_out(material, choice),
    )


class _Writer:
    def __init__(self, fence: str, named: bool) -> None:
        self.fence = fence
        self.named = named
        self.lines: list[str] = []
        self.parts: list[str | Image] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def fields(self, part: Part, cap: int) -> None:
        if self.named:
            self.say(f"piece {part.step}")
        for field in part.fields:
            text = field.text
            if len(text) <= cap and "\n" not in text:
                self.say(f"{field.name}: {fencing.line(text, self.fence)}")
                continue
            self.say(f"{field.name}:")
            half = cap // 2
            whole = len(text) <= cap
            self.ranges(
                text, [(0, len(text))] if whole else [(0, half), (len(text) - half, len(text))]
            )

    def ranges(self, text: str, ranges: Sequence[Range]) -> None:
        at = 0
        for start, end in ranges:
            self._gap(start - at)
            if start < end:
                self.say(fencing.block(text[start:end], self.fence))
            at = end
        self._gap(len(text) - at)

    def _gap(self, n: int) -> None:
        if n > 0:
            self.say(f"[{n:,} characters are left out here]")

    def section(self, section: Section, ranges: Sequence[Range], choice: Choice) -> None:
        if section.same_as is not None:
            if section.step in choice.steps:
                self.say(f"{section.head}: the same as at step {section.same_as}")
            return
        if not ranges and section.text:
            return
        self.say(f"{section.head}:")
        if section.name:
            self.say(f"name: {fencing.line(section.name, self.fence)}")
        if not self.named:
            self.ranges(section.text, ranges)
            return
        for start, end in ranges:
            self.say(f"piece {piece_id(section.id, start)}")
            self.say(fencing.block(section.text[start:end], self.fence))

    def shot(self, shot: Shot) -> None:
        label = f"piece {shot.id}, " if self.named else ""
        also = f"; nothing changed in it at {_steps_text(shot.also)}" if shot.also else ""
        self.say(f"{label}picture {shot.ref[:12]} of step {shot.step}{also}; it follows here:")
        self.flush()
        self.parts.append(shot.image)

    def flush(self) -> None:
        if self.lines:
            begin, end = f"BEGIN DATA {self.fence}", f"END DATA {self.fence}"
            self.parts.append("\n".join([begin, *self.lines, end]))
            self.lines = []

    def done(self) -> tuple[str | Image, ...]:
        self.flush()
        return tuple(self.parts)


def piece_id(section: str, start: int) -> str:
    """The name of the part of a section that begins at a place."""
    return f"{section}@{start}"


def left_out(material: Material, choice: Choice) -> tuple[str, ...]:
    """What of a trace a choice leaves out, one line each, in the harness's own words."""
    gone: list[str] = []
    missing: list[Label] = [p.step for p in material.parts if p.step not in choice.steps]
    if missing:
        gone.append(f"calls of {_steps_text(missing)}")
    for kind, sections in groupby(material.sections, key=lambda s: s.kind):
        whole: list[Label] = []
        for section in sections:
            shown = sum(end - start for start, end in choice.ranges.get(section.id, ()))
            n = len(section.text)
            if section.same_as is not None or shown == n:
                continue
            if shown:
                gone.append(f"{section.id} ({kind}): {n - shown:,} of {n:,} characters")
            else:
                whole.append(section.step)
        if whole:
            gone.append(f"{kind} text of {_steps_text(whole)}")
    if shots := [s for s in material.shots if s.id not in choice.shots]:
        gone.append(f"pictures of {_steps_text([step for s in shots for step in s.steps])}")
    long = [f for p in material.parts for f in p.fields if len(f.text) > choice.field_chars]
    if long:
        gone.append(f"the middle of {len(long)} calls, results or thoughts")
    gone += material.notes
    more = len(gone) - MAX_LINES
    return tuple(gone if more <= 0 else [*gone[:MAX_LINES], f"and {more} more"])


def _steps_text(labels: Sequence[Label]) -> str:
    """Steps as people write them: "steps 2, 5-9 and the end"."""
    numbers = sorted({label for label in labels if isinstance(label, int)})
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [f"{a}" if a == b else f"{a}-{b}" for a, b in runs]
    steps = f"step{'s' if len(numbers) > 1 else ''} {', '.join(texts)}" if texts else ""
    end = "the end" if "final" in labels else ""
    return " and ".join(text for text in (steps, end) if text)
