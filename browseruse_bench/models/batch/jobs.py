"""Parts of a batch at a provider: submitted, looked at, fetched, cancelled.

A part that is submitted has its job's id on disk. Between asking for a job and knowing its id
lies the one moment at which a death leaves a question; the state `creating` says so, and the
next command answers it from the provider's list of jobs before it asks for another one.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from browseruse_bench.errors import BudgetError, ConfigError
from browseruse_bench.models.batch.export import check_whole
from browseruse_bench.models.batch.folder import BatchFolder, Job, Part
from browseruse_bench.models.batch.http import RefusedError
from browseruse_bench.models.batch.importing import Imported, Terms, import_answers
from browseruse_bench.models.batch.service import Service
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.spending_log import Spending, What
from browseruse_bench.store.redact import Redactor

BATCH_FACTOR = 0.5
"""Which part of the ordinary price OpenAI and Anthropic charge in a batch."""
PURPOSE = "batch"
"""What is held for parts that are under way; answers are counted under their own purposes."""
_EARLY_S = 300.0
"""How far clocks may be apart."""


def price_factor(spec: ModelSpec) -> float:
    """Which part of the ordinary price a provider's batch costs; 1 where nothing is known."""
    official = spec.provider in ("openai", "anthropic") and spec.base_url is None
    return BATCH_FACTOR if official else 1.0


@dataclass(kw_only=True)
class Submitted:
    """What one submission did."""

    parts: list[Part] = field(default_factory=list[Part])
    """Now at the provider."""
    adopted: list[str] = field(default_factory=list[str])
    """Names of those that had been there already, and whose id had got lost."""
    refused: list[str] = field(default_factory=list[str])
    """What the provider did not take, and why."""


@dataclass(kw_only=True)
class Batching:
    """The work on one model's batch at its provider. To be used alone with the folder."""

    folder: BatchFolder
    spec: ModelSpec
    service: Service
    spending: Spending
    terms: Terms
    """By which terms answers are taken; its factor is the price of a batch."""
    clock: Callable[[], float] = time.time

    async def submit(
        self, *, limit_usd: float | None = None, jobs: Mapping[str, str] | None = None
    ) -> Submitted:
        """Every part that is written and not at the provider is there.

        Args:
            limit_usd: the most that this batch may come to, with what it cost already.
            jobs: name of a part -> id of its job, where that cannot be told by looking.

        Raises:
            BudgetError: the next part does not fit; those before it are submitted.
            ConfigError: there is a limit and no price, or it cannot be told which job is whose.
            OutageError: the provider does not answer. The same command goes on.
        """
        done = Submitted()
        for part in self.folder.parts():
            if part.status == "creating":
                found = await self._found(part, (jobs or {}).get(part.name))
                if found is not None:
                    done.adopted.append(part.name)
                    done.parts.append(self._write(part, status="submitted", job=found))
                    continue
            elif part.status != "exported":
                continue
            check_whole(self.folder, part)
            self._refuse_over(part, limit_usd)
            try:
                done.parts.append(await self._create(part))
            except RefusedError as error:
                done.refused.append(f"part {part.name}: {error}")
        return done

    async def look(self) -> list[Part]:
        """All parts; of those at the provider, how far they are now."""
        return [await self._looked(part) for part in self.folder.parts()]

    async def fetch(self) -> Imported:
        """What ended jobs answered is in the ledger; may be repeated at any time."""
        total = Imported()
        for part in await self.look():
            if part.status != "submitted" or part.job is None or part.job.state == "running":
                continue
            if part.job.state == "failed":
                self._write(part, status="failed", note=part.job.error or part.job.word)
                self._release(part)
                continue
            for name, address in self.service.answers(part.job):
                await self._download(part, name, address)
            done = await import_answers(
                self.folder,
                self.spec,
                self.folder.answers(part),
                spending=self.spending,
                terms=self.terms,
            )
            _add(total, done)
            self._write(part, status="fetched", cost_usd=done.cost_usd)
            self._release(part)
        total.n_owed = sum(queued.refused is None for queued in self.folder.waiting())
        return total

    async def cancel(self) -> list[Part]:
        """Jobs that run are asked to end; what they answered can be fetched all the same."""
        asked: list[Part] = []
        for part in await self.look():
            if part.status == "submitted" and part.job is not None and part.job.state == "running":
                asked.append(self._write(part, job=await self.service.cancel(part.job.id)))
        return asked

    async def _create(self, part: Part) -> Part:
        lines = self.folder.lines_path(part)
        held = part.held or f"batch-{self.folder.info.model.key[:8]}-{part.name}-{part.sha256[:8]}"
        part = self._write(part, held=held)
        self._hold(part, held)
        if part.input_file is None:
            part = self._write(part, input_file=await self.service.upload(part, lines))
        part = self._write(part, status="creating", creating_at=self.clock())
        try:
            job = await self.service.create(part, lines, self._mark(part))
        except RefusedError:
            # Also where it refuses the file: the next try brings its own.
            self._write(part, status="exported", creating_at=None, input_file=None, held=None)
            self.spending.end(held, "released")
            raise
        return self._write(part, status="submitted", job=job)

    async def _found(self, part: Part, given: str | None) -> Job | None:
        """The job that was made for a part before a death; None: there is none.

        Raises:
            ConfigError: several may be it.
        """
        if given is not None:
            return await self.service.look(given)
        assert part.creating_at is not None
        taken = {p.job.id for p in self.folder.parts() if p.job is not None}
        maybe: list[Job] = []
        async with aclosing(self.service.jobs()) as jobs:
            async for job in jobs:
                if job.created_at is not None and job.created_at < part.creating_at - _EARLY_S:
                    break
                if job.mark == self._mark(part):
                    return job
                if job.mark is None and job.id not in taken and job.n_total in (0, part.n):
                    maybe.append(job)
        if not maybe:
            return None
        if len(maybe) == 1:
            # A wrong one would be found out by its answers: they are to other requests.
            return maybe[0]
        listed = ", ".join(f"{job.id} ({job.word}, {job.n_total} requests)" for job in maybe)
        raise ConfigError(
            f"{self.folder.path}: part {part.name} may have been submitted already: a command died "
            f"while it asked for that, and the provider has {listed}. Say which it is with "
            f"--job {part.name}=ID, or that it is none of them with `submit --anew {part.name}`"
        )

    def anew(self, name: str) -> None:
        """A part that may have been submitted was not.

        Raises:
            ConfigError: there is no such part in that state.
        """
        for part in self.folder.parts():
            if part.name == name and part.status == "creating":
                self._write(part, status="exported", creating_at=None)
                return
        raise ConfigError(f"{self.folder.path}: no part {name} whose submission is in doubt")

    async def _looked(self, part: Part) -> Part:
        if part.status != "submitted" or part.job is None or part.job.state != "running":
            return part
        job = await self.service.look(part.job.id)
        return part if job == part.job else self._write(part, job=job)

    async def _download(self, part: Part, name: str, address: str) -> None:
        """A file of answers is here, whole, without our own secrets."""
        path = self.folder.path / "answers" / f"{part.name}-{name}.jsonl"
        if path.exists():
            return
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_suffix(".part")
        redactor = Redactor.of_environment(more=[self.spec.key] if self.spec.key else [])
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            async with self.service.download(address) as blocks:
                async for line in _lines(blocks):
                    file.write(redactor.own_bytes(line))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)

    def _hold(self, part: Part, held: str) -> None:
        """What a part can cost counts for every budget over its scope until it is fetched."""
        if part.status != "creating":
            most = self._most(part)
            self.spending.begin(What(part.scope, PURPOSE, self.spec.label), most, id=held)

    def _release(self, part: Part) -> None:
        if part.held is not None:
            self.spending.end(part.held, "released")

    def _most(self, part: Part) -> float | None:
        factor = self.terms.price_factor
        return None if part.most_usd is None or factor is None else part.most_usd * factor

    def _refuse_over(self, part: Part, limit_usd: float | None) -> None:
        if limit_usd is None:
            return
        under_way = [p for p in self.folder.parts() if p.status in ("creating", "submitted")]
        counted = [
            *(self._most(p) for p in under_way if p.name != part.name),
            *(p.cost_usd for p in self.folder.parts() if p.status == "fetched"),
        ]
        most = self._most(part)
        if most is None or None in counted:
            raise ConfigError(
                f"--budget-usd {limit_usd:g} cannot be kept: what part {part.name} or one before "
                "it can cost is not known; it takes a price, and max_tokens in every request"
            )
        before = sum(cost or 0.0 for cost in counted)
        if before + most > limit_usd:
            raise BudgetError(
                f"--budget-usd {limit_usd:g} would be passed: part {part.name} can cost "
                f"{most:.4f} USD, and those before it {before:.4f}"
            )

    def _mark(self, part: Part) -> str:
        return f"{self.folder.info.model.key[:16]}-{part.name}-{part.sha256[:32]}"

    def _write(self, part: Part, **changes: object) -> Part:
        return self.folder.write_part(part.model_copy(update=changes))


def _add(total: Imported, done: Imported) -> None:
    total.n_lines += done.n_lines
    total.n_answered += done.n_answered
    total.n_refused += done.n_refused
    total.n_gone += done.n_gone
    total.n_known += done.n_known
    total.problems.extend(done.problems)
    unknown = total.cost_usd is None or done.cost_usd is None
    total.cost_usd = None if unknown else (total.cost_usd or 0.0) + (done.cost_usd or 0.0)


async def _lines(blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The bytes of a stream, a line at a time."""
    left = b""
    async for block in blocks:
        *lines, left = (left + block).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if left:
        yield left + b"\n"
