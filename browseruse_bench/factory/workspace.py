"""A workspace of the factory: one folder, in which nothing restricted leaves its part.

    workspace.toml     name, corpus, models and their roles, thresholds, budget
    restricted/        may hold personal data; mode 0700; nothing here reaches a release
    clean/             everything after the rewrite
    releases/<Name>/   benchmark folders

What is wrong in workspace.toml is said all at once.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.stage import Zone
from browseruse_bench.factory.stage_folder import StageFolder
from browseruse_bench.models.config import NamedModel
from browseruse_bench.records.base import Record
from browseruse_bench.store.files import write_atomic

CONFIG = "workspace.toml"
CALLS = "calls"
BATCH = "batch"
"""Folder of a zone in which the calls of its stages wait for a batch of the provider."""


EngineName = Literal["embedded", "ray"]


class Corpus(Record):
    """[corpus]: where submissions come from, and which of them may be used."""

    paths: tuple[str, ...] = ()
    """Parquet or JSON-lines files, or folders of them, relative to the workspace."""
    columns: dict[str, str] = {}
    """What is meant (text, time, source, tag, count) -> the column that holds it."""
    permitted_tags: tuple[str, ...] = ()
    """Data-use tags that may be used. None is permitted unless it is named here."""
    benchmarks: tuple[str, ...] = ()
    """Folders or files of public benchmarks whose texts must not be in the corpus."""
    mask_numbers: bool = True
    """Submissions that differ only in numbers are one task; false: numbers must be equal."""
    similarity: float = Field(default=0.5, gt=0, le=1)
    """Jaccard similarity from which on a submission is the same task as a cluster's leader."""
    overlap: float = Field(default=0.6, gt=0, le=1)
    """Share of a benchmark text's word grams that a submission may not hold."""
    english: float = Field(default=0.8, ge=0, le=1)
    """Probability of the language model from which on a text is confidently English."""
    min_chars: int = Field(default=25, ge=1)
    max_chars: int = Field(default=20_000, ge=1, le=20_000)
    partitions: int | None = Field(default=None, ge=1, le=1024)
    """Parts in which texts are grouped, a power of two; None: by the size of each drop."""
    engine: EngineName = "embedded"
    """Who does the jobs; the results are the same. `ray` needs the extra `ray`."""


class Fleet(Record):
    """[fleet]: who attempts each task."""

    configs: tuple[dict[str, str], ...] = ()
    attempts: int = Field(default=2, ge=1)


class Screen(Record):
    """[screen]: the sequential test of feasibility and difficulty."""

    max_runs: int = Field(default=8, ge=1)
    easy_at: float = Field(default=0.9, gt=0, le=1)
    fp: float = Field(default=0.05, ge=0, lt=0.5)
    """Chance that the grader passes what did not pass."""
    fn: float = Field(default=0.1, ge=0, lt=0.5)
    """Chance that it does not pass what did."""
    agent: str = "browser-use"
    """Who attempts; its models are [roles] reference and, for what nobody passes, escalation."""
    agent_version: str | None = None
    """The version that must be installed; None: any, as it is then written down."""
    browser: str = "local"
    sites: dict[str, str] = {}
    """Public host -> "module:Site" that stands in for it, as `bubench run --site`."""
    max_steps: int = Field(default=100, ge=1)
    timeout_s: float = Field(default=600, gt=0)
    escalation_runs: int = Field(default=2, ge=1)
    """Attempts of the stronger agent at a task that the other one never passes."""
    usd: float | None = Field(default=None, gt=0)
    """What the attempts of the screen may cost together, beside [budget]; None: no limit."""


class Stability(Record):
    """[stability]: how often a frozen trace is graded again, and what is too much."""

    samples: int = Field(default=5, ge=2)
    threshold: float = Field(default=0.05, gt=0, lt=1)
    rounds: int = Field(default=3, ge=0, le=3)


class SuitabilityLimits(Record):
    """[suitability]: the labelling of all distinct tasks by a model."""

    batch: bool = False
    """Collect the calls for a batch of the provider (`bubench models batch`), instead of asking."""


class Personas(Record):
    """[personas]: who stands for the people of the traffic."""

    email_domain: str = Field(default="example.com", pattern=r"^[a-z0-9-]+(\.[a-z0-9-]+)+$")
    """Of their e-mail addresses: one reserved for documentation, or one that you own."""
    default_country: str = Field(default="US", pattern=r"^[A-Z]{2}$")
    """Of a task whose text shows none."""


class BudgetLimits(Record):
    """[budget]."""

    usd: float | None = Field(default=None, gt=0)
    """What all stages together may cost; None: no limit."""


class WorkspaceConfig(Record):
    """workspace.toml."""

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    seed: int = 0
    corpus: Corpus = Corpus()
    models: dict[str, NamedModel] = {}
    roles: dict[str, str] = {}
    """labeller, proposer, reference, escalation, judge, writer, persona, restyler -> a model."""
    resources: dict[str, int] = {}
    """Name of what is scarce (browser, a host) -> places."""
    fleet: Fleet = Fleet()
    screen: Screen = Screen()
    stability: Stability = Stability()
    personas: Personas = Personas()
    suitability: SuitabilityLimits = SuitabilityLimits()
    budget: BudgetLimits = BudgetLimits()

    def behind(self, role: str) -> dict[str, Any] | None:
        """Which model has a role and with which parameters it is asked: what decides its replies.
        None: nobody has it.
        """
        name = self.roles.get(role)
        if name is None or name not in self.models:
            return None if name is None else {"id": name}
        said = self.models[name].as_json()
        return {key: said.get(key) for key in ("id", "base_url", "params", "extra_body", "schema")}


@dataclass(frozen=True)
class Workspace:
    """A workspace folder with its configuration."""

    path: Path
    config: WorkspaceConfig

    @classmethod
    def open(cls, path: Path) -> Workspace:
        """Read a workspace.

        Raises:
            ConfigError: it is none, or workspace.toml is wrong; all that is wrong is said.
        """
        file = path / CONFIG
        if not file.is_file():
            raise ConfigError(f"{path}: no {CONFIG}; `bubench factory init {path}` makes one")
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: not TOML: {error}") from error
        try:
            config = WorkspaceConfig.model_validate(content)
        except ValidationError as error:
            problems = [
                f"{file}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}"
                for problem in error.errors()
            ]
            raise ConfigError("\n".join(problems)) from error
        return cls(path, config)

    def with_engine(self, engine: EngineName) -> Workspace:
        """The same, with other workers for the filter."""
        corpus = self.config.corpus.model_copy(update={"engine": engine})
        return Workspace(self.path, self.config.model_copy(update={"corpus": corpus}))

    def zone(self, zone: Zone) -> Path:
        """restricted/ or clean/, made if it is not there; restricted/ only for its owner."""
        path = self.path / zone
        path.mkdir(mode=0o700 if zone == "restricted" else 0o755, parents=True, exist_ok=True)
        if zone == "restricted":
            path.chmod(0o700)
        return path

    def stage(self, name: str, zone: Zone) -> StageFolder:
        """The folder of a stage."""
        return StageFolder(self.zone(zone) / name)

    def calls(self, zone: Zone) -> Path:
        """The ledger of a zone's calls."""
        return self.zone(zone) / CALLS


def create(path: Path, template: str) -> Path:
    """Make a workspace with this workspace.toml.

    Raises:
        ConfigError: there is one already; nothing is changed.
    """
    file = path / CONFIG
    if file.exists():
        raise ConfigError(f"{file}: there is a workspace already; nothing was changed")
    write_atomic(file, template)
    workspace = Workspace.open(path)
    workspace.zone("restricted")
    workspace.zone("clean")
    return file


def template(name: str) -> str:
    """A workspace.toml to fill in, with the models of the published pipeline as the example."""
    text = Path(__file__).with_name("workspace.template.toml").read_text(encoding="utf-8")
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip(".-") or "workspace"
    return text.replace('"NAME"', json.dumps(plain))
