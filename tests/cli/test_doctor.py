import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from browseruse_bench.cli import doctor
from browseruse_bench.cli.doctor import command


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without a browser and without a way to get one."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("browseruse_bench.browsers.find._bundles", list)
    for name in ("CHROME", "PLAYWRIGHT_BROWSERS_PATH"):
        monkeypatch.delenv(name, raising=False)


def invoke(*arguments):
    return CliRunner().invoke(command, arguments)


@pytest.mark.browser
def test_a_healthy_machine_has_a_browser_that_really_started():
    result = invoke("--json")
    report = json.loads(result.output)
    chromium = next(check for check in report["checks"] if check["name"] == "chromium")
    assert chromium["ok"]
    assert "started in" in chromium["text"]
    assert (result.exit_code, report["ok"]) == (0, True)


@pytest.mark.browser
def test_quiet_says_nothing_where_nothing_is_missing():
    result = invoke("--quiet", "--install-chromium")
    assert (result.exit_code, result.output) == (0, "")


def test_a_missing_browser_is_said_with_the_command_that_installs_it(bare):
    result = invoke()
    assert result.exit_code == 1
    assert "chromium: missing: no Chromium found" in result.output
    assert "mend it: " in result.output
    assert "playwright install" in result.output
    assert result.output.endswith("Not ready: mend what is missing above.\n")


def test_a_browser_that_does_not_start_is_missing(bare, tmp_path):
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho broken library >&2\nexit 127\n")
    program.chmod(0o755)
    result = invoke("--quiet", "--browser-path", str(program))
    assert result.exit_code == 1
    assert "does not start" in result.output
    assert "broken library" in result.output


def test_a_wrong_chrome_is_named_and_nothing_is_installed(bare, monkeypatch):
    monkeypatch.setenv("CHROME", "/nowhere/chrome")
    monkeypatch.setattr(doctor, "_run_all", lambda _commands: pytest.fail("it installs"))
    result = invoke("--install-chromium", "--quiet")
    assert result.exit_code == 1
    assert "environment variable CHROME: '/nowhere/chrome' does not exist" in result.output


def test_an_installation_that_fails_is_reported_plainly(bare, monkeypatch):
    failing = ((sys.executable, "-c", "raise SystemExit(7)"), (sys.executable, "-c", "1 / 0"))
    monkeypatch.setattr("browseruse_bench.browsers.find.install_commands", lambda: failing)
    monkeypatch.setattr("browseruse_bench.browsers.find.playwright_commands", lambda: failing)
    monkeypatch.setattr(doctor, "_run_all", _run_all_without_a_terminal)
    result = invoke("--install-chromium", "--quiet")
    assert result.exit_code == 1
    assert "tried to install it" in result.output
    assert "status 7" in result.output


def _run_all_without_a_terminal(commands):
    (first, *_) = commands
    status = subprocess.run(first, check=False, capture_output=True).returncode
    return [f"{first[0]}: status {status}"]


@pytest.mark.browser
def test_an_installation_that_works_is_used(bare, tmp_path, monkeypatch):
    import shutil

    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    real = shutil.which("chromium") or shutil.which("google-chrome")
    if real is None:
        pytest.skip("no Chromium here")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    (tmp_path / "bin").mkdir()

    def install(_commands):
        (tmp_path / "bin/chromium").write_text(f'#!/bin/sh\nPATH=/usr/bin:/bin exec {real} "$@"\n')
        (tmp_path / "bin/chromium").chmod(0o755)
        return []

    monkeypatch.setattr(doctor, "_run_all", install)
    result = invoke("--install-chromium")
    assert result.exit_code == 0, result.output
    assert f"at {tmp_path}/bin/chromium" in result.output


def test_a_failed_command_stops_the_rest_and_is_named(capfd):
    ran = doctor._run_all((("sh", "-c", "exit 3"), ("sh", "-c", "echo never")))
    assert ran == ["sh -c exit 3: status 3"]
    assert "never" not in capfd.readouterr().err


def test_a_missing_part_of_the_demo_is_said_but_stops_nothing(monkeypatch):
    find_spec = __import__("importlib.util").util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "datasette" else find_spec(name)
    )
    check = doctor._demo()
    assert not check.ok
    assert not check.needed
    assert "datasette" in check.text
    assert "browseruse-bench[demo]" in check.mend
