"""The command line: one file per verb, which parses, calls one library function and prints."""

from __future__ import annotations


def main() -> None:
    """Run `bubench` and exit with the status of errors.py."""
    from browseruse_bench.cli.root import bubench

    bubench()
