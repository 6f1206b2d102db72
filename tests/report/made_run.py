"""A benchmark folder and runs of it on disk, without a browser."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from browseruse_bench.benchmarks.load import Benchmark, load_benchmark
from browseruse_bench.records.run import AttemptEntry, Machine, Run, RunIdentity, Selection
from browseruse_bench.records.trace import (
    AgentId,
    BrowserId,
    Guard,
    Limits,
    Observation,
    Outcome,
    Page,
    Step,
    Trace,
)
from browseruse_bench.store.journal import Journal
from browseruse_bench.store.run_folder import RunFolder
from browseruse_bench.store.trace_folder import freeze, put_evidence

GUIDE_EVALUATOR = '''
from browseruse_bench.eval.base_evaluator import BaseEvaluator

class YourBenchmarkEvaluator(BaseEvaluator):
    """Custom evaluator."""

    def evaluate_task(self, task_id: str, result: dict) -> dict:
        """
        Evaluate a single task.

        Args:
            task_id: Task ID
            result: Agent result

        Returns:
            Evaluation result containing predicted_label and score.
        """
        score = self._calculate_score(result)

        return {
            "predicted_label": 1 if score >= 60 else 0,
            "score": score,
            "evaluation_details": {
                "grader_response": "Evaluation details..."
            }
        }
'''
"""The evaluator of the integration guide, word for word."""


def evaluator(body: str) -> str:
    """The source of an evaluator whose evaluate_task has this body."""
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    return (
        "from browseruse_bench.eval.base_evaluator import BaseEvaluator\n"
        "class Made(BaseEvaluator):\n"
        f"    def evaluate_task(self, task_id, result):\n{lines}\n"
    )


def rubric(task_id: str, *weights: int, check: bool = True) -> dict[str, Any]:
    """A rubric with items I0, I1, ... whose checks want the final page on shop.test."""
    items = [
        {
            "id": f"I{n}",
            "requirement": f"requirement {n}",
            "weight": weight,
            "check": {"kind": "url", "host": "shop.test", "path": f"/{n}"} if check else None,
        }
        for n, weight in enumerate(weights)
    ]
    return {"task_id": task_id, "items": items}


@dataclass
class MadeBenchmark:
    """A benchmark folder that can be changed and loaded again."""

    path: Path
    rows: list[dict[str, Any]]
    info: dict[str, Any] = field(default_factory=dict)
    rubrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    evaluator: str | None = None

    def load(self) -> Benchmark:
        self._write("data/tasks.json", json.dumps(self.rows))
        info = {"name": self.path.name, "split": {"All": "tasks.json"}, **self.info}
        self._write("data_info.json", json.dumps(info))
        for task_id, content in self.rubrics.items():
            self._write(f"rubrics/{task_id}.json", json.dumps(content))
        if self.evaluator is not None:
            self._write("evaluator.py", self.evaluator)
        return load_benchmark(str(self.path))

    def _write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def row(task_id: str, **more: Any) -> dict[str, Any]:
    return {"task_id": task_id, "task": f"Do {task_id}", **more}


@dataclass
class MadeRun:
    """A run whose attempts settle when the test says so."""

    folder: RunFolder
    run: Run

    @classmethod
    def of(
        cls,
        root: Path,
        benchmark: Benchmark,
        *,
        task_ids: Sequence[str] | None = None,
        repeat: int = 1,
        agent: str = "scripted",
        model: str | None = None,
        started_at: str = "2026-01-01T00:00:00+00:00",
        run_id: str | None = None,
        **more: Any,
    ) -> MadeRun:
        identity = RunIdentity(
            benchmark=benchmark.name,
            revision=benchmark.revision,
            split=benchmark.split,
            agent=AgentId(name=agent, version="1", model=model),
            browser="none",
            limits=more.pop("limits", Limits()),
        )
        ids = tuple(task_ids or (t.task_id for t in benchmark.tasks))
        run = Run(
            run_id=run_id or identity.run_id,
            identity=identity,
            benchmark_dir=str(benchmark.path),
            benchmark_sha256=benchmark.content_sha256,
            guard=Guard(level="none"),
            machine=Machine(system="Linux", python="3.11", n_cores=2, memory_gb=4),
            selections=(Selection(task_ids=ids, repeat=repeat),),
            started_at=started_at,
            **more,
        )
        folder = RunFolder.at(root, identity, run.run_id)
        folder.write_run(run)
        return cls(folder, run)

    def settle(
        self,
        benchmark: Benchmark,
        task_id: str,
        answer: str | None,
        *,
        attempt: int = 1,
        status: str = "finished",
        urls: Sequence[str] = ("http://shop.test/0",),
        cost_usd: float | None = 0.0,
        **trace: Any,
    ) -> AttemptEntry:
        """Freeze a trace that visited these pages, and enter it in the journal."""
        earlier = self.folder.attempts().get((task_id, attempt))
        try_ = earlier.try_ + 1 if earlier else 1
        path = self.folder.try_path(task_id, attempt, try_)
        path.mkdir(parents=True)
        task = benchmark.task(task_id)
        steps = [_step(path, n, url) for n, url in enumerate(urls, 1)]
        made = Trace(
            run_id=self.run.run_id,
            benchmark=benchmark.name,
            split=benchmark.split,
            task_id=task_id,
            attempt=attempt,
            **{"try": try_},
            task_key=task.view.key,
            agent=self.run.identity.agent,
            browser=BrowserId(kind="none"),
            limits=self.run.identity.limits,
            guard=self.run.guard,
            started_at="2026-01-01T00:00:00+00:00",
            wall_s=1.5,
            n_steps=len(steps),
            outcome=Outcome.model_validate({"status": status, "answer": answer}),
            final=_step(path, len(steps) + 1, urls[-1] if urls else "about:blank"),
            **trace,
        )
        entry = AttemptEntry.model_validate(
            {
                "task_id": task_id,
                "attempt": attempt,
                "try": try_,
                "task_key": task.view.key,
                "trace_key": freeze(path, made, steps),
                "status": status,
                "n_steps": len(steps),
                "wall_s": 1.5,
                "cost_usd": cost_usd,
                "at": "2026-01-01T00:01:00+00:00",
            }
        )
        with Journal(self.folder.attempts_path) as journal:
            journal.append(entry.as_json())
        return entry


def _step(folder: Path, index: int, url: str) -> Step:
    ref = put_evidence(folder, f"page {url}".encode(), "txt")
    return Step(
        index=index,
        t0=index,
        t1=index + 0.5,
        page_after=Page(target_id="T1", url=url, tabs=(url,)),
        observations=(Observation(kind="text", ref=ref, url=url),),
    )
