"""The process of one site: `python -m browseruse_bench.sites.serve module:Site FOLDER SEED`.

JSON lines. The process says first that the site serves, then answers each command in turn:

    harness                          site
                                     {ok, host, port, stateful}
    {do: "reset"}                    {ok}
    {do: "snapshot", path}           {ok, written}
    {do: "stop"}                     {ok}, and the process ends

or `{error}` for what went wrong. Its standard output is a private descriptor (fd 1 points to
stderr), so that what a library prints cannot tear a line. End of its standard input means
that the harness is gone: the site stops, and the process ends even if the site hangs.
"""

from __future__ import annotations

import ipaddress
import json
import os
import queue
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import IO, Any

from browseruse_bench.registry import load
from browseruse_bench.sites.base import Site

STOP_S = 5.0
"""How long a site may take to stop once nobody is there to tell it anything."""


def main(arguments: list[str]) -> int:
    """Serve until told to stop or left alone; the exit status is 1 after a failed start."""
    target, directory, seed = arguments
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    commands = _commands()
    # A site of the user's own project imports, however python was started.
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    site: Site | None = None
    try:
        site = _made(target)
        host, port = site.start(Path(directory), int(seed))
        if not ipaddress.ip_address(host).is_loopback:
            raise ValueError(f"it serves on {host}, which is not a loopback address")
    except Exception as error:  # noqa: BLE001  whatever the site's code raises is told
        _reply(replies, _failure(error))
        _stopped(site)
        return 1
    _reply(replies, {"ok": True, "host": host, "port": port, "stateful": site.stateful})
    while (command := commands.get()) is not None:
        _reply(replies, _carry_out(site, command))
        if command["do"] == "stop":
            return 0
    _stopped(site)
    return 0


def _made(target: str) -> Site:
    made = load(target, "site")()
    if not isinstance(made, Site):
        raise TypeError(f"{target} is not a browseruse_bench.sites.base.Site")
    return made


def _commands() -> queue.SimpleQueue[dict[str, Any] | None]:
    """The commands of standard input as they come, then None and the end of the process.

    They are read in a thread of their own, so that the end of the harness is noticed while
    the site's code is busy.
    """
    commands: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
    private = os.fdopen(os.dup(0), encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def read() -> None:
        for line in private:
            commands.put(json.loads(line))
        commands.put(None)
        time.sleep(STOP_S)
        os._exit(1)

    threading.Thread(target=read, daemon=True).start()
    return commands


def _carry_out(site: Site, command: dict[str, Any]) -> dict[str, Any]:
    try:
        if command["do"] == "reset":
            site.reset()
        elif command["do"] == "snapshot":
            return {"ok": True, "written": site.snapshot(Path(command["path"]))}
        else:
            site.stop()
    except Exception as error:  # noqa: BLE001  whatever the site's code raises is told
        return _failure(error)
    return {"ok": True}


def _stopped(site: Site | None) -> None:
    """Stop the site when nobody waits for it; what it raises goes to stderr."""
    if site is not None:
        reply = _carry_out(site, {"do": "stop"})
        if "error" in reply:
            print(f"stop: {reply['error']}", file=sys.stderr)


def _failure(error: Exception) -> dict[str, Any]:
    traceback.print_exception(error)
    return {"error": f"{type(error).__name__}: {error}"}


def _reply(replies: IO[str], reply: dict[str, Any]) -> None:
    try:
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
    except BrokenPipeError:
        # The harness is gone; the end of standard input ends this process.
        return


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stderr.flush()
    # A site's threads that do not end must not keep the process.
    os._exit(status)
