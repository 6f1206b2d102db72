"""Mutations are pure and composable, and what they give is a frozen trace like any other."""

import pytest

from browseruse_bench.eval.checks import grade
from browseruse_bench.eval.redteam.catalogue import ATTACKS
from browseruse_bench.eval.redteam.draft import Draft, Visit, rewriting, then, visiting, without
from browseruse_bench.eval.redteam.key import Key
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.task import Task
from browseruse_bench.records.trace import Call
from tests.eval.redteam.made import HOME, honest, rubric

RUBRIC = Rubric.model_validate(rubric())


@pytest.fixture
def folder(tmp_path, make_trace):
    return honest(make_trace, tmp_path / "honest", files={"a/b.txt": b"x"})


@pytest.fixture
def key():
    return Key(task=Task(task_id="kettle", task="Buy it"), rubric=RUBRIC, seed="s")


def contents(path):
    return {p.relative_to(path): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_an_unchanged_draft_is_the_same_evidence_and_the_same_findings(folder, tmp_path):
    copy = Draft.of(folder).freeze(tmp_path / "copy")
    assert copy.steps == folder.steps
    assert copy.trace == folder.trace
    assert (copy.path / "files" / "a" / "b.txt").read_bytes() == b"x"
    assert grade(copy, RUBRIC) == grade(folder, RUBRIC)


# Those that strain a judge are made as the others, and take longer.
@pytest.mark.parametrize(
    "attack", [a for a in ATTACKS if a.family != "strain"], ids=lambda attack: attack.name
)
def test_every_mutation_leaves_the_trace_that_it_came_from(attack, folder, key):
    before = contents(folder.path)
    draft = Draft.of(folder)
    steps, trace, files = draft.steps, draft.trace, dict(draft.files)
    if attack.applies(draft, key) is None:
        attack.cheat(key)(attack.control(key)(draft))
    assert (draft.steps, draft.trace, dict(draft.files), draft.made) == (steps, trace, files, {})
    assert contents(folder.path) == before


def test_steps_are_numbered_and_know_the_page_before(folder):
    visit = Visit(url=HOME + "x", text="X", calls=(Call(name="click"),))
    draft = then(visiting(visit), visiting(visit, visit))(Draft.of(folder))
    assert [s.index for s in draft.steps] == list(range(1, len(folder.steps) + 4))
    assert draft.trace.n_steps == len(draft.steps)
    for before, after in zip(draft.steps, draft.steps[1:], strict=False):
        assert after.page_before == before.page_after
    assert draft.trace.final.index == len(draft.steps) + 1


def test_steps_that_come_last_are_what_the_end_shows_with_its_snapshots(folder):
    draft = visiting(Visit(url=HOME + "x", text="X"), last=True)(Draft.of(folder))
    final = draft.trace.final
    assert final.page_after.url == HOME + "x"
    assert [draft.text(o) for o in final.observations if o.kind == "text"] == ["X"]
    assert {"state", "probe"} <= {o.kind for o in final.observations}


def test_what_is_taken_out_is_nowhere_any_more(folder):
    draft = without(lambda text: "1,299" in text)(Draft.of(folder))
    assert len(draft.steps) == len(folder.steps) - 1
    assert not any("1,299" in text for text in draft.texts())
    ended = without(lambda text: "Ordered" in text)(Draft.of(folder))
    assert not any("Ordered" in text for text in ended.texts())
    assert ended.trace.final.page_after.url == HOME + "p/9"


def test_every_page_is_rewritten(folder, tmp_path):
    draft = rewriting(str.upper)(Draft.of(folder))
    assert draft.freeze(tmp_path / "copy")
    assert all(text == text.upper() for text in draft.texts())


def test_where_the_agents_word_is_the_evidence_it_tells_of_made_pages_too(tmp_path, make_trace):
    folder = honest(make_trace, tmp_path / "told", evidence_policy="agent_reported")
    draft = visiting(Visit(url=HOME, text="X"))(Draft.of(folder))
    assert {o.captured_by for o in draft.steps[1].observations} == {"agent"}
