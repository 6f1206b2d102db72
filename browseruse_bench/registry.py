"""One mechanism for plug-ins: a name is looked up in a table and imported on use."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from browseruse_bench.errors import ConfigError


class Registry(Mapping[str, str]):
    """Names of one kind of plug-in, each bound to "module:Attr" and imported only by `get`.

    `get(name)` tries the table, then an entry point of the group
    `browseruse_bench.<kind>s`, then the name itself as a literal "module:Attr".
    """

    def __init__(self, kind: str, table: Mapping[str, str]) -> None:
        """Hold `table` (name -> "module:Attr") for plug-ins of one `kind` (singular)."""
        self.kind = kind
        self._table = dict(table)

    def __getitem__(self, name: str) -> str:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def get(self, name: str) -> Any:  # type: ignore[override]
        """Import what `name` stands for.

        Raises:
            ConfigError: the name is unknown (all names and the nearest are listed),
                or its module or attribute cannot be imported.
        """
        target = self._table.get(name) or self._entry_points().get(name)
        if target is None and ":" in name:
            target = name
        if target is None:
            raise ConfigError(unknown_name(self.kind, name, self.names()))
        return load(target, f"{self.kind} '{name}'")

    def names(self) -> tuple[str, ...]:
        """Every name that `get` knows, sorted; nothing is imported."""
        return tuple(sorted({*self._table, *self._entry_points()}))

    def _entry_points(self) -> dict[str, str]:
        from importlib.metadata import entry_points

        return {e.name: e.value for e in entry_points(group=f"browseruse_bench.{self.kind}s")}


def load(target: str, what: str) -> Any:
    """Import "module:Attr" and return the attribute.

    Raises:
        ConfigError: `target` has no colon, or the module or attribute is not there.
    """
    module, colon, attr = target.partition(":")
    if not colon or not module or not attr:
        raise ConfigError(f"{what}: '{target}' is not of the form module:Attr")
    try:
        return getattr(importlib.import_module(module), attr)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{what}: cannot load '{target}': {error}") from error


def unknown_name(kind: str, name: str, known: tuple[str, ...]) -> str:
    """One line that names what is unknown, the nearest known name and all of them."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return f"unknown {kind} '{name}'; {hint}known: {', '.join(known) or 'none'}"
