import base64
import hashlib
import json
import shutil
import threading
import zipfile

import pytest

from browseruse_bench.agents import environments
from browseruse_bench.agents.environments import check, environment, find, install
from browseruse_bench.errors import AgentError, ConfigError


def wheel(folder, version="1.0", content="WORD = 'one'\n", *, package="tinyagent", more=""):
    """A wheel of one module; returns its line of a requirements file."""
    name = f"{package}-{version}"
    head = f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
    files = {
        f"{package}.py": content,
        f"{name}.dist-info/METADATA": head + more,
        f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{path},sha256={_digest(text)},{len(text.encode())}\n" for path, text in files.items()
    )
    files[f"{name}.dist-info/RECORD"] = record + f"{name}.dist-info/RECORD,,\n"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(zipfile.ZipInfo(inside), text)
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{package}=={version} \\\n    --hash=sha256:{sha}\n"


def _digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """A registry of one folder, and an agent "tinyagent" that is pinned to what is in it."""
    wheels, requirements = tmp_path / "wheels", tmp_path / "requirements.txt"
    requirements.write_text(wheel(wheels))
    monkeypatch.setattr(environments, "REQUIREMENTS", {"tinyagent": requirements})
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for tool in ("UV", "PIP"):
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(wheels))
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
    # A wheel of the same name in the same place, of an earlier run of the tests, is no answer.
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    return requirements


@pytest.fixture(params=["uv", "pip"])
def tool(request, monkeypatch):
    if request.param == "pip":
        monkeypatch.setattr(environments, "_uv", lambda: None)
    elif shutil.which("uv") is None:
        pytest.skip("uv is not on this machine")
    return request.param


def test_an_environment_is_built_from_pinned_packages_and_found(registry, tool):
    with pytest.raises(ConfigError, match="`bubench agents install tinyagent`"):
        find("tinyagent")
    done = install("tinyagent")
    assert done.tool == tool
    assert find("tinyagent") == done.environment
    assert check("tinyagent") is None
    assert list(done.environment.path.glob("lib/*/site-packages/**/tinyagent*.pyc"))


def test_a_dependency_that_names_an_extra_is_no_obstacle(registry, tool, tmp_path):
    """pip 23.2 refuses it in a file of hashes that pins the package without its extra."""
    folder = tmp_path / "wheels"
    other = wheel(folder, package="tinyother", more="Provides-Extra: more\n")
    registry.write_text(wheel(folder, more="Requires-Dist: tinyother[more]>=1\n") + other)
    install("tinyagent")
    assert check("tinyagent") is None
    assert environment("tinyagent").pins == {"tinyagent": "1.0", "tinyother": "1.0"}


def test_a_second_install_does_nothing_and_again_builds_anew(registry):
    first = install("tinyagent")
    (first.environment.path / "mine").touch()
    assert install("tinyagent").tool == ""
    assert (first.environment.path / "mine").exists()
    assert install("tinyagent", again=True).tool != ""
    assert not (first.environment.path / "mine").exists()


def test_another_pin_is_another_environment(registry, tmp_path):
    first = environment("tinyagent")
    registry.write_text(wheel(tmp_path / "wheels", "2.0"))
    second = environment("tinyagent")
    assert first.path != second.path
    assert second.pins == {"tinyagent": "2.0"}


def test_a_package_with_another_hash_is_refused_and_nothing_is_left(registry, tool, tmp_path):
    wheel(tmp_path / "wheels", content="WORD = 'evil'\n")
    with pytest.raises(AgentError, match="tinyagent: not installed: .*all output in") as caught:
        install("tinyagent")
    assert len(str(caught.value).splitlines()) == 1
    assert not environment("tinyagent").path.exists()
    assert not list(environment("tinyagent").path.parent.glob("*.tmp"))


def test_a_registry_that_cannot_be_reached_is_one_clear_line(registry, tool, monkeypatch):
    for name in ("UV", "PIP"):
        monkeypatch.delenv(f"{name}_FIND_LINKS")
        monkeypatch.delenv(f"{name}_NO_INDEX")
        monkeypatch.setenv(f"{name}_INDEX_URL", "http://127.0.0.1:9/simple")
        monkeypatch.setenv(f"{name}_NO_CACHE", "1")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    with pytest.raises(AgentError, match="the package registry cannot be reached") as caught:
        install("tinyagent")
    assert len(str(caught.value).splitlines()) == 1
    assert caught.value.exit_status == 1


def test_two_installs_at_once_build_once(registry):
    done = []
    threads = [threading.Thread(target=lambda: done.append(install("tinyagent"))) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(bool(one.tool) for one in done) == [False, True]
    assert check("tinyagent") is None


def test_a_build_that_was_cut_off_is_no_environment_and_is_removed(registry):
    path = environment("tinyagent").path
    for left in (path, path.with_name(f"{path.name}.ab12.tmp")):
        (left / "bin").mkdir(parents=True)
        (left / "bin" / "python").touch()
    assert check("tinyagent") == "not installed"
    install("tinyagent")
    assert check("tinyagent") is None
    assert not list(path.parent.glob("*.tmp"))


def test_a_damaged_environment_is_told(registry):
    found = install("tinyagent").environment
    (metadata,) = found.path.glob("lib/*/site-packages/tinyagent-1.0.dist-info/METADATA")
    metadata.write_text(metadata.read_text().replace("Version: 1.0", "Version: 3.0"))
    assert check("tinyagent") == "tinyagent 3.0 where 1.0 is pinned"
    found.python.unlink()
    assert check("tinyagent") == "not installed"


def test_an_unknown_agent_has_no_environment():
    with pytest.raises(ConfigError, match="did you mean 'browser-use'"):
        environment("browser-us")


def test_every_package_of_browser_use_is_pinned_with_hashes():
    text = environments.REQUIREMENTS["browser-use"].read_text()
    entries = text.replace("\\\n", " ").splitlines()
    assert len(entries) > 50
    assert [e for e in entries if "==" not in e or "--hash=sha256:" not in e] == []
    assert environment("browser-use").pins["browser-use"] == "0.13.14"


def test_the_marker_tells_by_what_it_was_built(registry):
    found = install("tinyagent").environment
    facts = json.loads((found.path / environments.MARKER).read_text())
    assert facts["agent"] == "tinyagent"
    assert facts["tool"] in ("uv", "pip")
