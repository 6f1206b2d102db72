"""A real Chromium and a small web server on loopback, as fixtures."""

import http.server
import os
import signal
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from browseruse_bench.browsers.base import SessionRequest
from browseruse_bench.browsers.local import LocalChromium
from browseruse_bench.browsers.options import BrowserOptions


@dataclass
class Chromium:
    ws_url: str
    pgid: int

    def kill(self):
        os.killpg(self.pgid, signal.SIGKILL)


@pytest.fixture
async def chromium():
    backend = LocalChromium(BrowserOptions(guard="observed"))
    with tempfile.TemporaryDirectory(prefix="bub-") as folder:
        work = Path(folder)
        request = SessionRequest(work=work / "work", downloads=work / "downloads", owner=work)
        async with backend.open(request) as session:
            yield Chromium(session.ws_url, backend._running[session.ws_url].pgid)


@dataclass
class Site:
    """Pages by path; a page whose path ends in .csv is a download."""

    url: str
    pages: dict[str, str] = field(default_factory=dict)
    slow_s: dict[str, float] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def site():
    held = Site("")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            path = self.path.split("?")[0]
            held.asked.append(self.path)
            time.sleep(held.slow_s.get(path, 0))
            found = path in held.pages
            body = held.pages.get(path, "not found").encode()
            self.send_response(200 if found else 404)
            if path.endswith(".csv"):
                self.send_header("content-type", "text/csv")
                self.send_header("content-disposition", f"attachment; filename={path[1:]}")
            else:
                self.send_header("content-type", "text/html; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    held.url = f"http://127.0.0.1:{server.server_port}"
    yield held
    server.shutdown()
    server.server_close()
    thread.join()
