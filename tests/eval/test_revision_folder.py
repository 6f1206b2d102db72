import json
from pathlib import Path

import pytest

from browseruse_bench.errors import BudgetError, ConfigError, DataError
from browseruse_bench.eval.regrading import Specimen, read_judgements
from browseruse_bench.eval.revise import Rewording, Terms
from browseruse_bench.eval.revision_folder import FIRST_SAMPLE, revise_in
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.task import Task
from browseruse_bench.store.journal import read_journal
from tests.eval.flipping import Author, FlippingJudge, rubric

TASK = Task(task_id="task-1", task="Do it")


@pytest.fixture
def specimens(make_trace):
    """Two frozen traces of one task, graded by a rubric of which the second item flips."""
    first = rubric("decided met", "met with 0.5")
    found = []
    for attempt in (1, 2):
        page = make_trace.page("http://shop.test/", "Kettle")
        trace = make_trace(page, attempt=attempt, task_key=TASK.view.key)
        found.append(
            Specimen(task=TASK, rubric=first, attempt=attempt, path=trace.path, trace_key=trace.key)
        )
    return found


def names(folder: Path):
    return sorted(path.name for path in folder.iterdir())


async def test_every_revision_is_kept_with_its_reason_and_every_grading(specimens, tmp_path):
    folder, judge = tmp_path / "task-1", FlippingJudge()
    author = Author("met with 0.4, sharper", "decided met, now")
    found = await revise_in(folder, specimens, judge, author)
    assert (found.verdict, found.rubric.revision) == ("kept", 3)
    assert names(folder) == [
        "r1.json", "r1.md", "r2.json", "r2.md", "r3.json", "r3.md",
        "regrades.jsonl", "revise.json", "revisions.jsonl",
    ]  # fmt: skip
    kept = [Rubric.model_validate_json((folder / f"r{n}.json").read_text()) for n in (1, 2, 3)]
    assert kept[0] == specimens[0].rubric
    assert kept[2] == found.rubric
    assert [r.items[1].requirement for r in kept][1:] == [
        "met with 0.4, sharper",
        "decided met, now",
    ]
    assert "decided met, now" in (folder / "r3.md").read_text()
    lines = read_journal(folder / "revisions.jsonl")
    assert [(x["round"], x["item"], x["reason"]) for x in lines] == [
        (1, "I1", "draft 1"),
        (2, "I1", "draft 2"),
    ]
    assert lines[0]["measured"]["credit"]["n_disagreeing"] > 0
    assert len(read_judgements(folder / "regrades.jsonl")) == found.n_judged == len(judge.asked)


async def test_no_grading_was_seen_before_and_the_released_ones_are_the_last(specimens, tmp_path):
    judge = FlippingJudge()
    found = await revise_in(tmp_path / "t", specimens, judge, Author("decided met, now"))
    assert len(set(judge.gradings)) == len(judge.gradings)
    numbers = [sample for *_, sample in judge.asked]
    assert min(numbers) == FIRST_SAMPLE
    released = {j.sample for j in found.released}
    assert min(released) > max(set(numbers) - released)


async def test_an_interrupted_loop_goes_on_and_asks_neither_judge_nor_author_again(
    specimens, tmp_path
):
    """A budget that is reached after every seventh grading; the author fails once, too."""
    folder = tmp_path / "t"
    drafts = ["met with 0.4, sharper", "decided met, now"]
    shown, failed = [], []

    class Poor(FlippingJudge):
        left = 7

        async def judge(self, case):
            if self.left == 0:
                raise BudgetError("reached")
            self.left -= 1
            return await super().judge(case)

    async def author(rubric_, item, pairs):
        if not failed:
            failed.append(item.id)
            raise BudgetError("reached by the author")
        shown.append(item.requirement)
        return Rewording(requirement=drafts[len(shown) - 1], reason="sharper")

    judges = []
    for _ in range(40):
        judges.append(Poor())
        try:
            found = await revise_in(folder, specimens, judges[-1], author)
            break
        except BudgetError:
            continue
    assert found.verdict == "kept"
    assert len(judges) > 5
    assert shown == ["met with 0.5", "met with 0.4, sharper"]
    every = [grading for judge in judges for grading in judge.gradings]
    assert len(every) == len(set(every)) == found.n_judged
    whole = await revise_in(tmp_path / "at-once", specimens, FlippingJudge(), Author(*drafts))
    assert whole.released == tuple(
        j.model_copy(update={"at": w.at})
        for j, w in zip(found.released, whole.released, strict=True)
    )
    assert whole.rubric == found.rubric


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"terms": Terms(samples=4)}, "samples"),
        ({"terms": Terms(threshold=0.2)}, "threshold"),
        ({"judge": FlippingJudge("other")}, "judge"),
        ({"fixed": ["I0"]}, "fixed"),
    ],
)
async def test_another_loop_in_the_same_folder_is_refused_by_what_differs(
    specimens, tmp_path, change, named
):
    """Its sample numbers would be used again for something else."""
    await revise_in(tmp_path / "t", specimens, FlippingJudge(), Author("decided met, now"))
    judge = change.pop("judge", FlippingJudge())
    with pytest.raises(ConfigError, match=f"another {named}"):
        await revise_in(tmp_path / "t", specimens, judge, Author(), **change)
    assert judge.asked == []


async def test_other_traces_or_another_rubric_are_refused(specimens, tmp_path):
    await revise_in(tmp_path / "t", specimens, FlippingJudge(), Author("decided met, now"))
    with pytest.raises(ConfigError, match="another traces"):
        await revise_in(tmp_path / "t", specimens[:1], FlippingJudge(), Author())
    from dataclasses import replace

    other = [replace(s, rubric=rubric("decided met", "decided met")) for s in specimens]
    with pytest.raises(ConfigError, match="another rubric"):
        await revise_in(tmp_path / "t", other, FlippingJudge(), Author())
    with pytest.raises(ConfigError, match="of one rubric"):
        await revise_in(tmp_path / "u", [specimens[0], other[1]], FlippingJudge(), Author())


async def test_a_grading_that_failed_is_asked_for_again_under_a_number_of_its_own(
    specimens, tmp_path
):
    judge = FlippingJudge(ungraded=lambda case: case.sample == FIRST_SAMPLE + 1)
    found = await revise_in(tmp_path / "t", specimens, judge, Author("decided met, now"))
    assert found.verdict == "kept"
    assert found.n_ungraded == 2
    assert {n for *_, n in judge.asked if n >= 10**6} == {FIRST_SAMPLE + 1 + 10**6}


async def test_a_judge_that_never_answers_is_incomplete_and_a_later_call_tries_again(
    specimens, tmp_path
):
    folder = tmp_path / "t"
    dead = FlippingJudge(ungraded=lambda case: True)
    found = await revise_in(folder, specimens, dead, Author())
    assert (found.verdict, found.n_ungraded) == ("incomplete", 2 * 5 * 3)
    found = await revise_in(folder, specimens, FlippingJudge(), Author("decided met, now"))
    assert found.verdict == "kept"


async def test_a_revision_that_was_changed_by_hand_is_refused(specimens, tmp_path):
    folder = tmp_path / "t"
    await revise_in(folder, specimens, FlippingJudge(), Author("decided met, now"))
    path = folder / "r2.json"
    plain = json.loads(path.read_text())
    plain["items"][1]["requirement"] = "decided violated"
    path.write_text(json.dumps(plain))
    with pytest.raises(DataError, match=r"r2\.json"):
        await revise_in(folder, specimens, FlippingJudge(), Author())


@pytest.mark.parametrize("name", ["revise.json", "revisions.jsonl", "regrades.jsonl"])
async def test_a_damaged_file_is_named(specimens, tmp_path, name):
    folder = tmp_path / "t"
    await revise_in(folder, specimens, FlippingJudge(), Author("decided met, now"))
    (folder / name).write_text("[1]\n" if name.endswith("json") else '{"no": 1}\n')
    with pytest.raises((DataError, ConfigError), match=name.replace(".", r"\.")):
        await revise_in(folder, specimens, FlippingJudge(), Author())
