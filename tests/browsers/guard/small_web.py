"""A public web of one loopback address, its names, and servers that nobody may reach."""

import base64
import hashlib
import re
import socket
import threading
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address

from browseruse_bench.browsers.guard.proxy import Web

PUBLIC = "127.93.184.34"
"""Plays an address of the public web; on loopback, so that nothing leaves this machine."""
SECRET = "canary-kept-secret"
NAMES = {
    "public.test": (PUBLIC,),
    "private.test": ("10.9.9.9",),
    "loop.test": ("127.0.0.1",),
    "half.test": (PUBLIC, "127.0.0.1"),
    "metadata.test": ("169.254.169.254",),
    "mapped.test": ("::ffff:127.0.0.1",),
}


async def resolve(host, port):
    if host not in NAMES:
        raise OSError(f"{host}: no such name")
    return NAMES[host]


WEB = Web(also_public=frozenset({ip_address(PUBLIC)}), resolve=resolve)


class Server:
    """Answers HTTP and WebSockets on all addresses it is given, and notes what was asked."""

    def __init__(self, host, text):
        self.text = text
        self.asked = []
        self.n_touched = 0
        self._socket = socket.create_server((host, 0))
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _serve(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.n_touched += 1
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with connection:
            connection.settimeout(10)
            head = b""
            try:
                while b"\r\n\r\n" not in head and (data := connection.recv(4096)):
                    head += data
                if head:
                    self.asked.append(head.split(b"\r\n")[0].decode("latin-1"))
                    connection.sendall(self._reply(head))
            except (OSError, IndexError, UnicodeDecodeError):
                return  # no HTTP: a STUN or TLS greeting, say

    def _reply(self, head):
        path = head.split(b" ")[1].decode()
        key = re.search(rb"sec-websocket-key: *(\S+)", head, re.IGNORECASE)
        if key:
            sha = hashlib.sha1(key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
            accept = base64.b64encode(sha).decode()
            return (
                "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Accept: {accept}\r\n\r\n"
            ).encode() + bytes([0x81, len(self.text)]) + self.text.encode()  # fmt: skip
        if path.startswith("/to?"):
            return (
                f"HTTP/1.1 302 Found\r\nLocation: {path[4:]}\r\nContent-Length: 0\r\n\r\n".encode()
            )
        body = f"<title>{self.text}</title><body>{self.text}</body>".encode()
        more = ""
        if path.startswith("/download"):
            more = "Content-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=a.bin\r\n"
        else:
            more = "Content-Type: text/html\r\n"
        return (
            f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n"
            f"Access-Control-Allow-Origin: *\r\n{more}\r\n"
        ).encode() + body


@contextmanager
def small_web():
    """(public server, site, secret server): the last one listens on all addresses."""
    with ExitStack() as stack:
        servers = [Server(PUBLIC, "the public web"), Server("127.0.0.1", "the site")]
        servers.append(Server("0.0.0.0", SECRET))
        for server in servers:
            stack.callback(server.close)
        yield servers
