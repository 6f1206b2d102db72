"""The design of the screen: its errors, its mean runs, the optimal rule and the fixed design.

No run is made: everything is a sum over the states of the test.
"""

from __future__ import annotations

import sys
import time

from browseruse_bench.measure.sequential import (
    KINDS,
    MIXES,
    Terms,
    fixed,
    least_mean_runs,
    sequential,
)

LIMIT = 1.05


def main() -> int:
    """Print the figures; 1 where mean runs are more than 5 % above the optimal rule's."""
    terms, start = Terms(), time.monotonic()
    test, full = sequential(terms), fixed(terms)
    worst = 0.0
    for name, shares in MIXES.items():
        mix = terms.mix(*shares)
        over, whole = test.over(mix), full.over(mix)
        least = least_mean_runs(test, mix)
        worst = max(worst, over.mean_runs / least)
        errors = ", ".join(
            f"{kind} {over.error[kind]:.1%} (fixed {whole.error[kind]:.1%})" for kind in KINDS
        )
        print(
            f"{name:24} {over.mean_runs:.2f} runs, optimal rule >= {least:.2f} "
            f"(x{over.mean_runs / least:.3f}), fixed {terms.max_runs}: saves "
            f"{terms.max_runs - over.mean_runs:.2f}; wrong: {errors}"
        )
    print(f"{time.monotonic() - start:.2f} s; at most x{LIMIT:.2f} of the optimal rule allowed")
    return 1 if worst > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
