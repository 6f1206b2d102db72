"""Our own search: read where the survivors are wrong, propose, score, keep what survives."""

from __future__ import annotations

from typing import ClassVar

from browseruse_bench.factory.search.bench import Bench
from browseruse_bench.factory.search.decision import survivors


class OwnSearch:
    """Each turn makes variants of one survivor; survivors take turns, the best one first.

    A survivor is the best version, or one that the labels do not show to be worse than it: a
    version that lost by chance may still lead to the best one.
    """

    name: ClassVar[str] = "own"

    async def search(self, bench: Bench, *, seed: int = 0) -> None:
        """See `PromptSearch.search`. It draws nothing, so the seed makes no difference."""
        del seed
        await bench.add(bench.first, by="first")
        turn = n_dry = 0
        while bench.room and n_dry < bench.limits.dry:
            turn += 1
            alive = survivors(bench.versions, len(bench.selection), most=bench.limits.parents)
            parent = alive[(turn - 1) % len(alive)]
            brief = await bench.brief(parent, turn, min(bench.room, bench.limits.variants))
            n_before = len(bench.versions)
            for proposal in await bench.propose(brief):
                await bench.add(
                    proposal.text, by=self.name, parent=parent.id, change=proposal.change
                )
            n_dry = 0 if len(bench.versions) > n_before else n_dry + 1
