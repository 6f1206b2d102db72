"""Agents by name; see `agents.base` for what an agent is."""

from __future__ import annotations

from browseruse_bench.registry import Registry

AGENTS = Registry(
    "agent",
    {
        "browser-use": "browseruse_bench.agents.browser_use.agent:BrowserUseAgent",
        "nop": "browseruse_bench.agents.nop:NopAgent",
        "oracle": "browseruse_bench.agents.oracle:OracleAgent",
    },
)
