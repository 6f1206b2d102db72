"""What judging costs beside the model: a judge whose model answers at once.

A trace of 60 steps with 50 pictures is graded against a rubric of eight items. The cold cost is
that of the first grading (the trace's bytes are compared with its manifest, its evidence is made
ready); every other is a regrade of the same frozen trace. The baseline, in the same run, is to
write the same request as JSON with its pictures in base64 and to read the reply: no client of a
provider can do less. Memory is looked at after a tenth and after all of the gradings.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from browseruse_bench.eval.findings.judge import FindingsJudge
from browseruse_bench.eval.judges import Case
from browseruse_bench.models.base import ModelId, Reply, Request
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.task import Task
from browseruse_bench.records.trace import (
    AgentId,
    BrowserId,
    Call,
    Guard,
    Limits,
    Observation,
    Outcome,
    Page,
    Step,
    Trace,
    Usage,
)
from browseruse_bench.store.trace_folder import TraceFolder, freeze, put_evidence

JUDGEMENTS = int(os.environ.get("BUBENCH_BENCH_JUDGEMENTS", "10000"))
RATE = int(os.environ.get("BUBENCH_BENCH_REGRADES", "200"))
LIMIT_PER_S = 5.0
LIMIT_SHARED = 0.95
LIMIT_GROWTH_MB = 20.0
STEPS, PICTURES, PICTURE_BYTES, PAGE_CHARS = 60, 50, 60_000, 4_000
TASK = Task.model_validate({"task_id": "t", "task": "Find eight prices in the shop."})
PRICES = [f"{100 + n}.{n}5" for n in range(8)]


def made_trace(folder: Path) -> TraceFolder:
    """A frozen trace: every step shows a page, the first fifty a picture too."""
    rng = random.Random(1)
    words = [f"word{rng.randrange(2000)}" for _ in range(5000)]
    steps: list[Step] = []
    for n in range(1, STEPS + 1):
        text = " ".join(rng.choices(words, k=PAGE_CHARS // 8))
        if n % 8 == 0:
            text += f"\nArticle {n // 8}: USD {PRICES[n // 8]}\n"
        kinds = [("text", text.encode(), "txt")]
        if n <= PICTURES:
            kinds.append(("screenshot", b"\xff\xd8\xff" + rng.randbytes(PICTURE_BYTES), "jpg"))
        url = f"http://shop.test/{n}"
        seen = tuple(
            Observation(kind=kind, ref=put_evidence(folder, content, suffix), url=url)
            for kind, content, suffix in kinds
        )
        call = Call(name="click", target=f"link {n}", result="ok")
        page = Page(target_id="A", url=url, title=f"Page {n}", document_id=str(n))
        steps.append(
            Step(index=n, t0=n, t1=n + 1, calls=(call,), page_after=page, observations=seen)
        )
    trace = Trace(
        run_id="bench", benchmark="Bench", split="All", task_id="t", attempt=1,
        task_key=TASK.view.key, agent=AgentId(name="made", version="1"),
        browser=BrowserId(kind="none"), limits=Limits(), guard=Guard(level="none"),
        started_at="2026-01-01T00:00:00+00:00", wall_s=60, n_steps=STEPS,
        outcome=Outcome(status="finished", answer=f"They are {', '.join(PRICES[1:])}."),
        final=Step(index=STEPS + 1, t0=61, t1=61, page_after=steps[-1].page_after,
                   observations=steps[-1].observations),
    )  # fmt: skip
    key = freeze(folder, trace, steps)
    return TraceFolder.open(folder, key)


def made_rubric() -> Rubric:
    """Eight items, each on a fact with a value."""
    facts = [
        {"id": f"F{n}", "claim": f"Article {n} costs USD {price}.", "values": [price]}
        for n, price in enumerate(PRICES)
    ]
    items = [
        {"id": f"I{n}", "requirement": f"The price of article {n} was found.", "facts": [f"F{n}"],
         "weight": "25/2"}
        for n in range(len(PRICES))
    ]  # fmt: skip
    return Rubric.model_validate({"task_id": "t", "facts": facts, "items": items})


class Instant:
    """Answers at once, rightly, and keeps the last request."""

    def __init__(self) -> None:
        self.id = ModelId(label="instant", provider="instant", name="instant")
        self.may_see = "clean"
        self.last: Request | None = None
        self.n = 0

    async def ask(self, request: Request, *, purpose: str, restricted: bool = False) -> Reply:
        """A finding per item; the first price was never on a page."""
        del purpose, restricted
        self.last, self.n = request, self.n + 1
        value = reply()
        usage = Usage(model="instant", cost_usd=0.0)
        return Reply(value=value, raw=json.dumps(value), usage=usage)


def reply() -> dict[str, Any]:
    """What the model says each time."""
    findings = [
        {
            "item": f"I{n}", "claim": "It was read on its page.",
            "citations": [
                {"step": str(8 * n), "source": "page", "ref": None, "quote": f"USD {price}"}
            ] if n else [],
            "reason": "The page shows it.", "because": None,
            "status": "met" if n else "violated",
        }
        for n, price in enumerate(PRICES)
    ]  # fmt: skip
    return {"reading": "Eight prices.", "findings": findings, "integrity": [], "attribution": []}


def wire(request: Request) -> bytes:
    """The request as a provider would get it."""
    messages = [
        {
            "role": message.role,
            "content": [
                part if isinstance(part, str) else base64.b64encode(part.content()).decode()
                for part in message.parts
            ],
        }
        for message in request.messages
    ]
    return json.dumps({"messages": messages, "schema": request.schema_}).encode()


def memory_mb() -> float:
    """Memory in use now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def measured(folder: Path) -> list[tuple[str, str, bool]]:
    """The figures: (what, measured, whether within its bar)."""
    trace, rubric, model = made_trace(folder), made_rubric(), Instant()
    judge = FindingsJudge(model)
    cold = time.process_time()
    trace = TraceFolder.open(trace.path, trace.key)
    case = Case(task=TASK, rubric=rubric, trace=trace, cost_usd=None)
    first = await judge.judge(case)
    cold = time.process_time() - cold
    met = [finding.status for finding in first.findings or ()].count("met")
    assert met == len(PRICES) - 1, first
    assert model.last is not None
    one = wire(model.last)

    cpu = time.process_time()
    for sample in range(1, RATE + 1):
        await judge.judge(Case(task=TASK, rubric=rubric, trace=trace, cost_usd=None, sample=sample))
    warm = (time.process_time() - cpu) / RATE
    shared = len(os.path.commonprefix([one, wire(model.last)])) / len(one)

    cpu = time.process_time()
    for _ in range(20):
        json.loads(json.dumps(reply()))
        hashlib.sha256(wire(model.last)).digest()
    plain = (time.process_time() - cpu) / 20

    grown = [memory_mb()]
    for sample in range(JUDGEMENTS):
        await judge.judge(Case(task=TASK, rubric=rubric, trace=trace, cost_usd=None, sample=sample))
        if sample in (JUDGEMENTS // 10, JUDGEMENTS - 1):
            grown.append(memory_mb())
    growth = grown[-1] - grown[1]
    return [
        ("regrades per second and core", f"{1 / warm:.1f}, {warm / plain:.2f} x writing the "
         f"request", 1 / warm >= LIMIT_PER_S),
        ("CPU of a regrade", f"{1000 * warm:.1f} ms", True),
        ("CPU of the first grading", f"{1000 * cold:.0f} ms, {cold / plain:.1f} x", True),
        ("bytes of the request that regrades share", f"{100 * shared:.2f} %",
         shared >= LIMIT_SHARED),
        (f"memory over {JUDGEMENTS} judgements", f"+{growth:.1f} MB", growth <= LIMIT_GROWTH_MB),
    ]  # fmt: skip


def main() -> int:
    """Print the figures; 1 if one of them is beyond its bar."""
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measured(Path(folder) / "trace"))
    for what, value, good in figures:
        print(f"{what:45} {value}{'' if good else '   BEYOND ITS BAR'}")
    return 0 if all(good for _, _, good in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
