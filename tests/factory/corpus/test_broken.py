"""Broken lines of the corpus: said by file and line, left out, and taken once they are mended."""

import json
import os

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from browseruse_bench.errors import DataError
from browseruse_bench.factory.corpus.inputs import Piece, batches
from tests.factory.corpus.filtering import made_filter, row, run

HOTEL = "Find a quiet hotel in Lisbon for two nights with breakfast and tell me the price"
KETTLE = "Compare the three best kettles that ship to Bergen and name the cheapest of them"
BOOK = "Which library in Tartu lends the newest atlas of the night sky for four weeks?"


@pytest.fixture
def corpus(tmp_path):
    """A file whose second and fourth lines are broken."""
    file = tmp_path / "in" / "a.jsonl"
    file.parent.mkdir()
    lines = [json.dumps(row(HOTEL)), '{"prompt": "torn', json.dumps(row(KETTLE)), "[1]"]
    file.write_text("\n".join(lines) + "\n")
    return file


def change(file, **numbered):
    """Replace lines by number (`l2=...`; None removes one), as an editor does."""
    lines = file.read_text().splitlines()
    made = [numbered.get(f"l{number}", line) for number, line in enumerate(lines, 1)]
    temporary = file.with_suffix(".new")
    temporary.write_text("".join(f"{line}\n" for line in made if line is not None))
    temporary.replace(file)
    stat = file.stat()
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 10**9))


def problems(root):
    return list(made_filter(root).problems(root / "filter"))


def test_each_broken_line_is_named_and_the_rest_goes_on(tmp_path, corpus):
    flow, kept = run(tmp_path)
    assert (flow.n_in, flow.kept, flow.failed) == (4, 2, 2)
    assert {task.text for task in kept} == {HOTEL, KETTLE}
    first, second = problems(tmp_path)
    assert first.startswith(f"{corpus}:2: not a JSON object")
    assert second.startswith(f"{corpus}:4: ")
    assert "mend or remove this line" in first


def test_a_mended_line_is_taken_and_nothing_else_is_read_again(tmp_path, corpus):
    run(tmp_path)
    change(corpus, l2=json.dumps(row(BOOK)))
    flow, kept = run(tmp_path)
    assert (flow.n_in, flow.kept, flow.failed) == (4, 3, 1)
    assert {(task.text, task.count) for task in kept} == {(HOTEL, 1), (KETTLE, 1), (BOOK, 1)}
    assert [line.split(": ")[0] for line in problems(tmp_path)] == [f"{corpus}:4"]
    change(corpus, l4=json.dumps(row(HOTEL)))
    flow, kept = run(tmp_path)
    assert (flow.n_in, flow.kept, flow.dropped, flow.failed) == (4, 3, {"combined": 1}, 0)
    assert next(task.count for task in kept if task.text == HOTEL) == 2
    assert problems(tmp_path) == []
    assert run(tmp_path) == (flow, kept)


def test_a_removed_line_is_no_failure_any_more(tmp_path, corpus):
    run(tmp_path)
    change(corpus, l2=None, l4=None)
    flow, kept = run(tmp_path)
    assert (flow.n_in, flow.kept, flow.failed, len(kept)) == (2, 2, 0, 2)
    assert problems(tmp_path) == []


def test_a_file_that_changed_elsewhere_too_is_refused(tmp_path, corpus):
    run(tmp_path)
    change(corpus, l2=json.dumps(row(BOOK)), l3=json.dumps(row(HOTEL)))
    with pytest.raises(DataError, match="changed after it was read"):
        run(tmp_path)
    change(corpus, l2='{"prompt": "torn', l3=json.dumps(row(KETTLE)))
    assert run(tmp_path)[0].failed == 2


def test_the_line_is_found_in_whatever_piece_of_the_file_it_is(tmp_path, monkeypatch):
    from browseruse_bench.factory.stages import filter as stage_module

    monkeypatch.setattr(stage_module, "PIECE_ROWS", 1)
    file = tmp_path / "in" / "a.jsonl"
    file.parent.mkdir()
    lines = [json.dumps(row(f"{HOTEL} and again {'so ' * n}")) for n in range(40)]
    lines[17] = lines[31] = "{"
    file.write_text("\n".join(lines) + "\n")
    assert run(tmp_path)[0].failed == 2
    assert [line.split(": ")[0] for line in problems(tmp_path)] == [f"{file}:18", f"{file}:32"]


def test_a_piece_that_ends_where_a_line_does_reads_no_line_of_the_next(tmp_path):
    file = tmp_path / "a.jsonl"
    lines = [b"{" + b"x" * n + b"\n" for n in (7, 0, 30, 3, 12)]
    file.write_bytes(b"".join(lines))
    stat = file.stat()
    for cut in range(stat.st_size + 1):
        places = [
            place
            for start, stop in ((0, cut), (cut, stat.st_size))
            for batch in batches(Piece(file, stat.st_size, stat.st_mtime_ns, start, stop), {})
            for place in batch.broken
        ]
        assert places == [sum(map(len, lines[:n])) for n in range(5)], cut


def test_run_and_status_say_it_and_run_ends_with_4_until_it_is_mended(tmp_path, corpus):
    corpus = corpus.rename(tmp_path / "a.jsonl")
    root = tmp_path / "w"
    root.mkdir()
    (root / "workspace.toml").write_text(
        'name = "w"\n[corpus]\npaths = ["../a.jsonl"]\npermitted_tags = ["ok"]\n'
        'columns = { text = "prompt", tag = "use" }\n'
    )
    for _ in range(2):
        done = CliRunner().invoke(bubench, ["factory", "run", "filter", "--workspace", str(root)])
        assert done.exit_code == 4, done.output
        assert f"{corpus}:2: not a JSON object" in done.stderr
        assert "filter: 2 failed, 0 pending; mend what is named above" in done.stderr
        assert "tries them again" not in done.stderr
    status = CliRunner().invoke(bubench, ["factory", "status", "--workspace", str(root)])
    assert status.exit_code == 0
    assert f"{corpus}:4: not a JSON object" in status.stderr
    change(corpus, l2=json.dumps(row(BOOK)), l4=None)
    # A line mended and another removed: the rest of the file is as it was.
    done = CliRunner().invoke(bubench, ["factory", "run", "filter", "--workspace", str(root)])
    assert done.exit_code == 0, done.output
