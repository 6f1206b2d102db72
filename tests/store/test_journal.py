"""A journal that was cut anywhere holds whole lines only, and goes on from there."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.errors import DataError
from browseruse_bench.store import journal
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


@pytest.mark.parametrize("n_bytes", [1, 7, 64, 65, 200])
def test_a_torn_line_longer_than_a_block_is_cut_off(tmp_path, monkeypatch, n_bytes):
    monkeypatch.setattr(journal, "_BLOCK_BYTES", 64)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":1}\n' + b"x" * n_bytes)
    Journal(path).close()
    assert path.read_bytes() == b'{"n":1}\n'
    path.write_bytes(b"x" * n_bytes)
    Journal(path).close()
    assert path.read_bytes() == b""


FULL = """
import sys
from pathlib import Path
from browseruse_bench.store.journal import Journal
journal, n = Journal(Path(sys.argv[1])), 0
try:
    while True:
        journal.append({"n": n, "text": "x" * 100})
        n += 1
except OSError as error:
    print(n, error.errno)
    journal.close()
"""


def test_a_line_that_does_not_fit_leaves_nothing_of_itself(tmp_path):
    """A limit on the size of files is as real a failure of a write as a full disk."""
    path = tmp_path / "a.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)),
        capture_output=True,
        text=True,
        check=True,
    )
    n_written = int(done.stdout.split()[0])
    assert 5 < n_written < 9
    assert path.read_bytes().endswith(b"\n")
    assert [entry["n"] for entry in read_journal(path)] == list(range(n_written))


def test_no_secret_of_the_environment_gets_in_BL097(tmp_path, monkeypatch):  # noqa: N802
    monkeypatch.setenv("OPENAI_API_KEY", 'planted-"0123456789')
    with Journal(tmp_path / "a.jsonl") as opened:
        opened.append({"reason": 'refused planted-"0123456789'})
    assert read_journal(tmp_path / "a.jsonl") == [{"reason": "refused [redacted]"}]
