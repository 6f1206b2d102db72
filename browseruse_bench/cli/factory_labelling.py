"""The terminal of a labeller: raw keys in, a page out. What keys mean is in `labels.session`."""

from __future__ import annotations

import codecs
import os
import re
import select
import shutil
import signal
import sys
import termios
import textwrap
import tty
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.labels.form import TAG_KEYS, Form
from browseruse_bench.factory.labels.session import Session

if TYPE_CHECKING:
    from rich.console import Console

_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b\[[0-?]*[ -/]*|[^\0]", re.DOTALL)
"""One key: a control sequence, whole or cut off, or a character."""
_CUT_OFF = re.compile(r"\x1b(O|\[[0-?]*[ -/]*)?$")
_NAMED = {
    "\x1b": "escape",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x15": "ctrl-u",
    "\x17": "ctrl-w",
    "\x04": "ctrl-d",
}
_SEQUENCES = {"\x1b[5~": "page-up", "\x1b[6~": "page-down"}
_HELP = (
    "s suitable  u unsuitable  n not sure  h hard  r reason  Enter save  z undo  k later  q leave"
)
_HELP_REASON = "Enter: save | Esc: back | Ctrl-U: empty"
_REASON_LINES = 4
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
        # A terminal that is gone needs no restoring.
        with suppress(termios.error):
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
        # The rest of a sequence can come a moment later.
        while _CUT_OFF.search(text) and select.select([descriptor], [], [], _ESCAPE_S)[0]:
            more = _read(descriptor)
            if not more:
                break
            text += decoder.decode(more)
        for match in _KEY.finditer(text):
            key = match.group()
            yield _SEQUENCES.get(key, "unknown") if len(key) > 1 else _NAMED.get(key, key)


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
    columns = max(20, width - 2)
    below = _form_lines(form, columns)
    room = max(3, height - len(below) - 5)
    lines = _wrapped(session.assignment.text, columns)
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


def _form_lines(form: Form, columns: int) -> list[tuple[str, str]]:
    hard = {None: "-", True: "hard", False: "not hard"}[form.hard]
    cursor = "_" if form.mode == "reason" else ""
    tags = [f"{key} {'[x]' if tag in form.tags else '[ ]'} {tag}" for key, tag in TAG_KEYS.items()]
    # The end of a long reason is what is being written.
    reason = textwrap.wrap(f"reason: {form.reason}{cursor}", columns)[-_REASON_LINES:]
    style = "green" if form.mode == "reason" else ""
    told = form.message or (_HELP_REASON if form.mode == "reason" else _HELP)
    return [
        (f"verdict: {form.verdict or '-'}   {hard}", "bold cyan"),
        *((line, "") for line in _filled(tags, columns)),
        *((line, style) for line in reason),
        *((line, "yellow" if form.message else "dim") for line in textwrap.wrap(told, columns)),
    ]


def _filled(words: list[str], columns: int) -> list[str]:
    """Lines of as many words as fit, none of which is broken."""
    lines = [words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 2 + len(word) <= columns:
            lines[-1] += f"  {word}"
        else:
            lines.append(word)
    return lines
