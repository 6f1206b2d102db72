"""The batch APIs of providers: jobs made from files of requests, looked at, fetched, cancelled.

    OpenAI and what speaks its API    POST /files, POST and GET /batches, GET /files/ID/content
    Anthropic                         POST and GET /v1/messages/batches, GET .../ID/results

Making a job is asked once only. Whether it was made although its reply got lost is found out
from the provider's list of jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field, ValidationError

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import OutageError
from browseruse_bench.models.batch.folder import Form, Job, Part
from browseruse_bench.models.batch.http import Http, Sleep
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.records.base import Record

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com"
ANTHROPIC_VERSION = "2023-06-01"
MARK = "bubench_part"
"""Name of the metadata by which a job of ours is known again."""
_PAGE = 100
_BLOCK_BYTES = 2**20


class Service(Protocol):
    """A provider's batch API."""

    @property
    def form(self) -> Form:
        """Whose form the requests must have."""
        ...

    async def upload(self, part: Part, lines: Path) -> str | None:
        """Put the requests where a job reads them; None where a job brings its own."""
        ...

    async def create(self, part: Part, lines: Path, mark: str) -> Job:
        """Make a job.

        Raises:
            RefusedError: none was made.
            OutageError: it may have been made all the same.
        """
        ...

    def jobs(self) -> AsyncGenerator[Job]:
        """The jobs of this key, newest first."""
        ...

    async def look(self, id: str) -> Job:
        """How far a job is."""
        ...

    def answers(self, job: Job) -> Iterator[tuple[str, str]]:
        """(name, address) of each file that an ended job left."""
        ...

    def download(self, address: str) -> Any:
        """An async context with the bytes of such a file."""
        ...

    async def cancel(self, id: str) -> Job:
        """Ask that a job ends; what it has answered stays."""
        ...


def service_of(spec: ModelSpec, *, sleep: Sleep = asyncio.sleep) -> Service:
    """The batch API of a model's provider.

    Raises:
        ConfigError: none is known here, or the key is missing.
    """
    exchange = "exchange the files with `bubench models batch export` and `import`"
    if spec.provider not in ("openai", "anthropic", "openai-compatible"):
        raise ConfigError(f"{spec.label}: no batch API of {spec.provider} is known; {exchange}")
    if spec.key is None and spec.provider != "openai-compatible":
        raise ConfigError(f"{spec.label}: {spec.key_name} is not set; set it, or {exchange}")
    if spec.provider == "anthropic":
        headers = {"x-api-key": spec.key or "", "anthropic-version": ANTHROPIC_VERSION}
        return _Anthropic(Http(spec, spec.base_url or ANTHROPIC_URL, headers, sleep=sleep))
    headers = {"authorization": f"Bearer {spec.key}"} if spec.key else {}
    return _OpenAI(Http(spec, spec.base_url or OPENAI_URL, headers, sleep=sleep))


class _Counts(Record, extra="ignore"):
    total: int = 0
    completed: int = 0
    failed: int = 0


class _Problem(Record, extra="ignore"):
    message: str | None = None
    line: int | None = None


class _Problems(Record, extra="ignore"):
    data: tuple[_Problem, ...] | None = None


class _OpenAIBatch(Record, extra="ignore"):
    id: str
    status: str
    created_at: float | None = None
    request_counts: _Counts | None = None
    metadata: dict[str, str] | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: _Problems | None = None

    @property
    def job(self) -> Job:
        ended = self.status in ("completed", "expired", "cancelled")
        counts = self.request_counts or _Counts()
        problems = (self.errors and self.errors.data) or ()
        files = (self.output_file_id or "", self.error_file_id or "")
        return Job(
            id=self.id,
            state="ended" if ended else "failed" if self.status == "failed" else "running",
            word=self.status,
            n_total=counts.total,
            n_answered=counts.completed,
            n_failed=counts.failed,
            created_at=self.created_at,
            mark=(self.metadata or {}).get(MARK),
            files=files if any(files) else (),
            error="; ".join(_problem(p) for p in problems[:5]) or None,
        )


def _problem(problem: _Problem) -> str:
    at = f"line {problem.line}: " if problem.line is not None else ""
    return f"{at}{problem.message or 'no message'}"


class _OpenAI:
    form: Form = "openai"

    def __init__(self, http: Http) -> None:
        self._http = http

    async def upload(self, part: Part, lines: Path) -> str | None:
        name = f"{part.name}-{part.sha256[:12]}.jsonl"
        with lines.open("rb") as file:
            uploaded = await self._http.once(
                "POST",
                "/files",
                files={"file": (name, file, "application/jsonl")},
                data={"purpose": "batch"},
            )
        id = uploaded.get("id")
        if not isinstance(id, str):
            raise OutageError(f"{self._http.label}: the uploaded file has no id")
        return id

    async def create(self, part: Part, lines: Path, mark: str) -> Job:
        del lines
        body = {
            "input_file_id": part.input_file,
            "endpoint": part.endpoint,
            "completion_window": "24h",
            "metadata": {MARK: mark},
        }
        return self._job(await self._http.once("POST", "/batches", json=body))

    async def jobs(self) -> AsyncGenerator[Job]:
        after: dict[str, Any] = {}
        while True:
            page = await self._http.again("GET", "/batches", params={"limit": _PAGE, **after})
            jobs = [self._job(each) for each in page.get("data", [])]
            for job in jobs:
                yield job
            if not page.get("has_more") or not jobs:
                return
            after = {"after": jobs[-1].id}

    async def look(self, id: str) -> Job:
        return self._job(await self._http.again("GET", f"/batches/{id}"))

    def answers(self, job: Job) -> Iterator[tuple[str, str]]:
        for name, file in zip(("output", "errors"), job.files, strict=False):
            if file:
                yield name, f"/files/{file}/content"

    def download(self, address: str) -> Any:
        return self._http.stream(address)

    async def cancel(self, id: str) -> Job:
        return self._job(await self._http.again("POST", f"/batches/{id}/cancel"))

    def _job(self, value: Any) -> Job:
        try:
            return _OpenAIBatch.model_validate(value).job
        except ValidationError as error:
            raise OutageError(f"{self._http.label}: not a batch: {_first(error)}") from error


class _AnthropicCounts(Record, extra="ignore"):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0


class _AnthropicBatch(Record, extra="ignore"):
    id: str
    processing_status: str
    created_at: datetime | None = None
    request_counts: _AnthropicCounts = Field(default_factory=_AnthropicCounts)

    @property
    def job(self) -> Job:
        counts = self.request_counts
        failed = counts.errored + counts.canceled + counts.expired
        return Job(
            id=self.id,
            state="ended" if self.processing_status == "ended" else "running",
            word=self.processing_status,
            n_total=counts.processing + counts.succeeded + failed,
            n_answered=counts.succeeded,
            n_failed=failed,
            created_at=None if self.created_at is None else self.created_at.timestamp(),
            files=(f"/v1/messages/batches/{self.id}/results",),
        )


class _Anthropic:
    form: Form = "anthropic"

    def __init__(self, http: Http) -> None:
        self._http = http

    async def upload(self, part: Part, lines: Path) -> str | None:
        del part, lines

    async def create(self, part: Part, lines: Path, mark: str) -> Job:
        # The API keeps nothing by which a job could be known again.
        del mark
        size = part.n_bytes + len(b'{"requests":[') + len(b"]}") - 1
        headers = {"content-type": "application/json", "content-length": str(size)}
        return self._job(
            await self._http.once(
                "POST", "/v1/messages/batches", content=_as_array(lines), headers=headers
            )
        )

    async def jobs(self) -> AsyncGenerator[Job]:
        after: dict[str, Any] = {}
        while True:
            page = await self._http.again(
                "GET", "/v1/messages/batches", params={"limit": _PAGE, **after}
            )
            jobs = [self._job(each) for each in page.get("data", [])]
            for job in jobs:
                yield job
            if not page.get("has_more") or not jobs:
                return
            after = {"after_id": jobs[-1].id}

    async def look(self, id: str) -> Job:
        return self._job(await self._http.again("GET", f"/v1/messages/batches/{id}"))

    def answers(self, job: Job) -> Iterator[tuple[str, str]]:
        for file in job.files:
            yield "results", file

    def download(self, address: str) -> Any:
        return self._http.stream(address)

    async def cancel(self, id: str) -> Job:
        return self._job(await self._http.again("POST", f"/v1/messages/batches/{id}/cancel"))

    def _job(self, value: Any) -> Job:
        try:
            return _AnthropicBatch.model_validate(value).job
        except ValidationError as error:
            raise OutageError(f"{self._http.label}: not a batch: {_first(error)}") from error


async def _as_array(lines: Path) -> AsyncGenerator[bytes]:
    """A file of JSON lines as the requests of one object, a block at a time."""
    yield b'{"requests":['
    with lines.open("rb") as file:
        block = file.read(_BLOCK_BYTES)
        while block:
            following = file.read(_BLOCK_BYTES)
            # A line end inside of JSON is written as \n, so that each byte of it ends a line.
            yield (block if following else block.removesuffix(b"\n")).replace(b"\n", b",")
            block = following
    yield b"]}"


def _first(error: ValidationError) -> str:
    problem = error.errors()[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"
