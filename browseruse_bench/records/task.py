"""A task: one row of tasks.json, and the part of it that an agent may see."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from browseruse_bench.records.base import Record, content_key

Text = Annotated[str, StringConstraints(strip_whitespace=False, min_length=1, pattern=r"\S")]


class Attachment(Record):
    """A file that belongs to the task's text."""

    name: str
    """Path below the benchmark's data/ folder, with forward slashes."""
    sha256: str


class TaskView(Record):
    """What an agent sees of a task: an allow-list, so nothing else can leak."""

    task_id: str
    text: str
    website: str | None = None
    start_url: str | None = None
    attachments: tuple[Attachment, ...] = ()

    @property
    def key(self) -> str:
        """Identity of the work: everything an agent sees, without the human id."""
        return content_key({k: v for k, v in self.as_json().items() if k != "task_id"})


class Task(Record):
    """One row of tasks.json; fields that are not named here are kept as they were."""

    model_config = ConfigDict(extra="allow")

    task_id: str = Field(min_length=1)
    task: Text
    website: str | None = None
    category: str | None = None
    expected_result: str | int | float | tuple[str | int | float, ...] | None = Field(
        default=None, union_mode="left_to_right"
    )
    """What a right result is: text, a number, or a list of these (all are wanted)."""
    requires_login: bool = False
    difficulty: str | None = None
    start_url: str | None = None
    attachments: tuple[Attachment, ...] = ()

    @property
    def view(self) -> TaskView:
        """The part that an agent sees."""
        return TaskView(
            task_id=self.task_id,
            text=self.task,
            website=self.website,
            start_url=self.start_url,
            attachments=self.attachments,
        )

    @property
    def row(self) -> dict[str, Any]:
        """The row as plain JSON values, unknown fields included."""
        return self.as_json()
