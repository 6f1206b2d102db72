"""A served reward over a made benchmark, and a client that shows the token."""

from __future__ import annotations

import contextlib
import io
import zipfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import httpx
import pytest

from browseruse_bench.eval.evaluate import Asking
from browseruse_bench.export.reward.open import Wanted, reward_service
from browseruse_bench.export.reward.server import make_app
from browseruse_bench.export.reward.service import Service
from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric

TOKEN = "a-token-of-the-tests-only"


@dataclass
class Served:
    client: httpx.AsyncClient
    service: Service

    async def grade(self, body=None, *, content=None, **more):
        if content is not None:
            headers = {"content-type": "application/zip", **more.pop("headers", {})}
            return await self.client.post(
                "/v1/gradings", content=content, headers=headers, params=more
            )
        return await self.client.post("/v1/gradings", json=body, params=more)


@dataclass
class Setting:
    tmp: Path
    bench: MadeBenchmark
    today: date = date(2026, 12, 1)

    def run(self):
        """A run of the benchmark that visited /1 for task a: 60 of 100 points."""
        loaded = self.bench.load()
        made = MadeRun.of(self.tmp / "experiments", loaded)
        urls = ("http://shop.test/9", "http://shop.test/1")
        made.settle(loaded, "a", "Paris", urls=urls)
        return made

    @contextlib.asynccontextmanager
    async def served(self, judge=None, **more):
        wanted = Wanted(
            folder=self.tmp / "state",
            asking=Asking(judge=judge, concurrency=more.pop("concurrency", 2)),
            today=lambda: self.today,
            **more,
        )
        async with reward_service(self.bench.load(), wanted) as service:
            transport = httpx.ASGITransport(app=make_app(service, TOKEN))
            headers = {"authorization": f"Bearer {TOKEN}"}
            async with httpx.AsyncClient(
                transport=transport, base_url="http://reward", headers=headers
            ) as client:
                yield Served(client, service)


@pytest.fixture
def setting(tmp_path):
    bench = MadeBenchmark(tmp_path / "Made", [row("a"), row("b"), row("c", expected_result="Rome")])
    bench.rubrics = {"a": rubric("a", 40, 60)}
    return Setting(tmp_path, bench)


def told(task_id="a", urls=("http://shop.test/9", "http://shop.test/1"), **more):
    """A trace as its agent tells it."""
    steps = [{"saw": f"page {url}", "url": url} for url in urls]
    return {"task_id": task_id, "answer": "Paris", "steps": steps, **more}


def zipped(folder: Path) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())
    return made.getvalue()
