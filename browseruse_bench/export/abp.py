"""Results of the Agent Browser Protocol's harness: one JSON object for each attempt.

    {"task_id", "task", "final_result_response", "result_status", "action_history", "thoughts"}

`thoughts[n]` is what the model wrote before `action_history[n]`, from a screenshot of the page as
it then was: it tells what the agent says that it saw. Several actions of one turn bear the same
thought. Actions are sentences ("Click at (600, 475)", 'Type "kettle"'); they become calls with
our names where we have one. Addresses are known of pages that the agent asked for, and of no
other. Pictures are not part of the results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from browseruse_bench.errors import DataError
from browseruse_bench.export.reported import Reported, Told
from browseruse_bench.records.base import Record
from browseruse_bench.records.trace import Call, OutcomeStatus

STATUSES: dict[str, OutcomeStatus] = {
    "success": "finished",
    "error_max_turns": "step_limit",
    "error_during_execution": "agent_error",
}
"""`success` is that the model's loop came to its end, not that it did what was asked."""


class _Line(Record):
    task_id: str = Field(min_length=1)
    task: str = Field(min_length=1)
    final_result_response: str
    result_status: str
    action_history: tuple[str, ...]
    thoughts: tuple[str, ...]


class Abp:
    """Reads results.jsonl of abp-online-mind2web-results and its like."""

    agent = "agent-browser-protocol"
    benchmark = "Online-Mind2Web"
    version = "1"

    def read(self, path: Path) -> list[Reported]:
        """The attempts in a file, in its order; raises DataError."""
        found: list[Reported] = []
        problems: list[str] = []
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if not line.strip():
                continue
            where = f"{path.name}:{number}"
            try:
                found.append(_attempt(_Line.model_validate_json(line), line, where))
            except ValidationError as error:
                first = error.errors()[0]
                place = ".".join(map(str, first["loc"]))
                problems.append(f"{where}: {place + ': ' if place else ''}{first['msg']}")
            except ValueError as error:
                problems.append(f"{where}: {error}")
        if not found and not problems:
            problems.append(f"{path}: no attempt in it")
        if problems:
            raise DataError(problems)
        return found


def _attempt(line: _Line, native: bytes, where: str) -> Reported:
    """One attempt.

    Raises:
        ValueError: its status is unknown, or thoughts and actions are not of one number.
    """
    status = STATUSES.get(line.result_status)
    if status is None:
        known = ", ".join(STATUSES)
        raise ValueError(f"result_status: '{line.result_status}' is none of {known}")
    if len(line.thoughts) != len(line.action_history):
        n, m = len(line.thoughts), len(line.action_history)
        raise ValueError(f"thoughts: {n}, but {m} actions")
    return Reported(
        task_id=line.task_id,
        text=line.task,
        status=status,
        answer=line.final_result_response.strip() or None,
        steps=tuple(_steps(line)),
        native=native,
        where=where,
    )


def _steps(line: _Line) -> Iterator[Told]:
    turn = 0
    last: str | None = None
    for thought, action in zip(line.thoughts, line.action_history, strict=True):
        new = thought != last
        turn += new
        last = thought
        call, url = _call(action)
        yield Told(saw=thought if new else "", calls=(call,), url=url, native_index=turn)


_ACTIONS: tuple[tuple[re.Pattern[str], str, tuple[str, ...]], ...] = tuple(
    (re.compile(pattern, re.DOTALL), name, fields)
    for pattern, name, fields in (
        (r"Navigate to (.+)", "navigate", ("value",)),
        (r"Navigate (back|forward|reload)", "", ("value",)),
        (r"Click at (\(.*\))", "click", ("at",)),
        (r"Hover at (\(.*\))", "hover", ("at",)),
        (r"Drag from (\(.*?\)) to (\(.*\))", "drag", ("start", "end")),
        (r"Scroll (\(.*\))", "scroll", ("by",)),
        (r'Type "(.*)"', "type", ("text",)),
        (r"Press (\S+)", "key", ("value",)),
        (r"Select picker (\S+) -> Select option\(s\) (\[.*\])", "select", ("in", "options")),
        (r"Select picker (\S+) -> CANCEL", "cancel", ("in",)),
        (r"Slider (\(.*?\)) set to (\S+) (\[.*\])", "slider", ("kind", "value", "range")),
    )
)


def _call(action: str) -> tuple[Call, str | None]:
    """An action as a call, and the address that it asks for; its sentence is kept as it is."""
    for pattern, name, fields in _ACTIONS:
        if found := pattern.fullmatch(action):
            arguments: dict[str, Any] = dict(zip(fields, found.groups(), strict=True))
            if not name:
                return Call(name=found[1], native_name=action), None
            call = Call(name=name, native_name=action, arguments=arguments)
            return call, found[1] if name == "navigate" else None
    return Call(name="unknown", native_name=action, arguments={"text": action}), None
