"""A journal that was cut anywhere holds whole lines only, and goes on from there."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.errors import DataError
from browseruse_bench.store.journal import Journal, read_journal

ENTRIES = st.lists(st.dictionaries(st.text(), st.text() | st.integers()), max_size=5)


def write(path, entries):
    with Journal(path) as journal:
        for entry in entries:
            journal.append(entry)


@given(ENTRIES, st.data())
def test_a_journal_cut_at_any_byte_goes_on_to_the_same_content(entries, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "j.jsonl"
        write(path, entries)
        whole = path.read_bytes()
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
        n_left = len(read_journal(path))
        write(path, entries[n_left:])
        assert path.read_bytes() == whole


def test_an_entry_is_on_disk_when_append_returns(tmp_path):
    with Journal(tmp_path / "j.jsonl") as journal:
        journal.append({"n": 1})
        assert read_journal(tmp_path / "j.jsonl") == [{"n": 1}]


def test_no_journal_is_an_empty_one(tmp_path):
    assert read_journal(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize("damaged", ["{", "[1]", '"x"', ""])
def test_a_damaged_whole_line_is_named_and_never_skipped(tmp_path, damaged):
    path = tmp_path / "j.jsonl"
    path.write_text(json.dumps({"n": 1}) + f"\n{damaged}\n" + json.dumps({"n": 3}) + "\n")
    with pytest.raises(DataError, match="line 2"):
        read_journal(path)
