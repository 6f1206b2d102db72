"""One model's batch on disk: what waits, what went out, and what came back.

    <batch>/<model>/
      batch.json              which model, and where its calls are kept
      queue/<2 hex>/<key>.json    one request that waits for its answer
      images/<2 hex>/<sha256>     pictures of these requests, each once
      parts/0001.jsonl        requests in the provider's own form, one a line, as they went out
      parts/0001.keys         the keys of its lines
      parts/0001.json         how far it is; written after the two
      answers/0001-*.jsonl    what came back for a part, as it came

Everything is written whole or not at all, so whatever dies when, the same command goes on. What
waits holds whole requests, so nobody but the user may open the folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.models.base import ModelId, Request
from browseruse_bench.models.config import SchemaMode
from browseruse_bench.models.ledger import Status
from browseruse_bench.models.locks import FileLock
from browseruse_bench.records.base import Record
from browseruse_bench.records.trace import Usage
from browseruse_bench.store.files import escaped, read_json, write_atomic
from browseruse_bench.store.redact import Redactor

_R = TypeVar("_R", bound=Record)

Form = Literal["openai", "anthropic"]
"""Whose form the lines of a part have."""
PartStatus = Literal["exported", "creating", "submitted", "fetched", "failed", "withdrawn"]
"""`exported`: written, and nobody was asked by us. `creating`: the provider was asked to take
it, and we do not know whether it did. `submitted`: it did. `fetched`: what it answered is here.
`failed`: it took none of it. `withdrawn`: its requests were written once more. What is not
answered in the last three is owed again.
"""
OPEN: frozenset[PartStatus] = frozenset(("exported", "creating", "submitted"))
"""Parts whose requests may still be answered."""


class BatchInfo(Record):
    """batch.json."""

    schema_version: Literal[1] = 1
    model: ModelId
    text: str
    """As the model was named."""
    cwd: str
    """Folder of the configuration that it was named by."""
    config: str
    """Name of that configuration."""
    calls: str
    """Folder of the ledger that answers go to."""
    restricted_calls: str | None = None


class Refused(Record):
    """An answer that gave nothing to use; the next ask gets it as its error, once."""

    status: Status
    error: str
    raw: str = ""
    usage: Usage | None = None
    call: str | None = None


class Queued(Record):
    """A request that waits."""

    id: str
    """Key of the call."""
    purpose: str
    scope: str = ""
    restricted: bool = False
    request: dict[str, Any]
    """Pictures by their hash."""
    queued_at: str
    refused: Refused | None = None


class Job(Record):
    """What a provider says of a batch that it has."""

    id: str
    state: Literal["running", "ended", "failed"]
    word: str
    """The provider's own word for it."""
    n_total: int = 0
    n_answered: int = 0
    n_failed: int = 0
    created_at: float | None = None
    """Seconds since the epoch."""
    mark: str | None = None
    """What we gave it to be known by; None where the API keeps no such thing."""
    files: tuple[str, ...] = ()
    """What holds its answers: ids of files, or an address."""
    error: str | None = None


class Part(Record):
    """How far one file of requests is."""

    number: int = Field(ge=1)
    form: Form
    endpoint: str
    mode: SchemaMode
    """How its requests are held to their schemas."""
    n: int
    n_bytes: int
    sha256: str
    status: PartStatus
    most_usd: float | None = None
    """The most that it can cost at the ordinary price; None: not known."""
    scope: str = ""
    """Of its requests, where they have one in common."""
    cost_usd: float | None = None
    """What its answers cost; None: not known, or not there yet."""
    created_at: str
    creating_at: float | None = None
    """When the provider was asked to take it, in seconds since the epoch."""
    input_file: str | None = None
    """The provider's id of the file."""
    job: Job | None = None
    held: str | None = None
    """Id of what is held for it in spending.jsonl."""
    note: str | None = None

    @property
    def name(self) -> str:
        """Its name on disk and for people."""
        return f"{self.number:04d}"


@dataclass(frozen=True)
class BatchFolder:
    """The batch of one model."""

    path: Path

    @classmethod
    def of(cls, batch: Path, model: ModelId) -> BatchFolder:
        """That of a model below a batch folder; it need not be there."""
        return cls(batch / f"{escaped(model.label)}-{model.key[:8]}")

    @property
    def info(self) -> BatchInfo:
        """batch.json.

        Raises:
            DataError: missing or damaged.
        """
        path = self.path / "batch.json"
        if not path.is_file():
            raise DataError(f"{self.path}: no batch.json: not the batch of a model")
        return _read(path, BatchInfo)

    def make(self, info: BatchInfo) -> None:
        """The folder is there, for nobody else, and says which model it is of."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)
        path = self.path / "batch.json"
        if not path.is_file() or _read(path, BatchInfo) != info:
            _write(path, info)

    @contextlib.contextmanager
    def alone(self) -> Generator[None]:
        """No other command works on it meanwhile.

        Raises:
            ConfigError: one does.
        """
        lock = FileLock.take(self.path / ".lock")
        if lock is None:
            raise ConfigError(f"{self.path}: another command works on this batch; wait for it")
        try:
            yield
        finally:
            lock.release()

    def add(self, queued: Queued, request: Request) -> None:
        """The request waits, with its pictures.

        Raises:
            ConfigError: it holds a secret of this process, which would be written down.
        """
        if Redactor.of_environment().own(request.text) != request.text:
            raise ConfigError(
                f"{self.path}: a request for {queued.purpose} holds a key of this environment; "
                "it is not put into a batch"
            )
        for image in request.images:
            path = self._image(image.sha256)
            if not path.exists():
                write_atomic(path, image.content(), mode=0o600)
        self.write_queued(queued)

    def queued(self, key: str) -> Queued | None:
        """The request with this key, if it waits; a damaged file is none.

        It is then asked and queued anew.
        """
        path = self._queued(key)
        try:
            return _read(path, Queued) if path.exists() else None
        except DataError:
            return None

    def write_queued(self, queued: Queued) -> None:
        """Put it in place, atomically."""
        _write(self._queued(queued.id), queued)

    def remove(self, key: str) -> None:
        """It waits no more."""
        self._queued(key).unlink(missing_ok=True)

    def waiting(self) -> Iterator[Queued]:
        """All that waits, by key.

        Raises:
            DataError: a file is damaged.
        """
        for path in sorted((self.path / "queue").glob("??/*.json")):
            yield _read(path, Queued)

    def request(self, queued: Queued) -> Request:
        """The request, with the places of its pictures."""
        plain = dict(queued.request)
        plain["messages"] = [
            {
                **message,
                "parts": [
                    part
                    if isinstance(part, str)
                    else {**part, "path": str(self._image(part["sha256"]))}
                    for part in message["parts"]
                ],
            }
            for message in queued.request["messages"]
        ]
        return Request.model_validate(plain)

    def parts(self) -> list[Part]:
        """All that went out, oldest first.

        Raises:
            DataError: a file is damaged.
        """
        return [_read(path, Part) for path in sorted((self.path / "parts").glob("*.json"))]

    def write_part(self, part: Part) -> Part:
        """Put how far it is in place, atomically."""
        _write(self.path / "parts" / f"{part.name}.json", part)
        return part

    def lines_path(self, part: Part) -> Path:
        """The requests of a part, in the provider's form."""
        return self.path / "parts" / f"{part.name}.jsonl"

    def part_keys(self, part: Part) -> list[str]:
        """The keys of its lines, in order."""
        return (self.path / "parts" / f"{part.name}.keys").read_text().split()

    def write_keys(self, number: int, keys: Iterable[str]) -> None:
        """Put the keys of a part in place."""
        path = self.path / "parts" / f"{number:04d}.keys"
        write_atomic(path, "".join(f"{key}\n" for key in keys), mode=0o600)

    def answers(self, part: Part) -> list[Path]:
        """What came back for a part."""
        return sorted((self.path / "answers").glob(f"{part.name}-*.jsonl"))

    def _queued(self, key: str) -> Path:
        return self.path / "queue" / key[:2] / f"{key}.json"

    def _image(self, sha256: str) -> Path:
        return self.path / "images" / sha256[:2] / sha256


def find_batches(batch: Path) -> list[BatchFolder]:
    """The batches of all models below a folder, or the one that the folder is.

    Raises:
        ConfigError: there is none.
    """
    if (batch / "batch.json").is_file():
        return [BatchFolder(batch)]
    found = [BatchFolder(path.parent) for path in sorted(batch.glob("*/batch.json"))]
    if not found:
        raise ConfigError(
            f"{batch}: no batch; collect one first, with --batch {batch} beside --judge"
        )
    return found


def utc_now() -> str:
    """The time now, ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _write(path: Path, record: Record) -> None:
    write_atomic(path, record.as_line() + "\n", mode=0o600)


def _read(path: Path, record: type[_R]) -> _R:
    try:
        return record.model_validate(read_json(path))
    except ValidationError as error:
        raise DataError(f"{path}: {error.errors()[0]['msg']}: damaged; remove it") from error
