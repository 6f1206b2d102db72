"""An agent whose worker asks a model; found as tests.runs.asking:Asking."""

import sys
from pathlib import Path

from browseruse_bench.agents.worker import WorkerAgent
from browseruse_bench.models.gateway.wires import wires_of
from browseruse_bench.models.spec import parse_model
from browseruse_bench.records.trace import AgentId

SCRIPT = Path(__file__).with_name("asking_worker.py")


class Asking(WorkerAgent):
    name = "asking"
    needs_browser = False

    def __init__(self, setup):
        super().__init__(setup)
        self.model = parse_model(setup.model, self.name)

    def identity(self):
        return AgentId(name=self.name, version="1", model=self.model.label)

    def asks(self):
        return self.model if wires_of(self.model.provider) else None

    def priced(self):
        return self.model.price is not None

    def command(self):
        return [sys.executable, str(SCRIPT)]

    def secrets(self):
        return {"ASKING_KEY": self.model.key or ""}

    def settings(self, view):
        return {"model": {"name": self.model.name, "base_url": self.model.base_url}}

    def secrets_through(self, endpoint):
        return {"ASKING_KEY": endpoint.token}

    def settings_through(self, view, endpoint):
        return {"model": {"name": self.model.name, "base_url": endpoint.base_url}}
