"""Levels as parameters of tests: those that this machine does not allow are skipped, and those
that are not the best one here are slow, so that `make test` tries what a run here gets.
"""

import pytest

from browseruse_bench.browsers.guard.confinement import why_not_confined, why_not_layered

WHY_NOT = {"layered": why_not_layered(), "confined": why_not_confined(), "flags": None}
BEST = next(level for level, why in WHY_NOT.items() if why is None)
NO_LANDLOCK = "layered without Landlock"


def levels(*names):
    """A parameter for each level, named as in WHY_NOT or NO_LANDLOCK."""
    return [pytest.param(name, marks=list(_marks(name))) for name in names]


def _marks(name):
    why = WHY_NOT[name.partition(" ")[0]]
    if why is not None:
        yield pytest.mark.skip(reason=f"{name}: {why}")
    elif name != BEST:
        yield pytest.mark.slow
