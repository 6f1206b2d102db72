import json
import zipfile

import pytest

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.store.archive.opened import Archive
from browseruse_bench.store.archive.wacz import package, pages_of, sort_key
from browseruse_bench.store.archive.warc import DamagedError, WarcWriter
from tests.store.archive.made_archive import ABOUT, archived, exchange


def rewritten(path, changes):
    """The package with other files, whatever its own list says."""
    with zipfile.ZipFile(path) as outer:
        files = {name: outer.read(name) for name in outer.namelist()}
    with zipfile.ZipFile(path, "w") as outer:
        for name, content in {**files, **changes}.items():
            if content is not None:
                outer.writestr(name, content)
    return path


def test_a_package_gives_back_what_was_put_in(tmp_path):
    path, page = archived(tmp_path, "Kettle\n31.90", html="<p>Kettle")
    with Archive.open(path) as archive:
        assert archive.pages == {page.key: page}
        assert archive.part(page, "text") == b"Kettle\n31.90"
        assert b"<p>Kettle" in archive.part(page, "mhtml")
        assert archive.part(page, "png") is None
        (place,) = archive.find("GET", "http://shop.test/kettle#x", {}, b"")
        assert archive.answer(place).body == b"Kettle\n31.90"
        assert archive.find("GET", "http://shop.test/pan", {}, b"") == []
    assert pages_of(path) == (page.key,)


def test_the_index_leads_to_the_records(tmp_path):
    path, page = archived(tmp_path, "Kettle")
    with zipfile.ZipFile(path) as outer:
        lines = outer.read("indexes/index.cdx").decode().splitlines()
        warc = outer.read("archive/data.warc.gz")
    assert lines == sorted(lines)
    (entry,) = (
        json.loads(line.split(" ", 2)[2]) for line in lines if line.startswith("test,shop)")
    )
    (tmp_path / "one.warc.gz").write_bytes(warc[int(entry["offset"]) :][: int(entry["length"])])
    with Archive.open(tmp_path / "one.warc.gz") as one:
        assert one.n_records == 1
    assert entry["status"] == "200"


def test_nothing_is_overwritten(tmp_path):
    path, _ = archived(tmp_path, "Kettle")
    before = path.read_bytes()
    with WarcWriter(tmp_path / "a.warc.gz", ABOUT) as writer:
        exchange().write(writer)
    with pytest.raises(DataError, match="is there already"):
        package(tmp_path / "a.warc.gz", path, title="x")
    assert path.read_bytes() == before


def test_a_torn_package_says_so_and_leaves_nothing_open(tmp_path):
    path, _ = archived(tmp_path, "Kettle" * 100)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(DamagedError, match="torn or not a package"):
        Archive.open(path)
    with pytest.raises(DamagedError, match="torn or not a package"):
        pages_of(path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pages/pages.jsonl": b"{}"}, "pages/pages.jsonl: was changed"),
        ({"archive/data.warc.gz": b"x"}, "archive/data.warc.gz: was changed"),
        ({"datapackage.json": b'{"resources": []}'}, "datapackage.json: was changed"),
        ({"archive/data.warc.gz": None}, "torn or not a package"),
        ({"archive/more.warc.gz": b"x"}, "not in the package's own list"),
        ({"datapackage.json": b"[]"}, "torn or not a package"),
    ],
)
def test_a_package_that_was_changed_is_found(tmp_path, changes, said):
    path, _ = archived(tmp_path, "Kettle")
    with pytest.raises(DamagedError, match=said):
        Archive.open(rewritten(path, changes))


def test_an_archive_that_is_not_there_is_another_matter(tmp_path):
    with pytest.raises(ConfigError, match="no such archive"):
        Archive.open(tmp_path / "none.wacz")


def test_a_torn_warc_names_the_file_and_the_place(tmp_path):
    path = tmp_path / "a.warc.gz"
    with WarcWriter(path, ABOUT) as writer:
        exchange().write(writer)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(
        DamagedError, match=r"a\.warc\.gz: torn: the record at byte \d+ is cut off; 2 whole"
    ):
        Archive.open(path)
    with pytest.raises(DamagedError, match="torn"):
        package(path, tmp_path / "a.wacz", title="x")
    assert not (tmp_path / "a.wacz").exists()


def test_the_order_of_addresses():
    assert sort_key("http://www.Shop.test:81/A?b=2&a=1") == "test,shop:81)/a?a=1&b=2"
    assert sort_key("https://127.0.0.1:443/") == "127.0.0.1)/"
    assert sort_key("urn:text:http://a.test/x y") == "urn:text:http://a.test/x%20y"
