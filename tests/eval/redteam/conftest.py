import pytest

from tests.eval.redteam.made import Made


@pytest.fixture
def made(tmp_path, make_trace):
    """A run with one honest trace, worth all points."""
    return Made(tmp_path, make_trace)
