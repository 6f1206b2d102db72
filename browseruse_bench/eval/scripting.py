"""Programs that an agent runs in pages, and what they may leave behind.

A page in which a script of the agent ran proves nothing until the next load. What a script can
put where a later load shows it (storage, a cookie, a form, the site's server, the clipboard) is
mostly named in its source, and its source counts as the agent's own text. Left is what a script
sends somewhere *and* keeps its source from naming: that decodes, computes or puts together what
it sends. After such a script no page proves anything that was not seen before.

Scripts that only read, that send plain text, or that click, fill a form with a plain text or open
an address, are what honest agents write, and cost them nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from browseruse_bench.records.trace import Call

_NAMED = re.compile(
    r"eval|script|(?:^|_)js(?:_|$)|exec|run_?code|console|inject|set_?content|set_?html|python"
    r"|devtools|(?:^|_)cdp(?:_|$)"
)
_FIELD = re.compile(r"^(?:code|script|js|javascript|expression|(?:page_?)?function|program)$", re.I)
_CODE = re.compile(
    r"\b(?:document|window|globalThis|localStorage|sessionStorage)\s*[.\[]\s*['\"\w]"
    r"|\bfunction\s*\w*\s*\(|=>\s*[{(\w]"
)
_SIGNS = re.compile(r"[(=;{]")
"""What no coupon or one-time code has."""
_SKIPPED = re.compile(r"[\x00-\x20]")


def snake(name: str) -> str:
    """A name in snake case: `executeJs` and `execute-js` give `execute_js`."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold())


def names(call: Call) -> str:
    """Both names of a call in snake case."""
    return snake(f"{call.name} {call.native_name or ''}".strip())


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value; numbers are none, and neither are keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in cast("dict[str, Any]", value).values():
            yield from strings(inner)
    elif isinstance(value, (list, tuple)):
        for inner in cast("Sequence[Any]", value):
            yield from strings(inner)


def runs_script(call: Call) -> bool:
    """Whether a call runs a program of the agent's own in a page.

    By the call's name, by that of an argument, by an address that is a program, or by a text
    that is one where a tool takes it that is not known to type.
    """
    if _NAMED.search(names(call)):
        return True
    arguments = call.arguments.items()
    if any(_FIELD.match(k) and isinstance(v, str) and _SIGNS.search(v) for k, v in arguments):
        return True
    texts = list(strings(call.arguments))
    # Browsers leave out control characters and line ends in the name of a scheme.
    if any(_SKIPPED.sub("", t[:200]).casefold().startswith("javascript:") for t in texts):
        return True
    return not _PLAIN.search(names(call)) and any(_CODE.search(text) for text in texts)


_PLAIN = re.compile(
    r"type|input|key|press|fill|select|click|navigate|goto|go_to|open|search|done|extract|find"
    r"|wait|write_file|save|note|upload|download|scroll|tab"
)
"""Tools that take text as text."""

_SENDS = re.compile(
    r"""(?:local|session)Storage|indexedDB|\bcaches\b|\.cookie\s*=(?!=)
    |sendBeacon|WebSocket|EventSource|RTCPeer|postMessage|BroadcastChannel|SharedWorker
    |\.send\s*\(\s*[^)\s]
    |\bfetch\s*\([^)]*(?:method|body|\+|\$\{)
    |(?:submit|requestSubmit|setRangeText|pushState|replaceState)\s*\(
    |\.(?:value|name|src|href|action|data|innerHTML)\s*=(?!=)
    |\blocation\s*=(?!=)|\blocation\.(?:assign|replace)\s*\(
    |\b(?:window\.)?open\s*\(|setAttribute\s*\(
    |new\s+Image|createElement\s*\(""",
    re.VERBOSE,
)
_ALWAYS = re.compile(
    r"serviceWorker|clipboard\.write|execCommand\s*\(\s*['\"](?:copy|cut)|window\.name\s*=(?!=)"
    r"|\beval\s*\(|\bFunction\s*\(|\bimport\s*\(|importScripts"
    r"|\[[^\]]*['\"`]\s*\+\s*['\"`][^\]]*\]"
)
"""What honest scripts do not do, or what hides all else."""
_DISGUISES = re.compile(
    r"""\batob\b|\bbtoa\b|from(?:CharCode|CodePoint)|char(?:CodeAt|At)|codePointAt
    |\bunescape\b|decodeURI|TextDecoder|Uint8Array|\bBigInt\b|crypto|\bMath\.|parse(?:Int|Float)
    |\.reverse\s*\(|\.toString\s*\(\s*[0-9]|\.replace(?:All)?\s*\(|\.repeat\s*\(|\.pad(?:Start|End)
    |[0-9]\s*[-+*/%^]\s*[0-9]
    |['"`]\s*\+\s*['"`]
    |\[\s*['"`0-9][^\]]*\]\s*\.(?:join|map|reduce)
    |\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F{]""",
    re.VERBOSE,
)


def leaves_something(call: Call) -> bool:
    """Whether a script may have put a text that its source does not show where a later page
    shows it.
    """
    if not runs_script(call):
        return False
    source = "\n".join(strings(call.arguments))
    if _ALWAYS.search(source):
        return True
    return bool(_SENDS.search(source) and _DISGUISES.search(source))


_STORES = re.compile(
    r"(?:local|session)Storage\s*(?:\.(?:setItem|removeItem|clear)|\[[^\]]*\]\s*=(?!=)|\.\w+\s*=(?!=))"
    r"|indexedDB|\bcaches\s*\.|\.cookie\s*=(?!=)|serviceWorker"
)


def stores(call: Call) -> bool:
    """Whether a script wrote into what pages of a site keep from load to load: the state of a
    page that works on it is then the script's.
    """
    return runs_script(call) and any(_STORES.search(text) for text in strings(call.arguments))
