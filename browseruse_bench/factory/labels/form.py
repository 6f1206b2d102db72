"""The form of one label, key by key: no terminal, no file, no clock.

`pressed` is the whole of it: a form and a key give another form, and at times something to do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from browseruse_bench.factory.labels.desk import Word
from browseruse_bench.records.label import REASON_TAGS, ReasonTag, Verdict

Mode = Literal["choose", "reason"]
Action = Literal["save", "undo", "skip", "quit"]
VERDICT_KEYS: dict[str, Verdict] = {
    "s": "suitable",
    "u": "unsuitable",
    "n": "uncertain",
    "?": "uncertain",
}
TAG_KEYS: dict[str, ReasonTag] = {str(n): tag for n, tag in enumerate(REASON_TAGS, 1)}
_HARD: dict[bool | None, bool | None] = {None: True, True: False, False: None}
MAX_REASON = 2000


@dataclass(frozen=True, kw_only=True)
class Form:
    """What is filled in so far."""

    mode: Mode = "choose"
    verdict: Verdict | None = None
    hard: bool | None = None
    tags: tuple[ReasonTag, ...] = ()
    reason: str = ""
    page: int = 0
    """Of a long task."""
    message: str = ""
    needs_reason: bool = True

    def word(self, seconds: float) -> Word:
        """What it says. There is a verdict."""
        assert self.verdict is not None
        return Word(
            verdict=self.verdict,
            hard=self.hard,
            reason=self.reason,
            tags=self.tags,
            seconds=seconds,
        )


def pressed(form: Form, key: str) -> tuple[Form, Action | None]:
    """The form after a key, and what is to be done.

    Args:
        form: before.
        key: a character, or `enter`, `escape`, `backspace`, `ctrl-u`, `ctrl-w`, `ctrl-d`,
            `page-up`, `page-down`; others change nothing.
    """
    form = replace(form, message="")
    if key == "ctrl-d":
        return form, "quit"
    return _in_reason(form, key) if form.mode == "reason" else _in_choice(form, key)


def _in_choice(form: Form, key: str) -> tuple[Form, Action | None]:
    if key in VERDICT_KEYS:
        return replace(form, verdict=VERDICT_KEYS[key]), None
    if key in TAG_KEYS:
        return replace(form, tags=_toggled(form.tags, TAG_KEYS[key])), None
    if key == "h":
        return replace(form, hard=_HARD[form.hard]), None
    if key == "r":
        return replace(form, mode="reason"), None
    if key in (" ", "page-down"):
        return replace(form, page=form.page + 1), None
    if key in ("b", "page-up"):
        return replace(form, page=max(0, form.page - 1)), None
    if key == "enter":
        return _to_save(form)
    actions: dict[str, Action] = {"z": "undo", "k": "skip", "q": "quit"}
    return form, actions.get(key)


def _to_save(form: Form) -> tuple[Form, Action | None]:
    if form.verdict is None:
        return replace(form, message="first a verdict: s, u or n"), None
    if form.needs_reason and not form.reason.strip():
        return replace(form, mode="reason", message="why? (Enter saves)"), None
    return form, "save"


def _in_reason(form: Form, key: str) -> tuple[Form, Action | None]:
    if key == "enter":
        done = replace(form, mode="choose")
        if form.verdict is None or not form.reason.strip():
            return done, None
        return done, "save"
    if key == "escape":
        return replace(form, mode="choose"), None
    if key == "backspace":
        return replace(form, reason=form.reason[:-1]), None
    if key == "ctrl-u":
        return replace(form, reason=""), None
    if key == "ctrl-w":
        kept = form.reason.rstrip().rpartition(" ")
        return replace(form, reason=kept[0] + kept[1]), None
    if len(key) == 1 and key.isprintable():
        if len(form.reason) >= MAX_REASON:
            return replace(form, message=f"{MAX_REASON} characters are the most"), None
        return replace(form, reason=form.reason + key), None
    return form, None


def _toggled(tags: tuple[ReasonTag, ...], tag: ReasonTag) -> tuple[ReasonTag, ...]:
    if tag in tags:
        return tuple(other for other in tags if other != tag)
    return tuple(known for known in REASON_TAGS if known in (*tags, tag))
