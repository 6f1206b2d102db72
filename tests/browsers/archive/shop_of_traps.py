"""A site with all that is hard to archive, and the ten checks of a visit to it.

A redirect with a cookie, requests with a time in their address, equal addresses with unlike
bodies, a frame of another origin (a process of its own), shadow DOM, workers, a stream without
an end, a service worker, a large body, forms.
"""

import http.server
import json
import struct
import threading
import time
import zlib
from urllib.parse import parse_qs, urlsplit

SESSION = "Zq81mWvT40cXr7Lp"
SECRET = "hunter2-hunter2-77"
ITEMS = [{"id": i, "name": f"Widget {i}", "price": 9.5 + 1.25 * i} for i in range(1, 13)]

HOME = """<!doctype html><meta charset=utf-8><title>Home</title><link rel=stylesheet href=/s.css>
<h1>Shop</h1><p id=ck>COOKIE</p><p id=js></p><div id=list>loading</div><img src=/img/1.png>
<iframe src="http://localhost:PORT/frame" width=300 height=60></iframe><div id=sh></div>
<form method=post action=/order><input name=qty value=3><button id=buy>Order</button></form>
<input id=q><button id=go>Search</button><div id=res></div><p id=w></p><p id=s></p><p id=e></p>
<p id=up></p><p id=big></p><p id=sw></p><p>SECRET</p><script src=/app.js></script>"""
APP = """
js.textContent = document.cookie;
alert('This page stands still until somebody answers.');
new WebSocket('ws://' + location.host + '/socket');
fetch('/api/items?_=' + Date.now()).then(r => r.json()).then(j => {
  list.innerHTML = j.map(i => `<a href=/item/${i.id}>${i.name} $${i.price}</a>`).join('<br>')});
sh.attachShadow({mode: 'open'}).innerHTML = '<b>shadow-price 42</b>';
go.onclick = () => fetch('/api/search', {method: 'POST', body: JSON.stringify({q: q.value})})
  .then(r => r.json()).then(j => { res.textContent = 'found ' + j.n + ' for ' + j.q });
new Worker('/worker.js').onmessage = (m) => { w.textContent = m.data };
new SharedWorker('/shared.js').port.onmessage = (m) => { s.textContent = m.data };
new EventSource('/events').onmessage = (m) => { e.textContent = 'event ' + m.data };
const form = new FormData(); form.append('f', new Blob(['hello']), 'a.txt');
fetch('/upload', {method: 'POST', body: form}).then(r => r.text()).then(t => { up.textContent = t });
fetch('/large').then(r => r.text()).then(t => { big.textContent = 'large ' + t.length });
navigator.serviceWorker.register('/service.js')
  .then(() => { sw.textContent = 'service worker' }, () => { sw.textContent = 'no service worker' });
"""
PAGES = {
    "/s.css": ("text/css", "body { font-family: sans-serif }"),
    "/app.js": ("text/javascript", APP),
    "/frame": ("text/html", "<p>frame-text 77</p><img src=/img/5.png><p id=f></p><script>"
               "fetch('/api/frame').then(r => r.text()).then(t => { f.textContent = t })</script>"),
    "/api/frame": ("text/plain", "frame-data 78"),
    "/api/worker": ("text/plain", "worker-data 79"),
    "/api/shared": ("text/plain", "shared-data 80"),
    "/imported.js": ("text/javascript", "self.imported = 1"),
    "/worker.js": ("text/javascript", "importScripts('/imported.js');"
                   "fetch('/api/worker').then(r => r.text()).then(t => postMessage(t + imported))"),
    "/shared.js": ("text/javascript", "onconnect = (e) => fetch('/api/shared')"
                   ".then(r => r.text()).then(t => e.ports[0].postMessage(t))"),
    "/service.js": ("text/javascript", "oninstall = () => skipWaiting()"),
    "/ordered": ("text/html", "<title>ok</title><p id=ok>order 3 placed</p>"),
    "/api/items": ("application/json", json.dumps(ITEMS)),
    "/large": ("text/plain", "x" * 3_000_000),
}  # fmt: skip


def png(shade):
    row = b"\0" + bytes([shade]) * 30
    parts = [(b"IHDR", struct.pack(">IIBBBBB", 10, 10, 8, 2, 0, 0, 0)),
             (b"IDAT", zlib.compress(row * 10)), (b"IEND", b"")]  # fmt: skip
    chunks = (
        struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def out(self, body, kind="text/html", code=200, headers=()):
        body = body.encode() if isinstance(body, str) else body
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if kind[:4] == "text" else kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = urlsplit(self.path).path
        if path == "/":
            cookies = ("theme=dark; Path=/", f"sid={SESSION}; Path=/; HttpOnly")
            headers = [("Location", "/home"), *(("Set-Cookie", c) for c in cookies)]
            self.out("", code=302, headers=headers)
        elif path == "/home":
            known = f"sid={SESSION}" in self.headers.get("Cookie", "")
            home = HOME.replace("COOKIE", f"cookie-ok {SESSION}" if known else "no cookie")
            port = str(self.server.server_port)
            self.out(home.replace("PORT", port).replace("SECRET", SECRET))
        elif path.startswith("/img/"):
            self.out(png(int(path[5:-4])), "image/png")
        elif path.startswith("/item/"):
            price = ITEMS[int(path[6:]) - 1]["price"]
            self.out(f"<title>Item</title><p id=price>{price}</p><a href=/home>home</a>")
        elif path == "/events":
            self.stream("text/event-stream")
        elif path == "/endless":
            self.stream("text/plain")
        elif path in PAGES:
            kind, body = PAGES[path]
            self.out(body, kind)
        else:
            self.out("nothing here", code=404)

    def stream(self, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for n in range(600):
                self.wfile.write(f"data: {n}\n\n".encode())
                self.wfile.flush()
                time.sleep(0.2)
        except OSError:
            pass

    def do_POST(self):
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/api/search":
            wanted = json.loads(sent)["q"]
            n = sum(wanted.lower() in item["name"].lower() for item in ITEMS)
            self.out(json.dumps({"q": wanted, "n": n}), "application/json")
        elif self.path == "/upload":
            self.out(f"uploaded {sent.count(b'hello')}", "text/plain")
        elif self.path == "/order":
            assert parse_qs(sent.decode()) == {"qty": ["3"]}
            self.out("", code=303, headers=[("Location", "/ordered")])


class Counting(http.server.ThreadingHTTPServer):
    n_connections = 0

    def get_request(self):
        self.n_connections += 1
        return super().get_request()


class Server:
    """The site; `kill` makes every later request fail."""

    def __init__(self):
        self._server = Counting(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.dead = False

    @property
    def n_connections(self):
        return self._server.n_connections

    def kill(self):
        if not self.dead:
            self.dead = True
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()


async def ten_checks(tab, url):
    """Name -> whether it holds, of a visit that does the same in the same order each time."""
    found = {}
    await tab.go(f"{url}/")
    home = await tab.until("document.querySelector('#w').textContent && list.children.length > 5"
                           " && up.textContent && big.textContent && sw.textContent"
                           " && s.textContent")  # fmt: skip
    text = await tab.text()
    found["redirect"] = home and (await tab.value("location.pathname")) == "/home"
    found["cookie"] = "cookie-ok" in text and "theme=dark" in text
    found["time in the address"] = "Widget 7 $18.25" in text
    found["images"] = await tab.value(
        "Promise.all([...document.images].map(i => i.decode().then(() => i.naturalWidth === 10)))"
        ".then(all => all.length > 0 && all.every(x => x), () => false)"
    )
    frames = await tab.frames()
    found["frame of another origin"] = any(
        "frame-text 77" in f and "frame-data 78" in f for f in frames
    )
    found["shadow"] = (await tab.value("sh.shadowRoot.textContent")) == "shadow-price 42"
    answers = []
    for wanted, told in (("widget 1", "found 4 for widget 1"), ("7", "found 1 for 7")):
        await tab.value(f"q.value = {json.dumps(wanted)}; go.click(); 1")
        answers.append(await tab.until(f"res.textContent === {json.dumps(told)}"))
    found["equal addresses, unlike bodies"] = answers == [True, True]
    found["workers"] = "worker-data 791" in text and "shared-data 80" in text
    found["upload and large body"] = "uploaded 1" in text and "large 3000000" in text
    await tab.value("document.querySelector('#list a:nth-of-type(4)').click(); 1")
    item = await tab.until("window.price && price.textContent === '14.5'")
    await tab.go(f"{url}/home")
    await tab.until("window.list && list.children.length > 5")
    await tab.value("buy.click(); 1")
    found["link, form and its redirect"] = item and await tab.until("window.ok && !!ok.textContent")
    return found
