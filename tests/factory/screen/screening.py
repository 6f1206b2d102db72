"""A world for tests of the screen: attempts are traces that the test makes, and a scripted grader
reads them as a model would, by their text alone.
"""

from __future__ import annotations

import re
from pathlib import Path

from browseruse_bench.errors import StageError
from browseruse_bench.factory.context import Context
from browseruse_bench.factory.screen.attempts import Made
from browseruse_bench.factory.stages.screen import Screening
from browseruse_bench.factory.workspace import WorkspaceConfig
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.records.candidate import new_candidate
from browseruse_bench.records.run import AttemptEntry
from browseruse_bench.records.task import TaskView
from browseruse_bench.records.trace import AgentId
from browseruse_bench.store.trace_folder import TraceFolder
from tests.eval.conftest import MakeTrace

AT = "2026-01-01T00:00:00+00:00"
DONE = "Order 4711 is confirmed"
UNIT = new_candidate("Order the cheapest kettle of shop.test and say its order number")
ROLES = {"reference": "m", "escalation": "strong", "judge": "judge"}
NOTES = "Now keep the notes file"
WHY = "ITEM partial_progress"


def finding(item, quote, status, claim="It is so."):
    cited = [] if quote is None else [{"step": "1", "source": "page", "ref": None, "quote": quote}]
    return {
        "item": item,
        "claim": claim,
        "citations": cited,
        "reason": "",
        "because": None,
        "status": status,
    }


def judged(*findings, cause=None):
    place = {"step": "1", "source": "page", "ref": None, "quote": "PAGE:"}
    causes = [{"cause": cause, "claim": "c", "citations": [place], "follows_from": None}]
    return {
        "reading": "An order is wanted.",
        "findings": list(findings),
        "integrity": [],
        "attribution": causes if cause else [],
    }


def grader(text, sample):
    """Passes what a page confirms; notes each page that it has not noted yet."""
    shown = re.search(r"PAGE: [^\n]*", text)
    page = shown.group() if shown else ""
    if NOTES in text:
        lead = f"a page says {page.removeprefix('PAGE: ')}"
        new = [] if not page or lead in text else [page]
        section = "answers" if DONE in page else "failures"
        added = [{"section": section, "text": lead, "step": "1"} for _ in new]
        return {"add": added, "remove": []}
    if WHY in text:
        said = {
            "partial_progress": "two of three" if "two of three" in page else None,
            "needs_removed": "your account" if "your account" in page else None,
            "out_of_date": "ended in 2024" if "ended in 2024" in page else None,
            "never_possible": None,
        }
        return judged(
            *(finding(item, quote, "met" if quote else "violated") for item, quote in said.items())
        )
    if DONE in page:
        return judged(finding("task_completed", DONE, "met"))
    return judged(finding("task_completed", None, "violated"), cause="wrong_target")


class Worlds:
    """Attempts whose pages the test says; a page of None is an infrastructure failure."""

    def __init__(self, folder: Path, reference, escalation=()):
        self.folder = folder
        self.pages = {"reference": list(reference), "escalation": list(escalation)}
        self.asked = []

    def home(self, unit):
        return self.folder / "tasks" / unit.key[:16]

    async def made(self, unit, role, number):
        self.asked.append((role, number))
        page = self.pages[role][number - 1]
        if page is None:
            raise StageError(f"attempt {number}: the browser did not start; it is owed")
        where = self.home(unit) / "made" / role / str(number)
        view = TaskView(task_id=unit.key[:16], text=unit.text)
        if not where.exists():
            make = MakeTrace(self.folder)
            make(
                make.page("http://shop.test/", f"PAGE: {page} ({role} {number})", navigate="x"),
                folder=where,
                task_id=view.task_id,
                task_key=view.key,
                attempt=number,
                answer="done",
            )
        trace = TraceFolder.open(where)
        entry = AttemptEntry.model_validate(
            {
                "task_id": view.task_id,
                "attempt": number,
                "try": 1,
                "task_key": view.key,
                "trace_key": trace.key,
                "status": "finished",
                "n_steps": 1,
                "cost_usd": 0.25,
                "at": AT,
            }
        )
        agent = AgentId(name="made", version="1", model=ROLES[role])
        return _Made(entry=entry, folder=where, benchmark=None, agent=agent)


class _Made(Made):
    def trace(self):
        return TraceFolder.open(self.folder, self.entry.trace_key)


class Screen(Screening):
    """The stage over made attempts."""

    def __init__(self, worlds, **screen):
        super().__init__(WorkspaceConfig(name="w", roles=ROLES, screen=screen))
        self.worlds = worlds

    def _attempts(self, ctx):
        return self.worlds


def context(root, answers=grader, **roles):
    model = ScriptedModel(answers)
    models = {"judge": model, "escalation": model, **roles}
    root.mkdir(parents=True, exist_ok=True)
    return Context(
        workspace=root, folder=root, open_model=lambda role: models[role], clock=lambda: AT
    ), model


async def screen(root, reference, escalation=(), answers=grader, **settings):
    """(outcome, the attempts, the model) of one candidate."""
    worlds = Worlds(root, reference, escalation)
    ctx, model = context(root, answers)
    return await Screen(worlds, **settings).settle(UNIT, ctx), worlds, model
