"""Reproducible choices: each is a pure function of the seed and of what it is for.

Unlike a stream of random numbers, a choice does not move when another one is added, and
it is the same in every version of Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Choices for one seed; each is named by a key of strings and numbers."""

    def __init__(self, seed: int) -> None:
        """Fix all choices by `seed`."""
        self.seed = seed

    def below(self, n: int, *key: str | int) -> int:
        """A number in 0..n-1."""
        text = "\x1f".join(str(part) for part in (self.seed, *key))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % n

    def between(self, low: int, high: int, *key: str | int) -> int:
        """A number in low..high, both included."""
        return low + self.below(high - low + 1, *key)

    def pick(self, options: Sequence[T], *key: str | int) -> T:
        """One of the options."""
        return options[self.below(len(options), *key)]

    def several(self, options: Sequence[T], n: int, *key: str | int) -> tuple[T, ...]:
        """`n` different options, in an order of the draw's own."""
        ranked = sorted(range(len(options)), key=lambda i: (self.below(2**60, *key, "rank", i), i))
        return tuple(options[i] for i in ranked[:n])
