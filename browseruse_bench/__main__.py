"""`python -m browseruse_bench` is `bubench`."""

from browseruse_bench.cli import main

main()
