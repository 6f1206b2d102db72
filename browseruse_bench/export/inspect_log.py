"""A run as an Inspect log: one `.eval` file, a zip of JSON, as `inspect_ai` reads and shows it.

    header.json                     what was evaluated, figures
    summaries.json                  one line for each sample
    samples/<id>_epoch_<n>.json     a task's attempt: the task, the agent's actions, its scores
    _journal/                       what a log has that was started

An attempt without a grade has no score (it is counted in `unscored_samples`), never one of 0; one
that the infrastructure ended is a sample with an error. The answer key is not part of a log:
targets are empty, and findings, which show what a rubric asks, go along only with --answers.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import ConfigError
from browseruse_bench.eval.evaluate import references
from browseruse_bench.export.outgoing import Exported, Wish, run_source
from browseruse_bench.measure.tally import Placed, figures, place
from browseruse_bench.records.run import Run
from browseruse_bench.records.trace import Step, Usage
from browseruse_bench.store.files import escaped, write_atomic
from browseruse_bench.store.run_folder import RunFolder
from browseruse_bench.store.trace_folder import TraceFolder

VERSION = 2
"""Of the log's schema."""
_STAMP = (1980, 1, 1, 0, 0, 0)

Json = dict[str, Any]


def write(source: str, out: Path, wish: Wish) -> Exported:
    """The log is at `out`, which ends with .eval; raises as `outgoing.Exporter`."""
    if out.suffix != ".eval":
        raise ConfigError(f"{out}: an Inspect log is a file whose name ends with .eval")
    if out.exists():
        raise ConfigError(f"{out} is already there: name a file that is not")
    folder, benchmark = run_source(source, wish)
    run = folder.read_run()
    placed = place(
        wanted=run.wanted,
        entries=folder.attempts(),
        judgements=folder.judgements(),
        not_run={},
        references=references(benchmark),
        success_at=benchmark.info.success_at,
    )
    ran = [each for each in placed if each.entry is not None]
    if not ran:
        raise ConfigError(f"{source}: no attempt of this run has settled")
    samples = [_sample(folder, benchmark, each, answers=wish.answers) for each in ran]
    header = _header(run, benchmark, placed, samples)
    write_atomic(out, _packed(header, samples))
    n_left = len(placed) - len(ran)
    notes = (f"{n_left} attempts have not run and are not in the log",) if n_left else ()
    return Exported(n_tasks=len({each.task_id for each in ran}), notes=notes)


def _sample(folder: RunFolder, benchmark: Benchmark, placed: Placed, *, answers: bool) -> Json:
    entry = placed.entry
    assert entry is not None
    path = folder.try_path(entry.task_id, entry.attempt, entry.try_)
    trace = TraceFolder.open(path, entry.trace_key)
    told = trace.trace
    text = next((t.task for t in benchmark.tasks if t.task_id == entry.task_id), "")
    answer = told.outcome.answer or ""
    model = told.agent.model or told.agent.name
    messages = [{"role": "user", "content": text, "source": "input"}]
    messages += [message for step in trace.steps for message in _messages(step)]
    last = {"role": "assistant", "content": answer, "model": model, "source": "generate"}
    found: Json = {
        "id": escaped(entry.task_id),
        "epoch": entry.attempt,
        "input": text,
        "target": "",
        "messages": [*messages, last],
        "output": {
            "model": model,
            "choices": [{"message": last, "stop_reason": "stop"}],
            "completion": answer,
        },
        "metadata": _about(placed, trace),
        "model_usage": _usages(told.usage),
        "uuid": f"{entry.trace_key[:22]}",
    }
    if told.started_at is not None:
        found["started_at"] = told.started_at
    if told.wall_s is not None:
        found["total_time"] = told.wall_s
    if placed.where == "infrastructure":
        reason = entry.reason or "the infrastructure ended the attempt"
        found["error"] = {"message": reason, "traceback": reason, "traceback_ansi": reason}
    if placed.score is not None:
        found["scores"] = _scores(placed, answers=answers)
    return found


def _messages(step: Step) -> Iterator[Json]:
    """A step as the agent's call and what came back."""
    calls = [
        {
            "id": f"step-{step.index}-{n}",
            "function": call.name,
            "arguments": call.arguments,
            "type": "function",
        }
        for n, call in enumerate(step.calls)
    ]
    thought = step.thought.text if step.thought is not None else ""
    yield {"role": "assistant", "content": thought, "tool_calls": calls, "source": "generate"}
    page = step.page_after
    where = f"{page.title}\n{page.url}" if page is not None else ""
    for made, call in zip(calls, step.calls, strict=True):
        yield {
            "role": "tool",
            "tool_call_id": made["id"],
            "function": call.name,
            "content": "\n".join(part for part in (call.result, call.error, where) if part),
        }


def _about(placed: Placed, trace: TraceFolder) -> Json:
    told = trace.trace
    return {
        "task_id": placed.task_id,
        "task_key": told.task_key,
        "trace_key": trace.key,
        "outcome": told.outcome.status,
        "evidence_policy": told.evidence_policy,
        "guard": told.guard.level,
        "place": placed.where,
        "reason": placed.reason or "",
        "n_steps": told.n_steps,
    }


def _scores(placed: Placed, *, answers: bool) -> Json:
    score, judgement = placed.score, placed.judgement
    assert score is not None
    assert judgement is not None
    about: Json = {
        "raw_points": score.raw_points,
        "flags": list(score.flags),
        "protocol": judgement.protocol,
        "rubric_key": judgement.rubric_key,
        "judge_key": judgement.judge_key,
        "sample": judgement.sample,
    }
    points: Json = {"value": score.points, "metadata": about}
    if answers and judgement.findings is not None:
        lines = [f"{f.item}: {f.status}: {f.claim}" for f in judgement.findings]
        points["explanation"] = "\n".join(lines)
        about["findings"] = [finding.as_json() for finding in judgement.findings]
    return {"points": points, "success": {"value": 1 if score.success else 0}}


def _usages(usages: Sequence[Usage]) -> Json:
    found: Json = {}
    for usage in usages:
        one = found.setdefault(
            usage.model,
            {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0,
             "input_tokens_cache_read": 0, "reasoning_tokens": 0},
        )  # fmt: skip
        written = usage.output_tokens + usage.reasoning_tokens
        one["input_tokens"] += usage.uncached_tokens
        one["input_tokens_cache_read"] += usage.cached_tokens
        one["reasoning_tokens"] += usage.reasoning_tokens
        one["output_tokens"] += written
        one["total_tokens"] += usage.uncached_tokens + usage.cached_tokens + written
    return found


def _header(
    run: Run, benchmark: Benchmark, placed: Sequence[Placed], samples: Sequence[Json]
) -> Json:
    identity = run.identity
    ids = list(dict.fromkeys(sample["id"] for sample in samples))
    found = figures(placed)
    graded = [each for each in placed if each.score is not None]
    counts = {"scored_samples": len(graded), "unscored_samples": len(samples) - len(graded)}
    means = {"points": found.mean, "success": found.success}
    scores = [
        {
            "name": name,
            "scorer": name,
            **counts,
            "metrics": {"mean": {"name": "mean", "value": mean}},
        }
        for name, mean in means.items()
        if mean is not None
    ]
    model = identity.agent.model or identity.agent.name
    spec: Json = {
        "eval_id": run.run_id,
        "run_id": run.run_id,
        "created": run.started_at,
        "task": f"{identity.benchmark}/{identity.split}",
        "task_id": run.run_id,
        "dataset": {"name": benchmark.name, "samples": len(ids), "sample_ids": ids},
        "solver": identity.agent.name,
        "model": model,
        "config": {"epochs": max(sample["epoch"] for sample in samples)},
        "packages": run.versions,
        "metadata": {
            "revision": identity.revision,
            "agent": identity.agent.as_json(),
            "browser": identity.browser,
            "limits": identity.limits.as_json(),
            "evidence_policy": run.evidence_policy,
            "accounting": found.accounting.sentence,
        },
    }
    ended = max((each.entry.at for each in placed if each.entry), default=run.started_at)
    return {
        "version": VERSION,
        "status": "success",
        "eval": spec,
        "plan": {"name": "plan", "steps": [{"solver": identity.agent.name}]},
        "results": {
            "total_samples": len(samples),
            "completed_samples": sum("error" not in sample for sample in samples),
            "scores": scores,
        },
        "stats": {"started_at": run.started_at, "completed_at": ended},
    }


def _summary(sample: Json) -> Json:
    kept = ("id", "epoch", "input", "target", "metadata", "scores", "model_usage", "uuid",
            "started_at", "total_time")  # fmt: skip
    found = {name: sample[name] for name in kept if name in sample}
    if "error" in sample:
        found["error"] = sample["error"]["message"]
    return {**found, "completed": "error" not in sample, "message_count": len(sample["messages"])}


def _packed(header: Json, samples: Sequence[Json]) -> bytes:
    """The bytes of the log; the same run gives the same."""
    start = {name: header[name] for name in ("version", "eval", "plan")}
    summaries = [_summary(sample) for sample in samples]
    members: list[tuple[str, Any]] = [("_journal/start.json", start)]
    members += [(f"samples/{s['id']}_epoch_{s['epoch']}.json", s) for s in samples]
    members += [("_journal/summaries/1.json", summaries), ("summaries.json", summaries)]
    members.append(("header.json", header))
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            info = zipfile.ZipInfo(name, _STAMP)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            # Half of a surrogate pair is no character; it becomes an escape that JSON has.
            archive.writestr(info, json.dumps(content, allow_nan=False))
    return made.getvalue()
