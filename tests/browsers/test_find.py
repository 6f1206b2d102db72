import os
import sys
from pathlib import Path

import pytest

from browseruse_bench.browsers import find
from browseruse_bench.browsers.find import find_chromium, install_commands, install_text
from browseruse_bench.errors import BrowserError


def program(path, content="#!/bin/sh\n", mode=0o755):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(mode)
    return path


@pytest.fixture(autouse=True)
def bare(tmp_path, monkeypatch):
    """A machine on which nothing is installed."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("CHROME", "PLAYWRIGHT_BROWSERS_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(find, "_bundles", list)


def playwright_build(tmp_path, number, folder="chrome-linux"):
    return program(
        tmp_path / "home/.cache/ms-playwright" / f"chromium-{number}" / folder / "chrome"
    )


@pytest.mark.skipif(sys.platform == "darwin", reason="Linux's folder of Playwright")
def test_the_order_is_path_then_chrome_then_names_then_playwright(tmp_path, monkeypatch):
    build = playwright_build(tmp_path, 1200)
    assert find_chromium() == build
    chrome = program(tmp_path / "bin/google-chrome")
    assert find_chromium() == chrome
    chromium = program(tmp_path / "bin/chromium")
    assert find_chromium() == chromium
    mine = program(tmp_path / "mine")
    monkeypatch.setenv("CHROME", str(mine))
    assert find_chromium() == mine
    given = program(tmp_path / "given")
    assert find_chromium(given) == given


@pytest.mark.skipif(sys.platform == "darwin", reason="Linux's folder of Playwright")
def test_the_newest_playwright_build_wins_and_the_headless_shell_is_not_one(tmp_path):
    playwright_build(tmp_path, 999)
    newest = playwright_build(tmp_path, 1200, "chrome-linux64")
    program(tmp_path / "home/.cache/ms-playwright/chromium_headless_shell-1300/chrome-linux/chrome")
    assert find_chromium() == newest


def test_a_name_on_path_is_good_enough_for_chrome(tmp_path, monkeypatch):
    odd = program(tmp_path / "bin/my-browser")
    monkeypatch.setenv("CHROME", "my-browser")
    assert find_chromium() == odd


@pytest.mark.parametrize("source", ["--browser-path", "CHROME"])
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: None, "does not exist"),
        (lambda path: program(path, mode=0o644), "cannot be executed"),
        (lambda path: path.mkdir(), "is a folder"),
    ],
)
def test_a_given_path_that_is_wrong_is_an_error_and_nothing_else_is_tried(
    tmp_path, monkeypatch, source, make, why
):
    program(tmp_path / "bin/chromium")
    path = tmp_path / "given"
    make(path)
    if source == "CHROME":
        monkeypatch.setenv("CHROME", str(path))
    with pytest.raises(BrowserError, match=why) as caught:
        find_chromium(path if source == "--browser-path" else None)
    assert source in str(caught.value)


@pytest.mark.skipif(Path("/snap/bin/chromium").exists(), reason="the snap is there")
def test_ubuntus_script_for_an_absent_snap_is_not_a_browser(tmp_path):
    stub = "#!/bin/sh\nif ! [ -x /snap/bin/chromium ]; then exit 1; fi\n"
    program(tmp_path / "bin/chromium-browser", stub)
    with pytest.raises(BrowserError, match="no Chromium found"):
        find_chromium()
    chrome = program(tmp_path / "bin/google-chrome")
    assert find_chromium() == chrome


def test_no_browser_is_one_line_with_the_command_that_installs_it():
    with pytest.raises(BrowserError) as caught:
        find_chromium()
    assert install_text() in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("user", "system", "first"),
    [
        (0, {"ID": "debian"}, "apt-get"),
        (0, {"ID": "raspbian", "ID_LIKE": "debian"}, "apt-get"),
        (1000, {"ID": "debian"}, "playwright"),
        (0, {"ID": "ubuntu", "ID_LIKE": "debian"}, "playwright"),
        (0, {"ID": "fedora"}, "playwright"),
    ],
)
def test_apt_only_as_root_on_debian_else_playwright(tmp_path, monkeypatch, user, system, first):
    program(tmp_path / "bin/apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: system)
    commands = install_commands()
    assert any(first in word for word in commands[-1])
    assert ("--with-deps" in commands[-1]) == (system["ID"] == "ubuntu")
