from pathlib import Path

import pytest

from browseruse_bench.models.config import Asking, Price
from browseruse_bench.models.gateway.meter import Meter
from browseruse_bench.models.gateway.server import Gateway
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.spending import Budget
from browseruse_bench.models.spending_log import Spending
from tests.models.gateway.pretend_provider import KEY, Provider

PRICE = Price(input=10.0, cached=1.0, output=100.0)
NAMES = {"anthropic": "claude-test", "google": "gemini-test"}


@pytest.fixture
async def provider():
    async with Provider() as served:
        yield served


@pytest.fixture
async def gateway():
    async with Gateway() as opened:
        yield opened
        assert opened.faults == []


class Opened:
    """An attempt's way through the gateway, and what it leaves behind."""

    def __init__(self, gateway, provider, calls: Path):
        self.gateway = gateway
        self.provider = provider
        self.calls = calls
        self.ledger = Ledger(calls, keep_requests=True)
        self.n = 0

    def spec(self, kind="openai-compatible", *, price=PRICE, key=KEY, **changes):
        base = f"{self.provider.url}/v1" if kind.startswith("open") else self.provider.url
        given = {
            "label": "small",
            "provider": kind,
            "name": NAMES.get(kind, "gpt-test"),
            "base_url": base,
            "key": key,
            "price": price,
            "price_source": None if price is None else "the test",
            "asking": Asking(concurrency=1000),
        }
        return ModelSpec(**{**given, **changes})

    def open(self, kind="openai-compatible", *, usd=None, run=None, changed=None, **spec):
        self.n += 1
        meter = Meter(
            self.spec(kind, **spec),
            scope=f"t{self.n}#1",
            run=run or Budget(None, Spending()),
            attempt=None if usd is None else Budget(usd, name="--max-cost-usd"),
            ledger=self.ledger,
            changed=changed or (lambda _: None),
        )
        return self.gateway.open(meter)

    def kept(self, *, failed=False):
        return list(self.ledger.calls(failed=failed))

    def written(self):
        return b"".join(path.read_bytes() for path in self.calls.rglob("*") if path.is_file())


@pytest.fixture
def way(gateway, provider, tmp_path):
    return Opened(gateway, provider, tmp_path / "calls")
