r"""Local network addresses and local files in the text of a task, in whatever notation.

What only the submitter's own machine or network reaches makes a task that nobody else can do.
Looked at is the raw text: masking would make 10.0.0.1 and 11.0.0.1 one. Documented choices:
a dotted quad right after a word like "version" or "section" is a version, not an address; an
address that is only asked about, inside quotes or after "what is", is no target; a drive needs
a separator after its colon and more ("my C: drive" passes); a path like /home/ inside a URL is
the website's.
"""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from browseruse_bench.browsers.guard.addresses import literal, why_not_public

Kind = Literal["local_address", "local_file"]


class Local(NamedTuple):
    """What was found first."""

    kind: Kind
    matched: str
    why: str


_SCHEMES = (
    "https?|wss?|s?ftps?|ssh|smb|afp|nfs|rdp|vnc|telnet|ldaps?|postgres(?:ql)?|mysql|redis|"
    "mongodb|amqp|mqtt"
)
_URL = re.compile(
    rf"(?i)(?<![\w%])(?:{_SCHEMES}):[/\\]{{2}}"
    r"(?:[^\s/\\@<>\"']*@)?(?P<host>\[[0-9a-z:.%]+\]|[^\s/\\:?#<>\"'\])},;!]+)"
)
_LOCAL_NAME = r"local|localhost|localdomain|internal|intranet|private|corp|lan|home|home\.arpa|test"
_BARE = re.compile(
    r"(?i)(?<![\w.@/%=\\-])(?:[\w.+-]+:[^\s@/]+@)?(?P<host>"
    r"\[[0-9a-f:.]*:[0-9a-f:.]*(?:%[\w.]+)?\]"
    r"|(?:0x[0-9a-f]+|\d{1,10})(?:\.(?:0x[0-9a-f]+|\d{1,10})){3}"
    rf"|localhost|(?:[a-z0-9_-]+\.)+(?:{_LOCAL_NAME}))"
    r"\.?(?P<more>:\d{1,5}\b|/\S*)?(?![\w@-]|\.\w)"
)
_SHORT = re.compile(
    r"(?i)(?<![\w.@/%=-])(?P<host>127(?:\.\d{1,8}){1,2}|0x7f[0-9a-f]{6}|2130706433)(?::\d{1,5}\b|/)"
)
_FILE = re.compile(
    r"""(?ix)
      (?<![\w.]) file:/{0,3}[\w.~%/\\][^\s"'<>]*
    | (?<![\w/]) [a-z]:\\+[^\s\\"'<>|]+
    | (?<![\w/.:]) [a-z]:/(?:users|windows|program|programdata|documents|desktop|downloads|temp|tmp
        |data|home|work|projects?)\b[^\s"'<>]*
    | (?<![\w\\:]) \\\\[\w.-]+\\[\w$.-]+
    | (?<![\w/:.~\\-]) ~[\w-]*/[\w.][^\s"'<>?]*(?!\S*\?)
    | (?<![\w/:.})~-]) /(?:home|users|root|var|etc|mnt|media|opt|private|volumes|workspace|data)
        /[\w.@-][^\s"'<>]*
    | (?<![\w/:.})~-]) /tmp\b(?:/[^\s"'<>]*)?
    | %(?:userprofile|appdata|localappdata|temp|tmp|homepath|homedrive|programfiles|systemroot)%
    | (?<![\w$]) \$\{?home\b\}?
    | \b(?:chrome-extension|moz-extension|content|app|res)://[^\s"'<>]+"""
)
_ASKED = re.compile(
    r"(?i)(?:\bwhat(?:'s|\s+is|\s+does|\s+do|\s+are)\s+(?:an?\s+|the\s+|address\s+|ip\s+)*"
    r"|\bmeaning\s+of\s+|\bexplain\s+(?:what\s+)?)[\"'`]?$"
)
_VERSION = re.compile(
    r"(?i)(?:\b(?:versions?|ver\.?|v|releases?|firmware|builds?|updates?|section|chapter|clause|"
    r"paragraph|rfc|python|node|chrome|ios|android|driver|kernel|patch|appendix)\.?\s*(?:to\s+)?v?)$"
)

PREFILTER = (
    r"(?i)(?:https?|wss?|ftps?|ssh|smb|afp|nfs|rdp|vnc|telnet|ldaps?|sql|redis|mongodb|amqp|mqtt)"
    r":[/\\]{2}(?:[^\s/\\@]*@|\[|\d|[^\s.]*(?:[\s/:?#<>\"'\])},;!\\]|$)|\S*?\.(?:local|internal|"
    r"intranet|private|corp|lan|home|test)|\S*[^\x00-\x7f%])"
    r"|file:|localhost|\[[0-9a-f:.]*:|(?:^|[^a-z0-9])[a-z]:[\\/]|\\\\|~[\w-]*/|%[a-z]+%|\$\{?home|"
    r"[a-z0-9_-]\.(?:local|internal|intranet|private|corp|lan|home|test)"
    r"|(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){3}|127\.|0x7f|2130706433"
    r"|/(?:home|users|root|tmp|var|etc|mnt|media|opt|private|volumes|workspace|data)"
    r"|extension://|content://|app://|res://"
)
"""Fits every text that `find_local` finds something in, and few others; for the polars engine of
regular expressions, which has no look-around."""

_NAMES = frozenset({"localhost", "host.docker.internal", "broadcasthost", "ip6-localhost"})
_SUFFIXES = tuple(
    f".{name}"
    for name in [
        "local",
        "localhost",
        "localdomain",
        "internal",
        "intranet",
        "private",
        "corp",
        "lan",
        "home",
        "home.arpa",
        "test",
    ]
)


def why_local(host: str) -> str | None:
    """Why what stands as the host of a URL is not on the public web; None if it may be."""
    plain = host.strip().rstrip(".").lower().replace("%25", "%")
    address = literal(plain)
    if address is not None:
        reason = why_not_public(address)
        return None if reason is not None and reason.startswith("multicast") else reason
    if plain in _NAMES or plain.endswith(_SUFFIXES):
        return f"local name {plain}"
    if re.fullmatch(r"[a-z0-9_-]+", plain):
        return f"name without a domain: {plain}"
    return None


def find_local(text: str) -> Local | None:
    """The first local address or local file that a text names, with the reason; None: none."""
    file = next((match for match in _FILE.finditer(text) if not _is_asked(text, match)), None)
    for match in _URL.finditer(text):
        reason = why_local(match["host"])
        if reason is not None:
            return Local("local_address", match.group(), reason)
    for pattern in (_BARE, _SHORT):
        for match in pattern.finditer(text):
            reason = _why_bare(text, match)
            if reason is not None:
                return Local("local_address", match.group(), reason)
    return None if file is None else Local("local_file", file.group()[:200], "path of a local file")


def _why_bare(text: str, match: re.Match[str]) -> str | None:
    host = match["host"]
    more = match.groupdict().get("more")
    quad = host[0].isdigit()
    if not more and (_is_asked(text, match) or (quad and _VERSION.search(text[: match.start()]))):
        return None
    if quad and literal(host) is None:
        return None
    return why_local(host)


def _is_asked(text: str, match: re.Match[str]) -> bool:
    return _ASKED.search(text[max(0, match.start() - 60) : match.start()]) is not None


def find_all(texts: Any) -> Sequence[tuple[int, Local]]:
    """(index, what was found) of the texts of a polars series that name something local."""
    import polars as pl

    candidates = texts.str.contains(PREFILTER).arg_true()
    found: list[tuple[int, Local]] = []
    for index, text in zip(candidates, texts.gather(candidates).to_list(), strict=True):
        local = find_local(text)
        if local is not None:
            found.append((index, local))
    assert isinstance(candidates, pl.Series)
    return found
