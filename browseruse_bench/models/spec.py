"""`--model`: which model an agent asks, where, with which key, at which price.

    openai:NAME  anthropic:NAME  google:NAME  openrouter:NAME    key from <PROVIDER>_API_KEY
    openai-compatible:NAME@http://host:port/v1                   key from OPENAI_COMPATIBLE_API_KEY,
                                                                 where the endpoint wants one
    NAME                                                         [models.NAME] of bubench.toml
    scripted:FILE or scripted:FOLDER                             prepared steps; no key, no cost

bubench.toml in the current folder may name models, their prices and an agent's default:

    [models.small]
    id = "openai:gpt-5-mini"                 # or id = "NAME" beside base_url = "http://.../v1"
    api_key_env = "MY_KEY"                   # optional
    usd_per_million = {input = 0.25, cached = 0.025, output = 2.0}   # optional

    [agents.browser-use]
    model = "small"

Keys are taken from the environment, else from `.env` in the current folder; they are never
part of a spec that is written down.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import Field, TypeAdapter, ValidationError

from browseruse_bench.errors import ConfigError
from browseruse_bench.records.base import Record
from browseruse_bench.registry import unknown_name

Provider = Literal["openai", "anthropic", "google", "openrouter", "openai-compatible", "scripted"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)

KEYS: dict[Provider, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY",),
    "openai-compatible": ("OPENAI_COMPATIBLE_API_KEY",),
    "scripted": (),
}
"""Variables that may hold a provider's key, the first that is set counts."""

FORMS = (
    "provider:name (openai, anthropic, google, openrouter), "
    "openai-compatible:NAME@http://host/v1, scripted:FILE, or a [models.NAME] of bubench.toml"
)
CONFIG = "bubench.toml"


class Price(Record):
    """USD per million tokens."""

    input: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Of a token that the provider had in its cache; None: as any other."""
    output: float = Field(ge=0)


class _Named(Record):
    """[models.NAME] of bubench.toml."""

    id: str
    base_url: str | None = None
    api_key_env: str | None = None
    usd_per_million: Price | None = None


class _Default(Record):
    """[agents.NAME] of bubench.toml."""

    model: str | None = None


_NAMED: TypeAdapter[dict[str, _Named]] = TypeAdapter(dict[str, _Named])
_DEFAULTS: TypeAdapter[dict[str, _Default]] = TypeAdapter(dict[str, _Default])


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A model that can be asked."""

    label: str
    """What results call it: as it was typed, without a path or an address."""
    provider: Provider
    name: str
    """What the provider calls it."""
    base_url: str | None = None
    script: Path | None = None
    key: str | None = field(default=None, repr=False)
    price: Price | None = None
    price_source: str | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes it another model beside its label; for the identity of a run."""
        called = f"{self.provider}:{self.name}"
        return {
            **({"model_id": called} if called != self.label and self.script is None else {}),
            **({"base_url": self.base_url} if self.base_url else {}),
        }


def parse_model(text: str | None, agent: str, *, cwd: Path | None = None) -> ModelSpec:
    """The model that `--model` means for an agent; None: the agent's own of bubench.toml.

    Raises:
        ConfigError: none is named, the form is wrong, or its key is missing; says which.
    """
    folder = cwd or Path.cwd()
    config = _config(folder / CONFIG)
    models = config[0]
    text = text or config[1].get(agent, _Default()).model
    if not text:
        raise ConfigError(f"agent '{agent}' needs a model; give --model as {FORMS}")
    if text in models:
        return _named(text, models[text], folder)
    provider, colon, name = text.partition(":")
    if not colon:
        known = (*sorted(models), *(f"{p}:..." for p in PROVIDERS))
        raise ConfigError(f"--model {text}: {unknown_name('model', text, known)}; give {FORMS}")
    if provider not in PROVIDERS:
        raise ConfigError(f"--model {text}: {unknown_name('provider', provider, PROVIDERS)}")
    if not name:
        raise ConfigError(f"--model {text}: no name behind the colon; give {FORMS}")
    return _direct(text, provider, name, folder)


def model_label(text: str) -> str:
    """What results call a model that was typed as `text`: without its path or address."""
    provider, _, name = text.partition(":")
    if provider == "scripted":
        return f"scripted:{Path(name).resolve().name.removesuffix('.json')}"
    if provider == "openai-compatible":
        return text.partition("@")[0]
    return text


def _direct(text: str, provider: Provider, name: str, folder: Path) -> ModelSpec:
    label = model_label(text)
    if provider == "scripted":
        script = folder / Path(name).expanduser()
        if not script.exists():
            raise ConfigError(f"--model {text}: no file or folder {script}")
        free = Price(input=0, cached=0, output=0)
        return ModelSpec(
            label=label, provider=provider, name=label.partition(":")[2], script=script,
            price=free, price_source="scripted, free",
        )  # fmt: skip
    base_url = None
    if provider == "openai-compatible":
        name, at, base_url = name.partition("@")
        if not at or not name:
            raise ConfigError(f"--model {text}: give openai-compatible:NAME@http://host:port/v1")
        base_url = _checked_url(base_url, f"--model {text}")
    key = _key(KEYS[provider], folder, needed=provider != "openai-compatible", what=text)
    return ModelSpec(label=label, provider=provider, name=name, base_url=base_url, key=key)


def _named(label: str, entry: _Named, folder: Path) -> ModelSpec:
    where = f"{CONFIG}: models.{label}"
    if entry.base_url is not None:
        provider: Provider = "openai-compatible"
        name = entry.id.removeprefix("openai-compatible:")
    else:
        given, colon, name = entry.id.partition(":")
        if not colon or given not in PROVIDERS or given in ("scripted", "openai-compatible"):
            raise ConfigError(
                f"{where}.id: '{entry.id}' is neither provider:name (openai, anthropic, google, "
                "openrouter) nor beside a base_url"
            )
        provider = given
    variables = (entry.api_key_env,) if entry.api_key_env else KEYS[provider]
    needed = provider != "openai-compatible" or entry.api_key_env is not None
    return ModelSpec(
        label=label,
        provider=provider,
        name=name,
        base_url=None if entry.base_url is None else _checked_url(entry.base_url, where),
        key=_key(variables, folder, needed=needed, what=label),
        price=entry.usd_per_million,
        price_source=None if entry.usd_per_million is None else f"{CONFIG}: models.{label}",
    )


def _checked_url(url: str, where: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{where}: '{url}' is not an address such as http://localhost:8000/v1")
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            f"{where}: no password, key or query in the address: a run writes it down; "
            "put the key into the environment"
        )
    return url.rstrip("/")


def _key(variables: tuple[str, ...], folder: Path, *, needed: bool, what: str) -> str | None:
    """The first of the variables that is set, in the environment or in .env.

    Raises:
        ConfigError: none is set, and one is needed.
    """
    from_file = read_env(folder / ".env")
    for source in (os.environ, from_file):
        for name in variables:
            if source.get(name):
                return source[name]
    if needed:
        raise ConfigError(
            f"--model {what}: {' or '.join(variables)} is not set; put it into the environment "
            f"or into {folder / '.env'}"
        )
    return None


_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*")


def read_env(path: Path) -> dict[str, str]:
    """The variables of a .env file: NAME=value, quotes and `export` allowed; {} without one."""
    if not path.is_file():
        return {}
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8-sig", errors="replace").splitlines():
        match = _LINE.fullmatch(line)
        if match is not None:
            found[match[1]] = _unquoted(match[2])
    return found


def _unquoted(value: str) -> str:
    for quote in "\"'":
        if value.startswith(quote) and (end := value.find(quote, 1)) > 0:
            return value[1:end]
    return re.split(r"\s+#", value)[0]


def _config(path: Path) -> tuple[Mapping[str, _Named], Mapping[str, _Default]]:
    """The models and the agents' defaults of bubench.toml.

    Raises:
        ConfigError: it is not TOML, or an entry is wrong; says which.
    """
    if not path.is_file():
        return {}, {}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    try:
        models = _NAMED.validate_python(content.get("models", {}))
        agents = _DEFAULTS.validate_python(content.get("agents", {}))
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        raise ConfigError(f"{path}: {place}: {problem['msg']}") from error
    return models, agents
