"""Stage restyle: a task in the words of a personal request, with all that it asks for.

A model rewrites. Then code demands every literal, and a comparison of instructions must match
twice, with either text as the first. What fails is refused, and both texts are kept for review.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from browseruse_bench.errors import ConfigError, ModelError
from browseruse_bench.factory.context import Context
from browseruse_bench.factory.restyle import compare
from browseruse_bench.factory.restyle.compare import Comparison, Finding
from browseruse_bench.factory.restyle.literals import differences
from browseruse_bench.factory.stage import Dropped, Kept, Stage
from browseruse_bench.factory.workspace import WorkspaceConfig
from browseruse_bench.models.base import Message, Request
from browseruse_bench.records.candidate import Candidate
from browseruse_bench.store.files import read_json

_FOLDER = Path(__file__).parents[1] / "restyle"
REWRITE = _FOLDER / "restyle.md"
COMPARE = _FOLDER / "compare.md"
_TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 1}},
    "required": ["text"],
    "additionalProperties": False,
}


_KEYED = 2
"""The first version whose candidates have keyed origins."""


class Restyle(Stage[Candidate, Candidate]):
    """Rewrites a task, or says what the rewriting lost or added."""

    name = "restyle"
    version = 2
    zone = "clean"
    takes, gives = Candidate, Candidate
    reasons = frozenset(
        {"literal_lost", "literal_gained", "instruction_lost", "instruction_gained", "not_believed"}
    )
    prompts = (REWRITE, COMPARE)

    def __init__(self, config: WorkspaceConfig) -> None:
        """Of a workspace."""
        self._config = config

    def settings(self) -> Mapping[str, Any]:
        """The model."""
        return {"model": self._config.behind("restyler")}

    def prepare(self, folder: Path, tell: Callable[[str], None]) -> None:
        """What versions before 2 wrote is moved to restricted/: it holds unkeyed hashes of the
        submitted texts, from which a short one can be guessed.
        """
        for old in sorted(folder.parent.glob(f"{folder.name}*")):
            stage = old / "stage.json"
            if not stage.exists() or read_json(stage)["version"] >= _KEYED:
                continue
            aside = folder.parents[1] / "restricted" / f"{old.name}.of-version-1"
            if aside.exists():
                raise ConfigError(f"{old} must go to restricted/, and {aside} is there: move one")
            aside.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            old.rename(aside)
            tell(f"{old}: hashes of version 1 have no key; moved to {aside}, settled again")

    async def settle(self, unit: Candidate, ctx: Context) -> Kept[Candidate] | Dropped:
        """Kept as it is now written, or dropped with both texts and the difference."""
        said = await _ask(ctx, REWRITE, {"task": unit.text}, _TEXT)
        text = str(said["text"]).strip()
        if not text:
            raise ModelError("the rewritten task is empty")
        both = {"original": unit.text, "rewritten": text}
        lost, gained = differences(unit.text, text)
        if lost:
            return Dropped("literal_lost", {**both, "lost": [list(item) for item in lost]})
        if gained:
            return Dropped("literal_gained", {**both, "gained": [list(item) for item in gained]})
        found = await self._compared(unit.text, text, ctx)
        found += [_turned(finding) for finding in await self._compared(text, unit.text, ctx)]
        for kind, reason in _REASONS.items():
            if difference := sorted({what for other, what in found if other == kind}):
                return Dropped(reason, {**both, "difference": difference})
        return Kept(unit.model_copy(update={"text": text}))

    async def _compared(self, first: str, second: str, ctx: Context) -> list[Finding]:
        texts = {"first": first, "second": second}
        said = Comparison.model_validate(await _ask(ctx, COMPARE, texts, compare.schema()))
        return compare.findings(first, second, said)


_REASONS: dict[str, str] = {
    "not_believed": "not_believed",
    "first_only": "instruction_lost",
    "second_only": "instruction_gained",
}


def _turned(finding: Finding) -> Finding:
    """A finding of a comparison in which the rewritten text was the first."""
    if finding.kind == "not_believed":
        return finding
    kind = "second_only" if finding.kind == "first_only" else "first_only"
    return Finding(kind, finding.what)


async def _ask(
    ctx: Context, prompt: Path, values: Mapping[str, str], schema: dict[str, Any]
) -> dict[str, Any]:
    rest = prompt.read_text(encoding="utf-8")
    parts: list[str] = []
    for name, value in values.items():
        before, _, rest = rest.partition(f"{{{name}}}")
        parts += [before, value]
    request = Request.model_validate(
        {
            "messages": (Message(role="user", parts=("".join([*parts, rest]),)),),
            "schema": schema,
            "schema_name": prompt.stem,
        }
    )
    reply = await ctx.model("restyler").ask(request, purpose="restyle")
    return reply.value
