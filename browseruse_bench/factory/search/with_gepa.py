"""A search with the loop of GEPA (Agrawal et al., 2025; package gepa, MIT licence).

GEPA decides which version is changed next, from a Pareto front over examples, and which of the
changes are looked at in full. Who labels, who proposes, what is booked and what is decided in the
end is ours. It selects by its `valset`: that is the selection part, and the validation part is
never handed to it.
"""

# gepa says of few of its arguments what they are.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.search.bench import Answer, Bench
from browseruse_bench.factory.search.examples import Example

PROMPT = "prompt"
"""What GEPA calls the one text that it changes."""
TURNS = 3
"""Proposals, for each version that a search may try in full."""
Value = TypeVar("Value")


class GepaSearch:
    """GEPA proposes from minibatches of the search part, one variant at a time."""

    name: ClassVar[str] = "gepa"

    async def search(self, bench: Bench, *, seed: int = 0) -> None:
        """See `PromptSearch.search`.

        Raises:
            ConfigError: gepa is not installed.
        """
        try:
            from gepa.api import optimize
        except ImportError as error:
            raise ConfigError(
                "--method gepa needs the package gepa: pip install 'browseruse-bench[factory]'"
            ) from error
        await bench.add(bench.first, by="first")
        adapter = _Adapter(bench, asyncio.get_running_loop())
        as_gepa: Any = adapter  # of its protocol, which types `propose_new_texts` as mutable
        work = asyncio.ensure_future(
            asyncio.to_thread(
                optimize,
                seed_candidate={PROMPT: bench.versions[0].text},
                trainset=list(bench.search),
                valset=list(bench.selection),
                adapter=as_gepa,
                candidate_selection_strategy="pareto",
                custom_candidate_proposer=adapter.proposed,
                # Its proposals are made from so many examples; of fewer mistakes it learns less.
                reflection_minibatch_size=min(bench.limits.shown, len(bench.search)),
                stop_callbacks=adapter.must_stop,
                logger=_Silent(),
                display_progress_bar=False,
                track_best_outputs=False,
                cache_evaluation=True,
                raise_on_exception=True,
                seed=seed,
            )
        )
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:
            # A thread cannot be cancelled: what it asks next is refused, and it ends.
            adapter.stopped = True
            await asyncio.wait({work})
            raise
        except BaseException:
            # GEPA wraps or swallows what a proposer raises; what was raised first counts.
            if adapter.error is not None:
                raise adapter.error from None
            raise
        if adapter.error is not None:
            raise adapter.error


class _Adapter:
    """What GEPA asks, from its thread, answered by a bench in ours."""

    propose_new_texts = None

    def __init__(self, bench: Bench, loop: asyncio.AbstractEventLoop) -> None:
        self._bench = bench
        self._loop = loop
        self._parents: dict[str, tuple[str, str]] = {}
        """Text -> (id of the version that it was made from, what it changes)."""
        self._turn = 0
        self._n_dry = 0
        self.error: BaseException | None = None
        self.stopped = False

    def must_stop(self, gepa_state: object) -> bool:
        """No room for another version, nothing new comes, or something went wrong."""
        del gepa_state
        return (
            self.stopped
            or self.error is not None
            or not self._bench.room
            # What loses on its minibatch is no version, but was paid for.
            or self._turn >= TURNS * self._bench.limits.versions
            # Of several variants GEPA is given one at a time.
            or self._n_dry >= self._bench.limits.dry * self._bench.limits.variants
        )

    def evaluate(
        self, batch: list[Example], candidate: dict[str, str], capture_traces: bool = False
    ) -> Any:
        """Scores of a version on a batch: 1 where it says what people say."""
        from gepa.core.adapter import EvaluationBatch

        answers = self._wait(self._answers(batch, candidate[PROMPT]))
        return EvaluationBatch(
            outputs=[answer.verdict for answer in answers],
            scores=[float(a.verdict == e.truth) for e, a in zip(batch, answers, strict=True)],
            trajectories=list(zip(batch, answers, strict=True)) if capture_traces else None,
        )

    async def _answers(self, batch: list[Example], text: str) -> list[Answer]:
        if batch and batch[0].part == "selection" and self._bench.get(text) is None:
            parent, change = self._parents.get(text, (None, ""))
            # In full: GEPA compares example by example.
            await self._bench.add(
                text, by=GepaSearch.name, parent=parent, change=change, give_up=False
            )
        return await self._bench.label(text, batch)

    def make_reflective_dataset(
        self,
        candidate: dict[str, str],
        eval_batch: Any,
        components_to_update: list[str],
    ) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """What was seen of a version, as it is handed on to `proposed`."""
        del candidate
        seen = [{"seen": pair} for pair in eval_batch.trajectories]
        return dict.fromkeys(components_to_update, seen)

    def proposed(
        self,
        candidate: dict[str, str],
        reflective_dataset: Mapping[str, Sequence[Mapping[str, Any]]],
        components_to_update: list[str],
    ) -> dict[str, str]:
        """A new text, or the old one where the proposer has none."""
        del components_to_update
        old = candidate[PROMPT]
        parent = self._bench.get(old)
        assert parent is not None
        self._turn += 1
        brief = self._bench.told(
            parent, [row["seen"] for row in reflective_dataset[PROMPT]], self._turn, 1
        )
        proposals = self._wait(self._bench.propose(brief))
        text = proposals[0].text.strip() if proposals else ""
        if not self._bench.admits(text) or text in self._parents:
            self._n_dry += 1
            return {PROMPT: old}
        self._n_dry = 0
        self._parents[text] = (parent.id, proposals[0].change)
        return {PROMPT: text}

    def _wait(self, work: Coroutine[Any, Any, Value]) -> Value:
        """The result of what runs in the other thread; its failure is kept."""
        if self.stopped:
            work.close()
            raise InterruptedError("the search was stopped")
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except BaseException as error:
            self.error = self.error or error
            raise


class _Silent:
    """GEPA's log: what it does is told of by the bench."""

    def log(self, message: str) -> None:
        """Say nothing."""
        del message
