import asyncio
import json
from dataclasses import replace

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.funnel import broken_boundaries, funnel, samples, stage_report
from browseruse_bench.factory.pipeline import Pipeline
from browseruse_bench.factory.stage import Dropped, Flow, Kept, Source, Stage
from browseruse_bench.factory.workspace import Workspace, create, template
from browseruse_bench.records.candidate import Candidate, new_candidate


class Lines(Source[Candidate]):
    """Keeps the lines of a file that have a word."""

    name, version, zone = "lines", 1, "restricted"
    gives = Candidate
    reasons = frozenset({"empty"})

    async def run(self, ctx, on_progress, stop):
        on_progress("reading")
        return self.flow(ctx.folder)

    def _lines(self, folder):
        return (folder.parents[1] / "corpus.txt").read_text().split("\n")[:-1]

    def flow(self, folder):
        lines = self._lines(folder)
        kept = sum(1 for line in lines if line)
        dropped = {"empty": len(lines) - kept} if kept < len(lines) else {}
        return Flow(n_in=len(lines), kept=kept, dropped=dropped)

    def kept(self, folder):
        for line in self._lines(folder):
            if line:
                yield new_candidate(line)

    def find(self, folder, key):
        for candidate in self.kept(folder):
            if candidate.key.startswith(key):
                return {"key": candidate.key, "text": candidate.text}
        return None


class Shorten(Stage[Candidate, Candidate]):
    """Cuts texts; drops those that begin with a hash."""

    name, version, zone = "shorten", 1, "restricted"
    takes = gives = Candidate
    reasons = frozenset({"hash"})

    async def settle(self, unit, ctx):
        if unit.text.startswith("#"):
            return Dropped("hash", {"text": unit.text})
        return Kept(unit.model_copy(update={"text": unit.text[:5]}))


class Shout(Stage[Candidate, Candidate]):
    name, version = "shout", 1
    takes = gives = Candidate

    async def settle(self, unit, ctx):
        return Kept(unit.model_copy(update={"text": unit.text.upper()}))


@pytest.fixture
def pipeline(tmp_path):
    create(tmp_path / "w", 'name = "w"\n')
    (tmp_path / "w" / "corpus.txt").write_text("find a hotel\n\n#no\nbuy a book\n")
    return Pipeline(Workspace.open(tmp_path / "w"), (Lines(), Shorten(), Shout()))


def run(pipeline, *names, **options):
    async def all_of_them():
        return {
            step.name: await pipeline.run(
                step,
                on_settled=lambda progress: None,
                on_progress=lambda text: None,
                stop=asyncio.Event(),
            )
            for step in pipeline.chosen(names, options.get("until"))
        }

    return asyncio.run(all_of_them())


def test_what_one_stage_keeps_is_what_the_next_takes(pipeline):
    run(pipeline)
    flows = {row.stage: row.flow for row in funnel(pipeline)}
    assert flows["lines"] == Flow(n_in=4, kept=3, dropped={"empty": 1})
    assert flows["shorten"] == Flow(n_in=3, kept=2, dropped={"hash": 1})
    assert flows["shout"] == Flow(n_in=2, kept=2)
    kept = {candidate.text for candidate in pipeline.kept(pipeline.step("shout"))}
    assert kept == {"FIND ", "BUY A"}


def test_new_input_flows_through_and_nothing_old_is_done_again(pipeline):
    run(pipeline)
    journal = pipeline.folder(pipeline.step("shout")).journal_path
    before = journal.read_text()
    corpus = pipeline.workspace.path / "corpus.txt"
    corpus.write_text(corpus.read_text() + "sell a car\n")
    run(pipeline)
    after = journal.read_text()
    assert after.startswith(before)
    assert after.count("\n") == before.count("\n") + 1


def counted(pipeline):
    return {row.stage: row for row in funnel(pipeline)}


def kept_lines(pipeline, name):
    path = pipeline.folder(pipeline.step(name)).path / "kept.jsonl"
    return {
        line["value"]["text"]: line["value"]
        for line in map(json.loads, path.read_text().splitlines())
    }


class Sterner(Shorten):
    """Also drops books."""

    version = 2
    reasons = frozenset({"hash", "book"})

    async def settle(self, unit, ctx):
        if "book" in unit.text:
            return Dropped("book")
        return await super().settle(unit, ctx)


def test_what_a_new_version_of_an_earlier_stage_drops_leaves_every_later_stage(pipeline):
    run(pipeline)
    assert set(kept_lines(pipeline, "shout")) == {"FIND ", "BUY A"}
    later = replace(pipeline, steps=(Lines(), Sterner(), Shout()))
    journal = pipeline.folder(pipeline.step("shout")).journal_path
    before = journal.read_text()
    # Not even the stage itself need run again for its tasks not to count any more.
    assert [unit.text for unit in later.kept(later.step("shout"))] == []
    run(later)
    assert set(kept_lines(later, "shout")) == {"FIND "}
    assert [unit.text for unit in later.kept(later.step("shout"))] == ["FIND "]
    row = counted(later)["shout"]
    assert (row.flow, row.withdrawn) == (Flow(n_in=1, kept=1), 1)
    assert journal.read_text() == before, "history is never rewritten"
    chapters = later.history(new_candidate("buy a book").key)
    assert [c.stage for c in chapters] == ["lines", "shorten", "shout"]
    assert chapters[1].entry.reason == "book"
    assert [entry.version for entry in chapters[1].earlier] == [1]
    assert chapters[2].state == "withdrawn: shorten does not keep it now"
    assert chapters[0].state == chapters[1].state == ""
    milder = Shorten()
    milder.version = 3
    latest = replace(pipeline, steps=(Lines(), milder, Shout()))
    assert run(latest)["shout"].n_now == 0, "what comes back is not paid again"
    assert set(kept_lines(latest, "shout")) == {"FIND ", "BUY A"}


def test_what_the_source_withdraws_leaves_every_later_stage_and_comes_back_for_nothing(pipeline):
    corpus = pipeline.workspace.path / "corpus.txt"
    whole = corpus.read_text()
    run(pipeline)
    corpus.write_text(whole.replace("buy a book\n", ""))
    done = run(pipeline)
    assert done["shorten"].n_withdrawn == done["shout"].n_withdrawn == 1
    assert "BUY A" not in kept_lines(pipeline, "shout")
    assert pipeline.history(new_candidate("buy a book").key)[0].state == (
        "withdrawn: lines does not keep it now"
    )
    inputs = pipeline.folder(pipeline.step("shout")).path / "inputs.jsonl"
    drops = [json.loads(line) for line in inputs.read_text().splitlines()]
    assert [(d["n_units"], d["n_new"], d["n_withdrawn"]) for d in drops] == [(2, 2, 0), (1, 0, 1)]
    corpus.write_text(whole)
    assert {name: s.n_now for name, s in run(pipeline).items() if name != "lines"} == {
        "shorten": 0,
        "shout": 0,
    }
    assert "BUY A" in kept_lines(pipeline, "shout")


class Traffic(Lines):
    """Lines with a count and a day before each: `3 2026-01-02 text`."""

    def kept(self, folder):
        for line in self._lines(folder):
            if line:
                count, day, text = line.split(" ", 2)
                yield new_candidate(text, count=int(count), first_seen=day, last_seen=day)


def test_what_a_later_drop_adds_to_a_task_shows_in_every_later_stage_and_nothing_is_redone(
    pipeline,
):
    corpus = pipeline.workspace.path / "corpus.txt"
    corpus.write_text("1 2026-01-05 find a hotel\n1 2026-01-05 buy a book\n")
    made = replace(pipeline, steps=(Traffic(), Shorten(), Shout()))
    run(made)
    assert kept_lines(made, "shout")["FIND "]["count"] == 1
    # The source raises what it said of the task, as the filter does after another drop.
    corpus.write_text("9 2026-02-01 find a hotel\n1 2026-01-05 buy a book\n")
    done = run(made)
    assert done["shorten"].n_now == done["shout"].n_now == 0
    value = kept_lines(made, "shout")["FIND "]
    assert (value["count"], value["last_seen"]) == (9, "2026-02-01")
    assert {unit.count for unit in made.kept(made.step("shorten"))} == {9, 1}


def test_tasks_that_become_one_text_are_one_unit_with_the_counts_of_both(pipeline):
    corpus = pipeline.workspace.path / "corpus.txt"
    lines = ["2 2026-01-05 find a hotel", "3 2026-01-02 find a hostel", "1 2026-01-01 buy it"]
    origins = sorted(new_candidate(line.split(" ", 2)[2]).key for line in lines[:2])
    results = []
    for order in (lines, lines[::-1]):
        corpus.write_text("\n".join(order) + "\n")
        made = replace(pipeline, steps=(Traffic(), Shorten(), Shout()))
        done = run(made)
        assert done["shout"].n_merged == 1
        assert done["shout"].flow == Flow(n_in=3, kept=2, dropped={"merged": 1})
        results.append(kept_lines(made, "shout")["FIND "])
    assert results[0] == results[1]
    assert results[0] == {
        "text": "FIND ",
        "origin": origins[0],
        "count": 5,
        "first_seen": "2026-01-02",
        "last_seen": "2026-01-05",
    }
    dropped = made.folder(made.step("shout")).path / "dropped.jsonl"
    (line,) = [json.loads(line) for line in dropped.read_text().splitlines()]
    assert (line["reason"], line["evidence"]["origin"]) == ("merged", origins[1])
    rows = funnel(made)
    assert broken_boundaries(rows) == []
    assert rows[1].flow.kept == rows[2].flow.n_in == 3


def test_the_time_of_a_source_counts_where_it_read_something(pipeline):
    class Slow(Lines):
        seen = 0

        async def run(self, ctx, on_progress, stop):
            await asyncio.sleep(0.12)
            self.seen = 4
            return self.flow(ctx.folder)

        def flow(self, folder):
            return super().flow(folder) if self.seen else Flow()

    made = replace(pipeline, steps=(Slow(), Shorten(), Shout()))
    run(made)
    first = counted(made)["lines"].seconds
    assert first >= 0.1
    run(made)
    assert counted(made)["lines"].seconds == first, "to find nothing new is no work"


def test_a_stage_that_takes_other_than_the_one_before_it_keeps_is_said(pipeline):
    class Miscounts(Lines):
        def flow(self, folder):
            return Flow(n_in=7, kept=7)

    made = replace(pipeline, steps=(Miscounts(), Shorten(), Shout()))
    run(made)
    assert broken_boundaries(funnel(made)) == ["shorten takes 3, and lines keeps 7"]


def test_a_stage_whose_predecessor_never_ran_says_so(pipeline):
    with pytest.raises(ConfigError, match=r"shorten.*never ran"):
        run(pipeline, "shout")


def test_until_and_names_choose_and_an_unknown_name_is_answered_with_the_nearest(pipeline):
    assert [s.name for s in pipeline.chosen((), "shorten")] == ["lines", "shorten"]
    assert [s.name for s in pipeline.chosen(("shout", "lines"), None)] == ["lines", "shout"]
    with pytest.raises(ConfigError, match="did you mean 'shorten'"):
        pipeline.chosen(("shortn",), None)
    with pytest.raises(ConfigError, match="not both"):
        pipeline.chosen(("shout",), "shout")


@pytest.mark.parametrize("text", ["find a hotel", "find ", "FIND "])
def test_the_whole_history_of_a_task_is_found_by_any_of_its_keys(pipeline, text):
    run(pipeline)
    chapters = pipeline.history(new_candidate(text).key)
    assert [chapter.stage for chapter in chapters] == ["lines", "shorten", "shout"]
    assert chapters[0].known["text"] == "find a hotel"
    assert chapters[2].entry.value["origin"] == new_candidate("find a hotel").key


def test_the_history_of_a_dropped_task_ends_where_it_was_dropped(pipeline):
    run(pipeline)
    chapters = pipeline.history(new_candidate("#no").key[:12])
    assert [chapter.stage for chapter in chapters] == ["lines", "shorten"]
    assert chapters[-1].entry.reason == "hash"
    for key in ("short", "f" * 12):
        with pytest.raises(ConfigError):
            pipeline.history(key)


def test_a_report_shows_sampled_drops_whose_text_stays_text(pipeline):
    (pipeline.workspace.path / "corpus.txt").write_text("#<script>|x\nok\n")
    run(pipeline)
    (drop,) = samples(pipeline, pipeline.step("shorten"))
    assert json.loads(drop.evidence) == {"text": "#<script>|x"}
    report = stage_report(pipeline, pipeline.step("shorten"))
    assert "<script>" not in report
    assert "&lt;script&gt;\\|x" in report


def test_restricted_parts_are_for_the_owner_only(pipeline):
    run(pipeline)
    restricted = pipeline.workspace.path / "restricted"
    assert restricted.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in restricted.iterdir()) == ["lines", "shorten"]


def test_a_workspace_is_made_once_and_its_template_is_one(tmp_path):
    file = create(tmp_path / "My corpus", template("My corpus"))
    config = Workspace.open(file.parent).config
    assert config.name == "My-corpus"
    assert config.corpus.permitted_tags == ()
    assert set(config.roles) >= {"labeller", "writer", "judge", "reference", "escalation"}
    with pytest.raises(ConfigError, match="nothing was changed"):
        create(file.parent, template("x"))


def test_all_that_is_wrong_in_a_workspace_is_said(tmp_path):
    with pytest.raises(ConfigError, match="bubench factory init"):
        Workspace.open(tmp_path)
    (tmp_path / "workspace.toml").write_text('name = "a"\ncolour = 1\n[screen]\nmax_runs = 0\n')
    with pytest.raises(ConfigError) as wrong:
        Workspace.open(tmp_path)
    assert "colour" in str(wrong.value)
    assert "screen.max_runs" in str(wrong.value)
