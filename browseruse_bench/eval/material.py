"""A trace taken apart for reading: steps, texts and pictures, in order and unclipped.

What the agent did and said (calls, results, thoughts) is the head of a step; what can carry a
finding (page texts, the answer, files, state, probes) is a section; a screenshot is a shot.
Sections and shots of one state that follows itself are one; a later return to it is another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from browseruse_bench.errors import GraderError
from browseruse_bench.eval import checks, snapshot
from browseruse_bench.eval.corroboration import Evidence
from browseruse_bench.models.base import Image, MediaType
from browseruse_bench.records.trace import Call, Observation, Step

Label = int | Literal["final"]
Kind = Literal["page", "answer", "file", "state", "probe"]

MEDIA: dict[str, MediaType] = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
}
MAX_FILES = 100
"""How many files of one trace are read to a judge."""
MAX_FILE_CHARS = 200_000
"""How much of one file can be cited."""


@dataclass(frozen=True)
class Field:
    """One thing that the agent did or said, or the harness noted."""

    name: str
    text: str


@dataclass(frozen=True)
class Part:
    """One step without its evidence."""

    step: Label
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Section:
    """One text that can carry a finding."""

    id: str
    kind: Kind
    step: Label
    head: str
    """What it is, in the harness's own words."""
    text: str
    ref: str | None = None
    """File of the evidence, or name of a file."""
    name: str = ""
    """What the agent or a page called it: data."""
    same_as: Label | None = None
    """The step before, which has the very same text; it is not shown again."""


@dataclass(frozen=True)
class Shot:
    """One picture."""

    id: str
    step: Label
    ref: str
    image: Image
    n_bytes: int
    also: tuple[Label, ...] = ()
    """The steps right after it with the very same picture."""

    @property
    def steps(self) -> tuple[Label, ...]:
        """All steps that it shows."""
        return (self.step, *self.also)


@dataclass(frozen=True)
class Material:
    """One trace, taken apart."""

    parts: tuple[Part, ...]
    sections: tuple[Section, ...]
    shots: tuple[Shot, ...]
    notes: tuple[str, ...] = field(default=())
    """What could not be read at all."""

    def of(self, kind: Kind) -> Iterator[Section]:
        """The sections of one kind that are shown."""
        return (s for s in self.sections if s.kind == kind and s.same_as is None)


def take_apart(evidence: Evidence) -> Material:
    """All that a judge can be given of a trace.

    Raises:
        DataError: an observation names a file that the trace does not have.
    """
    folder = evidence.folder
    trace = folder.trace
    notes: list[str] = []
    parts: list[Part] = []
    sections: list[Section] = []
    shots: list[Shot] = []
    for step in folder.all_steps:
        label: Label = "final" if step is trace.final else step.index
        parts.append(Part(label, tuple(_fields(step))))
        sections += _pages(evidence, step, label)
        shots += _shots(evidence, step, label, notes)
    sections = _merged_pages(sections)
    sections += _states(evidence, notes)
    if trace.outcome.answer is not None:
        sections.append(Section("answer", "answer", "final", "answer", trace.outcome.answer))
    sections += _files(evidence, notes)
    return Material(tuple(parts), tuple(sections), tuple(_merged_shots(shots)), tuple(notes))


def call_text(call: Call) -> str:
    """A call as one line: its name and its arguments."""
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    native = f" ({call.native_name})" if call.native_name not in (None, call.name) else ""
    return f"{call.name}{native} {arguments}"


def _fields(step: Step) -> Iterator[Field]:
    page = step.page_after
    if page is not None:
        yield Field("address", page.url)
        if page.title:
            yield Field("title", page.title)
        others = [url for url in page.tabs if url != page.url]
        if others:
            yield Field("other tabs", "\n".join(others))
    if step.thought is not None and step.thought.text.strip():
        yield Field("thought of the agent", step.thought.text)
    for call in step.calls:
        yield Field("call", call_text(call))
        if call.target:
            yield Field("target of the call", call.target)
        if call.result:
            yield Field("result, told by the agent's own program", call.result)
        if call.error:
            yield Field("error of the call", call.error)
    for error in step.errors:
        yield Field("noted by the harness", error)


def _pages(evidence: Evidence, step: Step, label: Label) -> Iterator[Section]:
    why = {text.ref: text.why_not for text in evidence.texts if text.step == label}
    n = 0
    for observation in step.observations:
        if observation.kind not in ("text", "aria") or not evidence.counts(observation):
            continue
        n += 1
        raw = evidence.folder.evidence(observation.ref).decode("utf-8", "replace")
        dialog = observation.name == "dialog"
        head = "message of a dialog" if dialog else f"page text ({_source(observation)})"
        if observation.timing == "before":
            head += ", before the call"
        if observation.n_chars is not None:
            head += f", recorded {len(raw):,} of {observation.n_chars:,} characters"
        if weak := why.get(observation.ref):
            head += f"; it proves nothing: {weak}"
        ident = f"{label}.page" if n == 1 else f"{label}.page{n}"
        yield Section(ident, "page", label, head, raw, observation.ref)


def _source(observation: Observation) -> str:
    kind = "" if observation.kind == "text" else ", accessibility tree"
    by = "harness" if observation.captured_by == "harness" else "told by the agent"
    return f"{by}{kind}"


def _merged_pages(sections: Sequence[Section]) -> list[Section]:
    merged: list[Section] = []
    for section in sections:
        last = merged[-1] if merged else None
        if last is not None and (last.ref, last.head) == (section.ref, section.head):
            section = replace(section, same_as=last.same_as or last.step)
        merged.append(section)
    return merged


def _shots(evidence: Evidence, step: Step, label: Label, notes: list[str]) -> Iterator[Shot]:
    n = 0
    for observation in step.observations:
        if observation.kind != "screenshot" or not evidence.counts(observation):
            continue
        n += 1
        path = evidence.folder.evidence_path(observation.ref).absolute()
        media = MEDIA.get(path.suffix.lower())
        if media is None:
            notes.append(f"a picture of step {label}: no judge reads files of its type")
            continue
        ident = f"{label}.picture" if n == 1 else f"{label}.picture{n}"
        image = Image(sha256=path.stem, media_type=media, path=path)
        yield Shot(ident, label, observation.ref, image, path.stat().st_size)


def _merged_shots(shots: Sequence[Shot]) -> list[Shot]:
    merged: list[Shot] = []
    for shot in shots:
        if merged and merged[-1].ref == shot.ref:
            also = (
                merged[-1].also if shot.step in merged[-1].steps else (*merged[-1].also, shot.step)
            )
            merged[-1] = replace(merged[-1], also=also)
        else:
            merged.append(shot)
    return merged


def _states(evidence: Evidence, notes: list[str]) -> Iterator[Section]:
    observations = [o for o in evidence.folder.trace.final.observations if evidence.counts(o)]
    n = 0
    for observation in (o for o in observations if o.kind == "state"):
        path = evidence.folder.evidence_path(observation.ref)
        head = "state of a site when the attempt settled: a table of its database"
        try:
            for text in snapshot.dump(path):
                n += 1
                name = observation.url or ""
                yield Section(f"state{n}", "state", "final", head, text, observation.ref, name)
        except GraderError as error:
            notes.append(f"a snapshot of a site: {error}")
    for n, observation in enumerate((o for o in observations if o.kind == "probe"), 1):
        raw = evidence.folder.evidence(observation.ref).decode("utf-8", "replace")
        head = "result of a probe, a script of the harness in the last page"
        name = observation.name or ""
        yield Section(f"probe{n}", "probe", "final", head, raw, observation.ref, name)


def _files(evidence: Evidence, notes: list[str]) -> Iterator[Section]:
    folder = evidence.folder
    own = [(f.ref, f.name, f.path, "file that the agent saved") for f in checks.saved_files(folder)]
    downloads = [
        (o.ref, o.name or o.ref, folder.evidence_path(o.ref), "file that was downloaded")
        for o in evidence.observations("download")
    ]
    every = [*own, *downloads]
    for n, (ref, name, path, head) in enumerate(every[:MAX_FILES], 1):
        size = path.stat().st_size
        text = _text_of(path)
        what = f"{head}, {size:,} bytes" + ("" if text is not None else ", not a text")
        yield Section(f"file{n}", "file", "final", what, text or "", ref, name)
    if len(every) > MAX_FILES:
        notes.append(f"{len(every) - MAX_FILES} of {len(every)} files")


def _text_of(path: Path) -> str | None:
    """The text of a file; None if it is none."""
    with path.open("rb") as file:
        start = file.read(8192)
    if b"\0" in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    return checks.decoded(path)[:MAX_FILE_CHARS]
