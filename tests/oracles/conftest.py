"""The public data that the oracles reproduce; it is not part of this repository."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of the public data."""
    root = os.environ.get("BUBENCH_ORACLE_DATA")
    if not root:
        pytest.skip("BUBENCH_ORACLE_DATA is not set: the public data is not here")
    return Path(root)
