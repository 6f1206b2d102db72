"""The documentation site: exact, self-contained, built once."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import re
import subprocess
import sys
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from browseruse_bench.errors import SiteError
from browseruse_bench.sites import docs

pytest.importorskip("sphinx")
pytest.importorskip(docs.MODULE)

# A build that takes a while, leaves a mark, and needs no Sphinx.
SLOW_BUILD = """
import sys, time, pathlib
from browseruse_bench.sites import docs
def build(source, out):
    with pathlib.Path(sys.argv[1]).open("a") as marks:
        marks.write("built\\n")
    time.sleep(0.5)
    out.mkdir()
    (out / "index.html").write_text("whole")
docs.build = build
print((docs.documentation() / "index.html").read_text())
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield docs.documentation()


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def inventory(pages: Path) -> dict[str, str]:
    """Documented name -> its page, from objects.inv (version 2)."""
    content = (pages / "objects.inv").read_bytes()
    head, lines = content.split(b"zlib.\n", 1)
    assert head.startswith(b"# Sphinx inventory version 2")
    found: dict[str, str] = {}
    for line in zlib.decompress(lines).decode().splitlines():
        name, kind, _, uri, _ = line.split(maxsplit=4)
        if kind.startswith("py:"):
            found[name] = uri.partition("#")[0]
    return found


def text_of(page: Path) -> str:
    """The page's text, roughly: without its tags."""
    return re.sub(r"<[^>]+>", "", page.read_text()).replace("&lt;", "<").replace("&gt;", ">")


def test_two_builds_are_the_same_byte_for_byte(pages: Path, tmp_path: Path):
    docs.build(tmp_path / "elsewhere" / "source", tmp_path / "elsewhere" / "pages")
    assert files(tmp_path / "elsewhere" / "pages") == files(pages)


def test_every_member_is_documented_on_a_page_of_its_own(pages: Path):
    where = inventory(pages)
    for members in docs.sections().values():
        for name in members:
            assert where[f"{docs.MODULE}.{name}"] == f"api/{name}.html"


def test_a_page_shows_the_signature_that_the_package_has(pages: Path):
    module = importlib.import_module(docs.MODULE)
    for name in ("grouper", "split_at", "stagger", "zip_offset", "sample"):
        signature = f"{docs.MODULE}.{name}{inspect.signature(getattr(module, name))}"
        assert signature in text_of(pages / "api" / f"{name}.html")


def test_sections_list_their_members_and_nothing_else(pages: Path):
    sections = docs.sections()
    assert len(sections) >= 10
    for title, members in sections.items():
        page = (pages / f"{docs.page_of(title)}.html").read_text()
        body = page.partition('role="main"')[2].partition('class="sphinxsidebar"')[0]
        assert re.findall(r'href="api/(\w+)\.html"', body) == list(members)


def test_no_page_needs_another_host(pages: Path):
    loads = re.compile(r"""<(?:script|img|iframe)[^>]*\ssrc=["'](?:https?:)?//|
        <link[^>]*\shref=["'](?:https?:)?//|@import\s*["'(u]|url\(["']?(?:https?:)?//""", re.X)  # fmt: skip
    for name, content in files(pages).items():
        if name.endswith((".html", ".css")):
            assert not loads.search(content.decode()), name


def test_pages_hold_no_path_and_no_date(pages: Path):
    traces = re.compile(rb"/tmp/|/home/|/root/|0x[0-9a-f]{6,}|Last updated")
    for name, content in files(pages).items():
        if name.endswith(".html"):
            assert not traces.search(content), name


def test_the_site_serves_pages_index_and_search(pages: Path, tmp_path: Path):
    site = docs.DocsSite()
    host, port = site.start(tmp_path, seed=1)
    try:
        for name in ("", "genindex.html", "search.html", "searchindex.js", "objects.inv"):
            with urllib.request.urlopen(f"http://{host}:{port}/{name}", timeout=10) as reply:
                assert reply.read() == (pages / (name or "index.html")).read_bytes()
    finally:
        site.stop()
    assert not docs.DocsSite.stateful


def test_a_cached_build_is_not_built_again(pages: Path, capfd: pytest.CaptureFixture[str]):
    assert docs.documentation() == pages
    assert capfd.readouterr().err == ""


def test_two_that_build_at_once_build_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    command = [sys.executable, "-c", SLOW_BUILD, str(tmp_path / "marks")]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=60)[0] for process in running]
    assert said == ["whole\n"] * 3
    assert (tmp_path / "marks").read_text() == "built\n"


def test_what_a_killed_build_left_is_removed_and_never_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    half = tmp_path / "browseruse-bench" / f".docs-{docs.cache_key()}.killed" / "pages"
    half.mkdir(parents=True)

    def build(source: Path, out: Path) -> None:
        out.mkdir()
        (out / "index.html").write_text("whole")

    monkeypatch.setattr(docs, "build", build)
    folder = docs.documentation()
    assert (folder / "index.html").read_text() == "whole"
    assert {path.name for path in folder.parent.iterdir()} == {folder.name, f"{folder.name}.lock"}
    first, second = capfd.readouterr().err.splitlines()
    assert first.startswith("docs.test: building")
    assert second.startswith("docs.test: built")


def test_a_failed_build_leaves_nothing_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(docs, "CONFIGURATION", "raise SystemError('no such luck')")
    with pytest.raises(SiteError, match=r"Sphinx failed with status 2: .*no such luck"):
        docs.documentation()
    (left,) = (tmp_path / "browseruse-bench").iterdir()
    assert left.suffix == ".lock"


def test_another_version_of_the_package_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(docs, "VERSION", "0.1")
    with pytest.raises(SiteError, match=r"needs more-itertools 0\.1, found \d.*pip install"):
        docs.documentation()


def test_a_missing_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(docs, "PACKAGE", "no-such-package-anywhere")
    with pytest.raises(SiteError, match="found none; install it with: pip install"):
        docs.documentation()
