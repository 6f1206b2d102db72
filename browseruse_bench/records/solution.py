"""A reference solution: neutral actions that carry out one task. Read by the harness only."""

from __future__ import annotations

from typing import Any, Self

from pydantic import ConfigDict, Field, RootModel, model_validator

from browseruse_bench.records.base import Record


class Target(Record):
    """One element: by role and accessible name, by CSS selector, or by visible text.

    In each text `{name}` stands for a value that an earlier `extract` stored.
    """

    role: str | None = None
    name: str | None = None
    css: str | None = None
    text: str | None = None
    exact: bool = True
    """Whether `name` or `text` must be the whole of it, or a part."""
    nth: int = Field(default=0, ge=0)
    """Which of several, in document order, from 0."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if sum(x is not None for x in (self.role, self.css, self.text)) != 1:
            raise ValueError("give exactly one of role (with name), css and text")
        return self


class TypeText(Record):
    """Text that is typed into a field."""

    into: Target
    text: str
    clear: bool = True


class Select(Record):
    """An option, by label or value, of a select element (`in`)."""

    target: Target = Field(alias="in")
    option: str


class Dialog(Record):
    """How the next JavaScript dialog is answered; without it dialogs are dismissed."""

    accept: bool = True
    text: str | None = None


class Wait(Record):
    """Text that must appear in the page within the time."""

    text: str
    timeout_s: float = Field(default=10, gt=0, le=120)


class Extract(Record):
    """Text of an element, stored under `as` for later actions and the answer."""

    css: str
    nth: int = Field(default=0, ge=0)
    regex: str | None = None
    """The first group (or the whole match) is what is stored."""
    store: str = Field(alias="as", pattern=r"^[a-z][a-z0-9_]*$")


class Download(Record):
    """A download that the next click starts, stored under `as` as its file name."""

    store: str = Field(alias="as", pattern=r"^[a-z][a-z0-9_]*$")


class Tab(Record):
    """A tab by a part of its address or title; without both, the newest."""

    url: str | None = None
    title: str | None = None


class Action(Record):
    """One neutral action: exactly one field is set."""

    navigate: str | None = None
    click: Target | None = None
    type: TypeText | None = None
    select: Select | None = None
    press: str | None = Field(default=None, alias="key")
    """`key`: a key name of the DOM: Enter, Tab, Escape, ArrowDown, PageDown, or a character."""
    scroll: float | None = None
    """CSS pixels down; negative is up."""
    back: bool | None = None
    switch_tab: Tab | None = None
    close_tab: bool | None = None
    dialog: Dialog | None = None
    wait: Wait | None = None
    extract: Extract | None = None
    download: Download | None = None
    done: str | None = None
    """The answer; `{name}` stands for an extracted value."""

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        if len(self.model_fields_set) != 1 or self.argument is None:
            names = (field.alias or name for name, field in type(self).model_fields.items())
            raise ValueError("an action has exactly one of " + ", ".join(names))
        return self

    @property
    def name(self) -> str:
        """The name of the action, as it is written."""
        (field,) = self.model_fields_set
        return type(self).model_fields[field].alias or field

    @property
    def argument(self) -> Any:
        """What the action acts on."""
        return getattr(self, next(iter(self.model_fields_set)))

    @property
    def is_step(self) -> bool:
        """Whether the action touches the browser, so that it counts for a path's length."""
        return self.name not in ("dialog", "wait", "extract", "download", "done")


class Solution(RootModel[tuple[Action, ...]]):
    """The actions of one task, in order; the last one is `done`."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="after")
    def _ends(self) -> Self:
        names = [a.name for a in self.root]
        if not names or names[-1] != "done" or "done" in names[:-1]:
            raise ValueError("the last action, and only the last, is done")
        return self

    @property
    def n_steps(self) -> int:
        """How many actions touch the browser: the length of the path."""
        return sum(action.is_step for action in self.root)
