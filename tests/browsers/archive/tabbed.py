"""A tab that a test drives over a socket of its own."""

import asyncio

from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.errors import BrowserError


class DrivenTab:
    def __init__(self, cdp, session):
        self.cdp, self.session = cdp, session
        self.inner = []
        cdp.on("Target.attachedToTarget", self._attached)
        cdp.on("Page.javascriptDialogOpening", self._dismiss)

    @classmethod
    async def attach(cls, ws_url, target_id):
        cdp = await CDP.connect(ws_url)
        attach = {"targetId": target_id, "flatten": True}
        tab = cls(cdp, (await cdp.send("Target.attachToTarget", attach))["sessionId"])
        auto = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True}
        await cdp.send("Page.enable", session=tab.session)
        await cdp.send("Target.setAutoAttach", auto, session=tab.session)
        return tab

    def _attached(self, event, _session):
        if event["targetInfo"]["type"] == "iframe":
            self.inner.append(event["sessionId"])

    def _dismiss(self, _event, session):
        call = self.cdp.send("Page.handleJavaScriptDialog", {"accept": False}, session=session)
        self.dismissing = asyncio.create_task(call)

    async def go(self, url):
        await self.cdp.send("Page.navigate", {"url": url}, session=self.session, timeout_s=20)

    async def value(self, script, session=None):
        call = {"expression": script, "returnByValue": True, "awaitPromise": True}
        answer = await self.cdp.send(
            "Runtime.evaluate", call, session=session or self.session, timeout_s=20
        )
        return answer["result"].get("value")

    async def until(self, script, limit_s=20):
        """Whether it becomes true in time; a page that is being replaced is asked again."""
        loop = asyncio.get_running_loop()
        end = loop.time() + limit_s
        while loop.time() < end:
            try:
                if await self.value(
                    f"(() => {{ try {{ return !!({script}) }} catch {{ return false }} }})()"
                ):
                    return True
            except BrowserError:
                pass
            await asyncio.sleep(0.05)
        return False

    async def text(self):
        return await self.value("document.body.innerText")

    async def frames(self):
        return [await self.value("document.body.innerText", session) for session in self.inner]

    async def close(self):
        await self.cdp.close()
