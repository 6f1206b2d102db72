"""What `bubench models list`, `check` and `calls` show, as JSON and as tables."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from browseruse_bench.errors import ConfigError
from browseruse_bench.models import MODELS
from browseruse_bench.models.config import CONFIG, read_config
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.models.open import limiter_of
from browseruse_bench.models.prices import Counted, cost
from browseruse_bench.models.spec import KEYS, ModelSpec, model_spec, read_env
from browseruse_bench.models.spending_log import FILE, Spending, What, spending_at, summed
from browseruse_bench.report.render import Table, money

Json = dict[str, Any]
_MILLION = 1_000_000


def model_rows(folder: Path) -> list[Json]:
    """Every model of bubench.toml, and every provider for models that it does not name.

    Raises:
        ConfigError: bubench.toml is broken.
    """
    named = [
        _named_row(model_spec(name, cwd=folder, need_key=False))
        for name in sorted(read_config(folder / CONFIG).models)
    ]
    return [*named, *(_provider_row(name, folder) for name in MODELS.names())]


def _named_row(spec: ModelSpec) -> Json:
    price = cost(spec, Counted(uncached=_MILLION))
    reply = cost(spec, Counted(output=_MILLION))
    known = price.usd is not None and reply.usd is not None
    return {
        "name": spec.label,
        "provider": spec.provider,
        "model": spec.name,
        "base_url": spec.base_url,
        "key": spec.key_name,
        "key_present": None if spec.key_name is None else spec.key is not None,
        "usd_per_million": {"input": price.usd, "output": reply.usd} if known else None,
        "price_source": price.source,
        "may_see": spec.asking.may_see,
    }


def _provider_row(name: str, folder: Path) -> Json:
    variables = KEYS.get(name, ())
    there = {**read_env(folder / ".env"), **os.environ}
    present = next((v for v in variables if there.get(v)), None)
    form = "openai-compatible:NAME@http://host/v1" if name == "openai-compatible" else f"{name}:..."
    return {
        "name": form,
        "provider": name,
        "model": None,
        "base_url": None,
        "key": present or (variables[0] if variables else None),
        "key_present": present is not None if variables else None,
        "usd_per_million": None,
        "price_source": None,
        "may_see": "restricted" if name == "scripted" else "clean",
    }


def model_table(rows: list[Json]) -> Table:
    """The models for people."""
    return Table(
        title="",
        headers=("name", "model", "key", "USD per million, in/out", "may see"),
        rows=tuple(
            (
                row["name"],
                "" if row["model"] is None else f"{row['provider']}:{row['model']}",
                _key_words(row),
                _price_words(row),
                row["may_see"],
            )
            for row in rows
        ),
    )


def _key_words(row: Json) -> str:
    if row["key"] is None:
        return "none needed"
    return f"{row['key']}, set" if row["key_present"] else f"{row['key']}, not set"


def _price_words(row: Json) -> str:
    price = row["usd_per_million"]
    if price is not None:
        return f"{price['input']:g} / {price['output']:g} ({row['price_source']})"
    return "" if row["model"] is None else "unknown"


def checked(name: str, calls: Path) -> Json:
    """What a model's endpoint supports, asked anew; what that cost is written beside the calls.

    Raises:
        ConfigError: the model is a double, or its key is missing.
        CallError: the endpoint does not answer.
    """
    from browseruse_bench.models.base import CallError
    from browseruse_bench.models.provider import ProviderModel

    spec = model_spec(name, what="models check")
    if spec.provider == "scripted":
        raise ConfigError(f"{name}: a double has no endpoint to check")
    model = ProviderModel(spec, limiter=limiter_of(spec))
    spending = spending_at(calls)
    what = What("", "probe", spec.label)
    try:
        found = asyncio.run(model.probe())
    except CallError as error:
        if error.usage is not None:
            spending.record(what, error.usage, "failed")
        raise
    if found.usage is not None:
        spending.record(what, found.usage)
    plain = found.as_json()
    abilities = {a: plain.get(a) for a in ("system", "native", "tool", "prompted", "images")}
    return {
        "name": spec.label,
        "provider": spec.provider,
        "model": spec.name,
        "base_url": spec.base_url,
        "abilities": abilities,
        "notes": plain.get("notes", {}),
        "schema": found.given(spec.asking).mode,
        "usage": plain.get("usage"),
        "cost_usd": None if found.usage is None else found.usage.cost_usd,
    }


_ABILITIES = {
    "system": "reads the system role",
    "native": "holds to a schema in the API's own field",
    "tool": "holds to a schema as a tool",
    "prompted": "writes JSON when the prompt asks for it",
    "images": "reads pictures",
}


def found_table(found: Json) -> Table:
    """What a check found, for people."""
    said = {True: "yes", False: "no", None: "cannot be told"}
    usage: Json = found["usage"] or {}
    price = money(found["cost_usd"], n_unknown=1)
    rows = [
        (text, said[found["abilities"][name]], found["notes"].get(name, ""))
        for name, text in _ABILITIES.items()
    ]
    rows.append(("a schema goes", found["schema"] or "no way that was found", ""))
    rows.append(("this check cost", price, usage.get("price_source") or ""))
    return Table(title="", headers=(found["name"], "", ""), rows=tuple(rows))


def spending_json(calls: Path, *, purpose: str | None, scope: str | None) -> Json:
    """What was spent below a calls folder, by purpose and model.

    Raises:
        ConfigError: there are no calls.
        DataError: spending.jsonl is damaged.
    """
    if not (calls / FILE).is_file():
        raise ConfigError(f"{calls}: no calls; name the folder of a ledger with --calls")
    spending = Spending(calls / FILE)
    chosen = {
        what: totals
        for what, totals in spending.ever.items()
        if purpose in (None, what.purpose) and scope in (None, what.scope)
    }
    groups = sorted({(what.purpose, what.model) for what in chosen})
    rows = [
        {
            "purpose": p,
            "model": m,
            **summed(t for w, t in chosen.items() if (w.purpose, w.model) == (p, m)).as_json(),
        }
        for p, m in groups
    ]
    total = summed(chosen.values())
    n, most = spending.under_way(scope)
    return {
        "calls": rows,
        "total": total.as_json(),
        "under_way": {"n": n, "most_usd": most},
        "notes": _notes(total, n, most),
    }


def _notes(total: Any, n_under_way: int, most: float | None) -> list[str]:
    notes: list[str] = []
    if total.n_unpriced:
        bound = "" if total.n_unbounded else f", at most {money(total.charged_usd)} in all"
        notes.append(
            f"the cost of {total.n_unpriced} calls is not known ({total.n_lost} were cut off)"
            f"{bound}"
        )
    if n_under_way:
        bound = "an unknown amount" if most is None else f"{most:.4f} USD"
        notes.append(f"{n_under_way} are under way and can cost {bound}")
    return notes


def spending_table(found: Json) -> Table:
    """What was spent, for people."""
    total: Json = {"purpose": "all", "model": "", **found["total"]}
    rows: list[Json] = [*found["calls"], total]
    return Table(
        title="",
        headers=(
            "purpose", "model", "calls", "failed", "uncached", "cached", "reasoning", "output",
            "cost",
        ),
        rows=tuple(
            (
                row["purpose"],
                row["model"],
                str(row["n_calls"]),
                str(row["n_failed"]),
                *(str(row[f"{k}_tokens"]) for k in ("uncached", "cached", "reasoning", "output")),
                money(row["cost_usd"], row["known_usd"], row["n_unpriced"]),
            )
            for row in rows
        ),
        right=frozenset(range(2, 9)),
    )  # fmt: skip


def call_json(calls: Path, ref: str) -> Json:
    """One call, as it is kept.

    Raises:
        DataError: there is none, or its file is damaged.
    """
    return Ledger(calls).read(ref).as_json()


def verified(calls: Path) -> tuple[int, list[str]]:
    """How many files of calls there are, and what is wrong with those that are damaged."""
    damaged: list[str] = []
    ledger = Ledger(calls, say=damaged.append)
    for _ in ledger.every():
        pass
    return sum(1 for _ in ledger.files()), damaged
