"""The levels of the guard, the best first, and which of them this machine allows.

layered    as confined, in a network of the session's own, which has no way out but the proxy, and in
           a file system that holds what was given; Landlock where the kernel has it
confined   as flags, and Landlock and seccomp hold files and sockets of browser and workers
flags      the proxy, pinned host rules, no WebRTC past it, file: refused over CDP
observed   nothing is held back; pages of the browser's own schemes are recorded
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Literal

from browseruse_bench.browsers.guard.confinement import (
    has_landlock,
    takes_user_namespace,
    why_not_confined,
    why_not_layered,
)
from browseruse_bench.errors import ConfigError
from browseruse_bench.records.trace import Guard

Level = Literal["layered", "confined", "flags", "observed"]
LEVELS: tuple[Level, ...] = ("layered", "confined", "flags", "observed")

GUARD_HOST = "guard.internal"
"""The proxy's name inside the browser; a web page cannot resolve it."""


def choose(wanted: Literal["auto"] | Level) -> Guard:
    """The level that a browser of this machine gets.

    Raises:
        ConfigError: `wanted` names a level that this machine does not allow.
    """
    if wanted == "observed":
        return Guard(level="observed", reason="asked for with --guard observed")
    if wanted == "flags":
        return Guard(level="flags", mechanism=_FLAGS, reason="asked for with --guard flags")
    lacking: list[str] = []
    levels: tuple[tuple[Level, Callable[[], str | None], Callable[[], str]], ...] = (
        ("layered", why_not_layered, _layered),
        ("confined", why_not_confined, lambda: f"{_LANDLOCK} and {_SECCOMP}; {_FLAGS}"),
    )
    for level, why_not, mechanism in levels:
        if wanted not in ("auto", level):
            continue
        why = why_not()
        if why is None:
            asked = (
                "" if wanted == "auto" or level == "layered" else f"asked for with --guard {level}"
            )
            reason = "; ".join(lacking) or asked
            return Guard(level=level, mechanism=mechanism(), reason=reason)
        if wanted == level:
            raise ConfigError(f"--guard {level}: {why}; use --guard auto or flags")
        lacking.append(f"not {level}: {why}")
    return Guard(level="flags", mechanism=_FLAGS, reason="; ".join(lacking))


def _layered() -> str:
    whose = ", inside one of users" if takes_user_namespace() else ""
    held = f"{_LANDLOCK} and {_SECCOMP_INSIDE}" if has_landlock() else _SECCOMP_INSIDE
    return f"{_NAMESPACES}{whose}; {held}; {_POLICY}; {_FLAGS}"


_NAMESPACES = "namespaces (network of the session's own, allow-list of files, process numbers)"
_LANDLOCK = "Landlock (files, TCP ports)"
_SECCOMP = "seccomp (no UDP, raw or other sockets, no io_uring)"
_SECCOMP_INSIDE = "seccomp (no raw or other sockets, no io_uring)"
_POLICY = "managed policy (no file:, view-source:, chrome:, devtools:, no extensions)"
_FLAGS = "proxy, pinned host rules, no WebRTC past the proxy, file: refused over CDP"


def flags(port: int, host: str = "127.0.0.1") -> tuple[str, ...]:
    """Chromium's flags for a browser whose only way out is the proxy on this loopback address.

    Also what the browser would reach without a proxy (a context that an agent makes with
    "direct", say) finds no name and no address but the proxy's own.
    """
    return (
        f"--proxy-server=http://{GUARD_HOST}:{port}",
        # Without it Chromium goes past the proxy for loopback addresses.
        "--proxy-bypass-list=<-loopback>",
        f"--host-resolver-rules=MAP {GUARD_HOST}:{port} {host}:{port}, MAP * ~NOTFOUND",
        "--dns-prefetch-disable",
        # The name of this flag before Chromium 132 or so, and after it.
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    )


def policy(port: int) -> str:
    """Managed policies, as JSON, that hold what a page or an extension could undo of the flags.

    Loopback names are left to the proxy, which notes that they were asked for.
    """
    refused = [f"{scheme}:*" for scheme in ("file", "view-source", "chrome", "devtools")]
    return json.dumps(
        {
            "URLBlocklist": refused,
            "ExtensionInstallBlocklist": ["*"],
            "QuicAllowed": False,
            "WebRtcIPHandling": "disable_non_proxied_udp",
            # Another proxy than that of the flags would break all traffic.
            "ProxySettings": {
                "ProxyMode": "fixed_servers",
                "ProxyServer": f"http://{GUARD_HOST}:{port}",
                "ProxyBypassList": "<-loopback>",
            },
        }
    )
