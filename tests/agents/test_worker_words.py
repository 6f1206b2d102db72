"""The last words of a worker that fell over say what to do where that is known."""

import pytest

from browseruse_bench.agents.worker import _tail


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", ""),
        ("one\ntwo\n", " (two)"),
        ("Traceback\nModuleNotFoundError: No module named 'mine'", "`readable`"),
    ],
)
def test_the_last_line_is_told_and_a_missing_module_is_explained(tmp_path, said, told):
    log = tmp_path / "log"
    log.write_text(said)
    assert told in _tail(log)
    assert "one" not in _tail(log)
