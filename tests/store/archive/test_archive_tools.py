"""The tools of the web archiving community take our files as they are."""

import asyncio
import subprocess

import pytest

from browseruse_bench.browsers.archive.sessions import record
from browseruse_bench.browsers.local import LocalChromium
from browseruse_bench.browsers.options import BrowserOptions
from browseruse_bench.store.archive.warc import WarcWriter
from tests.browsers.archive.shop_of_traps import Server
from tests.export import foreign
from tests.store.archive.made_archive import ABOUT, exchange

pytestmark = [pytest.mark.slow, pytest.mark.browser]


def tool(python, *arguments):
    return subprocess.run(
        [python, "-W", "ignore", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def test_warcio_check_and_wacz_validate_pass_and_find_a_change(tmp_path):
    # wacz 0.5.0 still imports what setuptools 81 no longer has.
    python = foreign.environment("warcio==1.7.5", "wacz==0.5.0", "setuptools<81")
    try:
        warc = tmp_path / "a.warc.gz"
        with WarcWriter(warc, ABOUT) as writer:
            exchange().write(writer)
            exchange(method="POST", request_body="Kühl=1".encode(), body="Grüße".encode()).write(
                writer
            )
            exchange(status=302, phrase="", headers=[("Location", "/x")], body=b"").write(writer)
        checked = tool(python, "-m", "warcio.cli", "check", "-v", warc)
        assert (checked.returncode, checked.stdout.count("digest pass")) == (0, 7)
        package = tmp_path / "a.wacz"
        server = Server()
        try:
            browser = LocalChromium(BrowserOptions(guard="observed"))
            asyncio.run(record(browser, package, [f"{server.url}/home"]))
        finally:
            server.kill()
        script = "import sys; from wacz.main import main; sys.exit(main(sys.argv[1:]))"
        valid = tool(python, "-c", script, "validate", "-f", package)
        assert (valid.returncode, "is valid" in valid.stdout) == (0, True), valid.stdout
        content = bytearray(warc.read_bytes())
        content[-40] ^= 1
        warc.write_bytes(content)
        assert tool(python, "-m", "warcio.cli", "check", warc).returncode != 0
    finally:
        foreign.remove_all()
