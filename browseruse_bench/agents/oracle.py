"""The agent that carries out a task's own reference solution: what it earns should be 100."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from browseruse_bench import __version__
from browseruse_bench.agents.base import (
    Agent,
    AgentReport,
    AgentSetup,
    Sink,
    Workspace,
)
from browseruse_bench.agents.driver import Driver
from browseruse_bench.browsers.base import Session
from browseruse_bench.errors import AgentError, BrowserError, ConfigError
from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.solution import Action, Extract, Solution, Target
from browseruse_bench.records.task import TaskView
from browseruse_bench.records.trace import AgentId, Call, Limits

_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")


class OracleAgent(Agent):
    """Plays the reference solution through a browser connection of its own."""

    name = "oracle"
    plays_solutions = True
    per_core = 2

    def __init__(self, setup: AgentSetup) -> None:
        """Check that there are reference solutions.

        Raises:
            ConfigError: the benchmark brings none along.
        """
        super().__init__(setup)
        if setup.solution_of is None:
            raise ConfigError(
                "agent 'oracle' carries out reference solutions (solutions/<task_id>.json), "
                "and this benchmark has none"
            )
        self._solution_of = setup.solution_of

    def identity(self) -> AgentId:
        key = self.setup.solutions_key
        parameters = {} if key is None else {"solutions": key}
        return AgentId(name=self.name, version=__version__, parameters=parameters)

    async def attempt(
        self, view: TaskView, session: Session, limits: Limits, sink: Sink, workspace: Workspace
    ) -> AgentReport:
        if session.ws_url is None:
            raise AgentError("agent 'oracle' needs a browser")
        start = asyncio.get_running_loop().time()
        solution = self._solution_of(view.task_id)
        driver = await Driver.connect(session.ws_url, session.target_id)
        try:
            return await _Play(driver, sink, start).carry_out(solution)
        finally:
            await driver.close()


class _Play:
    """One attempt: what was extracted so far, and what the sink was told."""

    def __init__(self, driver: Driver, sink: Sink, start: float) -> None:
        self._driver = driver
        self._sink = sink
        self._start = start
        self._facts: dict[str, str] = {}
        self._download: str | None = None

    async def carry_out(self, solution: Solution) -> AgentReport:
        for index, written in enumerate(solution.root):
            action = filled(written, self._facts)
            t0 = self._now()
            try:
                result = await self._do(action)
                error = None
            except (AgentError, BrowserError, TimeoutError) as failure:
                result, error = None, str(failure)
            if action.is_step or action.name == "extract":
                await self._sink.action(
                    self._call(action, result, error, t0), target_id=self._driver.target_id
                )
            if error is not None:
                reason = f"solution[{index}] {action.name} {_short(action)}: {error}"
                return AgentReport(status="agent_error", reason=reason, errors=(reason,))
            if action.name == "done":
                return AgentReport(status="finished", answer=result, claimed_success=True)
        raise AgentError("the solution has no `done`")

    async def _do(self, action: Action) -> str | None:
        """Do it, and return what came of it: the answer, for `done`."""
        argument, driver = action.argument, self._driver
        match action.name:
            case "done":
                if self._download is not None:
                    raise AgentError(f"no click followed the download '{self._download}'")
                return argument
            case "extract":
                self._facts[argument.store] = value = await driver.extract(argument)
                return value
            case "download":
                self._download = argument.store
            case "dialog":
                driver.answer_next(argument)
            case "click" if self._download is not None:
                return await self._click_for_download(argument, self._download)
            case name:
                await _ACTIONS[name](driver, argument)
        return "; ".join(driver.take_dialogs()) or None

    async def _click_for_download(self, target: Target, store: str) -> str:
        known = len(self._driver.downloads)
        await self._driver.click(target)
        self._facts[store] = name = await self._driver.wait_download(known)
        self._download = None
        return f"downloaded {name}"

    def _call(self, action: Action, result: str | None, error: str | None, t0: float) -> Call:
        written = action.as_json()
        plain = not isinstance(written[action.name], dict)
        return Call(
            name=action.name,
            arguments={"value": written[action.name]} if plain else written[action.name],
            target=_target(action.argument),
            result=result,
            error=error,
            t0=t0,
            t1=self._now(),
        )

    def _now(self) -> float:
        return asyncio.get_running_loop().time() - self._start


_ACTIONS: dict[str, Callable[[Driver, Any], Awaitable[None]]] = {
    "navigate": lambda driver, url: driver.navigate(url),
    "click": lambda driver, target: driver.click(target),
    "type": lambda driver, a: driver.type(a.into, a.text, clear=a.clear),
    "select": lambda driver, a: driver.select(a.target, a.option),
    "key": lambda driver, name: driver.press(name),
    "scroll": lambda driver, pixels: driver.scroll(pixels),
    "back": lambda driver, _: driver.back(),
    "switch_tab": lambda driver, choice: driver.switch_tab(choice),
    "close_tab": lambda driver, _: driver.close_tab(),
    "wait": lambda driver, a: driver.wait_text(a.text, a.timeout_s),
}


def filled(action: Action, facts: Mapping[str, str]) -> Action:
    """The action with `{name}` replaced by what was extracted under that name.

    One pass: what is put in is not looked at again, and other braces stay as they are. In a
    regular expression the value stands for itself.
    """
    return Action.model_validate(_filled(action.as_json(), facts))


def _filled(value: Any, facts: Mapping[str, str], *, within: str = "") -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: _filled(v, facts, within=name) for name, v in fields.items()}
    if not isinstance(value, str):
        return value
    as_written = re.escape if within == "regex" else str
    return _PLACEHOLDER.sub(
        lambda found: as_written(facts[found[1]]) if found[1] in facts else found[0], value
    )


def _target(argument: Any) -> str | None:
    """The element that the action is about, for people."""
    if isinstance(argument, Extract):
        return f"{argument.css} [{argument.nth}]" if argument.nth else argument.css
    target = argument if isinstance(argument, Target) else getattr(argument, "into", None)
    target = target or getattr(argument, "target", None)
    if not isinstance(target, Target):
        return None
    parts = [f"{k}={v}" for k, v in target.as_json().items() if k not in ("exact", "nth")]
    return " ".join([*parts, *([f"[{target.nth}]"] if target.nth else [])])


def _short(action: Action) -> str:
    text = canonical_json(action.as_json()[action.name])
    return text if len(text) <= 200 else text[:199] + "…"
