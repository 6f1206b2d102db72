"""Which model is meant, where it is, with which key, at which price, and how it is asked.

    openai:NAME  anthropic:NAME  google:NAME  openrouter:NAME    key from <PROVIDER>_API_KEY
    openai-compatible:NAME@http://host:port/v1                   key from OPENAI_COMPATIBLE_API_KEY,
                                                                 where the endpoint wants one
    NAME                                                         [models.NAME] of bubench.toml
    scripted:FILE or scripted:FOLDER                             an agent's prepared steps
    scripted:FILE.json  scripted:FILE.py:function                a double's answers, for judges and
    scripted:module:function                                     every other role

bubench.toml in the current folder may name models, and say of each how it is asked:

    [models.small]
    id = "openai:gpt-5-mini"                 # or id = "NAME" beside base_url = "http://.../v1"
    api_key_env = "MY_KEY"                   # optional, as is all that follows
    usd_per_million = {input = 0.25, cached = 0.025, output = 2.0}
    may_see = "restricted"                   # cleared for text that may hold personal data
    concurrency = 8                          # requests at a time; per key, not per model
    requests_per_minute = 500
    tokens_per_minute = 200000
    timeout_s = 300                          # of one request
    params = {temperature = 0.0, max_tokens = 8000, reasoning = "low"}
    extra_body = {provider = {order = ["x"]}}  # sent as it is, where the provider knows more
    prompt_cache = true                      # marks for providers that cache only what is marked
    schema = "native"                        # native, tool or prompted: what a probe would find
    images = true
    system = true

    [prices]                                 # of models that are given as provider:name
    "openai:gpt-5-mini" = {input = 0.25, cached = 0.025, output = 2.0}

    [agents.browser-use]
    model = "small"

Keys are taken from the environment, else from `.env` in the current folder; they are never
part of a spec that is written down, and known to `store.redact` from then on.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.models import MODELS
from browseruse_bench.models.base import ModelId
from browseruse_bench.models.config import (
    CONFIG,
    AgentDefault,
    Asking,
    Config,
    NamedModel,
    Price,
    read_config,
)
from browseruse_bench.registry import unknown_name
from browseruse_bench.store.files import read_json, sha256_file
from browseruse_bench.store.redact import register

Provider = Literal["openai", "anthropic", "google", "openrouter", "openai-compatible", "scripted"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
KEYS: dict[str, tuple[str, ...]] = {
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
DOUBLES = "scripted:FILE.json, scripted:FILE.py:function or scripted:module:function"


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A model that can be asked."""

    label: str
    """What results call it: as it was typed, without a path or an address."""
    provider: str
    """One of PROVIDERS, or an entry point of the group `browseruse_bench.models`."""
    name: str
    """What the provider calls it."""
    base_url: str | None = None
    script: Path | None = None
    """Steps of an agent, or answers of a double."""
    function: str | None = None
    """The double's function in `script`, or `module:function` without one."""
    key: str | None = field(default=None, repr=False)
    key_name: str | None = None
    """The variable that the key came from, or is missing in."""
    price: Price | None = None
    price_source: str | None = None
    asking: Asking = Asking()

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes it another model beside its label; for the identity of a run."""
        called = f"{self.provider}:{self.name}"
        return {
            **({"model_id": called} if called != self.label and self.script is None else {}),
            **({"base_url": self.base_url} if self.base_url else {}),
        }

    @property
    def id(self) -> ModelId:
        """Identity of its answers: no key, no path, no limits, no price.

        Raises:
            ConfigError: it is a double whose script cannot be read.
        """
        detail: dict[str, Any] = {}
        if params := self.asking.params.as_json():
            detail["params"] = params
        if self.asking.extra_body:
            detail["extra_body"] = self.asking.extra_body
        if self.asking.schema_ is not None:
            detail["schema"] = self.asking.schema_
        if self.provider == "scripted":
            detail["script"] = _script_hash(self)
        return ModelId(
            label=self.label,
            provider=self.provider,
            name=self.name,
            base_url=self.base_url,
            detail=detail,
        )


def parse_model(text: str | None, agent: str, *, cwd: Path | None = None) -> ModelSpec:
    """The model that `--model` means for an agent; None: the agent's own of bubench.toml.

    Raises:
        ConfigError: none is named, the form is wrong, or its key is missing; says which.
    """
    folder = cwd or Path.cwd()
    config = read_config(folder / CONFIG)
    text = text or config.agents.get(agent, AgentDefault()).model
    if not text:
        raise ConfigError(f"agent '{agent}' needs a model; give --model as {FORMS}")
    return _Parser(config, folder, "--model").parse(text, _steps)


def model_spec(
    text: str,
    *,
    what: str = "--model",
    cwd: Path | None = None,
    config: str = CONFIG,
    need_key: bool = True,
) -> ModelSpec:
    """The model that `text` means in any other role: a judge, a writer, a labeller.

    Args:
        text: as it was typed, or stands in a configuration.
        what: the flag or place that it comes from, for messages.
        cwd: the folder of the configuration and .env; default the current one.
        config: name of the file whose [models] may be meant.
        need_key: whether a key that is missing is an error: not where nobody is asked now.

    Raises:
        ConfigError: the form is wrong, or its key is missing; says which.
    """
    folder = cwd or Path.cwd()
    parser = _Parser(read_config(folder / config), folder, what, MODELS.names(), need_key=need_key)
    return parser.parse(text, _answers)


def model_label(text: str) -> str:
    """What results call a model that was typed as `text`: without its path or address."""
    provider, _, name = text.partition(":")
    if provider == "scripted":
        return f"scripted:{Path(name).resolve().name.removesuffix('.json')}"
    if provider == "openai-compatible":
        return text.partition("@")[0]
    return text


_Script = Callable[[str, str, Path], dict[str, Any]]
"""(place for messages, what stands behind `scripted:`, folder) -> fields of a spec."""


@dataclass(frozen=True)
class _Parser:
    config: Config
    folder: Path
    what: str
    providers: Sequence[str] = PROVIDERS
    need_key: bool = True

    def parse(self, text: str, script: _Script) -> ModelSpec:
        models, where = self.config.models, f"{self.what} {text}"
        if text in models:
            return self._named(text, models[text], script)
        provider, colon, name = text.partition(":")
        if not colon:
            known = (*sorted(models), *(f"{p}:..." for p in self.providers))
            raise ConfigError(f"{where}: {unknown_name('model', text, known)}; give {FORMS}")
        if provider not in self.providers:
            raise ConfigError(f"{where}: {unknown_name('provider', provider, (*self.providers,))}")
        if not name:
            raise ConfigError(f"{where}: no name behind the colon; give {FORMS}")
        if provider == "scripted":
            return _double(model_label(text), script(where, name, self.folder))
        base_url = None
        if provider == "openai-compatible":
            name, at, base_url = name.partition("@")
            if not at or not name:
                raise ConfigError(f"{where}: give openai-compatible:NAME@http://host:port/v1")
            base_url = _checked_url(base_url, where)
        label = model_label(text)
        price = self.config.prices.get(label)
        return ModelSpec(
            label=label,
            provider=provider,
            name=name,
            base_url=base_url,
            price=price,
            price_source=None if price is None else f"{CONFIG}: prices.{label}",
            **self._key(_variables(provider), needed=_needs_key(provider), where=where),
        )

    def _named(self, label: str, entry: NamedModel, script: _Script) -> ModelSpec:
        where = f"{CONFIG}: models.{label}"
        provider, name = self._provider(entry, where)
        if provider == "scripted":
            asking = entry.asking
            if "may_see" not in entry.model_fields_set:
                asking = asking.model_copy(update={"may_see": "restricted"})
            return replace(_double(label, script(where, name, self.folder)), asking=asking)
        variables = (entry.api_key_env,) if entry.api_key_env else _variables(provider)
        needed = _needs_key(provider) or entry.api_key_env is not None
        price = entry.usd_per_million
        return ModelSpec(
            label=label,
            provider=provider,
            name=name,
            base_url=None if entry.base_url is None else _checked_url(entry.base_url, where),
            price=price,
            price_source=None if price is None else where,
            asking=entry.asking,
            **self._key(variables, needed=needed, where=f"{self.what} {label}"),
        )

    def _provider(self, entry: NamedModel, where: str) -> tuple[str, str]:
        given, colon, name = entry.id.partition(":")
        known = bool(colon) and given in self.providers and given != "openai-compatible"
        if entry.base_url is not None:
            # A name may have a colon of its own, as in qwen3:8b.
            if known and given != "scripted":
                return given, name
            return "openai-compatible", entry.id.removeprefix("openai-compatible:")
        if not known:
            raise ConfigError(
                f"{where}.id: '{entry.id}' is neither provider:name (openai, anthropic, google, "
                "openrouter) nor beside a base_url"
            )
        return given, name

    def _key(self, variables: tuple[str, ...], *, needed: bool, where: str) -> dict[str, Any]:
        """The first of the variables that is set, in the environment or in .env.

        Raises:
            ConfigError: none is set, and one is needed.
        """
        from_file = read_env(self.folder / ".env")
        for source in (os.environ, from_file):
            for name in variables:
                if source.get(name):
                    register(source[name])
                    return {"key": source[name], "key_name": name}
        if needed and self.need_key:
            raise ConfigError(
                f"{where}: {' or '.join(variables)} is not set; put it into the environment "
                f"or into {self.folder / '.env'}"
            )
        return {"key_name": variables[0] if variables else None}


def _variables(provider: str) -> tuple[str, ...]:
    return KEYS.get(provider, (f"{re.sub(r'[^A-Z0-9]', '_', provider.upper())}_API_KEY",))


def _needs_key(provider: str) -> bool:
    return provider in KEYS and provider not in ("openai-compatible", "scripted")


def _double(label: str, script: dict[str, Any]) -> ModelSpec:
    """What a double is shown stays on this machine, so it may be shown anything."""
    return ModelSpec(
        label=label,
        provider="scripted",
        name=label.removeprefix("scripted:"),
        price=Price(input=0, cached=0, output=0),
        price_source="scripted, free",
        asking=Asking(may_see="restricted"),
        **script,
    )


def _steps(where: str, name: str, folder: Path) -> dict[str, Any]:
    """An agent's steps: a file or a folder of files."""
    script = folder / Path(name).expanduser()
    if not script.exists():
        raise ConfigError(f"{where}: no file or folder {script}")
    return {"script": script}


def _answers(where: str, name: str, folder: Path) -> dict[str, Any]:
    """A double's answers: a file of them, or a function.

    Raises:
        ConfigError: it is neither, is not there, or holds an agent's steps.
    """
    before, _, function = name.rpartition(":")
    of_file = before.endswith(".py")
    script = folder / Path(before if of_file else name).expanduser()
    if of_file or script.suffix == ".json":
        if not script.is_file():
            raise ConfigError(f"{where}: no file {script}")
        if not of_file:
            _refuse_steps(where, script)
        return {"script": script, "function": function if of_file else None}
    if before and all(part.isidentifier() for part in (*before.split("."), function)):
        return {"function": name}
    if script.is_dir():
        raise ConfigError(f"{where}: a folder of scripts is for an agent; give {DOUBLES}")
    raise ConfigError(f"{where}: give {DOUBLES}")


def _refuse_steps(where: str, script: Path) -> None:
    try:
        content = read_json(script)
    except DataError as error:
        raise ConfigError(f"{where}: {error}") from error
    if not isinstance(content, list):
        raise ConfigError(f"{where}: {script}: a list of answers is wanted")
    turns = cast("list[Any]", content)
    if turns and all(_is_turn(turn) for turn in turns):
        raise ConfigError(f"{where}: {script} holds an agent's steps, no answers; give {DOUBLES}")


def _is_turn(value: Any) -> bool:
    """Whether it has the form of an agent's turn: a list of {action: arguments}."""
    if not isinstance(value, list) or not value:
        return False
    actions = cast("list[Any]", value)
    return all(isinstance(a, dict) and len(cast("dict[str, Any]", a)) == 1 for a in actions)


def _script_hash(spec: ModelSpec) -> dict[str, str]:
    """The function, and the hash of the file that it or the answers are in."""
    file = spec.script
    if file is None:
        module = (spec.function or "").partition(":")[0]
        try:
            found = importlib.util.find_spec(module)
        except (ImportError, ValueError):
            found = None
        if found is None or found.origin is None or not Path(found.origin).is_file():
            raise ConfigError(f"{spec.label}: there is no module {module}")
        file = Path(found.origin)
    if not file.is_file():
        raise ConfigError(f"{spec.label}: no file {file}")
    return {"sha256": sha256_file(file), **({"function": spec.function} if spec.function else {})}


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
