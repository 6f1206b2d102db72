"""CPU time of `bubench --help` as a multiple of bare Python, and what it imports."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

LIMIT = 8.0
RUNS = 15
HEAVY = (
    "pydantic",
    "pydantic_ai",
    "playwright",
    "starlette",
    "polars",
    "pyarrow",
    "rich",
    "asyncio",
)


def cpu_s(arguments: list[str]) -> float:
    """The least user + system seconds of RUNS runs of this Python."""
    best = float("inf")
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def heavy_imports() -> list[str]:
    """Modules of HEAVY that `bubench --help` loads."""
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from browseruse_bench.cli.root import bubench\n"
        "assert CliRunner().invoke(bubench, ['--help']).exit_code == 0\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return [name for name in HEAVY if repr(name) in done.stdout]


def main() -> int:
    """Print the figures; 1 if a bar is missed."""
    bare = cpu_s(["-c", "pass"])
    helped = cpu_s(["-m", "browseruse_bench", "--help"])
    ratio = helped / bare
    heavy = heavy_imports()
    print(f"bare Python      {bare * 1000:6.1f} ms CPU (least of {RUNS})")
    print(
        f"bubench --help   {helped * 1000:6.1f} ms CPU, {ratio:.1f} x bare Python (at most {LIMIT:g})"
    )
    print(f"heavy imports    {', '.join(heavy) or 'none'}")
    print(f"load             {os.getloadavg()[0]:.2f} over {os.cpu_count()} cores")
    return 1 if ratio > LIMIT or heavy else 0


if __name__ == "__main__":
    sys.exit(main())
