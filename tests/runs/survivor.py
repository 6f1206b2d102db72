"""The agent and the site of the survival test; found as tests.runs.survivor:Name."""

import json
import os
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from browseruse_bench.agents.worker import WorkerAgent
from browseruse_bench.records.trace import AgentId
from browseruse_bench.sites.base import Site


class Player(WorkerAgent):
    """Opens the site's page twice in tabs of its own, and answers."""

    name = "player"

    def identity(self):
        return AgentId(name=self.name, version="1")

    def command(self):
        return (sys.executable, __file__)


class Notes(Site):
    """One page that says which visit it is."""

    def start(self, directory, seed):
        self.visits = 0
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.visits += 1
                body = f"<title>Notes</title>visit {site.visits}".encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self._server.server_address

    def reset(self):
        self.visits = 0

    def stop(self):
        self._server.shutdown()


def _play():
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(**message):
        out.write(json.dumps(message) + "\n")

    def hear():
        line = sys.stdin.readline()
        if not line:
            os._exit(0)
        return json.loads(line)

    say(type="ready", protocol=1, agent="player")
    order = hear()
    for n in (1, 2):
        request = urllib.request.Request(
            f"{order['cdp_url']}/json/new?http://notes.test/{n}", method="PUT"
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            target = json.load(answer)["id"]
        time.sleep(0.3)  # else a worker would hardly ever be there to be killed
        say(type="action", n=n, call={"name": "navigate", "arguments": {"n": n}}, focus=target)
        hear()
    say(type="end", status="finished", answer=order["task"]["text"])
    while hear()["type"] != "exit":
        pass


if __name__ == "__main__":
    _play()
