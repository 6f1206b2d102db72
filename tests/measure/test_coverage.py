"""Intervals hold the true mean as often as they say, and p-values lie no more often than they
may: by simulation with a fixed seed. The figures are those of docs/statistics.md.
"""

import random

import pytest

from browseruse_bench.measure.intervals import mean_interval
from browseruse_bench.measure.paired import paired

SAMPLES = 300
# Of 300 intervals that hold the mean with 95 % each, fewer than 275 hold it once in 300 times.
LEAST = 275 / 300


def yes(rng, share):
    return float(rng.random() < share)


def beta(rng, a, b):
    return rng.betavariate(a, b)


ONE_EACH = {
    "yes or no, 80 %": (lambda rng: yes(rng, 0.8), 0.8),
    "yes or no, 50 %": (lambda rng: yes(rng, 0.5), 0.5),
    "partial, spread": (lambda rng: rng.choice((0.4, 0.6, 0.6, 0.8, 0.8, 1.0)), 0.7),
    "partial, at the ends": (lambda rng: round(beta(rng, 0.3, 0.3), 1), 0.5),
    "partial, mostly full": (lambda rng: 1 if rng.random() < 0.9 else rng.randrange(11) / 10, 0.95),
    "partial, a rare zero": (lambda rng: yes(rng, 0.95) * rng.choice((0.9, 1.0)), 0.95**2),
}


@pytest.mark.parametrize("m", [20, 60])
@pytest.mark.parametrize("kind", ONE_EACH)
def test_intervals_of_single_attempts_cover_new_tasks(kind, m):
    draw, mean = ONE_EACH[kind]
    rng = random.Random(f"{kind} {m}")
    assert covered(lambda: [[draw(rng)] for _ in range(m)], mean, "new tasks") >= LEAST


def covered(sample, mean, target):
    """Share of SAMPLES intervals that hold the mean."""
    found = (mean_interval(sample(), top=1, target=target) for _ in range(SAMPLES))
    return sum(each.low <= mean <= each.high for each in found) / SAMPLES


@pytest.mark.parametrize("repeats", [2, 5])
@pytest.mark.parametrize(("a", "b"), [(1, 0.5), (9, 0.5), (0.3, 0.3)])
def test_intervals_of_repeated_attempts_cover_new_tasks(a, b, repeats):
    """Each task has a rate of its own, drawn; its attempts share it."""
    rng = random.Random(f"{a} {b} {repeats}")

    def sample():
        rates = [beta(rng, a, b) for _ in range(30)]
        return [[yes(rng, rate) for _ in range(repeats)] for rate in rates]

    assert covered(sample, a / (a + b), "new tasks") >= LEAST


@pytest.mark.parametrize("repeats", [2, 5])
@pytest.mark.parametrize(("a", "b"), [(1, 0.5), (9, 0.5), (0.3, 0.3)])
def test_intervals_for_new_attempts_cover_the_mean_of_exactly_these_tasks(a, b, repeats):
    """Also where most tasks always or never succeed, so that nothing varies within them."""
    rng = random.Random(f"{a} {b} {repeats} again")
    rates = [beta(rng, a, b) for _ in range(30)]

    def sample():
        return [[yes(rng, rate) for _ in range(repeats)] for rate in rates]

    assert covered(sample, sum(rates) / 30, "new attempts") >= LEAST


def test_an_interval_that_takes_attempts_for_tasks_would_not_do():
    """The test can fail: five attempts at a task, taken as five tasks, cover far less."""
    rng = random.Random(7)

    def sample():
        rates = [beta(rng, 0.3, 0.3) for _ in range(30)]
        return [[yes(rng, rate)] for rate in rates for _ in range(5)]

    assert covered(sample, 0.5, "new tasks") < 0.8


def fixed(rng, rate):
    """Both runs succeed at a task with the same rate, apart."""
    return yes(rng, rate), yes(rng, rate)


def shifted(rng, rate):
    """The first run is better by 0.1 on every task."""
    return yes(rng, 0.1 + 0.8 * rate), yes(rng, 0.8 * rate)


def rubrics(rng, rate):
    """Partial scores, alike on three of five tasks."""
    score = rng.randrange(5) / 4
    return (score, score) if rng.random() < 0.6 else (score, rng.randrange(5) / 4)


PAIRS = {"yes or no, no difference": (fixed, 0.0), "yes or no, 10 points": (shifted, 0.1),
         "partial, no difference": (rubrics, 0.0)}  # fmt: skip


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("m", [20, 60])
def test_paired_intervals_cover_and_p_is_rarely_small_without_a_difference(kind, m):
    draw, difference = PAIRS[kind]
    rng = random.Random(f"{kind} {m}")
    holds = shown = 0
    for _ in range(SAMPLES):
        pairs = [draw(rng, rng.choice((0.02, 0.5, 0.98))) for _ in range(m)]
        first, second = ({str(n): [pair[side]] for n, pair in enumerate(pairs)} for side in (0, 1))
        found = paired(first, second, top=1, rng=rng)
        holds += found.interval.low <= difference <= found.interval.high
        shown += found.differs
    assert holds / SAMPLES >= LEAST
    if difference == 0:
        assert shown / SAMPLES <= 0.05 + 0.03
    elif m == 60:
        assert shown > 0
