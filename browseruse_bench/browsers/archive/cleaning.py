"""What goes out of an archive before it is written: credentials, and cookies that may be some.

Our own secrets go by value wherever they stand: headers, addresses, bodies, page texts. Headers
that carry credentials lose their values whatever these are. A cookie keeps its value only where
a script of the page can read it, it is shorter than any secret that we know of by value, and its
name does not speak of one: replay needs `theme=dark`, nobody needs a session.
"""

from __future__ import annotations

import email.message
import email.parser
import email.policy
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from browseruse_bench.store.archive.exchange import Exchange
from browseruse_bench.store.archive.warc import Headers
from browseruse_bench.store.redact import GONE, MIN_CHARS, SURE_CHARS, Redactor

_CREDENTIALS = re.compile(
    r"(?:proxy-)?authorization|x-(?:api-key|auth-token|csrf-token|xsrf-token|goog-api-key)|api-key"
    r"|(?:proxy-)?authentication-info|x-amz-security-token",
    re.IGNORECASE,
)
_COOKIE_NAME = re.compile(
    r"sess|sid|auth|token|csrf|xsrf|jwt|login|user|account|secret", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class Cookie:
    """A cookie of the browser's jar."""

    name: str
    value: str
    domain: str = ""
    path: str = "/"
    secure: bool = False
    http_only: bool = False
    same_site: str = ""

    @property
    def is_private(self) -> bool:
        """Whether its value may be a credential, as far as can be told."""
        return (
            self.http_only or len(self.value) >= MIN_CHARS or bool(_COOKIE_NAME.search(self.name))
        )

    @property
    def is_token(self) -> bool:
        """Whether its value is one that stands nowhere else by chance."""
        mixed = any(map(str.isdigit, self.value)) and any(map(str.isalpha, self.value))
        return self.http_only and len(self.value) >= SURE_CHARS and mixed

    def set_cookie(self) -> str:
        """The header of an answer that sets it."""
        parts = [f"{self.name}={GONE if self.is_private else self.value}", f"Path={self.path}"]
        if self.domain.startswith("."):
            parts.append(f"Domain={self.domain[1:]}")
        parts += [
            text
            for text, wanted in (("Secure", self.secure), ("HttpOnly", self.http_only))
            if wanted
        ]
        if self.same_site:
            parts.append(f"SameSite={self.same_site}")
        return "; ".join(parts)


@dataclass
class Cleaning:
    """Takes secrets out of what is written; learns those of the session as it goes on."""

    redactor: Redactor
    _tokens: set[str] = field(default_factory=set[str])
    _own: Redactor | None = None

    def learn(self, cookies: Iterable[Cookie]) -> None:
        """Take the tokens of these cookies for secrets by value from now on."""
        new = {cookie.value for cookie in cookies if cookie.is_token} - self._tokens
        if new:
            self._tokens |= new
            self._own = Redactor.of(self._tokens)

    def text(self, text: str) -> str:
        """A text without secrets."""
        text = self.redactor.own(text)
        return text if self._own is None else self._own.own(text)

    def content(self, content: bytes) -> bytes:
        """Bytes without secrets; what is no text keeps its length."""
        content = self.redactor.own_bytes(content)
        return content if self._own is None else self._own.own_bytes(content)

    def exchange(self, exchange: Exchange) -> Exchange:
        """A request and its answer without secrets."""
        return replace(
            exchange,
            url=self.text(exchange.url),
            request_headers=self.headers(exchange.request_headers),
            request_body=self.content(exchange.request_body),
            headers=self.headers(exchange.headers),
            body=self.content(exchange.body),
        )

    def headers(self, headers: Headers) -> list[tuple[str, str]]:
        """Headers without secrets; `Set-Cookie` is one that `Cookie.set_cookie` made."""
        return [(name, self._header(name, value)) for name, value in headers]

    def _header(self, name: str, value: str) -> str:
        if _CREDENTIALS.fullmatch(name):
            return GONE
        if name.lower() == "cookie":
            names = [part.partition("=")[0].strip() for part in value.split(";")]
            return "; ".join(f"{name}={GONE}" for name in names if name)
        return self.text(value)

    def mhtml(self, content: bytes) -> bytes:
        """A page as MHTML without secrets, which its encoding may have torn apart; one without
        any stays as it was, byte for byte.
        """
        whole = email.parser.BytesParser(policy=email.policy.compat32).parsebytes(content)
        changed = False
        for part in whole.walk():
            decoded = None if part.is_multipart() else part.get_payload(decode=True)
            if isinstance(decoded, bytes) and (clean := self.content(decoded)) != decoded:
                _put(part, clean)
                changed = True
            for name, value in part.items():
                if (clean_value := self.text(str(value))) != str(value):
                    part.replace_header(name, clean_value)
                    changed = True
        return self.content(whole.as_bytes()) if changed else content


def _put(part: email.message.Message, content: bytes) -> None:
    import base64

    del part["Content-Transfer-Encoding"]
    part["Content-Transfer-Encoding"] = "base64"
    part.set_payload(base64.encodebytes(content).decode())
