"""Secrets leave no trace: what is written or printed is cleaned by value and by shape.

Two degrees. What somebody says (calls, thoughts, results, errors, logs) loses every value of
a secret that this process knows and everything that has the shape of one. What the harness
itself saw (page text, addresses, downloads, states) and the answer are evidence, so they lose
nothing but values of this process's own secrets: a page that explains what a JWT looks like
must stay as it was. A picture is not read, so it is never cleaned.

What was taken out of the words of an agent also goes out of the page texts of the same
attempt: as what the agent put into a page it proves nothing, and grading could not tell any
more that it came from the agent.

A value is a secret if the name of its variable says so and it has at least `MIN_CHARS`
characters; so is the password in an address, whatever the variable's name. One that is a
path is none. One of letters only, or of digits only, below `SURE_CHARS` characters could be
an ordinary word or number ("postgres"): evidence keeps it.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast
from urllib.parse import quote, quote_plus, unquote_plus

GONE = "[redacted]"
"""What stands where a secret was."""
MIN_CHARS = 8
SURE_CHARS = 16
MIN_TAKEN_CHARS = 4
"""Shorter ones (of `user:pass@`) would take ordinary words out of a page."""

_NAME = re.compile(
    r"API_?KEY|TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|BEARER"
    r"|(?:^|_)(?:KEYS?|PASS|PWD|AUTH|COOKIES?|PAT|JWT|DSN|SIGNATURE)(?:_|\d*$)",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{1,20}://([^\s/@:?#]*):([^\s/@?#]+)@", re.IGNORECASE)
_KEYED = re.compile(
    r"(?:^|[_-])(?:api_?key|password|passwd|secret|authorization|cookies?|credentials?"
    r"|(?:access|auth|refresh|id|bearer)_?token|token)$",
    re.IGNORECASE,
)


def _shape(hint: str, pattern: str) -> tuple[str, re.Pattern[str]]:
    return hint, re.compile(pattern, re.IGNORECASE | re.DOTALL)


_NOT_GONE = r"(?!\[redacted\])"
_DIGIT = r"(?=[^\s\"'&;,<>]{0,200}?\d)"
_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = (
    # (a part, in lower case, of every text that the pattern fits; the pattern). What its
    # first group fits stays.
    _shape(
        "private key",
        r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----(?:(?!-----END).){0,20000}"
        r"(?:-----END [A-Z ]{0,20}PRIVATE KEY-----)?",
    ),
    _shape("eyj", r"(?-i:\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*)"),
    # OpenAI, Anthropic, OpenRouter, DeepSeek and others; words of an address have no run
    # of sixteen letters with a digit.
    _shape("sk-", r"(?-i:\bsk-(?:[\w]{0,60}-){0,8}?(?=[A-Za-z_]{0,60}\d)\w{16,}[\w-]*)"),
    _shape("aiza", r"(?-i:\bAIza[\w-]{30,})"),
    _shape("_", r"(?-i:\b(?:gsk|hf|r8|fw|bu|gh[pousr]|github_pat|tgp_v1|lsv2_pt|lsv2_sk|bb_live"
                r"|(?:sk|rk|pk)_(?:live|test))_(?=[A-Za-z_-]{0,60}\d)[\w-]{20,})"),
    _shape("-", r"(?-i:\b(?:xai|pplx|nvapi|glpat|csk|xox[abeprs]|jina|voyage)-"
                r"(?=[A-Za-z_-]{0,60}\d)[\w-]{20,})"),
    _shape("ia", r"(?-i:\b(?:AKIA|ASIA)[0-9A-Z]{16}\b)"),
    _shape("ya29.", r"(?-i:\bya29\.[\w-]{20,})"),
    _shape("/devtools/", r"\b(wss?://)[^\s\"'<>/]+/devtools/(?:browser|page)/[^\s\"'<>]+"),
    _shape(
        "@", r"([a-z][a-z0-9+.-]{1,20}://)" + _NOT_GONE + r"[^\s/@:?#\"'<>]*:[^\s/@?#\"'<>]+(?=@)"),
    _shape("@", r"(https?://)(?=[a-z_-]*\d)[\w-]{20,}(?=@)"),
    _shape(
        "bearer", r"\b(bearer[\s:=]+)(?:(?=[\w.~+/-]{0,200}?\d)[\w.~+/-]{12,}|[\w.~+/-]{40,})=*"),
    _shape(
        "authorization",
        r"(authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?basic\s+)(?=[a-z]*(?-i:[A-Z0-9+/=]))"
        r"[A-Za-z0-9+/]{8,}=*"),
    _shape(
        "authorization",
        r"(authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:(?:token|digest|apikey|negotiate)\s+)?)"
        + _NOT_GONE + _DIGIT + r"[^\s\"'<>\\,;\[\]]{8,}"),
    _shape(
        "-", r"\b((?:x-api-key|api-key|x-auth-token|x-goog-api-key|x-amz-security-token)"
        r"[\"']?\s{0,4}[:=]\s{0,4}[\"']?)" + _NOT_GONE + _DIGIT + r"[^\s\"'<>\\,;&\[\]]{8,}"),
    _shape(
        "cookie",
        r"(\b(?:set-)?cookie[\"']?\s{0,4}:\s{0,4}[\"']?)" + _NOT_GONE
        + r"[\w.!#$%&*+^`|~-]+=[^\r\n\"'<>\\]{4,}"),
    # Names that mean a secret wherever they stand, and names that mean one only with a value
    # that no person would choose.
    _shape(
        "=", r"([?&;#](?:access_?token|api_?key|auth_?token|client_?secret|id_?token|password"
        r"|passwd|pwd|refresh_?token|secret|x-amz-signature|x-amz-credential"
        r"|x-amz-security-token)=)" + _NOT_GONE + r"[^&#\s\"'<>]{8,}"),
    _shape(
        "=", r"([?&;#](?:auth|code|key|session|session_?id|sid|sig|signature|token)=)" + _NOT_GONE
        + r"(?=[^&#\s\"'<>\d]{0,200}\d)[^&#\s\"'<>]{16,}"),
)  # fmt: skip


_REGISTERED: set[str] = set()


def register(secret: str) -> None:
    """Know a secret that is in no variable of this process, such as a key out of a .env file,
    from now on.
    """
    _REGISTERED.add(secret)


@dataclass(frozen=True)
class Redactor:
    """Takes secrets out of texts; idempotent, and a text without secrets stays as it was."""

    _every: re.Pattern[str] | None
    """All known values."""
    _sure: re.Pattern[str] | None
    """Those that cannot be an ordinary word or number."""
    _sure_bytes: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """Knows these values, in the spellings that JSON, addresses and HTML give them."""
        every = sorted({s for s in secrets if len(s) >= MIN_CHARS}, key=lambda s: (-len(s), s))
        sure = [s for s in every if not _ordinary(s)]
        encodings = ("utf-8", "utf-16-le")
        return cls(
            _any_of(every),
            _any_of(sure),
            tuple(s.encode(e, "replace") for s in sure for e in encodings),
        )

    @classmethod
    def of_environment(
        cls, environment: Mapping[str, str] | None = None, more: Iterable[str] = ()
    ) -> Redactor:
        """Knows the secrets of an environment (default: this process's own, with what was
        registered) and `more`.
        """
        registered = _REGISTERED if environment is None else ()
        return _cached(frozenset([*secrets_of(environment), *registered, *more]))

    def said(self, text: str, taken: set[str] | None = None) -> str:
        """A text that somebody said, without known values and without shapes of secrets.

        Args:
            text: anything.
            taken: what was taken out is added to it.
        """

        def gone(match: re.Match[str]) -> str:
            kept = match[1] if match.re.groups else ""
            if taken is not None and match[0] != GONE:
                taken.add(match[0][len(kept) :])
            return kept + GONE

        text = _without(self._every, text, gone)
        low = text.lower()
        for hint, pattern in _SHAPES:
            if hint in low:
                text = pattern.sub(gone, text)
        return text

    def own(self, text: str) -> str:
        """Evidence, without the known values that cannot be an ordinary word or number."""
        return _without(self._sure, text)

    def said_value(self, value: Any, *, by_name: bool = False) -> Any:
        """A JSON value with `said` applied to every text in it, names of fields included.

        Args:
            value: any JSON value.
            by_name: whether a text whose field is named like a secret goes, too.
        """
        if isinstance(value, str):
            return self.said(value)
        if isinstance(value, Mapping):
            fields = cast("Mapping[str, Any]", value)
            return {
                self.said(str(name)): GONE
                if by_name and isinstance(inner, str) and inner and _KEYED.search(str(name))
                else self.said_value(inner, by_name=by_name)
                for name, inner in fields.items()
            }
        if isinstance(value, (list, tuple)):
            items = cast("Iterable[Any]", value)
            return [self.said_value(inner, by_name=by_name) for inner in items]
        return value

    def said_bytes(self, content: bytes) -> bytes:
        """A log or record: as `said` where it is text, else as `own_bytes`."""
        try:
            return self.said(content.decode()).encode()
        except UnicodeDecodeError:
            return self._masked(content)

    def own_bytes(self, content: bytes) -> bytes:
        """Evidence: as `own` where it is text; in any other file a value becomes as many "*",
        so that a database stays one.
        """
        try:
            return self.own(content.decode()).encode()
        except UnicodeDecodeError:
            return self._masked(content)

    def _masked(self, content: bytes) -> bytes:
        for value in self._sure_bytes:
            content = content.replace(value, b"*" * len(value))
        return content


@dataclass(frozen=True)
class Redaction:
    """The redaction of one attempt, which knows what it took out of the agent's words."""

    redactor: Redactor
    _taken: set[str] = field(default_factory=set[str])

    def said(self, value: Any) -> Any:
        """What an agent said, a text or any JSON value, without secrets."""
        taken: set[str] = set()
        for text in _texts(value):
            self.redactor.said(text, taken)
        # Also as a page would show it.
        shown = taken | {unquote_plus(text) for text in taken}
        self._taken.update(text for text in shown if len(text) >= MIN_TAKEN_CHARS)
        return self.redactor.said_value(value)

    def seen(self, text: str) -> str:
        """Page text without own secrets, and without what `said` took from the agent."""
        text = self.redactor.own(text)
        for taken in sorted(self._taken, key=len, reverse=True):
            text = text.replace(taken, GONE)
        return text

    def place(self, url: str) -> str:
        """An address or a title, which checks compare: without own secrets."""
        return self.redactor.own(url)


def secrets_of(environment: Mapping[str, str] | None = None) -> set[str]:
    """The values of an environment that are secrets, by the rules of this module."""
    found: set[str] = set()
    for name, value in (os.environ if environment is None else environment).items():
        if _NAME.search(name) and not value.startswith(("/", "~/", "./")):
            found.add(value.strip())
        found.update(match[2] for match in _IN_ADDRESS.finditer(value))
    return {value for value in found if len(value) >= MIN_CHARS}


@lru_cache(maxsize=16)
def _cached(secrets: frozenset[str]) -> Redactor:
    return Redactor.of(secrets)


def _ordinary(value: str) -> bool:
    return len(value) < SURE_CHARS and (value.isalpha() or value.isdigit())


def _any_of(values: Iterable[str]) -> re.Pattern[str] | None:
    spellings = {
        spelling
        for value in values
        for spelling in (
            value,
            quote(value, safe=""),
            quote_plus(value),
            json.dumps(value)[1:-1],
            json.dumps(value, ensure_ascii=False)[1:-1],
            html.escape(value),
        )
    }
    if not spellings:
        return None
    longest_first = sorted(spellings, key=lambda s: (-len(s), s))
    # The mark itself comes first, so that a value that is a part of it cannot tear it.
    return re.compile("|".join(map(re.escape, (GONE, *longest_first))))


def _without(
    pattern: re.Pattern[str] | None, text: str, gone: str | Callable[[re.Match[str]], str] = GONE
) -> str:
    """The text after as many rounds as it takes: what a secret leaves may be another one."""
    while pattern is not None and (clean := pattern.sub(gone, text)) != text:
        text = clean
    return text


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in cast("Mapping[str, Any]", value).values():
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in cast("Iterable[Any]", value):
            yield from _texts(inner)
