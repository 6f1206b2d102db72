"""Files of a folder over HTTP on loopback: no listing, and no way out of the folder."""

from __future__ import annotations

import http.server
import mimetypes
import socketserver
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

Change = Callable[[str, bytes], bytes]

# The machine's own table of types may lack or redefine these.
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".htm": "text/html; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}


class StaticServer:
    """A server of the files below `root`; `change` may alter a file's bytes on the way out.

    `change` gets the path below `root`, with forward slashes, and the file's content.
    """

    def __init__(self, root: Path, change: Change | None = None) -> None:
        """Take the folder; nothing is opened before `start`."""
        self._root = root
        self._change = change
        self._server: _Server | None = None

    def start(self) -> tuple[str, int]:
        """Serve in the background and return (host, port)."""
        handler = type("Handler", (_Handler,), {"root": self._root, "change": self._change})
        self._server = _Server(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return "127.0.0.1", self._server.server_address[1]

    def stop(self) -> None:
        """Stop serving; without effect if nothing was started."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A browser that is closed drops its connections; that is no error of ours.
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(http.server.BaseHTTPRequestHandler):
    root: ClassVar[Path]
    change: ClassVar[Change | None]
    protocol_version = "HTTP/1.1"
    # Head and body go out in two writes; with Nagle's algorithm the second would wait 40 ms.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:
        return

    def _answer(self, *, with_body: bool) -> None:
        url = urlsplit(self.path)
        name = served_name(url.path)
        file = None if name is None else self.root / name
        if file is not None and file.is_dir():
            where = url.path + "/" + (f"?{url.query}" if url.query else "")
            self._send(HTTPStatus.MOVED_PERMANENTLY, b"", "text/plain", location=where)
        elif name is None or file is None or not file.is_file():
            body = b"There is no such page.\n"
            self._send(HTTPStatus.NOT_FOUND, body if with_body else b"", "text/plain")
        else:
            body = file.read_bytes()
            change = type(self).change
            if change is not None:
                body = change(name, body)
            self._send(HTTPStatus.OK, body, content_type(name), with_body=with_body)

    def _send(
        self,
        status: HTTPStatus,
        body: bytes,
        kind: str,
        *,
        location: str | None = None,
        with_body: bool = True,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if location is not None:
            self.send_header("Location", location)
        if self.close_connection:
            # Or a browser behind a proxy asks for the next file on a connection that ends.
            self.send_header("Connection", "close")
        self.end_headers()
        if with_body:
            self.wfile.write(body)


def served_name(path: str) -> str | None:
    """The file that an address's path stands for, relative to the served folder.

    Returns:
        None for a path that would lead out of the folder or that no file can have.
    """
    plain = unquote(path)
    name = plain.lstrip("/")
    if name == "" or name.endswith("/"):
        name += "index.html"
    if "\\" in name or "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        return None
    return name


def content_type(name: str) -> str:
    """The media type of a file, by its name."""
    suffix = Path(name).suffix.lower()
    return TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
