"""From a corpus with planted personal data to clean tasks, by the command and scripted models."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benches import factory_text
from browseruse_bench.cli.root import bubench
from browseruse_bench.factory.persona.leak import decoded, leaks, outside
from browseruse_bench.records.base import content_key

N = 1800


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """(workspace, rows of the corpus, the funnel, what was said on the way)."""
    import polars as pl

    root = tmp_path_factory.mktemp("planted")
    rows = list(factory_text.rows(0, N, n=N, seed=5, ratio=60, planted=0.05, forbidden=0.05))
    (root / "corpus").mkdir()
    frame = pl.DataFrame(rows, schema_overrides={"values": pl.List(pl.String)})
    frame.drop("values").write_parquet(root / "corpus" / "a.parquet")
    folder = factory_text.workspace(root / "w", root / "corpus")
    done = CliRunner().invoke(
        bubench,
        ["factory", "run", "--until", "restyle", "--workspace", str(folder), "--json"],
    )
    assert done.exit_code == 0, done.output
    return folder, rows, json.loads(done.stdout), done.stderr


def files_below(folder):
    return [path for path in Path(folder).rglob("*") if path.is_file()]


def kept(folder, zone, stage):
    lines = (folder / zone / stage / "kept.jsonl").read_text().splitlines()
    return [json.loads(line)["value"]["text"] for line in lines]


def test_it_ends_with_the_funnel_and_every_row_is_accounted_for(planted):
    folder, rows, funnel, said = planted
    stages = [row["stage"] for row in funnel]
    assert stages[: stages.index("restyle") + 1] == ["filter", "suitability", "persona", "restyle"]
    flows = [row["flow"] for row in funnel[: stages.index("restyle") + 1]]
    assert flows[0]["n_in"] == N
    for flow, before in zip(flows, [None, *flows], strict=False):
        assert flow["n_in"] == flow["kept"] + sum(flow["dropped"].values())
        assert before is None or flow["n_in"] == before["kept"]
        assert flow["dropped"]
        assert flow["kept"] > 30
    forbidden = sum(factory_text.FORBIDDEN in row["text"] for row in rows)
    assert flows[0]["dropped"]["no_permitted_tag"] == forbidden > 50
    assert flows[0]["dropped"]["benchmark_overlap"] > 5
    assert {"refused", "work_depends_on_person", "identifying_combination"} <= set(
        flows[2]["dropped"]
    )
    assert {"literal_lost", "instruction_gained"} & set(flows[3]["dropped"])
    assert "== restyle" in said
    assert funnel[0]["seconds"] > 0, "the filter's time counts"


def test_clean_holds_tasks_that_are_those_of_the_corpus_with_another_person(planted):
    folder, rows, _, _ = planted
    texts = kept(folder, "clean", "restyle")
    assert len(texts) > 30
    assert all(text.startswith(factory_text.LEAD) for text in texts)
    told = [text for text in texts if "@example.com" in text]
    assert len(told) > 5
    corpus = " ".join(row["text"] for row in rows)
    for text in told:
        body = text.removeprefix(factory_text.LEAD)
        assert any(body[at : at + 30] in corpus for at in (0, 40, 80, 120)), body


def test_no_row_without_a_permitted_tag_is_anywhere_in_the_workspace(planted):
    folder, rows, _, _ = planted
    own = {row["text"].partition(factory_text.FORBIDDEN)[2] for row in rows}
    own = {text for text in own if text}
    assert len(own) > 50
    searched = files_below(folder)
    assert any(path.suffix == ".parquet" for path in searched)
    for path in searched:
        for content in decoded(path.read_bytes(), path.suffix):
            assert factory_text.FORBIDDEN.encode() not in content.lower(), path


def test_no_planted_value_is_outside_restricted(planted):
    folder, rows, _, _ = planted
    values = sorted({value for row in rows for value in row["values"]})
    assert len(values) > 150
    inside = leaks(folder / "restricted" / "filter", values[:40])
    assert len({leak.value for leak in inside}) > 15, "the search finds them where they may be"
    assert (folder / "clean").is_dir()
    assert outside(folder, values, inputs=("public",)) == []
    hashes = [content_key([row["text"]]) for row in rows if row["values"]]
    assert len(leaks(folder / "restricted" / "persona", hashes)) > 5
    assert outside(folder, hashes, inputs=("public",)) == []
    # And none of the full names of which the rest of the corpus is full.
    for path in files_below(folder / "clean"):
        for content in decoded(path.read_bytes(), path.suffix):
            mark = factory_text.MARKS.search(content.decode(errors="replace"))
            assert mark is None, f"{path}: {mark}"


def test_nothing_new_means_nothing_to_do(planted):
    folder, _, funnel, _ = planted
    journals = [path for path in files_below(folder) if path.name == "journal.jsonl"]
    before = {path: path.read_bytes() for path in journals}
    done = CliRunner().invoke(
        bubench, ["factory", "run", "--until", "restyle", "--workspace", str(folder), "--json"]
    )
    assert done.exit_code == 0
    assert json.loads(done.stdout) == funnel
    assert len(before) == 3
    assert {path: path.read_bytes() for path in journals} == before
