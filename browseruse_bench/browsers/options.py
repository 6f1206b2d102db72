"""What a browser backend is made from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

GuardChoice = Literal["auto", "layered", "confined", "flags", "observed"]
"""What may be asked of the guard; `auto` is the best level that the machine allows."""


@dataclass(frozen=True, kw_only=True)
class BrowserOptions:
    """Options of the command line; a backend takes those that concern it."""

    path: Path | None = None
    """Program of a local browser; None: the first one found."""
    cdp_url: str | None = None
    """http://host:port or ws://... of a browser that runs elsewhere."""
    viewport: tuple[int, int] = (1280, 800)
    """Width and height of the page in CSS pixels."""
    guard: GuardChoice = "auto"
    """The level that a browser of this machine is held at."""
