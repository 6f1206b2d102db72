"""The levels of the guard, the best first, and which of them this machine allows.

layered    not built yet
confined   as flags, and Landlock and seccomp hold files and sockets of browser and workers
flags      the proxy, pinned host rules, no WebRTC past it, file: refused over CDP
observed   nothing is held back; pages of the browser's own schemes are recorded
"""

from __future__ import annotations

from typing import Literal

from browseruse_bench.browsers.guard.confinement import why_not_confined
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
    if wanted == "layered":
        raise ConfigError("--guard layered: not there yet; use --guard auto or confined")
    if wanted == "flags":
        return Guard(level="flags", mechanism=_FLAGS, reason="asked for with --guard flags")
    why_not = why_not_confined()
    if why_not is None:
        return Guard(level="confined", mechanism=f"{_CONFINED}; {_FLAGS}")
    if wanted == "confined":
        raise ConfigError(f"--guard confined: {why_not}; use --guard auto or flags")
    return Guard(level="flags", mechanism=_FLAGS, reason=f"not confined: {why_not}")


_CONFINED = "Landlock (files, TCP ports) and seccomp (no UDP, raw or other sockets, no io_uring)"
_FLAGS = "proxy, pinned host rules, no WebRTC past the proxy, file: refused over CDP"


def flags(port: int) -> tuple[str, ...]:
    """Chromium's flags for a browser whose only way out is the proxy on this loopback port.

    Also what the browser would reach without a proxy (a context that an agent makes with
    "direct", say) finds no name and no address but the proxy's own.
    """
    return (
        f"--proxy-server=http://{GUARD_HOST}:{port}",
        # Without it Chromium goes past the proxy for loopback addresses.
        "--proxy-bypass-list=<-loopback>",
        f"--host-resolver-rules=MAP {GUARD_HOST}:{port} 127.0.0.1:{port}, MAP * ~NOTFOUND",
        "--dns-prefetch-disable",
        # The name of this flag before Chromium 132 or so, and after it.
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    )
