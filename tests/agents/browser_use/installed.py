"""The environment of browser-use, installed once for each session of tests."""

import pytest

from browseruse_bench.agents import environments


@pytest.fixture(scope="session")
def installed():
    """The environment; from the registry where it is not there yet, which takes a while."""
    return environments.install("browser-use").environment
