"""What went wrong with a request to a provider: whether it is tried again, when, and what is said.

408, 409, 425, 429 and 5xx, broken connections, bodies that are no answer and requests that took
too long are tried again. 400, 401, 402, 403, 404 and other words of refusal never are: the same
request would be refused again, and a person has to do something.
"""

from __future__ import annotations

import email.utils
import json
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import CallError, OutageError, RefusalError, TooLongError
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.store.redact import Redactor

_AGAIN = frozenset((408, 409, 425, 429))
_DECLINED = ("content_filter", "content_policy_violation", "invalid_prompt", "moderation")
_TOO_LONG = re.compile(
    r"context (?:length|window|size)|prompt is too long|too many (?:tokens|images)"
    r"|(?:request|input|payload).{0,40}too (?:large|long)|exceeds?.{0,60}(?:tokens|images|context)",
    re.IGNORECASE | re.DOTALL,
)
"""What servers of many makes say where the API has no word for it."""
MAX_SAID = 300
"""Characters of a provider's own words that a message repeats."""


class RejectedError(OutageError):
    """The endpoint takes no such request: with these fields, these pictures, or this role."""


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long a request is tried again."""

    retries: int = 5
    base_s: float = 1.0
    """The first wait is random between 0 and this; each later one may be twice as long."""
    cap_s: float = 60.0
    """The longest random wait."""
    total_s: float = 900.0
    """The longest that requests and waits may take together."""

    def wait_s(self, n_failed: int, rng: random.Random, retry_after_s: float | None) -> float:
        """Seconds until the next try: what the provider asked for, and a random part, so that
        callers that failed together do not come back together.

        Source: Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015 ("full
        jitter").
        """
        longest = min(self.cap_s, self.base_s * 2.0 ** (n_failed - 1))
        if retry_after_s is None:
            return rng.uniform(0, longest)
        return retry_after_s + rng.uniform(0, self.base_s)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One request that gave nothing."""

    message: str
    """One line, without secrets."""
    kind: type[CallError] = OutageError
    again: bool = False
    """Whether the same request may succeed later."""
    retry_after_s: float | None = None
    limited: bool = False
    """Whether the provider says that its key is used too fast."""
    raw: str = ""
    """The provider's words, in full."""


def failure(error: Exception, spec: ModelSpec, *, now: float) -> Failure:
    """What an error of a request means.

    Args:
        error: what the request raised.
        spec: which model was asked.
        now: seconds since the epoch, for a Retry-After that is a date.

    Raises:
        ConfigError: the request cannot be made at all, with this library or this model.
    """
    from pydantic_ai import exceptions

    redactor = Redactor.of_environment(more=[spec.key] if spec.key else [])
    if isinstance(error, exceptions.UserError):
        raise ConfigError(f"{spec.label}: {_line(str(error), redactor)}") from error
    if isinstance(error, exceptions.ModelHTTPError):
        return _of_status(error, spec, now=now, redactor=redactor)
    said = _line(str(error), redactor)
    raw = redactor.said(str(error))
    if isinstance(error, exceptions.ContentFilterError):
        return Failure(message=f"declined: {said}", kind=RefusalError, raw=raw)
    if isinstance(error, TimeoutError | exceptions.ModelTimeoutError):
        seconds = spec.asking.timeout_s
        return Failure(message=f"no reply within {seconds:g} s (timeout_s)", again=True, raw=raw)
    if isinstance(error, exceptions.ModelConnectionError | OSError):
        place = spec.base_url or spec.provider
        cause = _line(str(error.__cause__ or error), redactor)
        return Failure(message=f"cannot reach {place}, or it hung up: {cause}", again=True, raw=raw)
    # Whatever else a library stumbles over is an answer that is none.
    return Failure(message=f"its answer is not of the API's form: {said}", again=True, raw=raw)


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds that a reply asks to wait, given in seconds, milliseconds or as a date; None: it
    does not say. A date that has passed is 0.
    """
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if text.replace(".", "", 1).isdecimal():
            return float(text) / scale
    try:
        at = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, at.timestamp() - now)


def _of_status(error: Any, spec: ModelSpec, *, now: float, redactor: Redactor) -> Failure:
    from pydantic_ai import exceptions

    status: int = error.status_code
    said = _line(_message(error.body), redactor)
    raw = redactor.said(_body(error.body))
    if _declined(error):
        return Failure(message=f"declined ({status}): {said}", kind=RefusalError, raw=raw)
    if (
        isinstance(error, exceptions.ModelContextWindowExceededError)
        or status == 413
        or (status in (400, 422) and _TOO_LONG.search(said))
    ):
        return Failure(message=f"the request is too long: {said}", kind=TooLongError, raw=raw)
    if todo := _todo(error, spec):
        return Failure(message=f"{todo} ({status}: {said})", raw=raw)
    if status in _AGAIN or status >= 500:
        wait = retry_after(error.headers or {}, now=now)
        return Failure(
            message=f"{status}: {said}",
            again=True,
            retry_after_s=error.retry_after if wait is None else wait,
            limited=status == 429,
            raw=raw,
        )
    return Failure(message=f"{status}: {said}", kind=RejectedError, raw=raw)


def _todo(error: Any, spec: ModelSpec) -> str:
    """What a person has to do; empty: nothing that we know."""
    from pydantic_ai import exceptions

    key = spec.key_name or "no key"
    place = spec.base_url or spec.provider
    if error.status_code == 402 or isinstance(error, exceptions.ModelQuotaExceededError):
        return f"the account behind {key} has no credit left: add some at {place}, then go on"
    if error.status_code == 401:
        if spec.key is None:
            return f"{place} wants a key: put it into the environment as {key}"
        return f"{place} does not accept the key in {key}: put a valid one there"
    if error.status_code == 403:
        return f"the key in {key} may not use {spec.name} at {place}"
    if error.status_code == 404:
        return f"there is no model {spec.name} at {place}, or the address is wrong"
    return ""


def _declined(error: Any) -> bool:
    words = f"{error.provider_error_code} {error.provider_error_type}".lower()
    return error.status_code in (400, 403) and any(word in words for word in _DECLINED)


def _message(body: Any) -> str:
    """The provider's message, wherever its API puts it."""
    if isinstance(body, dict):
        fields = cast("dict[str, Any]", body)
        inner = fields.get("error", fields.get("message"))
        if isinstance(inner, dict):
            return _message(cast("dict[str, Any]", inner))
        if isinstance(inner, str):
            return inner
    return _body(body)


def _body(body: Any) -> str:
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)


def _line(text: str, redactor: Redactor) -> str:
    line = " ".join(redactor.said(text).split())
    return line if len(line) <= MAX_SAID else f"{line[: MAX_SAID - 3]}..."
