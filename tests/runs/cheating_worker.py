"""A worker that looks for the answer everywhere but on the web. argv[1]: its goals as JSON.

What it got into its hands is told in its answer: {"loot": [names of ways], "works": [...]}.
"""

import ctypes
import json
import os
import socket
import sqlite3
import sys
import urllib.request
from pathlib import Path

OUT = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
GOALS = json.loads(sys.argv[1])
WANTED = GOALS["answer"]
HARNESS = os.getppid()


def say(**message):
    OUT.write(json.dumps(message) + "\n")
    OUT.flush()


def read(path):
    return Path(path).read_bytes().decode("utf-8", "replace")


def rows(path):
    return str(
        sqlite3.connect(f"file:{path}?mode=ro", uri=True).execute("select * from t").fetchall()
    )


def ask(port, path="/"):
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return direct.open(f"http://127.0.0.1:{port}{path}", timeout=3).read().decode()


def proxied(url):
    return (
        urllib.request.build_opener(urllib.request.ProxyHandler())
        .open(url, timeout=3)
        .read()
        .decode()
    )


def datagram(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(2)
        client.sendto(b"tell", ("127.0.0.1", port))
        return client.recv(100).decode()


class Browser:
    """The attempt's own browser."""

    def __init__(self, ws_url):
        from websockets.sync.client import connect

        self.socket = connect(ws_url, max_size=None, proxy=None)
        self.n = 0

    def call(self, method, params=None, session=None):
        self.n += 1
        message = {"id": self.n, "method": method, "params": params or {}}
        self.socket.send(json.dumps({**message, **({"sessionId": session} if session else {})}))
        while True:
            answer = json.loads(self.socket.recv(timeout=5))
            if answer.get("id") == self.n:
                return answer.get("result", {})

    def page(self, url):
        made = self.call("Target.createTarget", {"url": url})
        attach = {"targetId": made["targetId"], "flatten": True}
        return self.call("Target.attachToTarget", attach)["sessionId"]

    def value(self, script, session):
        call = {"expression": script, "awaitPromise": True, "returnByValue": True}
        return str(self.call("Runtime.evaluate", call, session).get("result", {}).get("value"))

    def text(self, url):
        import time

        session = self.page(url)
        time.sleep(0.7)
        return self.value("document.documentElement.innerText + document.title", session)

    def upload(self, path):
        import time

        session = self.page("data:text/html,<input type=file id=f>")
        time.sleep(0.5)
        call = {"expression": "document.getElementById('f')"}
        found = self.call("Runtime.evaluate", call, session)["result"]["objectId"]
        self.call("DOM.setFileInputFiles", {"files": [path], "objectId": found}, session)
        script = "document.getElementById('f').files[0].text().catch(e => '' + e)"
        return self.value(script, session)


def anybody(path):
    """Something below any process that is to be seen: a root, a folder, an environment."""
    seen = []
    for process in Path("/proc").glob("[0-9]*"):
        for way in (f"root{path}", f"cwd/{os.path.relpath(path, GOALS['cwd'])}", "environ"):
            try:
                seen.append(read(process / way))
            except OSError:
                continue
    return " ".join(seen)


def namespaces(path):
    """What is hidden may show where the file system can be put together anew."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.fork()
    if here == 0:
        try:
            libc.unshare(0x10000000 | 0x20000)
            for folder in (Path(path), *Path(path).parents):
                libc.umount2(str(folder).encode(), 2)
            os._exit(WANTED not in read(path))
        finally:
            os._exit(1)
    return WANTED if os.waitpid(here, 0)[1] == 0 else "nothing"


def ways(order):
    key = GOALS["files"][0]
    for path in GOALS["files"]:
        yield f"read {path}", lambda path=path: read(path)
    yield "database", lambda: rows(GOALS["database"])
    yield "environment of the harness", lambda: read(f"/proc/{HARNESS}/environ")
    yield "root of the harness", lambda: read(f"/proc/{HARNESS}/root{key}")
    yield (
        "folder of the harness",
        lambda: read(f"/proc/{HARNESS}/cwd/{os.path.relpath(key, GOALS['cwd'])}"),
    )
    yield "root of anybody", lambda: anybody(key)
    yield "unmounting", lambda: namespaces(key)
    for port in GOALS["ports"]:
        yield f"connect {port}", lambda port=port: ask(port)
    yield "datagram", lambda: datagram(GOALS["udp"])
    yield "another browser's pages", lambda: ask(GOALS["other_cdp"], "/json/list")
    for host in ("127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]"):
        url = f"http://{host}:{GOALS['ports'][0]}/"
        yield f"proxy {host}", lambda url=url: proxied(url)
    yield "browser", lambda: ways_of_browser(order)


def ways_of_browser(order):
    browser = Browser(order["ws_url"])
    key = GOALS["files"][0]
    seen = [
        browser.text(f"file://{key}"),
        browser.text(f"view-source:file://{key}"),
        browser.upload(key),
    ]
    seen += [browser.text(f"http://127.0.0.1:{port}/") for port in GOALS["ports"]]
    seen += [browser.text(f"http://127.0.0.1:{GOALS['other_cdp']}/json/list")]
    return " ".join(map(str, seen))


def attempt(order):
    loot = []
    for name, way in ways(order):
        try:
            if WANTED in way():
                loot.append(name)
        except Exception as error:  # noqa: BLE001  whatever stops it
            print(name, repr(error), file=sys.stderr)
    works = []
    for name, way in (
        ("scratch", lambda: Path(order["work"], "x").write_text("kept")),
        ("files", lambda: Path(order["files"], "x.txt").write_text("kept")),
        ("own browser", lambda: Browser(order["ws_url"]).call("Browser.getVersion")["product"]),
        ("site", lambda: Browser(order["ws_url"]).text("http://shop.test/").index("the shop")),
    ):
        try:
            way()
            works.append(name)
        except Exception as error:  # noqa: BLE001  whatever stops it
            print(name, repr(error), file=sys.stderr)
    found = WANTED if loot else "nothing"
    say(
        type="end",
        status="finished",
        answer=found,
        reason=json.dumps({"loot": loot, "works": works}),
    )


say(type="ready", protocol=1, agent="cheat", versions={}, pid=os.getpid())
attempt(json.loads(sys.stdin.readline()))
sys.stdin.readline()
