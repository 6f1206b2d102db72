import asyncio
import json

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.funnel import funnel, samples, stage_report
from browseruse_bench.factory.pipeline import Pipeline
from browseruse_bench.factory.stage import Dropped, Flow, Kept, Source, Stage
from browseruse_bench.factory.workspace import Workspace, create, template
from browseruse_bench.records.candidate import Candidate, new_candidate


class Lines(Source[Candidate]):
    """Keeps the lines of a file that have a word."""

    name, version, zone = "lines", 1, "restricted"
    gives = Candidate
    reasons = frozenset({"empty"})

    async def run(self, ctx, on_progress):
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
        for step in pipeline.chosen(names, options.get("until")):
            await pipeline.run(
                step,
                on_settled=lambda progress: None,
                on_progress=lambda text: None,
                stop=asyncio.Event(),
            )

    asyncio.run(all_of_them())


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
