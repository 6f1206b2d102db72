"""All attacks, by name."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

from browseruse_bench.errors import ConfigError
from browseruse_bench.eval.redteam import (
    damage,
    echoes,
    evidence,
    honest,
    leaks,
    planted,
    scripts,
    strain,
    words,
)
from browseruse_bench.eval.redteam.attack import Attack
from browseruse_bench.measure.redteam import Family
from browseruse_bench.registry import unknown_name

VERSION = "2"
"""Goes up with each change of what an attack does: results of another version are not resumed."""

ATTACKS: tuple[Attack, ...] = (
    *evidence.ATTACKS,
    *echoes.ATTACKS,
    *scripts.ATTACKS,
    *words.ATTACKS,
    *planted.ATTACKS,
    *leaks.ATTACKS,
    *strain.ATTACKS,
    *damage.ATTACKS,
    *honest.ATTACKS,
)


def chosen(names: Collection[str]) -> tuple[Attack, ...]:
    """The attacks of these names and families, in the order of the catalogue; all if none.

    Raises:
        ConfigError: a name is neither an attack nor a family; the nearest is told.
    """
    families = get_args(Family)
    known = (*families, *(attack.name for attack in ATTACKS))
    for name in names:
        if name not in known:
            raise ConfigError(unknown_name("attack", name, known))
    wanted = set(names)
    return tuple(a for a in ATTACKS if not wanted or a.name in wanted or a.family in wanted)
