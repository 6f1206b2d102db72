"""From what somebody sent to a frozen trace on disk, or to a refusal in one line.

Nothing of what is sent becomes a path but the names of files below evidence/, files/ and
native/, which are checked; a trace lies in a folder named by its key. Who recorded it decides
how it is graded: only a trace whose key stands in the journal of a run of ours is `harness`,
whatever its own record says.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import stat
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

from pydantic import ValidationError

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.export.reported import BROWSER, GUARD, Told, told_step
from browseruse_bench.export.reward.wire import Known, Refused, Reported, first_problem
from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.run import AttemptEntry
from browseruse_bench.records.trace import AgentId, BrowserId, Call, EvidencePolicy, Limits, Outcome
from browseruse_bench.records.trace import Trace as TraceRecord
from browseruse_bench.store.run_folder import RunFolder, find_runs
from browseruse_bench.store.trace_folder import MANIFEST, TraceFolder, freeze

MAX_JSON_BYTES = 32 * 2**20
MAX_ZIP_BYTES = 256 * 2**20
MAX_UNPACKED_BYTES = 1024 * 2**20
MAX_FILES = 20_000
_TOP = {"trace.json", "steps.jsonl", MANIFEST}
_FOLDERS = {"evidence", "files", "native"}
_HEX = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A trace that is on disk, and what is wanted of it."""

    trace: TraceFolder
    policy: EvidencePolicy
    cost_usd: float | None
    sample: int
    rubric_key: str | None


class RunTraces:
    """The traces of the runs below a folder, by key; runs may grow and come."""

    def __init__(self, root: Path | None) -> None:
        """`root`: the experiments folder; None: no run is known."""
        self._root = root
        self._sizes: dict[Path, int] = {}
        self._known: dict[str, tuple[Path, AttemptEntry]] = {}

    def find(self, key: str) -> tuple[Path, AttemptEntry] | None:
        """Where the trace is, and how it settled; None: no run has it.

        Raises:
            DataError: a journal is damaged.
        """
        if key not in self._known and self._root is not None:
            for run in find_runs(self._root):
                self._read(run)
        return self._known.get(key)

    def _read(self, run: RunFolder) -> None:
        size = run.attempts_path.stat().st_size if run.attempts_path.exists() else 0
        if self._sizes.get(run.path) == size:
            return
        for entry in run.entries():
            path = run.try_path(entry.task_id, entry.attempt, entry.try_)
            self._known[entry.trace_key] = (path, entry)
        self._sizes[run.path] = size


class Intake:
    """Takes traces in; all calls may block on the disk."""

    def __init__(self, folder: Path, runs: RunTraces, benchmark: Benchmark) -> None:
        """Keep what is sent below `folder`; what an earlier process left half done is removed."""
        self._traces = folder / "traces"
        self._incoming = folder / "incoming"
        self._runs = runs
        self._benchmark = benchmark
        shutil.rmtree(self._incoming, ignore_errors=True)
        self._incoming.mkdir(parents=True)
        self._traces.mkdir(exist_ok=True)

    def scratch(self) -> Path:
        """A new path for a body on its way."""
        return self._incoming / secrets.token_hex(8)

    def json(self, body: bytes) -> Taken:
        """The trace that a JSON body tells or names.

        Raises:
            Refused: it is none.
        """
        request = _request(body)
        if isinstance(request, Known):
            return self.open(request.trace_key, request.sample, request.rubric_key)
        key = self._told(request)
        return self.open(key, request.sample, request.rubric_key)

    def zip(self, path: Path, sample: int, rubric_key: str | None) -> Taken:
        """The frozen trace in a zip file, whose manifest and files agree.

        Raises:
            Refused: there is none in it.
        """
        folder = self.scratch()
        try:
            _unpack(path, folder)
            key = _frozen(folder).key
            self._settle(folder, key)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return self.open(key, sample, rubric_key)

    def open(self, key: str, sample: int, rubric_key: str | None) -> Taken:
        """A trace that is on disk already.

        Raises:
            Refused: it is not, or it is damaged.
        """
        ours = self._runs.find(key)
        path = ours[0] if ours else self._traces / key
        if not path.is_dir():
            raise Refused(404, "unknown_trace", f"no trace {key[:12]}...: send it")
        trace = _frozen(path, key)
        policy = trace.trace.evidence_policy if ours else "agent_reported"
        if policy != trace.trace.evidence_policy:
            told = trace.trace.model_copy(update={"evidence_policy": policy})
            trace = replace(trace, trace=told)
        return Taken(
            trace=trace,
            policy=policy,
            cost_usd=ours[1].cost_usd if ours else None,
            sample=sample,
            rubric_key=rubric_key,
        )

    def _told(self, request: Reported) -> str:
        """Freeze a told trace; its key depends on what was told alone."""
        try:
            task_key = self._benchmark.task(request.task_id).view.key
        except ConfigError as error:
            raise Refused(404, "unknown_task", str(error)) from error
        folder = self.scratch()
        folder.mkdir()
        try:
            key = _freeze(request, folder, self._benchmark, request.task_key or task_key)
            self._settle(folder, key)
        except (ValueError, RecursionError) as error:
            raise Refused(422, "not_a_trace", f"it cannot be written as JSON: {error}") from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return key

    def _settle(self, folder: Path, key: str) -> None:
        """The folder is at its place, and so is its name on disk."""
        place = self._traces / key
        if not place.is_dir():
            with contextlib.suppress(FileExistsError, OSError):
                folder.rename(place)
        if not place.is_dir():
            raise OSError(f"{place}: the trace could not be kept")
        descriptor = os.open(self._traces, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _request(body: bytes) -> Known | Reported:
    try:
        found: Any = json.loads(body)
        canonical_json(found)  # refuses numbers that JSON has not: NaN, 1e999
    except (ValueError, RecursionError) as error:
        raise Refused(400, "not_json", f"the body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Refused(400, "not_json", "the body is not a JSON object")
    kind = Known if "trace_key" in found else Reported
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        why = first_problem(error.errors(include_url=False))
        raise Refused(422, "not_a_trace", why) from error


def _freeze(request: Reported, folder: Path, benchmark: Benchmark, task_key: str) -> str:
    steps = [
        told_step(
            folder,
            index,
            Told(
                saw=step.saw,
                url=step.url,
                calls=tuple(Call.model_validate(call.as_json()) for call in step.calls),
            ),
        )
        for index, step in enumerate(request.steps, 1)
    ]
    final = told_step(folder, len(steps) + 1, Told(saw=request.saw_at_end, url=_last_url(request)))
    trace = TraceRecord(
        run_id="reported",
        benchmark=benchmark.name,
        split=benchmark.split,
        task_id=request.task_id,
        attempt=1,
        task_key=task_key,
        agent=AgentId(name=request.agent, version="unknown", model=request.model),
        browser=BrowserId(kind=BROWSER),
        limits=Limits(),
        guard=GUARD,
        evidence_policy="agent_reported",
        n_steps=len(steps),
        outcome=Outcome(status=request.status, answer=request.answer),
        final=final,
    )
    return freeze(folder, trace, steps)


def _last_url(request: Reported) -> str | None:
    """Where the agent says that it ended: the last address that it told."""
    return next((step.url for step in reversed(request.steps) if step.url is not None), None)


def _frozen(folder: Path, key: str | None = None) -> TraceFolder:
    """A trace whose bytes agree with its manifest.

    Raises:
        Refused: they do not, or it is no trace.
    """
    try:
        manifest: Any = json.loads((folder / MANIFEST).read_bytes())
        if not isinstance(manifest, dict) or not all(
            isinstance(sha, str) and _HEX.fullmatch(sha)
            for sha in cast("dict[str, object]", manifest).values()
        ):
            raise DataError(f"{MANIFEST}: is not an object of SHA-256")
        return TraceFolder.open(folder, key)
    except (DataError, OSError, ValueError, RecursionError) as error:
        first = str(error).replace(f"{folder}/", "").replace(f"{folder}", "trace").splitlines()
        raise Refused(422, "not_a_trace", first[0] if first else "not a trace") from error


def _unpack(path: Path, folder: Path) -> None:
    """Every file of the zip file is below `folder`, on disk.

    Raises:
        Refused: it is no zip file, is too large, or a name leads elsewhere.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            infos = [info for info in archive.infolist() if not info.is_dir()]
            names = _names(infos)
            left = MAX_UNPACKED_BYTES
            for info, name in zip(infos, names, strict=True):
                left = _extract(archive, info, folder / name, left)
    except (
        zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, NotImplementedError, RuntimeError,
        ValueError, OSError, zlib.error,
    ) as error:  # fmt: skip
        raise Refused(422, "not_a_zip", f"the zip file cannot be read: {error}") from error


def _names(infos: list[zipfile.ZipInfo]) -> list[str]:
    if len(infos) > MAX_FILES:
        raise Refused(413, "too_large", f"more than {MAX_FILES} files in the zip file")
    if sum(info.file_size for info in infos) > MAX_UNPACKED_BYTES:
        raise Refused(413, "too_large", f"more than {MAX_UNPACKED_BYTES} bytes when unpacked")
    names = [info.filename for info in infos]
    if len({name.casefold() for name in names}) != len(names):
        raise Refused(422, "not_a_trace", "a name occurs twice in the zip file")
    for info in infos:
        parts = PurePosixPath(info.filename).parts
        mode = info.external_attr >> 16
        sound = (
            info.filename == "/".join(parts)
            and ".." not in parts
            and "\\" not in info.filename
            and info.filename.isprintable()
            and len(info.filename.encode()) <= 400
            and all(len(part.encode()) <= 200 for part in parts)
            and (info.filename in _TOP or (len(parts) > 1 and parts[0] in _FOLDERS))
            and (not stat.S_IFMT(mode) or stat.S_ISREG(mode))
        )
        if not sound:
            name = ascii(info.filename)[:80]
            raise Refused(422, "not_a_trace", f"{name} is no file of a trace folder")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise Refused(422, "not_a_zip", "files are stored or deflated, nothing else")
    return names


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, left: int) -> int:
    """Write one file; how many bytes may still come, whatever the zip file says of itself."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(info) as source, target.open("xb") as file:
        while block := source.read(2**20):
            left -= len(block)
            if left < 0:
                raise Refused(413, "too_large", "more bytes when unpacked than it says")
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return left
