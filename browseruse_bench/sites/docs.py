"""docs.test: the documentation of an installed package, built by Sphinx on first use.

The package is more-itertools (MIT, pure Python), pinned exactly, because the answers of the
tasks are computed from it. None of its text is kept here: names and sections come from its
metadata, the rest from its docstrings through autodoc. There is a page per section, that lists
its members, and a page per member (`/api/<name>.html`), as well as an index and Sphinx's search,
which runs in the browser. `objects.inv` says what is documented where. Pages need nothing from
another host, and two builds are the same byte for byte.
"""

from __future__ import annotations

import fcntl
import importlib
import importlib.metadata
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from browseruse_bench.errors import SiteError
from browseruse_bench.sites.base import Site
from browseruse_bench.sites.static import StaticServer

HOST = "docs.test"
PACKAGE = "more-itertools"
MODULE = "more_itertools"
VERSION = "11.2.1"

BUILDER_VERSION = 2
"""Part of the name of the cached pages; raised whenever this module would build others."""

BUILD_TIMEOUT_S = 300.0

CONFIGURATION = f"""
project = {PACKAGE!r}
version = release = {VERSION!r}
extensions = ["sphinx.ext.autodoc"]
autodoc_typehints = "none"
smartquotes = False
toc_object_entries = False
html_theme = "alabaster"
html_theme_options = {{"show_related": True}}
html_sidebars = {{"**": ["about.html", "searchfield.html", "navigation.html", "relations.html"]}}
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_last_updated_fmt = None
html_domain_indices = False
"""

# The package's metadata lists its members in a table of two columns: the section, named in
# the first row only, and links to the members.
ROW = re.compile(r"\|(?P<section>[^|]*)\|(?P<members>[^|]*)\|\s*")
MEMBER = re.compile(r"`(\w+) <")

ERROR = re.compile(r"^\s*((?:\w+\.)*\w*(?:Error|Exception): .+)$", re.MULTILINE)


class DocsSite(Site):
    """The built pages, as files. Nothing that a visitor does is kept."""

    stateful = False

    def __init__(self) -> None:
        """Build and start nothing yet."""
        self._server: StaticServer | None = None

    def start(self, directory: Path, seed: int) -> tuple[str, int]:
        """Serve the cached pages, built first if need be; `seed` changes nothing."""
        self._server = StaticServer(documentation())
        return self._server.start()

    def stop(self) -> None:
        """Stop serving."""
        if self._server is not None:
            self._server.stop()


def documentation() -> Path:
    """The folder of the built pages, built on first use (some 10 s) and then kept in the cache.

    It is `$XDG_CACHE_HOME/browseruse-bench/docs-<versions>` (~/.cache without the variable).
    Several processes may ask at once: one builds, the others wait.

    Raises:
        SiteError: the package or Sphinx is missing, or the package has another version.
    """
    check_package()
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "browseruse-bench"
    folder = root / f"docs-{cache_key()}"
    if folder.is_dir():
        return folder
    root.mkdir(parents=True, exist_ok=True)
    with (root / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _build_into(folder)
    return folder


def check_package() -> None:
    """Pass if exactly the pinned version is installed.

    Raises:
        SiteError: it is not; says how to install it.
    """
    try:
        found = importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    if found != VERSION:
        raise SiteError(
            f"{HOST}: needs {PACKAGE} {VERSION}, found {found}; "
            f"install it with: pip install '{PACKAGE}=={VERSION}'"
        )


def cache_key() -> str:
    """All that decides what the pages look like.

    Raises:
        SiteError: Sphinx is not installed.
    """
    try:
        sphinx = importlib.metadata.version("sphinx")
    except importlib.metadata.PackageNotFoundError:
        raise SiteError(
            f"{HOST}: Sphinx is not installed; "
            "install it with: pip install 'browseruse-bench[demo]'"
        ) from None
    python = f"py{sys.version_info.major}.{sys.version_info.minor}"
    return f"{PACKAGE}-{VERSION}-sphinx-{sphinx}-{python}-{BUILDER_VERSION}"


def sections() -> dict[str, tuple[str, ...]]:
    """Title of each section -> its members, both in the package's own order.

    Raises:
        SiteError: the metadata holds no such table.
    """
    text = importlib.metadata.distribution(PACKAGE).read_text("METADATA") or ""
    table: dict[str, list[str]] = {}
    title = ""
    for line in text.splitlines():
        row = ROW.fullmatch(line)
        if row is None:
            continue
        title = row["section"].strip() or title
        table.setdefault(title, []).extend(MEMBER.findall(row["members"]))
    if not table:
        raise SiteError(f"{HOST}: the metadata of {PACKAGE} {VERSION} lists no members")
    return {title: tuple(members) for title, members in table.items()}


def page_of(title: str) -> str:
    """The name of a section's page, without a suffix."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def build(source: Path, out: Path) -> None:
    """Write the sources to `source` and the pages to `out`; both are created.

    Raises:
        SiteError: Sphinx failed or took too long; its error is quoted.
    """
    write_sources(source, sections())
    trees = source.with_name(source.name + ".doctrees")
    command = [sys.executable, "-P", "-m", "sphinx", "-q", "-E", "-b", "html", "-d", str(trees)]
    # The order of a set must not show in the pages, and a log of Sphinx's must not stay behind.
    fixed = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TMPDIR": str(source)}
    try:
        ended = subprocess.run(
            [*command, str(source), str(out)],
            env={**os.environ, **fixed},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SiteError(f"{HOST}: Sphinx did not end within {BUILD_TIMEOUT_S:.0f} s") from None
    if ended.returncode != 0:
        # Sphinx says what went wrong in the middle of a report about itself.
        errors = ERROR.findall(ended.stderr) or ended.stderr.strip().splitlines() or ["no message"]
        raise SiteError(f"{HOST}: Sphinx failed with status {ended.returncode}: {errors[-1]}")
    shutil.rmtree(trees, ignore_errors=True)
    (out / ".buildinfo").unlink(missing_ok=True)
    shutil.rmtree(out / "_sources", ignore_errors=True)


def write_sources(source: Path, table: Mapping[str, Sequence[str]]) -> None:
    """Write conf.py, the index, a page per section and a page per member."""
    module = importlib.import_module(MODULE)
    (source / "api").mkdir(parents=True)
    (source / "conf.py").write_text(CONFIGURATION, encoding="utf-8")
    pages = [page_of(title) for title in table]
    index = _heading(PACKAGE) + _contents(pages) + "* :ref:`genindex`\n* :ref:`search`\n"
    (source / "index.rst").write_text(index, encoding="utf-8")
    for title, members in table.items():
        text = _heading(title) + _contents([f"api/{name}" for name in members])
        (source / f"{page_of(title)}.rst").write_text(text, encoding="utf-8")
        for name in members:
            is_class = inspect.isclass(getattr(module, name))
            directive = "autoclass" if is_class else "autofunction"
            text = f"{_heading(name)}.. {directive}:: {MODULE}.{name}\n"
            text += "   :members:\n" if is_class else ""
            (source / "api" / f"{name}.rst").write_text(text, encoding="utf-8")


def _heading(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n\n"


def _contents(pages: Sequence[str]) -> str:
    entries = "".join(f"   {page}\n" for page in pages)
    return f".. toctree::\n   :maxdepth: 1\n\n{entries}\n"


def _build_into(folder: Path) -> None:
    """Build beside `folder` and move the result there in one step; says so on stderr.

    The lock of `documentation` is held, so what an earlier, killed build left can go.
    """
    for left in folder.parent.glob(f".{folder.name}.*"):
        shutil.rmtree(left, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    began = time.monotonic()
    what = f"the documentation of {PACKAGE} {VERSION}"
    print(f"{HOST}: building {what} with Sphinx, once", file=sys.stderr, flush=True)
    try:
        build(work / "source", work / "pages")
        (work / "pages").rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    took = time.monotonic() - began
    print(f"{HOST}: built {what} in {took:.1f} s: {folder}", file=sys.stderr, flush=True)
