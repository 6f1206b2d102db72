"""What a call cost: by whose price, or unknown.

In this order: the price of [models.NAME] or [prices] of bubench.toml, which is what a lab's own
contract says; what the provider itself reports that it charged (OpenRouter); the price list
of `genai-prices`, as installed, for the provider that was really asked. An endpoint of one's
own is in no list: its cost is unknown until a price is given, and unknown is None, never 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

from browseruse_bench.models.config import CONFIG, Price
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.records.trace import Usage

_LISTED = ("openai", "anthropic", "google", "openrouter")
"""Providers that the list calls as we do."""


@dataclass(frozen=True, kw_only=True)
class Counted:
    """Tokens of one reply, each in one place only: their sum is all that was read and written."""

    uncached: int = 0
    """Read from the prompt, neither from the provider's cache nor into it."""
    cached: int = 0
    """Read from the provider's cache."""
    written: int = 0
    """Read and put into the provider's cache."""
    written_1h: int = 0
    """Of `written`: for an hour, which has a price of its own."""
    reasoning: int = 0
    output: int = 0
    """Written, without reasoning."""
    charged_usd: float | None = None
    """What the provider says that it charged."""
    reported: bool = True
    """Whether the endpoint told; else all is 0 and means nothing."""

    @property
    def total(self) -> int:
        """All tokens."""
        return self.uncached + self.cached + self.written + self.reasoning + self.output


@dataclass(frozen=True)
class Cost:
    """An amount and whose price it is by; None: unknown, and why."""

    usd: float | None
    source: str


def cost(spec: ModelSpec, counted: Counted, *, served: str | None = None) -> Cost:
    """What so many tokens of a model cost; also of tokens that are only expected.

    Args:
        spec: the model.
        counted: its tokens.
        served: what the provider says that answered, where a name stands for several models.
    """
    if spec.price is not None:
        if not counted.reported and any((spec.price.input, spec.price.output)):
            return Cost(None, "unknown: the endpoint reports no tokens")
        return Cost(_by_price(spec.price, counted), spec.price_source or CONFIG)
    if counted.charged_usd is not None:
        return Cost(counted.charged_usd, f"as charged by {spec.provider}")
    if not counted.reported:
        return Cost(None, "unknown: the endpoint reports no tokens")
    return _by_list(spec, counted, served)


def used(spec: ModelSpec, counted: Counted, *, served: str | None = None) -> Usage:
    """The record of a reply's tokens and their cost."""
    paid = cost(spec, counted, served=served)
    return Usage(
        model=spec.label,
        uncached_tokens=counted.uncached + counted.written,
        cached_tokens=counted.cached,
        reasoning_tokens=counted.reasoning,
        output_tokens=counted.output,
        cost_usd=paid.usd,
        price_source=paid.source,
    )


def added(usages: list[Usage], model: str) -> Usage:
    """All of one model's use as one. A cost that is unknown for a part is unknown for the sum."""
    costs = [usage.cost_usd for usage in usages]
    unknown = next((usage for usage in usages if usage.cost_usd is None), None)
    sources = sorted({usage.price_source for usage in usages if usage.price_source})
    return Usage(
        model=model,
        uncached_tokens=sum(usage.uncached_tokens for usage in usages),
        cached_tokens=sum(usage.cached_tokens for usage in usages),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cost_usd=None if unknown else sum(cost or 0.0 for cost in costs),
        price_source=unknown.price_source if unknown else "; ".join(sources) or None,
    )


def _by_price(price: Price, counted: Counted) -> float:
    def of(special: float | None, ordinary: float) -> float:
        return ordinary if special is None else special

    million = (
        counted.uncached * price.input
        + counted.cached * of(price.cached, price.input)
        + counted.written * of(price.cache_write, price.input)
        + counted.output * price.output
        + counted.reasoning * of(price.reasoning, price.output)
    )
    return million / 1e6


def _by_list(spec: ModelSpec, counted: Counted, served: str | None) -> Cost:
    """By the installed list; a model that is served under another name is looked up by both."""
    try:
        from genai_prices import calc_price
        from genai_prices.types import Usage as Listed
    except ImportError:
        return Cost(None, "unknown: the extra 'models' is not installed")
    written = counted.uncached + counted.cached + counted.written
    usage = Listed(
        input_tokens=written,
        cache_read_tokens=counted.cached,
        cache_write_tokens=counted.written,
        output_tokens=counted.output + counted.reasoning,
        **({"cache_write_1h_tokens": counted.written_1h} if counted.written_1h else {}),
    )
    for name in dict.fromkeys((served or spec.name, spec.name)):
        try:
            if spec.base_url is not None:
                # An endpoint of one's own is never priced as the provider that has a model of
                # that name; its address may be a provider's.
                found = calc_price(usage, name, provider_api_url=spec.base_url)
            elif spec.provider in _LISTED:
                found = calc_price(usage, name, provider_id=spec.provider)
            else:
                break
        except (LookupError, ValueError):
            continue
        source = f"genai-prices {_list_version()}: {found.provider.id} {found.model.id}"
        return Cost(float(found.total_price), source)
    return Cost(
        None, f"unknown: no list has {spec.provider}:{spec.name}; give it a price in {CONFIG}"
    )


@cache
def _list_version() -> str:
    """To find it takes longer than to look up a price."""
    return version("genai-prices")
