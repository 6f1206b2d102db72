"""What the call ledger and the budget cost beside a model's call, and whether memory is flat.

Beside a kept answer stands a bare read and parse of the same JSON file, beside a new one a bare
synced write of the same bytes, in the same run. CPU is user + system of this process. The prompt
is of a judge's size: its key is the hash of all of it, which is what a kept answer costs most.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from browseruse_bench.models.base import Message, ModelId, Params, Reply, Request
from browseruse_bench.models.ledger import Ledger, LedgerModel
from browseruse_bench.models.spending import Budget, BudgetModel
from browseruse_bench.models.spending_log import FILE, Spending
from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.trace import Usage

CALLS = int(os.environ.get("BUBENCH_BENCH_CALLS", "10000"))
PROMPT = "The price of the kettle is 12.50 EUR, said step 7. " * 800
"""40,000 characters: a trace of some 60 steps."""
SAID = {"findings": [{"item": f"A{n}", "status": "met", "claim": "words " * 20} for n in range(8)]}
LIMIT_HIT_MS = 2.0
LIMIT_MISS_MS = 6.0
LIMIT_GROWTH_MB = 10.0


class Instant:
    """A priced model that answers at once."""

    id = ModelId(label="instant", provider="scripted", name="instant")
    may_see = "clean"

    async def ask(self, request: Request, *, purpose: str, restricted: bool = False) -> Reply:
        """Always the same."""
        del request, purpose, restricted
        usage = Usage(model="instant", uncached_tokens=10_000, output_tokens=400, cost_usd=0.001)
        return Reply(value=SAID, raw=json.dumps(SAID), usage=usage)


def asked(number: int) -> Request:
    """A request of a judge's size."""
    return Request.model_validate(
        {
            "messages": [Message(role="user", parts=(PROMPT, f"Attempt {number}."))],
            "schema": {"type": "object"},
            "params": Params(max_tokens=4000),
        }
    )


def memory_mb() -> float:
    """What this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


async def ask_all(folder: Path, limit_usd: float | None) -> tuple[float, float]:
    """(ms of CPU for a call, MB by which memory grew over the last nine tenths)."""
    budget = Budget(limit_usd, Spending(folder / FILE))
    priced = BudgetModel(Instant(), budget, cost=lambda prompt, reply: 1e-6 * (prompt + reply))
    model = LedgerModel(priced, Ledger(folder), spending=budget.spending)
    requests = (asked(number) for number in range(CALLS))
    grown = 0.0
    cpu = time.process_time()
    for number, request in enumerate(requests):
        await model.ask(request, purpose="judge")
        if number == CALLS // 10:
            grown = memory_mb()
    cpu = time.process_time() - cpu
    return cpu / CALLS * 1000, memory_mb() - grown


def make_all() -> float:
    """Ms of CPU to make a request and its key, which no ledger can do without."""
    cpu = time.process_time()
    for number in range(CALLS // 10):
        _ = asked(number).key
    return (time.process_time() - cpu) / (CALLS // 10) * 1000


def read_all(folder: Path) -> float:
    """Ms of CPU to read and parse a file of the ledger as plain JSON."""
    files = list(Ledger(folder).files())
    cpu = time.process_time()
    for file in files:
        json.loads(file.read_bytes())
    return (time.process_time() - cpu) / len(files) * 1000


def write_all(folder: Path, plain: Path) -> float:
    """Ms of CPU to write the same JSON again, synced and renamed into place."""
    values = [json.loads(file.read_bytes()) for file in list(Ledger(folder).files())[: CALLS // 10]]
    cpu = time.process_time()
    for number, value in enumerate(values):
        path = plain / f"{number % 256:02x}" / f"{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".tmp").open("w") as file:
            file.write(canonical_json(value))
            file.flush()
            os.fsync(file.fileno())
        path.with_suffix(".tmp").replace(path)
    return (time.process_time() - cpu) / len(values) * 1000


def open_again(folder: Path) -> float:
    """Seconds of CPU until a later command knows what was spent."""
    cpu = time.process_time()
    totals = Spending(folder / FILE).ever
    took = time.process_time() - cpu
    assert sum(t.n_calls for t in totals.values()) == CALLS
    return took


def main() -> int:
    """Print the figures; 1 if a bar is missed."""
    with tempfile.TemporaryDirectory() as name:
        folder, plain = Path(name) / "calls", Path(name) / "plain"
        miss_ms, grown_miss = asyncio.run(ask_all(folder, 1e6))
        hit_ms, grown_hit = asyncio.run(ask_all(folder, 1e6))
        key_ms, read_ms, write_ms = make_all(), read_all(folder), write_all(folder, plain)
        opened_s = open_again(folder)
        size = sum(f.stat().st_size for f in Ledger(folder).files()) / CALLS
    print(
        f"{CALLS} calls with prompts of {len(PROMPT):,} characters, {size:.0f} bytes kept of each"
    )
    print(f"a kept answer    {hit_ms:6.3f} ms CPU (at most {LIMIT_HIT_MS:g}): {key_ms:.3f} for the request "
          f"and its key; a bare read {read_ms:.3f}")  # fmt: skip
    print(f"a new answer     {miss_ms:6.3f} ms CPU (at most {LIMIT_MISS_MS:g}), held, settled and kept; "
          f"a bare synced write {write_ms:.3f}")  # fmt: skip
    print(f"memory           {grown_miss:+6.1f} MB over the last 90 % of new answers, {grown_hit:+.1f} of "
          f"kept ones (at most {LIMIT_GROWTH_MB:g})")  # fmt: skip
    print(f"open             {opened_s:6.3f} s CPU to know what {CALLS} calls cost")
    print(f"load             {os.getloadavg()[0]:.2f} over {os.cpu_count()} cores")
    missed = (
        hit_ms > LIMIT_HIT_MS,
        miss_ms > LIMIT_MISS_MS,
        max(grown_miss, grown_hit) > LIMIT_GROWTH_MB,
    )
    return 1 if any(missed) else 0


if __name__ == "__main__":
    sys.exit(main())
