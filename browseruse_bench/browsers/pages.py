"""What the backends do with pages before and after an agent has them."""

from __future__ import annotations

import asyncio

from browseruse_bench.browsers.cdp import CDP

PATIENCE_S = 30.0
"""For each call: a browser that just started on a busy machine takes its time."""


async def page_size(cdp: CDP, session: str) -> tuple[int, int]:
    """Width and height in CSS pixels of the page that `session` is attached to."""
    call = {"expression": "[innerWidth, innerHeight]", "returnByValue": True}
    result = await cdp.send("Runtime.evaluate", call, session=session, timeout_s=PATIENCE_S)
    width, height = result["result"]["value"]
    return int(width), int(height)


async def close_page(cdp: CDP, target_id: str) -> None:
    """Close a page and wait until it is gone: an agent's first look must not find it."""
    await cdp.send("Target.closeTarget", {"targetId": target_id}, timeout_s=PATIENCE_S)
    async with asyncio.timeout(PATIENCE_S):
        while True:
            targets = await cdp.send("Target.getTargets", timeout_s=PATIENCE_S)
            if all(target["targetId"] != target_id for target in targets["targetInfos"]):
                return
            await asyncio.sleep(0.01)
