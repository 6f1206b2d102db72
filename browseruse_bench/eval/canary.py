"""The canary of a rubric: a token that stands nowhere else, so that it tells of a leaked key.

Wherever it turns up in a trace (the answer, a call or its result, a file, a download, a page), the
answer key was in reach of the attempt, and what the attempt found says nothing any more. It is
found in any case and spacing, among marks, backwards, in rot13, without its prefix, and in the
codings of `decoding`; in pages and downloads, which are long and not the agent's writing, as it
is.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from browseruse_bench.eval.decoding import forms, texts_of
from browseruse_bench.eval.scripting import strings
from browseruse_bench.eval.wording import normal
from browseruse_bench.records.judgement import Citation, Integrity
from browseruse_bench.store.trace_folder import TraceFolder

MAX_FILE_BYTES = 20_000_000
MIN_CHARACTERS = 8
"""So many letters and digits a canary must have to be looked for without its other signs."""
MIN_CORE = 12
"""So many its last run must have, digits among them, to be looked for without what precedes."""


def canaries(folder: TraceFolder, canary: str) -> Iterator[Integrity]:
    """The flag of a leaked answer key, if the rubric's canary stands anywhere in the trace."""
    citations = (*_produced(folder, canary), *_shown(folder, canary))
    if citations:
        yield Integrity(
            flag="canary",
            claim="The rubric's canary is in the trace: the answer key leaked.",
            citations=citations,
        )


def _produced(folder: TraceFolder, canary: str) -> Iterator[Citation]:
    """Where the agent, or a tool of its own, has it."""
    if leaks(folder.trace.outcome.answer or "", canary):
        yield Citation(step="final", source="answer", quote=canary)
    for step in folder.steps:
        for call in step.calls:
            texts = (*strings(call.arguments), call.target or "", call.result or "")
            if any(leaks(text, canary) for text in texts):
                yield Citation(step=step.index, source="call", quote=canary)
    root = folder.path / "files"
    for path in sorted(root.rglob("*")):
        if path.is_file() and not path.is_symlink() and _in_file(path, canary):
            ref = path.relative_to(root).as_posix()
            yield Citation(step="final", source="file", ref=ref, quote=canary)


def _in_file(path: Path, canary: str) -> bool:
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES)
    utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    texts = texts_of(content) if not utf16 else [content.decode("utf-16", "replace")]
    return leaks(path.name, canary) or any(leaks(text, canary) for text in texts)


def _shown(folder: TraceFolder, canary: str) -> Iterator[Citation]:
    """Where the harness saw it: in a page, or in what was downloaded."""
    sought = canary.casefold()
    holding: dict[str, bool] = {}
    for step in folder.all_steps:
        label = "final" if step is folder.trace.final else step.index
        for observation in step.observations:
            if observation.kind not in ("text", "aria", "html", "download"):
                continue
            ref = observation.ref
            if ref not in holding:
                content = folder.evidence(ref)[:MAX_FILE_BYTES]
                holding[ref] = sought in content.decode("utf-8", "replace").casefold()
            if holding[ref]:
                source = "file" if observation.kind == "download" else "page"
                yield Citation(step=label, source=source, ref=ref, quote=canary)


def leaks(text: str, canary: str) -> bool:
    """Whether a text that an agent wrote holds the canary, in whatever dress."""
    # The token goes through the same folding: a publisher's may have letters that NFKC changes.
    folded, turned = _folded(canary), _turned(canary)
    for form in forms(text):
        bare = _bare(form)
        if folded in _folded(form) or any(one in bare for one in turned):
            return True
    return False


def _turned(canary: str) -> set[str]:
    """The letters and digits of the token, or of its random part, in each order and alphabet."""
    bare = _bare(canary)
    core = re.split(r"[\W_]", normal(canary).casefold())[-1]
    whole = [bare] if len(bare) >= MIN_CHARACTERS else []
    if len(core) >= MIN_CORE and re.search(r"\d", core):
        whole.append(core)
    ciphers = [codecs.encode(one, "rot13") for one in whole]
    return {order for one in (*whole, *ciphers) for order in (one, one[::-1])}


def _folded(text: str) -> str:
    return re.sub(r"\s", "", normal(text)).casefold()


def _bare(text: str) -> str:
    return re.sub(r"[\W_]", "", normal(text)).casefold()
