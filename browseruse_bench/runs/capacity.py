"""How many attempts this machine carries at once."""

from __future__ import annotations

import os
import sys
from pathlib import Path

GB_PER_ATTEMPT = 0.6
"""Memory of one browser with its agent, with room to spare (measured: 0.35 to 0.55)."""


def n_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_gb() -> float:
    """Memory of the machine, in GB (10^9 bytes)."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def free_memory_gb() -> float:
    """Memory that can be used without swapping, in GB; the container's limit counts."""
    free = memory_gb()
    if sys.platform == "linux":
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                free = int(line.split()[1]) * 1024 / 1e9
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if limit.is_file() and used.is_file() and (text := limit.read_text().strip()) != "max":
        free = min(free, (int(text) - int(used.read_text())) / 1e9)
    return free


def auto_concurrency(per_core: int, *, cores: int, free_gb: float) -> int:
    """Attempts at once: `per_core` for each core, as far as the memory carries, at least 1."""
    return max(1, min(per_core * cores, int(free_gb / GB_PER_ATTEMPT)))
