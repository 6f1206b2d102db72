"""The distributions: what they hold, and that the wheel alone is enough to run the demo."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.agents.browser_use.installed import installed

__all__ = ["installed"]

ROOT = Path(__file__).resolve().parents[2]
BUILTIN = "browseruse_bench/benchmarks/builtin"
MAX_BYTES = 3_000_000
PUBLIC = ("BrowseComp", "LexBench-Browser", "Online-Mind2Web")

pytestmark = pytest.mark.slow


def environment():
    """The settings of this machine (index, proxy, Chromium), but nothing of this Python."""
    own = ("VIRTUAL_ENV", "PYTHON", "COV_", "PYTEST_")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}


def ran(*argv, cwd, timeout=600):
    """A command that ends well, with its output; what it printed is shown if it does not."""
    done = subprocess.run(
        [str(part) for part in argv],
        cwd=cwd,
        env=environment(),
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{argv}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def built(kind, folder):
    """The one distribution of a kind, built in an environment of its own."""
    ran(sys.executable, "-m", "build", f"--{kind}", "--outdir", folder, ROOT, cwd=folder)
    (path,) = [p for p in folder.iterdir() if p.suffix in (".whl", ".gz")]
    return path


def pinned(folder):
    """Constraints with the versions of the lock; without its hashes, which would be asked of
    our wheel too.
    """
    lock = ROOT / "locks" / "demo.txt"
    if not lock.is_file():
        return ()
    pins = re.findall(r"^([\w.-]+==[^\s\\]+(?: ; [^\\\n]*)?)", lock.read_text(), re.MULTILINE)
    assert pins, "the lock names no version"
    path = folder / "constraints.txt"
    path.write_text("\n".join(pin.strip() for pin in pins) + "\n")
    return ("--constraint", path)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    """bin/ of an environment that holds the wheel with its demo extra, and nothing else.

    Installed by uv where it is found, by pip otherwise, as the Makefile does.
    """
    folder = tmp_path_factory.mktemp("installed")
    uv = shutil.which("uv")
    venv.create(folder / "env", with_pip=uv is None)
    python = folder / "env" / "bin" / "python"
    pip = (uv, "pip") if uv else (python, "-m", "pip")
    where = ("--python", python) if uv else ()
    wanted = f"{wheel}[demo]"
    ran(*pip, "install", "--quiet", *where, *pinned(folder), wanted, cwd=folder, timeout=1200)
    return python.parent


@pytest.fixture
def empty(tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def test_the_wheel_holds_the_package_and_no_tests_or_byte_code(wheel, names):
    parts = {part for name in names for part in name.split("/")}
    assert parts.isdisjoint({"tests", "benches", "tools", "docs", "__pycache__"})
    assert [name for name in names if name.endswith((".pyc", ".so", ".sqlite", ".db"))] == []
    assert "browseruse_bench/cli/root.py" in names
    assert wheel.stat().st_size < MAX_BYTES


def test_the_built_in_benchmarks_travel_in_the_wheel(wheel, names):
    """peers: the wheel lacks its data."""
    for name in (*PUBLIC, "LocalSites"):
        assert f"{BUILTIN}/{name}/data_info.json" in names
    source = ROOT / "benchmarks" / "LocalSites"
    tracked = [
        path.relative_to(source).as_posix()
        for folder in ("data", "rubrics", "solutions")
        for path in (source / folder).iterdir()
    ]
    assert len(tracked) > 3
    with zipfile.ZipFile(wheel) as archive:
        tasks = json.loads(archive.read(f"{BUILTIN}/LocalSites/data/tasks.json"))
        for name in tracked:
            assert archive.read(f"{BUILTIN}/LocalSites/{name}") == (source / name).read_bytes()
    for task in tasks:
        assert f"{BUILTIN}/LocalSites/rubrics/{task['task_id']}.json" in names
        assert f"{BUILTIN}/LocalSites/solutions/{task['task_id']}.json" in names


def test_the_source_distribution_builds_and_holds_what_the_wheel_is_made_of(tmp_path):
    with tarfile.open(built("sdist", tmp_path)) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {"pyproject.toml", "README.md", "LICENSE"} <= set(names)
    assert "benchmarks/LocalSites/data/tasks.json" in names
    assert "browseruse_bench/cli/root.py" in names
    assert [n for n in names if n.startswith("tests/") or "__pycache__" in n] == []


def test_the_installed_package_is_the_wheels(programs, empty):
    code = "import browseruse_bench, sys; print(browseruse_bench.__file__); print(*sys.path)"
    file, path = ran(programs / "python", "-c", code, cwd=empty).stdout.splitlines()
    assert Path(file).is_relative_to(programs.parent)
    assert str(ROOT) not in path


def test_the_installed_wheel_lists_its_benchmarks_from_an_empty_folder(programs, empty):
    listed = json.loads(ran(programs / "bubench", "list", "--json", cwd=empty).stdout)
    rows = {row["name"]: row for row in listed["benchmarks"]}
    assert rows["LocalSites"]["state"] == "ready"
    assert rows["LocalSites"]["n_tasks"] > 0
    assert {name: rows[name]["state"] for name in PUBLIC} == dict.fromkeys(PUBLIC, "not pulled")
    assert all(Path(row["path"]).is_relative_to(programs.parent) for row in rows.values())
    assert {"oracle", "nop"} <= set(listed["agents"])
    assert list(empty.iterdir()) == []


@pytest.mark.browser
def test_the_installed_wheel_finds_a_browser_and_its_demo_extra(programs, empty):
    report = json.loads(ran(programs / "bubench", "doctor", "--json", cwd=empty).stdout)
    assert report["ok"]
    checks = {check["name"]: check["ok"] for check in report["checks"]}
    assert checks["chromium"]
    assert checks["demo extra"]


@pytest.mark.browser
def test_the_installed_wheel_runs_the_demo_from_an_empty_folder(programs, empty, installed):
    done = ran(programs / "bubench", "demo", "--count", "3", cwd=empty, timeout=900)
    assert "oracle" in done.stdout
    assert "nop" in done.stdout
    board = ran(programs / "bubench", "leaderboard", "--json", cwd=empty)
    # browser-use plays on tasks of its own: two groups, which are not ranked with each other.
    rows = [row for group in json.loads(board.stdout)["groups"] for row in group["rows"]]
    means = {row["agent"]: round(row["figures"]["mean"], 2) for row in rows}
    assert means == {"oracle": 100, "nop": 0, "browser-use": 43.33}
    assert all(row["figures"]["n"] == 3 for row in rows)
    assert [path.name for path in empty.iterdir()] == ["experiments"]
