"""What stands in the files of a labels folder, line by line."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from browseruse_bench.errors import DataError
from browseruse_bench.factory.labels.chain import Head, Link
from browseruse_bench.records.base import Record, content_key
from browseruse_bench.records.label import Label, text_hash


class LabelTask(Record):
    """A line of tasks.jsonl. Its key is that of the candidate."""

    text: str = Field(min_length=1)
    text_hash: str
    """As it was when the task came in: what the split knows it by."""
    source: str = ""
    """Where it came from: a draw, or what an import says."""
    wanted: int = Field(default=1, ge=1)
    """So many people are to label it."""
    at: str = ""

    @property
    def key(self) -> str:
        """Of the candidate with this text."""
        return content_key([self.text])


def new_task(text: str, *, source: str = "", wanted: int = 1, at: str = "") -> LabelTask:
    """The task of a text."""
    return LabelTask(text=text, text_hash=text_hash(text), source=source, wanted=wanted, at=at)


class Given(Record):
    """A line of labels.jsonl: a label; or of a sealed one, that it was given."""

    kind: Literal["label"] = "label"
    id: str
    task: str
    text_hash: str
    labeller: str
    at: str
    recheck: bool = False
    imported: bool = False
    label: Label | None = None
    """None: it is sealed."""
    seal: Head | None = None
    """Where it stands in sealed.jsonl."""


class Undone(Record):
    """A line: a label no longer counts."""

    kind: Literal["undo"] = "undo"
    id: str
    labeller: str
    at: str
    seal: Head | None = None


class Seen(Record):
    """A line: somebody was shown what others said of a task."""

    kind: Literal["seen"] = "seen"
    task: str
    labeller: str
    at: str


Line = Given | Undone | Seen
LINE: TypeAdapter[Line] = TypeAdapter(Annotated[Line, Field(discriminator="kind")])


class SealedLabel(Record):
    """An entry of sealed.jsonl."""

    kind: Literal["label"] = "label"
    id: str
    salt: str
    """Chance, so that the hash in labels.jsonl can't be tried out against the few verdicts."""
    imported: bool = False
    label: Label


class SealedUndo(Record):
    """An entry of sealed.jsonl: a label no longer counts."""

    kind: Literal["undo"] = "undo"
    id: str


class Folder(Record):
    """An entry of sealed.jsonl, the first, and one whenever the folder was moved."""

    kind: Literal["folder"] = "folder"
    id: str
    """Chance; a copy of the folder has the same."""
    path: str
    why: str = ""
    at: str


class Looked(Record):
    """An entry of sealed.jsonl: the record of looks had come this far."""

    kind: Literal["looked"] = "looked"
    record: Head


SealedEntry = SealedLabel | SealedUndo | Folder | Looked
_SEALED: TypeAdapter[SealedEntry] = TypeAdapter(Annotated[SealedEntry, Field(discriminator="kind")])


def sealed_entry(link: Link) -> SealedEntry:
    """What a line of sealed.jsonl says.

    Raises:
        DataError: it is none.
    """
    try:
        return _SEALED.validate_python(link.entry)
    except ValidationError as error:
        # Its own message would repeat what it was given.
        places = ", ".join(".".join(map(str, e["loc"])) for e in error.errors())
        raise DataError(f"sealed.jsonl: line {link.n} is none of its kind: {places}") from None
