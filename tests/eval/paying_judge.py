"""Judges the run in a folder with a model that is paid for: in a process that is killed."""

import asyncio
import json
from pathlib import Path

from browseruse_bench.benchmarks.load import load_benchmark
from browseruse_bench.eval.evaluate import Asking, evaluate_run
from browseruse_bench.eval.findings.judge import FindingsJudge
from browseruse_bench.models.ledger import Ledger, LedgerModel
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.store.run_folder import RunFolder
from tests.eval.findings.believer import Believer


class Paid(ScriptedModel):
    """Takes its time, and notes each payment."""

    def __init__(self, log: Path):
        super().__init__(Believer())
        self.log = log

    async def ask(self, request, **more):
        await asyncio.sleep(0.004)
        with self.log.open("a") as log:
            log.write(json.dumps([request.key]) + "\n")
        return await super().ask(request, **more)


def main(root: str, run: str, benchmark: str) -> None:
    """Judge what is owed, and print how much was."""
    model = LedgerModel(Paid(Path(root, "payments.log")), Ledger(Path(root, "calls")))
    judging = evaluate_run(
        RunFolder(Path(run)),
        load_benchmark(benchmark),
        asking=Asking(judge=FindingsJudge(model, by_code=False), concurrency=3),
    )
    print(len(asyncio.run(judging).new))
