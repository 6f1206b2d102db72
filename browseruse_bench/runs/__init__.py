"""Runs: plan attempts and carry them out, bounded and resumable, on an engine."""

from browseruse_bench.registry import Registry

ENGINES = Registry("engine", {"local": "browseruse_bench.runs.local:LocalEngine"})
