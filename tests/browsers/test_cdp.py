"""The CDP client against a scripted socket and against a real browser."""

import asyncio
import json
import time

import pytest
from websockets.asyncio.server import serve

from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.errors import BrowserError


class Scripted:
    """A socket that answers each call as `answer(socket, message)` does."""

    def __init__(self, answer):
        self.answer = answer

    async def __aenter__(self):
        async def handle(socket):
            async for text in socket:
                await self.answer(socket, json.loads(text))

        self.server = await serve(handle, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.cdp = await CDP.connect(f"ws://127.0.0.1:{port}/devtools/browser/x")
        return self.cdp

    async def __aexit__(self, *_):
        await self.cdp.close()
        self.server.close()
        await self.server.wait_closed()


async def echo(socket, message):
    result = {"method": message["method"], "session": message.get("sessionId")}
    await socket.send(json.dumps({"id": message["id"], "result": result}))


async def test_result_and_session_reach_the_caller():
    async with Scripted(echo) as cdp:
        assert await cdp.send("A.b", session="s1") == {"method": "A.b", "session": "s1"}


async def test_replies_in_another_order_reach_their_own_callers():
    held = []

    async def backwards(socket, message):
        held.append(message)
        if len(held) == 3:
            for m in reversed(held):
                await echo(socket, m)

    async with Scripted(backwards) as cdp:
        answers = await asyncio.gather(*(cdp.send(f"A.{i}") for i in range(3)))
    assert [a["method"] for a in answers] == ["A.0", "A.1", "A.2"]


async def test_protocol_error_names_method_and_reason():
    async def refuse(socket, message):
        error = {"code": -32000, "message": "No such node", "data": "id 7"}
        await socket.send(json.dumps({"id": message["id"], "error": error}))

    async with Scripted(refuse) as cdp:
        with pytest.raises(BrowserError, match=r"^DOM\.x: No such node \(id 7\)$"):
            await cdp.send("DOM.x")


async def test_silence_is_a_timeout_and_a_late_reply_is_dropped():
    late = []

    async def slow(socket, message):
        if message["method"] == "A.slow":
            late.append((socket, message))
        else:
            await echo(*late.pop())
            await echo(socket, message)

    async with Scripted(slow) as cdp:
        with pytest.raises(TimeoutError, match=r"A\.slow: no reply within 0\.05 s"):
            await cdp.send("A.slow", timeout_s=0.05)
        assert (await cdp.send("A.next"))["method"] == "A.next"


async def test_all_pending_calls_fail_at_once_when_the_socket_closes():
    async def hang_up(socket, message):
        if message["method"] == "A.last":
            await socket.close()

    async with Scripted(hang_up) as cdp:
        start = time.monotonic()
        results = await asyncio.gather(
            *(cdp.send(m, timeout_s=30) for m in ("A.one", "A.two", "A.last")),
            return_exceptions=True,
        )
        assert time.monotonic() - start < 5
        assert all(isinstance(r, BrowserError) for r in results)
        assert str(results[0]).startswith("A.one: ")
        assert cdp.closed
        with pytest.raises(BrowserError, match=r"A\.more: the browser's socket is closed"):
            await cdp.send("A.more")


async def test_events_come_in_order_and_before_a_later_reply():
    async def talk(socket, message):
        for n in range(5):
            event = {"method": "E.n", "params": {"n": n}, "sessionId": "s"}
            await socket.send(json.dumps(event))
        await echo(socket, message)

    seen = []
    async with Scripted(talk) as cdp:
        cdp.on("E.n", lambda params, session: seen.append((params["n"], session)))
        await cdp.send("A.b")
        assert seen == [(n, "s") for n in range(5)]


async def test_error_in_a_callback_does_not_stop_the_reading():
    async def talk(socket, message):
        await socket.send(json.dumps({"method": "E.n", "params": {}}))
        await echo(socket, message)

    heard = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context))

    def broken(_params, _session):
        raise RuntimeError("broken callback")

    async with Scripted(talk) as cdp:
        cdp.on("E.n", broken)
        assert (await cdp.send("A.b"))["method"] == "A.b"
        assert (await cdp.send("A.c"))["method"] == "A.c"
    assert [str(c["exception"]) for c in heard] == ["broken callback"] * 2


async def test_close_twice_is_closing_once():
    async with Scripted(echo) as cdp:
        await cdp.close()
        await cdp.close()
        assert cdp.closed


async def test_nobody_there_is_said_in_one_line():
    with pytest.raises(BrowserError, match="cannot connect to the browser at ws://127") as caught:
        await CDP.connect("ws://127.0.0.1:9/devtools/browser/x")
    assert "\n" not in str(caught.value)


@pytest.mark.browser
async def test_killed_browser_fails_a_pending_call_at_once(chromium):
    cdp = await CDP.connect(chromium.ws_url)
    target = (await cdp.send("Target.getTargets"))["targetInfos"][0]["targetId"]
    attached = await cdp.send("Target.attachToTarget", {"targetId": target, "flatten": True})
    never = {"expression": "new Promise(() => {})", "awaitPromise": True}
    call = asyncio.create_task(
        cdp.send("Runtime.evaluate", never, session=attached["sessionId"], timeout_s=60)
    )
    await asyncio.sleep(0.1)
    start = time.monotonic()
    chromium.kill()
    with pytest.raises(BrowserError, match="socket closed"):
        await call
    assert time.monotonic() - start < 2
    await cdp.close()
