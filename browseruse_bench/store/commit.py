"""Which commit of the harness is at work."""

from __future__ import annotations

import subprocess
from pathlib import Path


def running_commit() -> str | None:
    """The commit of the harness where it runs from a checkout; None elsewhere."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    done = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None
