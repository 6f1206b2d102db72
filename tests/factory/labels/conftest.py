"""Looks are noted in a folder of the test, not in the home folder."""

import pytest


@pytest.fixture(autouse=True)
def state_home(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder
