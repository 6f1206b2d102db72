"""The agent and the site of the survival test; found as tests.runs.survivor:Name."""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from browseruse_bench.agents.worker import WorkerAgent
from browseruse_bench.records.trace import AgentId
from browseruse_bench.sites.base import Site


class Player(WorkerAgent):
    """Opens the site's page twice in tabs of its own, and answers."""

    name = "player"

    def identity(self):
        return AgentId(name=self.name, version="1")

    def command(self):
        return (sys.executable, str(Path(__file__).with_name("survivor_worker.py")))


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
