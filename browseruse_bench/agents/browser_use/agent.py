"""The agent "browser-use": the published library, one process per attempt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from browseruse_bench.agents.base import AgentSetup
from browseruse_bench.agents.environments import find
from browseruse_bench.agents.worker import WorkerAgent
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.models.gateway.endpoint import Endpoint
from browseruse_bench.models.gateway.wires import wires_of
from browseruse_bench.models.spec import ModelSpec, parse_model
from browseruse_bench.records.base import content_key
from browseruse_bench.records.task import TaskView
from browseruse_bench.records.trace import AgentId
from browseruse_bench.store.files import read_json

WORKER = Path(__file__).with_name("worker.py")
INDEX = "index.json"
"""What a folder of scripts says about itself; not a script."""

Script = list[list[dict[str, Any]]]
_SCRIPT: TypeAdapter[Script] = TypeAdapter(Script)


class BrowserUseAgent(WorkerAgent):
    """Runs browser-use with any of the models of `models.spec`."""

    name = "browser-use"

    def __init__(self, setup: AgentSetup) -> None:
        """Find the environment, the model, its key and its scripts, before anything starts.

        Raises:
            ConfigError: one of them is missing; says which, and what to type.
        """
        super().__init__(setup)
        self._environment_of_agent = find(self.name)
        self.model = parse_model(setup.model, self.name)
        self._scripts = None if self.model.script is None else read_scripts(self.model.script)
        if self._scripts is not None:
            # A model that answers at once leaves the processor no pause.
            self.per_core = 2

    def identity(self) -> AgentId:
        parameters = dict(self.model.parameters)
        if self._scripts is not None:
            parameters["script"] = content_key(self._scripts)
        requirements = self._environment_of_agent.requirements.read_bytes()
        parameters["requirements"] = hashlib.sha256(requirements).hexdigest()[:12]
        return AgentId(
            name=self.name,
            version=self._environment_of_agent.pins[self.name],
            model=self.model.label,
            parameters=parameters,
        )

    def priced(self) -> bool | None:
        return self.model.price is not None

    def asks(self) -> ModelSpec | None:
        return self.model if wires_of(self.model.provider) else None

    def command(self) -> Sequence[str]:
        return [str(self._environment_of_agent.python), str(WORKER)]

    def secrets(self) -> Mapping[str, str]:
        return {} if self.model.key is None else {"BUBENCH_MODEL_KEY": self.model.key}

    def settings(self, view: TaskView) -> Mapping[str, Any]:
        model: dict[str, Any] = {"provider": self.model.provider, "name": self.model.name}
        if self.model.base_url is not None:
            model["base_url"] = self.model.base_url
        if self.model.price is not None:
            price = self.model.price
            model["price"] = {
                "input": price.input,
                "cached": price.input if price.cached is None else price.cached,
                "output": price.output,
                "source": self.model.price_source,
            }
        if self._scripts is not None:
            model["script"] = self._scripts.get(view.task_id, self._scripts.get(""))
        return {"model": model}

    def settings_through(self, view: TaskView, endpoint: Endpoint) -> Mapping[str, Any]:
        # No price: the gateway counts, and what the worker counts is only compared.
        model = {"provider": self.model.provider, "name": self.model.name}
        return {"model": {**model, "base_url": endpoint.base_url}}

    def secrets_through(self, endpoint: Endpoint) -> Mapping[str, str]:
        return {"BUBENCH_MODEL_KEY": endpoint.token}


def read_scripts(path: Path) -> dict[str, Script]:
    """Task id -> script for a folder of `<task id>.json`; "" -> script for one file.

    Raises:
        ConfigError: a file is not a script; says which, and where it is wrong.
    """
    if path.is_file():
        return {"": _script(path)}
    files = sorted(file for file in path.glob("*.json") if file.name != INDEX)
    if not files:
        below = sorted(file.parent.name for file in path.glob("*/*.json"))
        hint = f"; is it {path / below[0]}?" if below else ""
        raise ConfigError(f"{path}: no script in it; a script is <task id>.json{hint}")
    return {file.stem: _script(file) for file in files}


def _script(path: Path) -> Script:
    try:
        script = _SCRIPT.validate_python(read_json(path))
    except DataError as error:
        raise ConfigError(str(error)) from error
    except ValidationError as error:
        problem = error.errors()[0]
        place = "".join(f"[{part}]" for part in problem["loc"])
        raise ConfigError(f"{path}{place}: not a list of steps: {problem['msg']}") from error
    for n, step in enumerate(script):
        for action in step:
            if len(action) != 1:
                raise ConfigError(
                    f"{path}[{n}]: an action is {{name: arguments}}, not {json.dumps(action)[:80]}"
                )
    return script
