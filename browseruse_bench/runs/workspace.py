"""The folders of one try: what an agent writes stays outside the run until it is clean.

Files and native records are written to a temporary folder and copied into the trace without
secrets when the agent has ended. So nothing of a run folder ever held one, also where the
harness was killed in between.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from browseruse_bench.agents.base import Workspace
from browseruse_bench.store.redact import Redactor

_PIECE_BYTES = 8 * 2**20
_LINE_BYTES = 2**20
_FOLDERS = ("files", "native", "scratch", "attachments")


@dataclass(frozen=True, kw_only=True)
class Place:
    """The temporary folders of one try."""

    root: Path
    workspace: Workspace

    @property
    def browser(self) -> Path:
        """For the browser's profile and temporary files; its end removes it."""
        return _browser(self.root)

    def keep(self, trace: Path, redactor: Redactor) -> None:
        """Copy what the agent left into the trace's folder, without secrets.

        Deliverables are evidence and lose the values of our own secrets; the framework's
        records and logs lose everything that has the shape of one, too. Links, pipes and
        empty folders are left out.
        """
        _copy(self.workspace.files, trace / "files", redactor.own, redactor.own_bytes)
        _copy(self.workspace.native, trace / "native", redactor.said, redactor.said_bytes)


class Places:
    """Gives each try of a command a folder below one that is the command's own."""

    def __init__(self, root: Path, owner: Path) -> None:
        """Use the folder `root`; `owner` is the run folder that records processes."""
        self._root = root
        self._owner = owner
        self._numbers = itertools.count(1)

    def folder(self) -> Path:
        """A new folder, not made yet. Its path is short: Chromium puts a socket below it,
        whose path the system limits to about 100 bytes.
        """
        return self._root / str(next(self._numbers))

    @contextmanager
    def make(self) -> Generator[Place]:
        """The folders of one try; they are gone afterwards."""
        root = self.folder()
        workspace = Workspace(
            files=root / "files",
            native=root / "native",
            scratch=root / "scratch",
            attachments=root / "attachments",
            downloads=_browser(root) / "downloads",
            owner=self._owner,
        )
        root.mkdir(mode=0o700)
        try:
            for name in _FOLDERS:
                (root / name).mkdir()
            yield Place(root=root, workspace=workspace)
        finally:
            _remove(root)


def _browser(root: Path) -> Path:
    return root / "b"


def _remove(root: Path) -> None:
    """Remove the folder; where all is empty, as after most attempts, without a walk."""
    try:
        for name in _FOLDERS:
            (root / name).rmdir()
        root.rmdir()
    except OSError:
        shutil.rmtree(root, ignore_errors=True)


def _copy(
    source: Path, target: Path, name: Callable[[str], str], content: Callable[[bytes], bytes]
) -> None:
    if source.is_symlink() or not source.is_dir():
        return  # the agent put something else in its place
    for path in sorted(source.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        place = target.joinpath(*(_segment(name(p)) for p in path.relative_to(source).parts))
        place.parent.mkdir(parents=True, exist_ok=True)
        with path.open("rb") as old, place.open("ab") as new:
            while piece := old.read(_PIECE_BYTES):
                # To the end of a line, so that no secret is cut in two.
                new.write(content(piece + old.readline(_LINE_BYTES)))
            new.flush()
            os.fsync(new.fileno())


def _segment(name: str) -> str:
    return name.replace("/", "_") or "_"
