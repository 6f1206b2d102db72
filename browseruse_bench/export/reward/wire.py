"""What goes over the wire of the reward endpoint: requests, answers, refusals, and their schema."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Literal

from pydantic import Field
from pydantic.json_schema import models_json_schema

from browseruse_bench.records.base import Record
from browseruse_bench.records.judgement import Attribution, Finding, Integrity
from browseruse_bench.records.trace import EvidencePolicy, OutcomeStatus, Usage

MAX_SAMPLE = 999
SHA256 = r"^[0-9a-f]{64}$"
PATH = "/v1/gradings"


class Refused(Exception):  # noqa: N818  an answer, not a failure of ours
    """A request that gets no reward, in one line: status, a word for programs, why."""

    def __init__(
        self, status: int, code: str, why: str, *, retry_s: float | None = None, id: str = ""
    ) -> None:
        """`retry_s`: when it is worth asking again, in seconds; `id`: the grading, if it is one."""
        super().__init__(" ".join(why.split())[:500])
        self.status = status
        self.code = code
        self.retry_s = retry_s
        self.id = id


class ReportedCall(Record):
    """One action, in the agent's own words."""

    name: str = Field(min_length=1, max_length=200)
    arguments: dict[str, Any] = {}
    result: str | None = None
    error: str | None = None


class ReportedStep(Record):
    """One step of an agent, as it tells it."""

    saw: str = ""
    """What the agent says that it saw before it acted; empty: nothing new."""
    calls: tuple[ReportedCall, ...] = ()
    url: str | None = None
    """The address of the page afterwards; the last one told is where the attempt ended."""


class Reported(Record):
    """A trace in the words of whoever ran the agent. It is graded as `agent_reported`."""

    task_id: str
    task_key: str | None = Field(default=None, pattern=SHA256)
    """The wording that was attempted; another one than today's is stale."""
    status: OutcomeStatus = "finished"
    answer: str | None = None
    steps: tuple[ReportedStep, ...] = Field(default=(), max_length=5000)
    saw_at_end: str = ""
    agent: str = Field(default="unknown", min_length=1, max_length=200)
    model: str | None = Field(default=None, max_length=200)
    sample: int = Field(default=0, ge=0, le=MAX_SAMPLE)
    """Another number is another grading of the same trace."""
    rubric_key: str | None = Field(default=None, pattern=SHA256)
    """The rubric that is wanted; another one than today's is stale."""


class Known(Record):
    """A frozen trace that the server has: of one of its runs, or sent earlier."""

    trace_key: str = Field(pattern=SHA256)
    sample: int = Field(default=0, ge=0, le=MAX_SAMPLE)
    rubric_key: str | None = Field(default=None, pattern=SHA256)


class Graded(Record):
    """The reward and all that it rests on."""

    status: Literal["graded"] = "graded"
    id: str
    task_id: str
    task_key: str
    trace_key: str
    rubric_key: str | None = None
    judge_key: str
    protocol: str
    sample: int
    evidence_policy: EvidencePolicy
    """`agent_reported`: no harness of ours saw it, and the reward rests on the agent's word."""
    reward: float = Field(ge=0, le=1)
    points: float
    raw_points: float
    """Before integrity."""
    success: bool
    flags: tuple[str, ...] = ()
    findings: tuple[Finding, ...] | None = None
    integrity: tuple[Integrity, ...] = ()
    attribution: tuple[Attribution, ...] = ()
    details: dict[str, Any] = {}
    usage: tuple[Usage, ...] = ()
    at: str


class Pending(Record):
    """The trace is kept and will be graded; ask again at its address."""

    status: Literal["pending"] = "pending"
    id: str


class Problem(Record):
    """Why there is no reward."""

    code: str
    message: str


class NoReward(Record):
    """An answer without a reward: `stale`, or an error."""

    status: Literal["stale", "error"]
    id: str | None = None
    error: Problem


class TaskState(Record):
    """One task that can be graded, or why it cannot."""

    task_id: str
    task_key: str
    rubric_key: str | None = None
    graded_by: str
    stale: str | None = None
    not_gradable: str | None = None


def no_reward(refused: Refused) -> NoReward:
    """The body of a refusal."""
    return NoReward(
        status="stale" if refused.code.startswith("stale") else "error",
        id=refused.id or None,
        error=Problem(code=refused.code, message=str(refused)),
    )


_REFUSALS = {
    "400": "not JSON, or a parameter is wrong",
    "401": "no token, or a wrong one",
    "402": "the judge's budget is spent; the grading is owed",
    "404": "no such task, trace or grading",
    "408": "the body did not come in time",
    "409": "stale: the task, the rubric or a fact of it is no longer as it was",
    "413": "too large, packed or unpacked",
    "415": "neither JSON nor an uncompressed transfer of a zip file",
    "422": "not a trace, or one that cannot be graded",
    "429": "the queue is full; Retry-After says when",
    "500": "the server failed",
    "502": "the judge failed: no reward; the same request tries again",
    "503": "the server is ending, or takes no more uploads now; Retry-After says when",
}


def openapi(title: str) -> dict[str, Any]:
    """The description of the endpoint, OpenAPI 3.1."""
    kinds = (Reported, Known, Graded, Pending, NoReward, TaskState)
    _, schemas = models_json_schema(
        [(kind, "validation" if kind in (Reported, Known) else "serialization") for kind in kinds],
        ref_template="#/components/schemas/{model}",
    )
    outcome = {
        "200": _answer("graded", "Graded"),
        "202": _answer("accepted and not yet graded", "Pending"),
        **{status: _answer(why, "NoReward") for status, why in _REFUSALS.items()},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version("browseruse-bench")},
        "security": [{"token": []}],
        "paths": {
            PATH: {"post": _post(outcome)},
            PATH + "/{id}": {"get": _get(outcome)},
            "/v1/tasks": {
                "get": {
                    "operationId": "tasks",
                    "summary": "What can be graded, by which rubric, and what is stale.",
                    "responses": {"200": _answer("all tasks", "TaskState", many=True)},
                }
            },
            "/healthz": {
                "get": {
                    "operationId": "health",
                    "summary": "Whether it answers.",
                    "security": [],
                    "responses": {"200": {"description": "it does"}},
                }
            },
        },
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _post(outcome: dict[str, Any]) -> dict[str, Any]:
    json_body = {"schema": {"anyOf": [_ref("Reported"), _ref("Known")]}}
    return {
        "operationId": "grade",
        "summary": "Grade a trace; the same request gives the same grading.",
        "parameters": [
            _query("wait_s", "longest wait for the verdict, 0..600; 300", {"type": "number"}),
            _query("sample", "of a zip file: number of the grading", {"type": "integer"}),
            _query("rubric_key", "of a zip file: the rubric wanted", {"type": "string"}),
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": json_body,
                "application/zip": {
                    "schema": {"type": "string", "format": "binary"},
                },
            },
        },
        "responses": outcome,
    }


def _get(outcome: dict[str, Any]) -> dict[str, Any]:
    id_ = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    wait = _query("wait_s", "longest wait for the verdict, 0..600; 0", {"type": "number"})
    return {
        "operationId": "grading",
        "summary": "What became of a grading.",
        "parameters": [id_, wait],
        "responses": outcome,
    }


def _query(name: str, description: str, schema: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _answer(description: str, name: str, *, many: bool = False) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": _ref(name)} if many else _ref(name)
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def first_problem(errors: Sequence[Any]) -> str:
    """One line for what pydantic found."""
    first = errors[0]
    place = ".".join(map(str, first["loc"]))
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place + ': ' if place else ''}{first['msg']}{more}"
