"""Agents by name; see `agents.base` for what an agent is."""

from __future__ import annotations

from typing import Any

from browseruse_bench.errors import ConfigError
from browseruse_bench.registry import Registry

NOT_YET = {
    "browser-use": "agent 'browser-use' comes with a later release; this one has oracle and nop",
}
"""Agents that people ask for and that are not here yet, with what is said to them."""


class _Agents(Registry):
    def get(self, name: str) -> Any:  # type: ignore[override]
        if name in NOT_YET and name not in self.names():
            raise ConfigError(NOT_YET[name])
        return super().get(name)


AGENTS = _Agents(
    "agent",
    {
        "nop": "browseruse_bench.agents.nop:NopAgent",
        "oracle": "browseruse_bench.agents.oracle:OracleAgent",
    },
)
