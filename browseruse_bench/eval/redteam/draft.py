"""A trace in memory that can be changed and frozen anew; the trace it came from stays as it is."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from browseruse_bench.records.trace import (
    Call,
    Observation,
    Outcome,
    OutcomeStatus,
    Page,
    Step,
    Thought,
    Trace,
)
from browseruse_bench.store.trace_folder import TraceFolder, freeze


@dataclass(frozen=True)
class Draft:
    """One trace: every change gives another draft."""

    trace: Trace
    """Its final state is at `trace.final`."""
    steps: tuple[Step, ...]
    source: Path
    """The folder of the frozen trace; evidence that was not made here is read from it."""
    made: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Evidence that was made here: file name -> content."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """What the agent saved: path below files/ -> content."""

    @classmethod
    def of(cls, folder: TraceFolder) -> Draft:
        """A frozen trace, unchanged; the framework's own record (native/) is left out."""
        root = folder.path / "files"
        files = {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }
        return cls(folder.trace, folder.steps, folder.path, {}, files)

    @property
    def reported(self) -> bool:
        """Whether the agent's word is the only evidence."""
        return self.trace.evidence_policy == "agent_reported"

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps and, last, the final state."""
        return (*self.steps, self.trace.final)

    @property
    def web_page(self) -> Page:
        """The last page of the trace with an http or https address; an invented one if none."""
        for step in reversed(self.all_steps):
            page = step.page_after
            if page is not None and page.url.startswith(("http://", "https://")):
                return page
        return Page(target_id="T1", url="http://site.test/", tabs=("http://site.test/",))

    def text(self, observation: Observation) -> str:
        """The text of one observation."""
        if observation.ref in self.made:
            return self.made[observation.ref].decode("utf-8", "replace")
        return (self.source / "evidence" / observation.ref).read_text("utf-8", "replace")

    def texts(self) -> list[str]:
        """What pages showed, each text once, in order."""
        refs = {o.ref: o for s in self.all_steps for o in s.observations if is_text(o)}
        return [self.text(observation) for observation in refs.values()]

    def put(self, content: bytes, suffix: str) -> tuple[Draft, str]:
        """The draft with one more piece of evidence, and the name that refers to it."""
        name = f"{hashlib.sha256(content).hexdigest()}.{suffix}"
        return replace(self, made={**self.made, name: content}), name

    def with_outcome(self, answer: str | None, status: OutcomeStatus = "finished") -> Draft:
        """The draft with another answer; what the agent claims of itself fits it."""
        outcome = Outcome(
            status=status, answer=answer, self_reported_success=status == "finished" or None
        )
        return replace(self, trace=self.trace.model_copy(update={"outcome": outcome}))

    def with_file(self, name: str, content: bytes) -> Draft:
        """The draft with one more file of the agent."""
        return replace(self, files={**self.files, name: content})

    def with_steps(self, steps: Sequence[Step], final: Step | None = None) -> Draft:
        """The draft with other steps, numbered from 1, each with the page that was before it."""
        numbered: list[Step] = []
        last: Page | None = None
        for index, step in enumerate(steps, 1):
            numbered.append(step.model_copy(update={"index": index, "page_before": last}))
            last = step.page_after or last
        end = final or self.trace.final
        end = end.model_copy(update={"index": len(numbered) + 1, "page_before": last})
        trace = self.trace.model_copy(update={"final": end, "n_steps": len(numbered)})
        return replace(self, trace=trace, steps=tuple(numbered))

    def freeze(self, path: Path) -> TraceFolder:
        """Write the draft to a new folder and freeze it.

        Raises:
            OSError: it cannot be written.
        """
        path.mkdir(parents=True)
        (path / "evidence").mkdir()
        for ref in sorted({o.ref for step in self.all_steps for o in step.observations}):
            if ref in self.made:
                (path / "evidence" / ref).write_bytes(self.made[ref])
            else:
                shutil.copyfile(self.source / "evidence" / ref, path / "evidence" / ref)
        for name, content in self.files.items():
            file = path / "files" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        return TraceFolder.open(path, freeze(path, self.trace, self.steps, durable=False))


Mutation = Callable[[Draft], Draft]
"""A pure change of a draft."""


def then(*mutations: Mutation) -> Mutation:
    """The mutations one after the other."""

    def changed(draft: Draft) -> Draft:
        for mutation in mutations:
            draft = mutation(draft)
        return draft

    return changed


def is_text(observation: Observation) -> bool:
    """Whether an observation is text of a page."""
    return observation.kind in ("text", "aria")


@dataclass(frozen=True, kw_only=True)
class Visit:
    """A step to add: what the agent did, and what was seen afterwards."""

    calls: tuple[Call, ...] = ()
    url: str | None = None
    """None: the page stays at its address."""
    text: str | None = None
    """What the page shows; None: there is no text of it."""
    title: str | None = None
    thought: str | None = None
    by_agent: bool = False
    """Whether the agent, not the harness, says what the page shows."""
    loads: bool = True
    """Whether a new document is loaded."""
    document: str | None = None
    """The document, where it is one that was there before."""
    tab: str | None = None
    """Another tab than the current one."""
    picture: bytes | None = None
    """A screenshot (PNG)."""


def visiting(*visits: Visit, last: bool = False) -> Mutation:
    """Add steps: after the first step of the trace, so that the rest goes on as it did.

    Args:
        visits: what happens, in order.
        last: the agent ends there: the steps come last, and the final state shows their page.
    """

    def changed(draft: Draft) -> Draft:
        at = len(draft.steps) if last else min(1, len(draft.steps))
        before = draft.steps[at - 1].page_after if at else None
        page = before or draft.web_page
        new: list[Step] = []
        for n, visit in enumerate(visits, 1):
            draft, step = _step(draft, visit, page, f"made-{at}-{n}")
            page = step.page_after or page
            new.append(step)
        steps = [*draft.steps[:at], *new, *draft.steps[at:]]
        ending = _ending(draft.trace.final, new[-1]) if last and new else None
        return draft.with_steps(steps, ending)

    return changed


def _ending(final: Step, step: Step) -> Step:
    """A final state that shows the page of a step; snapshots and probes stay."""
    kept = tuple(o for o in final.observations if o.kind in ("state", "probe", "download"))
    return final.model_copy(
        update={"page_after": step.page_after, "observations": (*step.observations, *kept)}
    )


def _step(draft: Draft, visit: Visit, page: Page, document: str) -> tuple[Draft, Step]:
    url = page.url if visit.url is None else visit.url
    after = page.model_copy(
        update={
            "url": url,
            "title": page.title if visit.title is None else visit.title,
            "tabs": (url,),
            "target_id": visit.tab or page.target_id,
            "document_id": visit.document or (document if visit.loads else page.document_id),
        }
    )
    # Where the agent's word is the evidence, it also tells what pages showed.
    by = "agent" if visit.by_agent or draft.reported else "harness"
    seen: list[Observation] = []
    parts = ((visit.text, "text"), (visit.picture, "screenshot"))
    for content, kind in parts:
        if content is None:
            continue
        plain = content if isinstance(content, bytes) else content.encode(errors="replace")
        draft, ref = draft.put(plain, "txt" if kind == "text" else "png")
        seen.append(
            Observation.model_validate({"kind": kind, "ref": ref, "captured_by": by, "url": url})
        )
    step = Step(
        index=1,
        t0=0,
        t1=0,
        target_id=after.target_id,
        thought=None if visit.thought is None else Thought(text=visit.thought),
        calls=visit.calls,
        page_after=after,
        observations=tuple(seen),
    )
    return draft, step


def without(shown: Callable[[str], bool]) -> Mutation:
    """Take out every step in whose page a text shows something, and that text at the end."""

    def changed(draft: Draft) -> Draft:
        def is_shown(step: Step) -> bool:
            return any(is_text(o) and shown(draft.text(o)) for o in step.observations)

        kept = [step for step in draft.steps if not is_shown(step)]
        final = draft.trace.final
        if is_shown(final):
            page = next((s.page_after for s in reversed(kept) if s.page_after), None)
            seen = tuple(o for o in final.observations if o.kind in ("state", "probe", "download"))
            final = final.model_copy(update={"page_after": page, "observations": seen})
        return draft.with_steps(kept, final)

    return changed


def rewriting(rewrite: Callable[[str], str]) -> Mutation:
    """Change the text of every page."""

    def changed(draft: Draft) -> Draft:
        new: dict[str, str] = {}
        refs = {o.ref: o for s in draft.all_steps for o in s.observations if is_text(o)}
        for ref, observation in refs.items():
            content = rewrite(draft.text(observation)).encode(errors="replace")
            draft, new[ref] = draft.put(content, "txt")

        def moved(step: Step) -> Step:
            seen = [
                o.model_copy(update={"ref": new[o.ref]}) if is_text(o) else o
                for o in step.observations
            ]
            return step.model_copy(update={"observations": tuple(seen)})

        return draft.with_steps([moved(s) for s in draft.steps], moved(draft.trace.final))

    return changed


def doing(change: Callable[[Step], Step]) -> Mutation:
    """Change every step, the final state apart."""
    return lambda draft: draft.with_steps([change(step) for step in draft.steps])
