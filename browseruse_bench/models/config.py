"""bubench.toml, as far as it is about models: who they are, how they are asked, what they cost.

`models.spec` says what may stand in it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import Clearance, Params
from browseruse_bench.records.base import Record

CONFIG = "bubench.toml"
SchemaMode = Literal["native", "tool", "prompted"]
"""How an endpoint is held to a schema: by a field of its own, as the arguments of a tool that
must be called, or by words in the prompt.
"""
TIMEOUT_S = 300.0
"""A judge that reasons over a long trace takes minutes; twice that is a hang."""


class Price(Record):
    """USD per million tokens."""

    input: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Of a token that the provider had in its cache; None: as any other."""
    cache_write: float | None = Field(default=None, ge=0)
    """Of a token that the provider put into its cache; None: as any other."""
    output: float = Field(ge=0)
    reasoning: float | None = Field(default=None, ge=0)
    """Of a token of reasoning; None: as any other that came."""


class Asking(Record):
    """How a model is asked, beside who it is and what a key of it may do."""

    may_see: Clearance = "clean"
    concurrency: int | None = Field(default=None, ge=1)
    """Requests at a time."""
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    timeout_s: float = Field(default=TIMEOUT_S, gt=0)
    """Of one request, from when it is sent until all of its reply is there."""
    params: Params = Params()
    """What a request that says nothing else is asked with."""
    extra_body: dict[str, Any] = {}
    """Fields that are added to each request as they are."""
    prompt_cache: bool = True
    """Whether prompts are marked for a provider that caches only what is marked."""
    schema_: SchemaMode | None = Field(default=None, alias="schema")
    """None, here and below: what a probe of the endpoint finds."""
    images: bool | None = None
    system: bool | None = None


class NamedModel(Asking):
    """[models.NAME] of bubench.toml."""

    id: str
    base_url: str | None = None
    api_key_env: str | None = None
    usd_per_million: Price | None = None

    @property
    def asking(self) -> Asking:
        """What of it says how the model is asked."""
        own = self.as_json()
        names = {field.alias or name for name, field in Asking.model_fields.items()}
        return Asking.model_validate({name: own[name] for name in names & own.keys()})


class AgentDefault(Record):
    """[agents.NAME] of bubench.toml."""

    model: str | None = None


class Config(Record):
    """What bubench.toml says about models; other tables are others' concern."""

    models: dict[str, NamedModel] = {}
    agents: dict[str, AgentDefault] = {}
    prices: dict[str, Price] = {}


def read_config(path: Path) -> Config:
    """What bubench.toml says; nothing without one.

    Raises:
        ConfigError: it is not TOML, or an entry is wrong; says which.
    """
    if not path.is_file():
        return Config()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    try:
        # The tables of others are theirs to check.
        return Config.model_validate({n: content[n] for n in Config.model_fields if n in content})
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise ConfigError(f"{path}: {place}: {problem['msg']}") from error
