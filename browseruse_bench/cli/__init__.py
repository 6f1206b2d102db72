"""The command line: one file per verb, which parses, calls one library function and prints."""

from __future__ import annotations


def main() -> None:
    """Run `bubench` and exit with the status of errors.py.

    Modules of the current folder can be named ("module:Attr"), as with `python -m`; whatever
    is installed comes before them.
    """
    import sys
    from pathlib import Path

    from browseruse_bench.cli.root import bubench

    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    bubench()
