import asyncio
import collections
import json
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.factory import STAGES
from browseruse_bench.factory.corpus import books, drops
from browseruse_bench.factory.stages import filter as stage_module
from browseruse_bench.records.base import content_key
from tests.factory.corpus.filtering import (
    COLUMNS,
    WISHES,
    context,
    made_filter,
    row,
    run,
    story,
    submissions,
    write_lines,
)

ROOT = Path(__file__).resolve().parents[3]
ONE = WISHES[0].format(thing="a quiet kettle", place="Lisbon")
OTHER = WISHES[1].format(thing="an oak bookshelf", place="Quito")


def test_the_filter_is_the_first_stage():
    assert STAGES.get("filter") is stage_module.Filter
    assert list(STAGES)[0] == "filter"


def test_everything_that_came_in_is_somewhere(tmp_path):
    rows = submissions()
    write_lines(tmp_path / "in" / "a.jsonl", rows)
    flow, kept = run(tmp_path)
    assert flow.n_in == len(rows) == flow.kept + sum(flow.dropped.values())
    assert flow.dropped["no_permitted_tag"] == sum(r["use"] == "no" for r in rows)
    permitted = [r for r in rows if r["use"] == "ok"]
    assert flow.dropped["local_address"] == sum("192.168" in r["prompt"] for r in permitted)
    assert flow.dropped["not_english"] == sum("treno" in r["prompt"] for r in permitted)
    assert flow.dropped["too_short"] == sum(r["prompt"] == "hello" for r in permitted)
    assert sum(task.count for task in kept) == flow.kept + flow.dropped["combined"]
    assert {task.origin for task in kept} == {task.key for task in kept}


def test_a_row_without_a_permitted_tag_is_found_nowhere(tmp_path):
    secret = "the zanzibar-4711 order of my neighbour, please look it up for me"
    rows = [row(secret, tag=tag) for tag in ("no", "", None, "OK", "ok ")]
    del rows[2]["use"]
    write_lines(tmp_path / "in" / "a.jsonl", [*rows, row(ONE)])
    (tmp_path / "in" / "b.jsonl").write_text(f'{{"prompt": "{secret}", "use": "ok"\n')
    flow, kept = run(tmp_path)
    assert [task.text for task in kept] == [ONE]
    assert flow.dropped == {"no_permitted_tag": 5}
    assert flow.failed == 1
    written = [path.read_bytes() for path in (tmp_path / "filter").rglob("*") if path.is_file()]
    assert len(written) > 5
    assert not any(b"zanzibar" in content for content in written)
    import polars as pl

    for path in (tmp_path / "filter").rglob("*.parquet"):
        assert "zanzibar" not in str(pl.read_parquet(path).rows())


def test_nothing_is_permitted_by_default(tmp_path):
    write_lines(tmp_path / "in" / "a.jsonl", [row(ONE)])
    with pytest.raises(ConfigError, match="permitted_tags is empty"):
        run(tmp_path, permitted_tags=())


@pytest.mark.parametrize(
    ("n", "reason"), [(24, "too_short"), (25, None), (20_000, None), (20_001, "too_long")]
)
def test_length_is_counted_in_characters_and_decides_on_both_sides(tmp_path, n, reason):
    text = ("Find the café for me and " * 900)[: n - 1] + "é"
    assert len(text) == n
    write_lines(tmp_path / "in" / "a.jsonl", [row(text)])
    flow, _ = run(tmp_path)
    assert flow.dropped == ({reason: 1} if reason else {})


def test_equal_tasks_become_one_with_count_and_time_span(tmp_path):
    rows = [
        row(ONE, at="2026-03-05T10:00:00Z", n=3),
        row(ONE.upper(), at="2026-02-01", n=2),
        row(f"Hi! {ONE}", at="2026-03-09T00:00:00+02:00"),
        row(OTHER),
    ]
    write_lines(tmp_path / "in" / "a.jsonl", rows)
    _, kept = run(tmp_path)
    task = next(task for task in kept if "kettle" in task.text.lower())
    assert (len(kept), task.count) == (2, 6)
    assert task.first_seen == "2026-02-01T00:00:00+00:00"
    assert task.last_seen == "2026-03-08T22:00:00+00:00"


def test_a_submission_that_fails_leaves_the_others_of_its_task(tmp_path):
    write_lines(tmp_path / "in" / "a.jsonl", [row(ONE), row(f"{ONE} on http://10.0.0.1/")])
    flow, kept = run(tmp_path)
    assert [(task.text, task.count) for task in kept] == [(ONE, 1)]
    assert flow.dropped == {"local_address": 1}


def test_a_benchmark_task_is_dropped_with_its_name(tmp_path):
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "tasks.json").write_text(json.dumps([{"task_id": "p9", "task": ONE}]))
    write_lines(tmp_path / "in" / "a.jsonl", [row(f"please {ONE.lower()}"), row(OTHER)])
    flow, kept = run(tmp_path, benchmarks=("public",))
    assert [task.text for task in kept] == [OTHER]
    assert flow.dropped == {"benchmark_overlap": 1}
    report = made_filter(tmp_path).report(tmp_path / "filter")
    assert '"benchmark": "public"' in report
    assert '"id": "p9"' in report


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    root = tmp_path_factory.mktemp("whole")
    write_lines(root / "in" / "a.jsonl", submissions())
    run(root)
    return story(root)


@pytest.mark.parametrize(("partitions", "n_files", "seed"), [(1, 3, 1), (8, 5, 2)])
def test_files_order_and_partitions_change_nothing(tmp_path, whole, partitions, n_files, seed):
    rows = submissions()
    random.Random(seed).shuffle(rows)
    for i in range(n_files):
        write_lines(tmp_path / "in" / "sub" / f"{n_files - i}.jsonl", rows[i::n_files])
    run(tmp_path, partitions=partitions)
    assert story(tmp_path) == whole


def test_parquet_comes_to_the_same_in_pieces(tmp_path, whole, monkeypatch):
    import polars as pl

    monkeypatch.setattr(stage_module, "PIECE_ROWS", 50)
    (tmp_path / "in").mkdir()
    frame = pl.DataFrame(submissions()).with_columns(pl.col("at").str.to_datetime(time_zone="UTC"))
    frame.write_parquet(tmp_path / "in" / "a.parquet", row_group_size=40)
    run(tmp_path)
    assert story(tmp_path) == whole


def test_lines_are_read_once_wherever_a_piece_ends(tmp_path, whole, monkeypatch):
    monkeypatch.setattr(stage_module, "PIECE_ROWS", 1)
    write_lines(tmp_path / "in" / "a.jsonl", submissions())
    run(tmp_path)
    assert story(tmp_path) == whole


class Died(BaseException):
    pass


def test_a_death_at_any_write_loses_nothing_and_does_nothing_twice(tmp_path, whole, monkeypatch):
    write_lines(tmp_path / "in" / "a.jsonl", submissions())
    real, written = books.write_atomic, []

    def dies_once(path, content):
        if path not in written:
            written.append(path)
            raise Died
        return real(path, content)

    monkeypatch.setattr(books, "write_atomic", dies_once)
    done_before, deaths = set(), 0
    while deaths < 200:
        try:
            run(tmp_path)
        except Died:
            deaths += 1
            done = {p: p.stat().st_mtime_ns for p in (tmp_path / "filter").rglob("0*.json")}
            assert done_before <= set(done.items())
            done_before = set(done.items())
        else:
            break
    assert deaths >= 8
    assert story(tmp_path) == whole
    assert not list((tmp_path / "filter").rglob("*.tmp"))


@pytest.mark.slow
def test_kill_9_at_random_moments_loses_nothing(tmp_path):
    for i in range(6):
        write_lines(tmp_path / "a" / "in" / f"{i}.jsonl", submissions(i, 1500))
        write_lines(tmp_path / "b" / "in" / f"{i}.jsonl", submissions(i, 1500))
    run(tmp_path / "a")
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import pathlib\nfrom tests.factory.corpus import filtering\n"
        f"filtering.run(pathlib.Path({str(tmp_path / 'b')!r}), tell=lambda t: print('x', flush=True))"
    )
    r, kills = random.Random(4), 0
    for _ in range(15):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        process.stdout.readline()
        try:
            process.wait(r.random() * 0.8)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        process.stdout.close()
        if process.returncode == 0:
            break
        time.sleep(0)
    else:
        run(tmp_path / "b")
    assert kills >= 5
    assert story(tmp_path / "b") == story(tmp_path / "a")


def test_a_later_drop_joins_old_tasks_and_moves_no_leader(tmp_path):
    rows = submissions(n=300)
    write_lines(tmp_path / "in" / "1.jsonl", rows[:150])
    _, before = run(tmp_path)
    write_lines(tmp_path / "in" / "2.jsonl", rows[150:])
    flow, after = run(tmp_path)
    old = {task.key: task for task in before}
    new = {task.key: task for task in after}
    assert set(old) <= set(new)
    assert all(new[key].text == task.text for key, task in old.items())
    assert sum(new[key].count > task.count for key, task in old.items()) > 3
    assert flow.n_in == 300
    assert flow.kept == len(after)
    assert sum(task.count for task in after) == flow.kept + flow.dropped["combined"]
    again, same = run(tmp_path)
    assert (again, same) == (flow, after)


def test_a_file_that_changed_or_came_twice_is_refused(tmp_path):
    write_lines(tmp_path / "in" / "1.jsonl", [row(ONE)])
    run(tmp_path)
    write_lines(tmp_path / "in" / "2.jsonl", [row(ONE)])
    with pytest.raises(DataError, match="count twice"):
        run(tmp_path)
    (tmp_path / "in" / "2.jsonl").unlink()
    write_lines(tmp_path / "in" / "1.jsonl", [row(ONE), row(OTHER)])
    with pytest.raises(DataError, match="changed after it was read"):
        run(tmp_path)


@pytest.mark.parametrize("more", [True, False])
def test_benchmarks_that_changed_are_refused_with_new_files_or_without(tmp_path, more):
    public = tmp_path / "public.json"
    public.write_text('[{"task": "a public task about a lighthouse"}]')
    (tmp_path / "late.json").write_text(json.dumps([{"task": ONE}, {"task": OTHER}]))
    write_lines(tmp_path / "in" / "1.jsonl", [row(ONE)])
    expected = run(tmp_path, benchmarks=("public.json",))
    if more:
        write_lines(tmp_path / "in" / "2.jsonl", [row(f"{ONE} and more of it all")])
    with pytest.raises(ConfigError, match="2 of late added.*run filter --restart"):
        run(tmp_path, benchmarks=("public.json", "late.json"))
    with pytest.raises(ConfigError, match="1 of public removed"):
        run(tmp_path)
    public.write_text('[{"task": "another public task about a lighthouse"}]')
    with pytest.raises(ConfigError, match="1 of public added, 1 of public removed"):
        run(tmp_path, benchmarks=("public.json",))
    if not more:
        public.write_text('[{"task": "a public task about a lighthouse"}]')
        assert run(tmp_path, benchmarks=("public.json",)) == expected


def test_benchmarks_that_changed_while_a_drop_was_settled_are_refused(tmp_path, monkeypatch):
    (tmp_path / "late.json").write_text(json.dumps([{"task": ONE}]))
    write_lines(tmp_path / "in" / "1.jsonl", [row(ONE)])
    with monkeypatch.context() as patch:
        patch.setattr(drops.Work, "settle", lambda work: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(tmp_path)
    with pytest.raises(ConfigError, match="1 of late added"):
        run(tmp_path, benchmarks=("late.json",))
    assert run(tmp_path)[0].kept == 1


def test_a_restart_compares_everything_with_a_benchmark_that_came_later(tmp_path):
    def bub(*arguments):
        given = ["factory", *arguments, "--workspace", str(tmp_path)]
        return CliRunner().invoke(bubench, given)

    config = (
        'name = "w"\n[corpus]\npaths = ["in"]\npermitted_tags = ["ok"]\n'
        'columns = { text = "prompt", tag = "use" }\n'
    )
    (tmp_path / "workspace.toml").write_text(config)
    (tmp_path / "late.json").write_text(json.dumps([{"task": ONE}]))
    write_lines(tmp_path / "in" / "1.jsonl", [row(ONE), row(OTHER)])
    assert bub("run", "filter").exit_code == 0
    (tmp_path / "workspace.toml").write_text(config + 'benchmarks = ["late.json"]\n')
    refused = bub("run", "filter")
    assert refused.exit_code == 2
    assert "--restart" in str(refused.output) + str(refused.exception)
    again = bub("run", "filter", "--restart", "--json")
    assert json.loads(again.stdout)[0]["flow"]["dropped"] == {"benchmark_overlap": 1}


def test_a_missing_column_or_path_is_said_with_its_name(tmp_path):
    import polars as pl

    (tmp_path / "in").mkdir()
    pl.DataFrame({"prompt": [ONE]}).write_parquet(tmp_path / "in" / "a.parquet")
    with pytest.raises(ConfigError, match="no column use"):
        run(tmp_path)
    (tmp_path / "other").mkdir()
    with pytest.raises(ConfigError, match="there is no such file"):
        run(tmp_path / "other", paths=("nowhere",))


def test_another_version_settles_everything_again(tmp_path, monkeypatch):
    write_lines(tmp_path / "in" / "1.jsonl", [row(ONE)])
    run(tmp_path)
    monkeypatch.setattr(stage_module.Filter, "version", stage_module.Filter.version + 1)
    flow, _ = run(tmp_path)
    assert flow.n_in == 1
    assert (tmp_path / "filter" / f"drops.of-version-{stage_module.Filter.version - 1}").exists()


def test_a_task_and_a_dropped_submission_are_found_by_the_beginning_of_their_key(tmp_path):
    write_lines(tmp_path / "in" / "1.jsonl", [row(ONE), row("hello")])
    _, (task,) = run(tmp_path)
    folder, stage = tmp_path / "filter", made_filter(tmp_path)
    assert stage.find(folder, task.key[:10])["text"] == ONE
    import polars as pl

    dropped = pl.concat([pl.read_parquet(p) for p in folder.glob("drops/*/dropped/*.parquet")])
    found = stage.find(folder, dropped["unit"][0][:10])
    assert (found["status"], found["reason"]) == ("dropped", "too_short")
    assert stage.find(folder, "0" * 20) is None


def told(stage, folder, text):
    return stage.find(folder, content_key([text]))


def test_every_combined_submission_is_found_by_its_own_key_BL067(tmp_path):  # noqa: N802
    numbers = [f"{ONE} for {n} people on May {n}" for n in (2, 3, 7, 11)]
    others = [numbers[0].upper(), f"  {numbers[1]}!", f"{numbers[2]} thx"]
    write_lines(tmp_path / "in" / "1.jsonl", [row(t, n=i + 1) for i, t in enumerate(numbers)])
    write_lines(tmp_path / "in" / "2.jsonl", [*map(row, others), row(numbers[0]), row(OTHER)])
    flow, kept = run(tmp_path)
    task = next(task for task in kept if task.text != OTHER)
    assert (flow.kept, flow.dropped, task.count) == (2, {"combined": 7}, 14)
    folder, stage = tmp_path / "filter", made_filter(tmp_path)
    ways = set()
    for text in {*numbers, *others} - {task.text}:
        known = told(stage, folder, text)
        assert (known["status"], known["text"]) == ("combined", text)
        assert (known["key"], known["task"]) == (task.key, task.text)
        assert stage.find(folder, content_key([text])[:9]) == known
        ways.add(known["differs_in"])
    assert ways == {"numbers", "case, spaces or marks", "words"}
    whole = told(stage, folder, task.text)
    assert {entry["text"] for entry in whole["shown"]} == {*numbers, *others} - {task.text}
    assert (whole["status"], whole["other_texts"]) == ("kept", 6)


def test_a_variant_of_a_dropped_text_is_found_with_its_reason_and_count(tmp_path):
    (tmp_path / "public.json").write_text(json.dumps([{"task_id": "p9", "task": ONE + " by 7 pm"}]))
    texts = [f"{ONE} by {n} pm" for n in (7, 8, 9)]
    write_lines(tmp_path / "in" / "a.jsonl", [row(t, n=i + 1) for i, t in enumerate(texts)])
    flow, _ = run(tmp_path, benchmarks=("public.json",))
    assert flow.dropped == {"benchmark_overlap": 3}
    known = [told(made_filter(tmp_path), tmp_path / "filter", text) for text in texts]
    assert [(k["reason"], k["count"], k["text"]) for k in known] == [
        ("benchmark_overlap", i + 1, text) for i, text in enumerate(texts)
    ]


def test_all_that_came_in_is_found_by_its_key_but_what_has_no_right(tmp_path):
    for part, seed in enumerate((1, 2)):
        write_lines(tmp_path / "in" / f"{part}.jsonl", submissions(seed, 90))
        run(tmp_path, partitions=1 << part)
    folder, stage = tmp_path / "filter", made_filter(tmp_path)
    statuses = collections.Counter()
    for made in [*submissions(1, 90), *submissions(2, 90)]:
        known = told(stage, folder, made["prompt"])
        if known is None:
            assert made["use"] == "no"
        else:
            statuses[known["status"]] += 1
            assert known["text"] == made["prompt"]
    assert set(statuses) == {"kept", "dropped", "combined"}


def test_a_later_drop_may_have_more_partitions_or_fewer(tmp_path):
    rows = submissions(n=300)
    for name, counts in (("same", (2, 2, 2)), ("other", (1, 8, 4))):
        for part, partitions in enumerate(counts):
            write_lines(
                tmp_path / name / "in" / f"{part}.jsonl", rows[100 * part : 100 * part + 100]
            )
            flow, kept = run(tmp_path / name, partitions=partitions)
        plans = sorted((tmp_path / name).glob("filter/drops/*/plan.json"))
        assert tuple(json.loads(p.read_text())["partitions"] for p in plans) == counts
        if name == "same":
            expected = flow, sorted(kept, key=lambda task: task.key)
    assert (flow, sorted(kept, key=lambda task: task.key)) == expected
    assert story(tmp_path / "other") == story(tmp_path / "same")


def test_a_drop_has_the_partitions_that_its_own_size_asks_for(tmp_path, monkeypatch):
    monkeypatch.setattr(drops, "_PARTITION_BYTES", 4000)
    for part, n in enumerate((10, 400)):
        write_lines(tmp_path / "in" / f"{part}.jsonl", submissions(part, n))
        run(tmp_path, partitions=None)
    counts = [
        len(list(d.glob("keep/?????.parquet"))) for d in sorted(tmp_path.glob("filter/drops/*"))
    ]
    assert counts == [4, 16]


def test_the_report_samples_the_largest_and_the_loosest_clusters(tmp_path):
    letters = "abcdefghijklmnopqrstuvwxyz"
    rows = [row(f"{ONE} {letters[i % 26]}{letters[i // 26]}") for i in range(60)]
    write_lines(tmp_path / "in" / "1.jsonl", [*rows, row(OTHER)])
    run(tmp_path)
    report = made_filter(tmp_path).report(tmp_path / "filter")
    largest = report.partition("## Largest clusters")[2].partition("## Loosest")[0]
    assert "60 submissions, 60 distinct texts" in largest
    assert largest.count(f"| {ONE} ") == 21
    assert "## Loosest clusters" in report


def test_numbers_that_were_masked_are_shown(tmp_path):
    write_lines(tmp_path / "in" / "1.jsonl", [row(f"{ONE} for {n} people") for n in (2, 7)])
    _, kept = run(tmp_path)
    assert [task.count for task in kept] == [2]
    assert "## Made one by masked numbers" in made_filter(tmp_path).report(tmp_path / "filter")


def test_the_settings_name_what_decides_and_not_who_works():
    settings = made_filter(None).settings()
    assert settings["columns"] == COLUMNS
    assert {"engine", "partitions", "paths"}.isdisjoint(settings)
    assert json.loads(json.dumps(settings)) is not None


def test_an_unknown_meaning_of_a_column_is_refused():
    from browseruse_bench.factory.workspace import Corpus, WorkspaceConfig

    with pytest.raises(ConfigError, match="txet"):
        stage_module.Filter(WorkspaceConfig(name="w", corpus=Corpus(columns={"txet": "a"})))


def test_the_context_of_these_tests_opens_no_model(tmp_path):
    with pytest.raises(ConfigError):
        context(tmp_path).model("judge")


@pytest.mark.parametrize("word", ["reading", "combining", "benchmarks", "writing"])
def test_a_stop_takes_effect_at_the_next_job_and_loses_nothing(tmp_path, word):
    write_lines(tmp_path / "one" / "in" / "a.jsonl", submissions())
    write_lines(tmp_path / "two" / "in" / "a.jsonl", submissions())
    whole, _ = run(tmp_path / "one")
    stop = threading.Event()

    def tell(text):
        said.append(text)
        if text.startswith(word):
            stop.set()

    said = []
    stopped = asyncio.run(made_filter(tmp_path / "two").run(context(tmp_path / "two"), tell, stop))
    assert (stopped.n_in, stopped.kept) == (0, 0)
    assert said[-1] == "stopped; what is done stays done, and the same command goes on"
    assert said[-2].startswith(word), "nothing further began"
    assert run(tmp_path / "two")[0] == whole
    assert story(tmp_path / "two") == story(tmp_path / "one")
