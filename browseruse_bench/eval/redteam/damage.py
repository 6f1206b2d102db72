"""Attacks on the bytes of a frozen trace: it must be refused, never judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from browseruse_bench.eval.redteam.attack import Attack, unchanged
from browseruse_bench.eval.redteam.draft import Draft, Visit, visiting
from browseruse_bench.eval.redteam.key import Key
from browseruse_bench.store.files import sha256_file
from browseruse_bench.store.trace_folder import MANIFEST


def _some_evidence(folder: Path) -> Path:
    return min((folder / "evidence").iterdir())


def _altered(folder: Path) -> None:
    path = _some_evidence(folder)
    path.write_bytes(path.read_bytes() + b" and all of it is there")


def _removed(folder: Path) -> None:
    _some_evidence(folder).unlink()


def _added(folder: Path) -> None:
    (folder / "evidence" / f"{'0' * 64}.txt").write_text("all of it is there")


def _linked(folder: Path) -> None:
    path = _some_evidence(folder)
    other = folder.parent / f"{folder.name}-elsewhere"
    other.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(other)


def _steps(folder: Path) -> None:
    with (folder / "steps.jsonl").open("ab") as file:
        file.write(b"\n")


def _answer(folder: Path) -> None:
    path = folder / "trace.json"
    trace = json.loads(path.read_bytes())
    trace["outcome"]["answer"] = "all of it"
    path.write_text(json.dumps(trace))


def _manifest(folder: Path) -> None:
    """Altered evidence, and a manifest that fits it."""
    path = _some_evidence(folder)
    changed = path.with_name(f"{'1' * 64}{path.suffix}")
    path.rename(changed)
    manifest = json.loads((folder / MANIFEST).read_bytes())
    del manifest[f"evidence/{path.name}"]
    manifest[f"evidence/{changed.name}"] = sha256_file(changed)
    (folder / MANIFEST).write_text(json.dumps(manifest, sort_keys=True))


def _no_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def _copied(_key: Key) -> Callable[[Draft], Draft]:
    """A copy that has some evidence."""
    return visiting(Visit(text="Welcome", loads=False))


_damage = partial(Attack, family="files", control=unchanged, cheat=_copied, must="refused")

ATTACKS = (
    _damage(name="evidence-altered", says="evidence is changed", damage=_altered),
    _damage(name="evidence-removed", says="evidence is taken away", damage=_removed),
    _damage(name="evidence-added", says="evidence is put beside the other", damage=_added),
    _damage(name="evidence-linked", says="evidence is a link to elsewhere", damage=_linked),
    _damage(name="steps-altered", says="a step is changed", damage=_steps),
    _damage(name="answer-altered", says="the answer is changed", damage=_answer),
    _damage(name="manifest-made-to-fit", says="the manifest is written anew", damage=_manifest),
    _damage(name="manifest-removed", says="the manifest is taken away", damage=_no_manifest),
)
