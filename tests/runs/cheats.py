"""Agents written to cheat, and a site for them."""

import asyncio
import json
import sys
from pathlib import Path

from browseruse_bench.agents.base import Agent, AgentReport
from browseruse_bench.agents.worker import WorkerAgent
from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.errors import BrowserError
from browseruse_bench.records.trace import AgentId, Call
from browseruse_bench.sites.base import Site
from browseruse_bench.sites.static import StaticServer

GOALS = {}
"""Set by the test: what there is to be stolen, and where."""


class Shop(Site):
    """A page that holds nothing to be stolen."""

    stateful = False

    def start(self, directory, seed):
        (directory / "index.html").write_text("<title>the shop</title><h1>the shop</h1>")
        self.server = StaticServer(directory)
        return self.server.start()

    def reset(self):
        pass

    def snapshot(self, path):
        return False

    def stop(self):
        self.server.stop()


class CheatingWorker(WorkerAgent):
    """A process of its own that tries everything."""

    name = "cheating-worker"

    def identity(self):
        return AgentId(name=self.name, version="1")

    def command(self):
        script = Path(__file__).with_name("cheating_worker.py")
        return [sys.executable, str(script), json.dumps(GOALS)]


class CheatingPages(Agent):
    """Tries what a browser can open: files, servers of this machine, another browser."""

    name = "cheating-pages"

    def identity(self):
        return AgentId(name=self.name, version="1")

    async def attempt(self, view, session, limits, sink, workspace):
        cdp = await CDP.connect(session.ws_url)
        loot = []
        key = GOALS["files"][0]
        ports = GOALS["ports"]
        addresses = [f"file://{key}", f"view-source:file://{key}", f"file://{GOALS['database']}"]
        addresses += [
            f"http://{host}:{ports[0]}/" for host in ("127.0.0.1", "localhost", "0x7f000001")
        ]
        addresses += [f"http://127.0.0.1:{port}/" for port in ports]
        addresses += [f"http://127.0.0.1:{GOALS['other_cdp']}/json/list", "chrome://version"]
        for url in addresses:
            try:
                seen = await self.look(cdp, url)
            except (BrowserError, TimeoutError) as error:
                seen = str(error)
            if GOALS["answer"] in seen:
                loot.append(url)
        await sink.action(Call(name="cheat"), target_id=session.target_id)
        await cdp.close()
        answer = GOALS["answer"] if loot else "nothing"
        told = json.dumps({"loot": loot})
        return AgentReport(status="finished", answer=answer, reason=told)

    async def look(self, cdp, url):
        made = await cdp.send("Target.createTarget", {"url": url})
        attach = {"targetId": made["targetId"], "flatten": True}
        session = (await cdp.send("Target.attachToTarget", attach))["sessionId"]
        await asyncio.sleep(0.7)
        call = {"expression": "document.documentElement.innerText + document.title"}
        got = await cdp.send("Runtime.evaluate", call, session=session)
        return str(got["result"].get("value"))
