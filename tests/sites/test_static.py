"""The server of files: what it gives out, and what it never does."""

from __future__ import annotations

import http.client
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.sites.static import StaticServer, content_type, served_name


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "deep").mkdir(parents=True)
    (folder / "index.html").write_text("<p>home")
    (folder / "deep" / "index.html").write_text("<p>deep")
    (folder / "deep" / "a b.js").write_text("1")
    (tmp_path / "secret.txt").write_text("secret")
    return folder


@pytest.fixture
def address(root: Path) -> Iterator[tuple[str, int]]:
    server = StaticServer(root)
    yield server.start()
    server.stop()


def ask(
    address: tuple[str, int], path: str, method: str = "GET", connection_is: str = "keep-alive"
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(*address, timeout=10)
    try:
        connection.request(method, path, headers={"Connection": connection_is})
        reply = connection.getresponse()
        return reply, reply.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/", b"<p>home"),
        ("/?seed=7", b"<p>home"),
        ("/deep/", b"<p>deep"),
        ("/deep/a%20b.js", b"1"),
    ],
)
def test_a_file_is_served_as_it_is(address: tuple[str, int], path: str, body: bytes):
    reply, content = ask(address, path)
    assert (reply.status, content) == (200, body)


@pytest.mark.parametrize(
    "path",
    ["/../secret.txt", "/%2e%2e/secret.txt", "/deep/../../secret.txt", "/..%2fsecret.txt",
     "//secret.txt", "/deep/%00", "/deep%5Ca%20b.js", "/missing.html"],
)  # fmt: skip
def test_nothing_outside_the_folder_is_served(address: tuple[str, int], path: str):
    reply, content = ask(address, path)
    assert reply.status == 404
    assert b"secret" not in content


def test_a_folder_is_redirected_with_its_query_and_never_listed(address: tuple[str, int]):
    reply, content = ask(address, "/deep?seed=7")
    assert (reply.status, reply.getheader("Location")) == (301, "/deep/?seed=7")
    assert content == b""


def test_head_has_the_length_and_no_body(address: tuple[str, int]):
    reply, content = ask(address, "/", "HEAD")
    assert (reply.status, reply.getheader("Content-Length"), content) == (200, "7", b"")


@pytest.mark.parametrize("wish", ["close", "keep-alive"])
def test_an_answer_says_whether_its_connection_ends(address: tuple[str, int], wish: str):
    # A browser behind a proxy that asks for one answer only would send the next request into it.
    reply, _ = ask(address, "/", connection_is=wish)
    assert reply.getheader("Connection") == ("close" if wish == "close" else None)


def test_change_sees_the_path_below_the_folder(root: Path):
    server = StaticServer(root, lambda name, content: name.encode() + b":" + content)
    try:
        _, content = ask(server.start(), "/deep/")
    finally:
        server.stop()
    assert content == b"deep/index.html:<p>deep"


def test_a_browser_that_hangs_up_leaves_no_traceback(
    address: tuple[str, int], capfd: pytest.CaptureFixture[str]
):
    with socket.create_connection(address) as client:
        client.sendall(b"GET / HT")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    reply, _ = ask(address, "/")
    assert reply.status == 200
    assert capfd.readouterr().err == ""


def test_stop_without_start_does_nothing(root: Path):
    StaticServer(root).stop()


@given(st.text(alphabet="./\\%2eEfF5cC0ab\0", max_size=30))
def test_a_served_name_never_climbs(path: str):
    name = served_name(path)
    if name is not None:
        assert not name.startswith("/")
        assert not {"", ".", ".."} & set(name.split("/"))
        assert "\\" not in name


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.JS", "text/javascript; charset=utf-8"), ("a.png", "image/png"),
     ("objects.inv", "application/octet-stream"), ("a.html", "text/html; charset=utf-8")],
)  # fmt: skip
def test_types_do_not_depend_on_the_machine(name: str, kind: str):
    assert content_type(name) == kind
