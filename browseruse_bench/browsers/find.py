"""Where Chromium is, and the commands that install it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from browseruse_bench.errors import BrowserError

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_BUNDLES = ("Chromium", "Google Chrome", "Google Chrome for Testing")
_IN_PLAYWRIGHT = ("chrome-linux*/chrome", "chrome-mac*/*.app/Contents/MacOS/*")


def find_chromium(path: Path | None = None) -> Path:
    """The browser's program: `path`, else CHROME, else PATH, app bundles, Playwright's own.

    Raises:
        BrowserError: `path` or CHROME is given but cannot be run (nothing else is tried
            then), or there is none anywhere; says what to do.
    """
    if path is not None:
        return _given(str(path), "--browser-path")
    if os.environ.get("CHROME"):
        return _given(os.environ["CHROME"], "the environment variable CHROME")
    for found in (*map(shutil.which, NAMES), *_bundles(), *_of_playwright()):
        if found is not None and _works_without_snap(found):
            return Path(found)
    raise BrowserError(
        f"no Chromium found on PATH or in Playwright's folder; install it: {install_text()}"
    )


def install_commands() -> tuple[tuple[str, ...], ...]:
    """The commands, in order, that install Chromium on this machine.

    Debian's package where this is root on Debian; else Playwright's download, which as root
    on Ubuntu brings the libraries with apt (Ubuntu's own package only fetches a snap).
    """
    if _apt_of() == "debian":
        return (("apt-get", "update"), ("apt-get", "install", "-y", "chromium"))
    return playwright_commands()


def playwright_commands() -> tuple[tuple[str, ...], ...]:
    """The commands that download Playwright's own Chromium with this Python."""
    if find_spec("pip") is None and shutil.which("uv") is not None:
        pip = ("uv", "pip", "install", "--python", sys.executable, "playwright")
    else:
        pip = (sys.executable, "-m", "pip", "install", "playwright")
    deps = ("--with-deps",) if _apt_of() is not None else ()
    return (pip, (sys.executable, "-m", "playwright", "install", *deps, "chromium"))


def install_text() -> str:
    """The install commands as one line for a shell."""
    return " && ".join(" ".join(command) for command in install_commands())


def _apt_of() -> str | None:
    """Whose packages can be installed from here, "debian" or "ubuntu"; None: nobody's."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    family = {release["ID"], *release.get("ID_LIKE", "").split()}
    return next((name for name in ("ubuntu", "debian") if name in family), None)


def _works_without_snap(program: str) -> bool:
    """Whether it is not Ubuntu's script that only says that a snap is missing."""
    with Path(program).open("rb") as file:
        head = file.read(4096)
    snap = b"/snap/bin/chromium"
    return not head.startswith(b"#!") or snap not in head or Path(snap.decode()).exists()


def _given(text: str, source: str) -> Path:
    found = shutil.which(str(Path(text).expanduser()))
    if found is not None:
        return Path(found).absolute()
    path = Path(text).expanduser()
    why = "cannot be executed" if path.exists() else "does not exist"
    if path.is_dir():
        why = "is a folder, not a program"
    raise BrowserError(f"{source}: '{text}' {why}; give the program of a Chromium or leave it out")


def _bundles() -> list[str]:
    if sys.platform != "darwin":
        return []
    folders = (Path("/Applications"), Path.home() / "Applications")
    programs = [
        folder / f"{name}.app/Contents/MacOS/{name}" for folder in folders for name in _BUNDLES
    ]
    return [str(program) for program in programs if os.access(program, os.X_OK)]


def _of_playwright() -> list[str]:
    """Chromium builds that Playwright downloaded, newest first."""
    given = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    default = "Library/Caches" if sys.platform == "darwin" else ".cache"
    root = Path(given) if given else Path.home() / default / "ms-playwright"
    builds = [path for path in root.glob("chromium-*") if re.fullmatch(r"\d+", path.name[9:])]
    builds.sort(key=lambda path: int(path.name[9:]), reverse=True)
    programs = [p for build in builds for glob in _IN_PLAYWRIGHT for p in build.glob(glob)]
    return [str(program) for program in programs if os.access(program, os.X_OK)]
