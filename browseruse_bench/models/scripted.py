"""A model that answers by a function of the request's text: for tests, and to try a setup."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import (
    Clearance,
    MalformedError,
    ModelId,
    Reply,
    Request,
)
from browseruse_bench.records.trace import Usage

Answer = str | dict[str, Any] | list[Any]


class ScriptedModel:
    """Answers what `answers` says; it sees the text of a request and nothing else.

    `answers` is a function of (text, sample), or the answers in their order. What it raises
    is raised, so that it can play any failure of a provider.
    """

    def __init__(
        self,
        answers: Callable[[str, int], Answer] | Iterable[Answer],
        *,
        label: str = "scripted",
        may_see: Clearance = "restricted",
    ) -> None:
        """Name it `label`; it costs nothing."""
        self.id = ModelId(label=label, provider="scripted", name=label)
        self.may_see: Clearance = may_see
        self._answer = answers if callable(answers) else _in_order(answers)
        self.requests: list[Request] = []
        """All that it was asked, in order."""

    async def ask(self, request: Request, *, purpose: str, restricted: bool = False) -> Reply:
        """The scripted answer; text is parsed if the request has a schema.

        Raises:
            MalformedError: it is to be parsed and is not JSON.
        """
        del purpose
        if restricted and self.may_see != "restricted":
            raise ConfigError(f"model {self.id.label} is not cleared for restricted text")
        self.requests.append(request)
        answer = self._answer(request.text, request.sample)
        raw = answer if isinstance(answer, str) else json.dumps(answer)
        usage = Usage(model=self.id.label, cost_usd=0.0, price_source="scripted, free")
        try:
            value = json.loads(raw) if request.schema_ is not None else None
        except ValueError as error:
            raise MalformedError(f"not JSON: {error}", raw=raw, usage=usage) from error
        return Reply(value=value, raw=raw, usage=usage)


def _in_order(answers: Iterable[Answer]) -> Callable[[str, int], Answer]:
    left = iter(answers)

    def answer(text: str, sample: int) -> Answer:
        del text, sample
        try:
            return next(left)
        except StopIteration:
            raise ConfigError(
                "scripted model: it was asked more often than it has answers"
            ) from None

    return answer
