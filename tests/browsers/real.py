"""A real Chromium and a small web server on loopback, as fixtures."""

import http.server
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

FLAGS = [
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--window-size=1280,800",
]


@dataclass
class Chromium:
    process: subprocess.Popen
    ws_url: str

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def launch(profile: Path) -> Chromium:
    program = os.environ.get("CHROME") or shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium here")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    argv = [program, *FLAGS, *root, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(
        argv,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"TMPDIR": str(profile), "HOME": str(profile)},
    )
    told = profile / "DevToolsActivePort"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        lines = told.read_text().split("\n") if told.exists() else []
        if len(lines) >= 2:
            return Chromium(process, f"ws://127.0.0.1:{lines[0]}{lines[1]}")
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    raise RuntimeError("Chromium did not start")


@pytest.fixture
def chromium():
    # Short: the path of a socket below it has at most 107 characters.
    profile = Path(tempfile.mkdtemp(prefix="bub-"))
    browser = launch(profile)
    yield browser
    browser.kill()
    shutil.rmtree(profile, ignore_errors=True)


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
