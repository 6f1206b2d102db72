"""Attacks over CDP and from pages: each tries to reach a server or a file that is not allowed.

An attack returns what it got to see. It has passed if that holds a secret, or if the secret
server was touched.
"""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

from browseruse_bench.browsers.cdp import CDP
from browseruse_bench.errors import BrowserError
from tests.browsers.guard.small_web import SECRET, Server

FILE_SECRET = "answer-key-in-a-file"
WAIT_S = 0.6


@dataclass
class Field:
    """What an attack may use: its browser, a site of its own, and its goals."""

    cdp: CDP
    session: object
    secret: Server
    public: Server
    key: Path
    """A file with FILE_SECRET."""
    udp: list
    work: Path
    """The browser's own folder."""

    def url(self, path="/x", host="127.0.0.1"):
        return f"http://{host}:{self.secret.port}{path}"

    def caught(self, seen):
        """Whether the attack got what it wanted."""
        reached = self.secret.n_touched or self.udp
        return bool(SECRET in seen or FILE_SECRET in seen or reached)

    def clear(self):
        self.secret.n_touched = 0
        self.secret.asked.clear()
        self.udp.clear()

    async def page(self, url="about:blank", **context):
        made = await self.cdp.send("Target.createTarget", {"url": url, **context})
        attach = {"targetId": made["targetId"], "flatten": True}
        return (await self.cdp.send("Target.attachToTarget", attach))["sessionId"]

    async def go(self, url, *, session=None, wait_s=WAIT_S, **context):
        session = session or await self.page(**context)
        went = await self.cdp.send("Page.navigate", {"url": url}, session=session)
        await asyncio.sleep(wait_s)
        return went.get("errorText", "") + " " + await self.text(session)

    async def text(self, session):
        return await self.value("document.documentElement?.innerText + document.title", session)

    async def value(self, script, session):
        call = {
            "expression": script,
            "awaitPromise": True,
            "returnByValue": True,
            "userGesture": True,
        }
        try:
            got = await self.cdp.send("Runtime.evaluate", call, session=session, timeout_s=4)
        except (BrowserError, TimeoutError) as error:
            return str(error)
        return str(got["result"].get("value", got.get("exceptionDetails", "")))

    async def on_site(self, script, *, wait_s=WAIT_S, **context):
        session = await self.page(**context)
        await self.cdp.send("Page.navigate", {"url": "http://shop.test/"}, session=session)
        await asyncio.sleep(WAIT_S)
        got = await self.value(script, session)
        await asyncio.sleep(wait_s)
        return got

    async def direct(self):
        params = {"proxyServer": "direct://", "proxyBypassList": ""}
        made = await self.cdp.send("Target.createBrowserContext", params)
        return {"browserContextId": made["browserContextId"]}


def opens(host):
    async def attack(field):
        return await field.go(field.url(host=host), wait_s=0.15)

    return attack


def on_site(script, **options):
    async def attack(field):
        url = field.url()
        filled = script.replace("HTTP", json.dumps(url)).replace("PORT", str(field.secret.port))
        return await field.on_site(
            filled.replace("WS", json.dumps(url.replace("http", "ws"))), **options
        )

    return attack


async def redirects(field):
    return await field.go(f"http://shop.test/to?{field.url()}")


async def redirects_from_the_public_web(field):
    return await field.go(f"http://public.test:{field.public.port}/to?{field.url()}")


async def makes_a_target(field):
    session = await field.page(field.url())
    await asyncio.sleep(WAIT_S)
    return await field.text(session)


async def loads_a_resource(field):
    session = await field.page()
    await field.go("http://shop.test/", session=session)
    tree = await field.cdp.send("Page.getFrameTree", session=session)
    call = {
        "url": field.url(),
        "frameId": tree["frameTree"]["frame"]["id"],
        "options": {"disableCache": True, "includeCredentials": False},
    }
    got = await field.cdp.send("Network.loadNetworkResource", call, session=session)
    return json.dumps(got)


async def goes_direct(field):
    return await field.go(field.url(), **await field.direct())


async def goes_direct_by_name(field):
    return await field.go(field.url(host="localhost"), **await field.direct())


async def goes_direct_to_the_proxys_name(field):
    return await field.go(field.url(host="guard.internal"), **await field.direct())


async def sockets_direct(field):
    script = (
        f"new Promise(k => {{let w = new WebSocket('ws://127.0.0.1:{field.secret.port}/');"
        "w.onmessage = e => k(e.data); w.onerror = () => k('error')})"
    )
    return await field.value(script, await field.page(**await field.direct()))


async def loads_an_extension(field):
    """One that undoes the proxy and then asks the secret server."""
    folder = field.work / "extension"
    folder.mkdir(exist_ok=True)
    manifest = {
        "manifest_version": 3, "name": "x", "version": "1", "permissions": ["proxy"],
        "host_permissions": ["<all_urls>"], "background": {"service_worker": "b.js"},
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    direct = "chrome.proxy.settings.set({value: {mode: 'direct'}, scope: 'regular'}"
    fetch = f"fetch({json.dumps(field.url())})"
    (folder / "b.js").write_text(f"{fetch}; {direct}, () => {fetch})")
    got = await field.cdp.send("Extensions.loadUnpacked", {"path": str(folder)})
    await asyncio.sleep(WAIT_S)
    return str(got)


async def opens_its_cdp_port(field):
    return "webSocketDebuggerUrl" in await field.go(f"{field.session.http_url}/json/version")


async def downloads(field):
    return await field.go(field.url("/download"))


async def views_source(field):
    return await field.go(f"view-source:{field.url()}")


async def opens_file(field):
    return await field.go(field.key.as_uri())


async def views_source_of_file(field):
    return await field.go(f"view-source:{field.key.as_uri()}")


async def makes_a_target_of_a_file(field):
    session = await field.page(field.key.as_uri())
    await asyncio.sleep(WAIT_S)
    return await field.text(session)


async def lists_a_folder(field):
    seen = await field.go(field.key.parent.as_uri() + "/")
    return FILE_SECRET if field.key.name in seen else seen


async def opens_a_file_from_a_site(field):
    return await field.on_site(f"window.open({json.dumps(field.key.as_uri())}); 1")


async def uploads_a_file(field):
    session = await field.page("data:text/html,<input type=file id=f>")
    await asyncio.sleep(WAIT_S)
    call = {"expression": "document.getElementById('f')"}
    found = await field.cdp.send("Runtime.evaluate", call, session=session)
    files = {"files": [str(field.key)], "objectId": found["result"]["objectId"]}
    try:
        await field.cdp.send("DOM.setFileInputFiles", files, session=session)
    except BrowserError as error:
        return str(error)
    script = "document.getElementById('f').files[0].text().catch(e => '' + e)"
    return await field.value(script, session)


async def drags_a_file(field):
    page = (
        "data:text/html,<body ondragover='event.preventDefault()' ondrop='event.preventDefault();"
        "event.dataTransfer.files[0].text().then(x=>document.title=x)'><div style='height:500px'>x"
    )
    session = await field.page(page)
    await asyncio.sleep(WAIT_S)
    data = {"items": [], "files": [str(field.key)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        call = {"type": kind, "x": 50, "y": 50, "data": data}
        await field.cdp.send("Input.dispatchDragEvent", call, session=session)
    await asyncio.sleep(WAIT_S)
    return await field.text(session)


async def writes_elsewhere(field):
    """Success is a file in a folder that is not the attempt's own."""
    folder = field.key.parent / "stolen"
    folder.mkdir(exist_ok=True)
    behave = {"behavior": "allow", "downloadPath": str(folder)}
    await field.cdp.send("Browser.setDownloadBehavior", behave)
    await field.on_site(
        "let a = document.createElement('a'); a.href = URL.createObjectURL(new Blob(['z']));"
        "a.download = 'z.txt'; a.click(); 1"
    )
    for _ in range(20):
        if (folder / "z.txt").exists():
            return FILE_SECRET
        await asyncio.sleep(0.1)
    return ""


WEBSOCKET = (
    "new Promise(k => {let w = new WebSocket(WS); w.onmessage = e => k(e.data);"
    "w.onerror = () => k('error')})"
)
WEBRTC = (
    "new Promise(async k => {let p = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:PORT'},"
    "{urls: 'turn:127.0.0.1:PORT?transport=tcp', username: 'a', credential: 'b'}]});"
    "p.createDataChannel('x'); await p.setLocalDescription(await p.createOffer());"
    "setTimeout(() => k('done'), 1200)})"
)
WEBTRANSPORT = (
    "new Promise(k => {try {let w = new WebTransport('https://127.0.0.1:PORT/wt');"
    "w.ready.catch(e => k('' + e)); setTimeout(() => k('late'), 900)} catch (e) {k('' + e)}})"
)
PRERENDER = (
    "let s = document.createElement('script'); s.type = 'speculationrules'; s.textContent ="
    "JSON.stringify({prerender: [{source: 'list', urls: [HTTP]}]}); document.head.append(s); 1"
)
HINTS = (
    "document.head.innerHTML = '<link rel=preconnect href=' + HTTP + '><link rel=icon href=' + HTTP +"
    "'><link rel=prefetch href=' + HTTP + '>'; 1"
)
EMBEDS = (
    "document.body.innerHTML = '<embed type=application/pdf src=' + HTTP + '?embed><object data=' + HTTP +"
    "'?object></object><iframe src=' + HTTP + '?frame></iframe>'; 1"
)
WORKER = (
    "new Promise(k => {let u = URL.createObjectURL(new Blob(['importScripts(' + JSON.stringify(HTTP) + ')']));"
    "let w = new Worker(u); w.onerror = () => k('error'); setTimeout(() => k('late'), 900)})"
)

HOSTS = (
    "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "127.9.9.9", "0.0.0.0",
    "localhost", "localhost.", "a.localhost", "[::1]", "[::ffff:127.0.0.1]", "[::]", "10.9.9.9",
    "192.168.77.1", "169.254.169.254", "[fd12::9]", "loop.test", "half.test", "private.test", "shop.test",
)  # fmt: skip

NETWORK = {
    **{f"open {host}": opens(host) for host in HOSTS},
    "redirect of a site": redirects,
    "redirect of the public web": redirects_from_the_public_web,
    "fetch": on_site("fetch(HTTP, {mode: 'no-cors'}).then(r => r.type, e => '' + e)"),
    "beacon, image, event source": on_site(
        "navigator.sendBeacon(HTTP, 'q'); new Image().src = HTTP; new EventSource(HTTP); 1"
    ),
    "WebSocket": on_site(WEBSOCKET),
    "WebRTC": on_site(WEBRTC),
    "WebTransport": on_site(WEBTRANSPORT),
    "prerender": on_site(PRERENDER),
    "preconnect, icon, prefetch": on_site(HINTS),
    "PDF, object, frame": on_site(EMBEDS),
    "worker that imports": on_site(WORKER),
    "popup": on_site("let q = window.open('about:blank'); q && (q.location = HTTP); 1"),
    "createTarget": makes_a_target,
    "loadNetworkResource": loads_a_resource,
    "direct context": goes_direct,
    "direct context, localhost": goes_direct_by_name,
    "direct context, name of the proxy": goes_direct_to_the_proxys_name,
    "direct context, WebSocket": sockets_direct,
    "download": downloads,
    "view-source:http": views_source,
    "extension loaded over CDP": loads_an_extension,
}
FILES = {
    "file:": opens_file,
    "view-source:file:": views_source_of_file,
    "createTarget file:": makes_a_target_of_a_file,
    "file: folder": lists_a_folder,
    "file: from a site": opens_a_file_from_a_site,
}
PAST_PAGES = {
    "setFileInputFiles": uploads_a_file,
    "drag a file": drags_a_file,
    "download into another folder": writes_elsewhere,
}
OWN_PAGES = (
    "chrome://version",
    "chrome://net-export",
    "devtools://devtools/bundled/inspector.html",
)
