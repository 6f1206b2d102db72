"""`scripted:` for judges and other roles: a double whose answers are a file or a function.

    scripted:answers.json            [answer, answer, ...] in the order in which it is asked, or
                                     rules, of which the first that fits the request answers:
                                     [{"when": "regular expression", "answer": ..., "sample": 0},
                                      {"when": "", "fail": "outage"}]
    scripted:judge.py:answer         answer(text, sample) -> an answer
    scripted:package.module:answer   the same, of something that is installed

An answer is a text or a JSON value; it is read and held to the request's schema as a provider's
is. `fail` is one of outage, truncated, refusal, too_long and malformed. A double sees the text
of a request, never its ids, and no pictures; its identity is the hash of its file.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import Field, TypeAdapter, ValidationError

from browseruse_bench.errors import ConfigError, DataError, ModelError, boundary
from browseruse_bench.models.base import (
    CallError,
    MalformedError,
    OutageError,
    RefusalError,
    Reply,
    Request,
    TooLongError,
    TruncatedError,
)
from browseruse_bench.models.parse import Unclear, parse
from browseruse_bench.models.schema import check_schema
from browseruse_bench.models.scripted import Answer, ScriptedModel
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.records.base import Record
from browseruse_bench.records.trace import Usage
from browseruse_bench.store.files import read_json

AnswerFunction = Callable[[str, int], Answer]
_FAILURES: dict[str, type[CallError]] = {
    "outage": OutageError,
    "truncated": TruncatedError,
    "refusal": RefusalError,
    "too_long": TooLongError,
    "malformed": MalformedError,
}


class Rule(Record):
    """What a double says where a request fits."""

    when: str
    """A regular expression, looked for in the text of the request."""
    sample: int | None = Field(default=None, ge=0)
    """Only of requests with this number; None: of any."""
    answer: str | dict[str, Any] | list[Any] | None = None
    fail: Literal["outage", "truncated", "refusal", "too_long", "malformed"] | None = None


_RULES: TypeAdapter[list[Rule]] = TypeAdapter(list[Rule])


class Double(ScriptedModel):
    """A scripted model whose answers are held to the schema of the request."""

    def __init__(self, answers: AnswerFunction | list[Answer], spec: ModelSpec) -> None:
        """Answer as `answers` says, under the name and clearance of `spec`."""
        super().__init__(answers, label=spec.label, may_see=spec.asking.may_see)
        self.id = spec.id

    async def ask(self, request: Request, *, purpose: str, restricted: bool = False) -> Reply:
        if request.schema_ is None:
            return await self._said(request, purpose, restricted)
        check_schema(request.schema_)
        plain = request.model_copy(update={"schema_": None})
        reply = await self._said(plain, purpose, restricted)
        found = parse(reply.raw, request.schema_, asked=request.text)
        if isinstance(found, Unclear):
            raise MalformedError(
                f"{self.id.label}: {found.problem}", raw=reply.raw, usage=reply.usage
            )
        return reply.model_copy(update={"value": found.value})

    async def _said(self, request: Request, purpose: str, restricted: bool) -> Reply:
        with boundary(ModelError, f"model {self.id.label}"):
            return await super().ask(request, purpose=purpose, restricted=restricted)


def scripted_model(spec: ModelSpec, *, limiter: object = None) -> Double:
    """The double that a spec means; it needs no limits.

    Raises:
        ConfigError: the file or function is not there, or is not of the form.
    """
    del limiter
    if spec.function is None:
        if spec.script is None:
            raise ConfigError(f"{spec.label}: no script")
        return Double(_answers(spec.script, spec.label), spec)
    return Double(_function(spec), spec)


def _answers(path: Path, label: str) -> AnswerFunction | list[Answer]:
    try:
        content = read_json(path)
    except (DataError, OSError) as error:
        raise ConfigError(f"{label}: {error}") from error
    if not isinstance(content, list):
        raise ConfigError(f"{label}: {path}: a list of answers is wanted")
    answers = cast("list[Any]", content)
    ruled = any(isinstance(one, dict) and "when" in one for one in answers)
    return _by_rules(_rules(answers, path), label) if ruled else answers


def _rules(content: list[Any], path: Path) -> list[tuple[Rule, re.Pattern[str]]]:
    """Each rule with its pattern.

    Raises:
        ConfigError: an entry is no rule; says which.
    """
    try:
        rules = _RULES.validate_python(content)
        found = [(rule, re.compile(rule.when)) for rule in rules]
    except ValidationError as error:
        problem = error.errors()[0]
        place = "".join(f"[{part!r}]" for part in problem["loc"])
        raise ConfigError(f"{path}{place}: {problem['msg']}") from error
    except re.error as error:
        raise ConfigError(f"{path}: when: {error}") from error
    for n, rule in enumerate(rules):
        if (rule.answer is None) == (rule.fail is None):
            raise ConfigError(f"{path}[{n}]: give answer or fail")
    return found


def _by_rules(rules: list[tuple[Rule, re.Pattern[str]]], label: str) -> AnswerFunction:
    def answer(text: str, sample: int) -> Answer:
        for rule, pattern in rules:
            if rule.sample not in (None, sample) or not pattern.search(text):
                continue
            if rule.fail is not None:
                usage = Usage(model=label, cost_usd=0.0, price_source="scripted, free")
                raise _FAILURES[rule.fail](f"{label}: scripted {rule.fail}", usage=usage)
            assert rule.answer is not None
            return rule.answer
        raise ConfigError(f"{label}: no rule of the script fits the request")

    return answer


def _function(spec: ModelSpec) -> AnswerFunction:
    """The function that a spec names."""
    assert spec.function is not None
    module_name, _, name = spec.function.rpartition(":")
    with boundary(ConfigError, f"{spec.label}"):
        if spec.script is not None:
            name = spec.function
            place = importlib.util.spec_from_file_location("bubench_scripted", spec.script)
            if place is None or place.loader is None:
                raise ConfigError(f"{spec.label}: {spec.script} is no Python file")
            module = importlib.util.module_from_spec(place)
            place.loader.exec_module(module)
        else:
            module = importlib.import_module(module_name)
    found = getattr(module, name, None)
    if not callable(found):
        raise ConfigError(f"{spec.label}: there is no function {name}")
    return cast("AnswerFunction", found)
