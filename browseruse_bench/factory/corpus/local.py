r"""Local network addresses and local files in the text of a task, in whatever notation.

What only the submitter's own machine or network reaches makes a task that nobody else can do.
Looked at is the raw text: masking would make 10.0.0.1 and 11.0.0.1 one. Documented choices:
a dotted quad right after a word like "version" or "section" is a version, not an address, if
versions begin so (10.0.0.1, not 192.168.1.20). "update 10.0.0.5" alone asks for a machine to be
updated; it is a version after a word that makes "update" a thing ("the firmware update 10.0.0.5")
and before one that is no address ("update 10.0.0.5 to 10.0.1"). Whatever is left in doubt is
local: of many submissions one is lost, where a task that nobody can do would be paid for. An
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
from functools import cache
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
_BARE_PARTS = (
    (("[",), r"\[[0-9a-f:.]*:[0-9a-f:.]*(?:%[\w.]+)?\]"),
    ((".",), r"(?:0x[0-9a-f]+|\d{1,10})(?:\.(?:0x[0-9a-f]+|\d{1,10})){3}"),
    (("localhost",), "localhost"),
    (
        tuple(f".{name}" for name in _LOCAL_NAME.replace("\\", "").split("|")),
        rf"(?:[a-z0-9_-]+\.)+(?:{_LOCAL_NAME})",
    ),
)
"""(of which a text that it fits must hold one, in lower case; alternative of a pattern)."""


@cache
def _bare(alternatives: tuple[str, ...], *, user: bool) -> re.Pattern[str]:
    """Hosts that stand by themselves, of these forms; behind a user and password or not."""
    return re.compile(
        r"(?i)(?<![\w.@/%=\\-])"
        + (r"(?:[\w.+-]+:[^\s@/]+@)?" if user else "")
        + rf"(?P<host>{'|'.join(alternatives)})"
        + r"\.?(?P<more>:\d{1,5}\b|/\S*)?(?![\w@-]|\.\w)"
    )


_SHORT = re.compile(
    r"(?i)(?<![\w.@/%=-])(?P<host>127(?:\.\d{1,8}){1,2}|0x7f[0-9a-f]{6}|2130706433)(?::\d{1,5}\b|/)"
)
_FILE_PARTS = (
    (("file:",), r"""(?<![\w.])file:/{0,3}[\w.~%/\\][^\s"'<>]*"""),
    ((":\\",), r"""(?<![\w/])[a-z]:\\+[^\s\\"'<>|]+"""),
    (
        (":/",),
        r"(?<![\w/.:])[a-z]:/(?:(?:users|windows|program|programdata|documents|desktop|downloads|temp"
        r"""|tmp|data|home|work|projects?)\b[^\s"'<>]*|[\w.$()-]+(?:/[^\s"'<>]*|\.[a-z]\w{1,4}\b))""",
    ),
    (("\\\\",), r"(?<![\w\\:])\\\\[\w.-]+\\[\w$.-]+"),
    (("~",), r"""(?<![\w/:.~\\-])~[\w-]*/[\w.][^\s"'<>?]*(?!\S*\?)"""),
    (
        ("/",),
        r"(?<![\w/:.})~-])/(?:home|users|root|var|etc|mnt|media|opt|srv|usr|private|volumes|workspace"
        r"""|data|(?-i:Applications))/[\w.@-][^\s"'<>]*""",
    ),
    (("/tmp",), r"""(?<![\w/:.})~-])/tmp\b(?:/[^\s"'<>]*)?"""),
    (
        ("%",),
        "%(?:userprofile|appdata|localappdata|temp|tmp|homepath|homedrive|programfiles|systemroot)%",
    ),
    (("$",), r"(?<![\w$])\$\{?home\b\}?"),
    (("://",), r"""\b(?:chrome-extension|moz-extension|content|app|res)://[^\s"'<>]+"""),
)
"""As `_BARE_PARTS`."""


@cache
def _file(alternatives: tuple[str, ...]) -> re.Pattern[str]:
    """Paths of local files, of these forms."""
    return re.compile(f"(?i){'|'.join(alternatives)}")


_ASKED = re.compile(
    r"(?i)(?:\bwhat(?:'s|\s+is|\s+does|\s+do|\s+are)\s+(?:an?\s+|the\s+|address\s+|ip\s+)*"
    r"|\bmeaning\s+of\s+|\bexplain\s+(?:what\s+)?)[\"'`]?$"
)
_VERSION = re.compile(
    r"(?i)(?:\b(?:versions?|ver\.?|v|releases?|firmware|builds?|section|chapter|clause|paragraph|rfc|"
    r"python|chrome|ios|android|driver|kernel|patch|appendix|(?:the|an?|this|that|latest|newest|last|"
    r"new|software|security|system|app|windows|macos|feature|firmware|of)\s+updates?)"
    r"\.?\s*(?:to\s+)?v?)$"
)
_NO_VERSION = re.compile(r"192\.168\.|169\.254\.|172\.(?:1[6-9]|2\d|3[01])\.")
"""Nothing is numbered so."""
_UPDATE = re.compile(r"(?i)\b(?:up|down)(?:dat|grad)(?:e[sd]?|ing)\s+(?:it\s+)?(?:from\s+)?v?$")
_TO_VERSION = re.compile(r"(?i)\s*(?:to|->|→)\s*(?:version\s+)?v?\d+(?:\.\d+)*(?![\w.]*\w)")
_WIDE = {wide: wide - 0xFEE0 for first, last in ("０９", "ａｚ", "ＡＺ") for wide in range(ord(first), ord(last) + 1)}  # fmt: skip
_WIDE_DOT = re.compile(r"(?<=[0-9A-Za-z])[。．｡](?=[0-9A-Za-z])")

PREFILTER = (
    r"(?i)(?:https?|wss?|ftps?|ssh|smb|afp|nfs|rdp|vnc|telnet|ldaps?|sql|redis|mongodb|amqp|mqtt)"
    r":[/\\]{2}(?:[^\s/\\@]*@|\[|\d|[^\s.]*(?:[\s/:?#<>\"'\])},;!\\]|$)|\S*?\.(?:local|internal|"
    r"intranet|private|corp|lan|home|test)|\S*[^\x00-\x7f%])"
    r"|file:|localhost|\[[0-9a-f:.]*:|(?:^|[^a-z0-9])[a-z]:[\\/]|\\\\|~[\w-]*/|%[a-z]+%|\$\{?home|"
    r"[a-z0-9_-]\.(?:local|internal|intranet|private|corp|lan|home|test)"
    r"|(?:0x[0-9a-f]+|\d+)(?:\.(?:0x[0-9a-f]+|\d+)){3}|127\.|0x7f|2130706433"
    r"|/(?:home|users|root|tmp|var|etc|mnt|media|opt|srv|usr|private|volumes|workspace|data"
    r"|applications)"
    r"|extension://|content://|app://|res://|[0-9a-z][。．｡][0-9a-z]|[０-９ａ-ｚＡ-Ｚ]"
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


def _possible(lower: str, parts: Sequence[tuple[tuple[str, ...], str]]) -> tuple[str, ...]:
    """The alternatives that can fit a text: a pattern of few of them is read many times faster."""
    return tuple(
        alternative for needed, alternative in parts if any(part in lower for part in needed)
    )


def _narrow(text: str) -> str:
    """The text with full-width letters and digits, and the dots of addresses that are written
    with them, as ASCII; every character stays at its place.
    """
    return text if text.isascii() else _WIDE_DOT.sub(".", text.translate(_WIDE))


def find_local(text: str) -> Local | None:
    """The first local address or local file that a text names, with the reason; None: none."""
    plain = _narrow(text)
    # As patterns see it that ignore case: long s and the sign of Kelvin, too, but for two letters.
    lower = plain.replace("\u0130", "i").replace("\u0131", "i").casefold()
    for match in _URL.finditer(plain) if ":/" in plain or ":\\" in plain else ():
        reason = why_local(match["host"])
        if reason is not None:
            return Local("local_address", text[match.start() : match.end()], reason)
    patterns: list[re.Pattern[str]] = []
    if alternatives := _possible(lower, _BARE_PARTS):
        patterns.append(_bare(alternatives, user="@" in plain))
    if "127." in plain or "0x7f" in lower or "2130706433" in plain:
        patterns.append(_SHORT)
    for pattern in patterns:
        for match in pattern.finditer(plain):
            reason = _why_bare(plain, match)
            if reason is not None:
                return Local("local_address", text[match.start() : match.end()], reason)
    alternatives = _possible(lower, _FILE_PARTS)
    for match in _file(alternatives).finditer(plain) if alternatives else ():
        if not _is_asked(plain, match) and not _is_in_url(plain, match):
            path = text[match.start() : match.end()]
            return Local("local_file", path[:200], "path of a local file")
    return None


def _is_in_url(text: str, match: re.Match[str]) -> bool:
    """Whether a path is a part of an address of the web that stands before it without a space."""
    word = re.split(r"[\s\"'<>()]", text[max(0, match.start() - 2000) : match.start()])[-1]
    return re.search(r"(?i)https?:/[^/]*/|www\.", word) is not None


def _why_bare(text: str, match: re.Match[str]) -> str | None:
    host = match["host"]
    more = match.groupdict().get("more")
    quad = host[0].isdigit()
    if not more and (_is_asked(text, match) or (quad and _is_version(text, match))):
        return None
    if quad and literal(host) is None:
        return None
    return why_local(host)


def _is_version(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - 60) : match.start()]
    if _NO_VERSION.match(match["host"]):
        return False
    if _VERSION.search(before):
        return True
    after = _TO_VERSION.match(text, match.end("host"))
    return after is not None and _UPDATE.search(before) is not None and after.group().count(".") < 3


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
