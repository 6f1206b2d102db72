"""An agent that hands over every byte it is given, a site that does so too, and an agent that
counts its attempts; found as tests.factory.screen.watched:Name.
"""

import asyncio
import json
import os
from pathlib import Path

from browseruse_bench.agents.base import Agent, AgentReport
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.records.trace import AgentId, Call
from browseruse_bench.sites.base import Site
from browseruse_bench.sites.static import StaticServer

LOG = "BUBENCH_SCREEN_WATCHED"


def keep(*what):
    with Path(os.environ[LOG]).open("a") as file:
        file.write(json.dumps([repr(part) for part in what]) + "\n")


class Shop(Site):
    """One page; every path that is asked for is kept."""

    stateful = False

    def start(self, directory, seed):
        (directory / "index.html").write_text("<h1>PAGE: Nothing found</h1>")

        def seen(path, content):
            keep("site", path)
            return content

        self.server = StaticServer(directory, seen)
        return self.server.start()

    def stop(self):
        self.server.stop()


def of_processes():
    """Command lines and environments of this process and of all that it started."""
    children = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, parent = path.parent.name, path.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        children.setdefault(parent, []).append(pid)
    found, todo = [], [str(os.getpid())]
    while todo:
        pid = todo.pop()
        todo += children.get(pid, [])
        for name in ("cmdline", "environ"):
            try:
                found.append(Path("/proc", pid, name).read_bytes())
            except OSError:
                continue
    return found


class Watcher(Agent):
    """Opens the shop, and keeps all that it and its browser were given."""

    name = "watcher"

    def identity(self):
        return AgentId(name=self.name, version="1", model=self.setup.model)

    async def attempt(self, view, session, limits, sink, workspace):
        keep("view", view.as_json(), limits.as_json(), self.setup, session)
        cdp = await CDP.connect(session.ws_url)
        attached = await cdp.send(
            "Target.attachToTarget", {"targetId": session.target_id, "flatten": True}
        )
        page = attached["sessionId"]
        await cdp.send("Page.navigate", {"url": "http://shop.test/"}, session=page)
        html = {"expression": "document.documentElement.outerHTML"}
        for _ in range(100):
            seen = await cdp.send("Runtime.evaluate", html, session=page)
            if "PAGE:" in seen["result"]["value"]:
                break
            await asyncio.sleep(0.1)
        keep("page", seen)
        await sink.action(Call(name="navigate"), target_id=session.target_id)
        keep("storage", await cdp.send("Storage.getCookies"))
        for folder in (workspace.files, workspace.native, workspace.scratch, workspace.attachments):
            keep("folder", [(str(p), p.read_bytes()) for p in folder.rglob("*") if p.is_file()])
        keep("processes", await asyncio.to_thread(of_processes))
        await cdp.close()
        return AgentReport(status="finished", answer="Nothing found")


class Counted(Agent):
    """Keeps that it was started, takes its time, and does nothing."""

    name = "counted"
    needs_browser = False

    def identity(self):
        version = os.environ.get("COUNTED", "1")
        return AgentId(name=self.name, version=version, model=self.setup.model)

    async def attempt(self, view, session, limits, sink, workspace):
        await asyncio.sleep(0.05)
        keep("attempt", view.task_id)
        return AgentReport(status="finished", answer=view.text)
