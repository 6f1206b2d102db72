"""A proposer and a labeller whose true quality is known, fast enough for hundreds of searches."""

import functools
import random

from browseruse_bench.factory.search.bench import Answer, Bench, Limits, Proposal
from browseruse_bench.factory.search.examples import Example, Examples

OTHER = {"suitable": "unsuitable", "unsuitable": "suitable", "uncertain": "unsuitable"}

RIGHT = {truth: Answer(truth, "it seems so", 0.001) for truth in OTHER}
WRONG = {truth: Answer(other, "it seems so", 0.001) for truth, other in OTHER.items()}


@functools.cache
def examples(n_selection=400, n_search=40, n_validation=90, suitable=0.3, seed=0):
    rng = random.Random(f"examples {seed}")
    parts = ["selection"] * n_selection + ["search"] * n_search + ["validation"] * n_validation
    made = [
        Example(
            key=str(i),
            text=f"task {i}",
            truth="suitable" if rng.random() < suitable else "unsuitable",
            part=part,
            reasons=(f"because {i}",),
        )
        for i, part in enumerate(parts)
    ]
    return Examples.of(made, seed=seed)


class World:
    """Versions by name, each right with its own chance; and what it was asked."""

    def __init__(self, qualities, *, seed, n_draws=600):
        self.qualities = qualities
        self.seed = seed
        self.n_asked = 0
        self.n_draws = n_draws
        self._draws = {}

    def answer(self, text, example):
        return self.answers(text, [example])[0]

    def answers(self, text, examples):
        draws = self._draws.get(text)
        if draws is None:
            rng = random.Random(f"{self.seed} {text}")
            draws = self._draws[text] = [rng.random() for _ in range(self.n_draws)]
        quality, by_heart = self.qualities[text], text.startswith("learned by heart")
        return [
            RIGHT[e.truth]
            if draws[int(e.key)] < quality or (by_heart and e.part != "validation")
            else WRONG[e.truth]
            for e in examples
        ]

    async def label(self, text, examples):
        self.n_asked += len(examples)
        return self.answers(text, examples)

    def proposer(self, order):
        left = list(order)

        async def propose(brief):
            taken, left[:] = left[: brief.n_variants], left[brief.n_variants :]
            return [Proposal(text, f"change to {text}") for text in taken]

        return propose


def twenty(seed, *, best, rest):
    """Twenty versions, one of which is the best; the order in which they are proposed."""
    rng = random.Random(f"order {seed}")
    names = [f"version {i}" for i in range(20)]
    qualities = dict.fromkeys(names, rest)
    winner = rng.choice(names)
    qualities[winner] = best
    rng.shuffle(names)
    return winner, qualities, names


def bench(world, order, examples, **limits):
    return Bench(
        examples=examples,
        label=world.label,
        propose=world.proposer(order[1:]),
        first=order[0],
        limits=Limits(**limits),
    )
