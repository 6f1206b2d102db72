import json

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from browseruse_bench.store.archive.warc import WarcWriter
from tests.browsers.archive.shop_of_traps import Server
from tests.store.archive.made_archive import ABOUT, archived, exchange


def bub(*arguments):
    return CliRunner().invoke(bubench, list(map(str, arguments)))


def test_check_names_every_damage_and_reads_all(tmp_path):
    whole, page = archived(tmp_path, "Kettle, 31.90")
    torn = tmp_path / "torn.warc.gz"
    with WarcWriter(torn, ABOUT) as writer:
        exchange().write(writer)
    torn.write_bytes(torn.read_bytes()[:-9])
    done = bub("archive", "check", torn, tmp_path / "none.wacz", whole)
    assert done.exit_code == 3
    assert f"{torn}: torn: the record at byte" in done.output
    assert "none.wacz: no such archive" in done.output
    assert f"{whole}: whole: 5 records, 1 answers, 1 pages" in done.output
    told = json.loads(bub("archive", "check", "--json", whole).output)
    assert told["archives"][0]["pages"] == [{"key": page.key, "url": "http://shop.test/kettle"}]
    assert bub("archive", "check", whole).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("record", "--out", "x.wacz"), 2, "name a URL"),
        (("record", "http://a.test/", "--out", "x.zip"), 3, "a package ends in .wacz"),
        (("record", "http://a.test/"), 2, "--out"),
        (("replay", "none.wacz"), 2, "none.wacz: no such archive"),
        (("check",), 2, "ARCHIVE"),
    ],
)
def test_what_is_typed_wrongly_is_refused(tmp_path, monkeypatch, arguments, status, said):
    monkeypatch.chdir(tmp_path)
    done = bub("archive", *arguments)
    assert (done.exit_code, said in done.output) == (status, True), done.output
    assert list(tmp_path.iterdir()) == []


def test_an_archive_without_pages_cannot_be_seen_again(tmp_path):
    with WarcWriter(tmp_path / "a.warc.gz", ABOUT) as writer:
        exchange().write(writer)
    done = bub("archive", "replay", tmp_path / "a.warc.gz")
    assert (done.exit_code, "--hold" in done.output) == (3, True)


@pytest.mark.browser
def test_a_page_is_recorded_and_replayed_from_the_command_line(tmp_path):
    server, out = Server(), tmp_path / "a.wacz"
    try:
        done = bub(
            "archive",
            "record",
            f"{server.url}/item/3",
            "--out",
            out,
            "--guard",
            "observed",
            "--json",
        )
    finally:
        server.kill()
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["pages"][0]["status"] == 200
    again = bub("archive", "replay", out, "--guard", "observed")
    assert (again.exit_code, " 0 missed" in again.output) == (0, True), again.output
    assert bub("archive", "record", f"{server.url}/", "--out", out).exit_code == 3
