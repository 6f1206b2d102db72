"""The terminal of a labeller: raw keys in, a page out. What keys mean is in `labels.session`."""

from __future__ import annotations

import codecs
import os
import select
import shutil
import signal
import sys
import termios
import textwrap
import tty
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.labels.form import TAG_KEYS, Form
from browseruse_bench.factory.labels.session import Session

if TYPE_CHECKING:
    from rich.console import Console

_NAMED = {
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x15": "ctrl-u",
    "\x17": "ctrl-w",
    "\x04": "ctrl-d",
}
_SEQUENCES = {"\x1b[5~": "page-up", "\x1b[6~": "page-down"}
_ESCAPE_S = 0.05
"""Bytes that follow an escape within this time belong to its sequence."""


def label_here(session: Session) -> None:
    """Label in this terminal until nothing is left or the labeller leaves.

    Raises:
        ConfigError: this is no terminal.
        StoreError: a label cannot be written.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            "labelling is done in a terminal, with keys; from a file: `bubench factory labels "
            "import`"
        )
    from rich.console import Console

    console = Console()
    with _raw(sys.stdin.fileno()):
        _draw(console, session)
        for key in keys(sys.stdin.fileno()):
            session.press(key)
            if session.is_over:
                break
            _draw(console, session)
    console.clear()


@contextmanager
def _raw(descriptor: int) -> Generator[None]:
    """Keys come one by one and unseen; the terminal is as it was at the end, whatever ends it."""
    before = termios.tcgetattr(descriptor)

    def on_signal(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    handlers = {n: signal.signal(n, on_signal) for n in (signal.SIGTERM, signal.SIGHUP)}
    try:
        tty.setcbreak(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def keys(descriptor: int) -> Iterator[str]:
    """Keys as they are pressed, until the terminal is closed.

    Characters of several bytes are put together; what begins with an escape is one key, known or
    not, so that an arrow never labels anything.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while data := _read(descriptor):
        text = decoder.decode(data)
        if text.startswith("\x1b"):
            while select.select([descriptor], [], [], _ESCAPE_S)[0]:
                more = _read(descriptor)
                if not more:
                    break
                text += decoder.decode(more)
            yield "escape" if text == "\x1b" else _SEQUENCES.get(text, "unknown")
            continue
        for character in text:
            yield _NAMED.get(character, character)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1024)
    except OSError:
        # What a pseudo-terminal says once its other end is closed.
        return b""


def _draw(console: Console, session: Session) -> None:
    from rich.text import Text

    size = shutil.get_terminal_size()
    console.clear()
    for line, style in page(session, width=size.columns, height=size.lines):
        console.print(Text(line, style=style), overflow="crop", no_wrap=True)


def page(session: Session, *, width: int, height: int) -> list[tuple[str, str]]:
    """(line, style) of what is shown."""
    progress, rate = session.progress, session.rate
    told = f"{progress.n_given} of {progress.n_wanted} labels, {progress.n_mine} of them yours"
    if rate.per_hour is not None and rate.left_s is not None:
        told += f" | {rate.per_hour:.0f} an hour, {rate.left_s / 60:.0f} min left"
    if session.assignment is None:
        return [(told, "dim"), ("", ""), ("Nothing is left for you. z takes back, q leaves.", "")]
    form = session.form
    below = _form_lines(form)
    room = max(3, height - len(below) - 5)
    lines = _wrapped(session.assignment.text, max(20, width - 2))
    n_pages = -(-len(lines) // room)
    at = min(form.page, n_pages - 1)
    shown = lines[at * room : (at + 1) * room]
    more = f" | page {at + 1} of {n_pages}: space, b" if n_pages > 1 else ""
    kind = " | again" if session.assignment.recheck else ""
    return [
        (f"{told}{kind}{more}", "dim"),
        ("", ""),
        *((line, "bold") for line in shown),
        ("", ""),
        *below,
    ]


def _wrapped(text: str, width: int) -> list[str]:
    """The task's lines, without what could steer the terminal."""
    from browseruse_bench.report.render import clean

    lines = [clean(line) for line in text.splitlines()] or [""]
    return [part for line in lines for part in (textwrap.wrap(line, width) or [""])]


def _form_lines(form: Form) -> list[tuple[str, str]]:
    verdict = form.verdict or "-"
    hard = {None: "-", True: "hard", False: "not hard"}[form.hard]
    tags = "  ".join(
        f"{key} {'[x]' if tag in form.tags else '[ ]'} {tag}" for key, tag in TAG_KEYS.items()
    )
    cursor = "_" if form.mode == "reason" else ""
    help_line = (
        "Enter: save | Esc: back | Ctrl-U: empty"
        if form.mode == "reason"
        else "s suitable  u unsuitable  n not sure  h hard  r reason  Enter save"
        "  z undo  k later  q leave"
    )
    return [
        (f"verdict: {verdict}   {hard}", "bold cyan"),
        (tags, ""),
        (f"reason: {form.reason}{cursor}", "green" if form.mode == "reason" else ""),
        (form.message or help_line, "yellow" if form.message else "dim"),
    ]
