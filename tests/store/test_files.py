"""Files are whole or not there, and any name becomes one safe path segment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.errors import DataError
from browseruse_bench.store.files import escaped, read_json, segment_problem, write_atomic


@given(st.text())
def test_any_name_becomes_one_sound_segment(name):
    assert segment_problem(escaped(name)) is None
    assert not escaped(name).startswith((".", "-"))


@given(st.text(), st.text())
def test_unlike_names_become_unlike_segments(one, other):
    assert (escaped(one) == escaped(other)) is (one == other)


@pytest.mark.parametrize("name", ["a", "task-1", "gpt-5.1", "_x", "a=b,c@d+e"])
def test_a_plain_name_stays_as_it_is(name):
    assert escaped(name) == name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "is not a name"),
        ("..", "is not a name"),
        ("a/b", "separator"),
        ("a\\b", "separator"),
        ("a\nb", "control"),
        ("nul.txt", "reserved"),
        ("x" * 151, "longer than 150"),
    ],
)
def test_what_cannot_be_a_segment_is_said(name, says):
    assert says in (segment_problem(name) or "")


def test_a_segment_may_have_150_bytes():
    assert segment_problem("x" * 150) is None


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomic(path, "old")

    def full(_descriptor):
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_half_of_a_surrogate_pair_is_written_as_a_question_mark(tmp_path):
    write_atomic(tmp_path / "file", "a\ud800b")
    assert (tmp_path / "file").read_bytes() == b"a?b"


@pytest.mark.parametrize(
    ("content", "says"), [(b"{", "line 1, column 2: not JSON"), (b"\xff", "not UTF-8")]
)
def test_what_is_no_json_is_said_with_its_place(tmp_path, content, says):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataError, match=says):
        read_json(tmp_path / "file")
