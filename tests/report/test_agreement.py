import asyncio
import json

import pytest

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.eval.evaluate import Asking, evaluate_run
from browseruse_bench.eval.labels import Label, Labels
from browseruse_bench.report.agreement import EVERYONE, Declared, run_agreement
from browseruse_bench.report.agreement_table import table_agreement
from browseruse_bench.report.agreement_text import markdown, tables
from browseruse_bench.report.render import plain_table
from tests.eval.flipping import FlippingJudge
from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric


def texts(task_id, *requirements):
    made = rubric(task_id, *[100 // len(requirements)] * len(requirements), check=False)
    for item, text in zip(made["items"], requirements, strict=True):
        item["requirement"] = text
    return made


@pytest.fixture
def bench(tmp_path):
    """The judge finds "a" and "b" right, and one item of "c" wrong; it fails on "d"."""
    rows = [
        row("a", category="shop"),
        row("b", category="shop"),
        row("c", category="docs"),
        row("d"),
    ]
    rubrics = {
        "a": texts("a", "decided met", "decided met"),
        "b": texts("b", "decided met", "decided met"),
        "c": texts("c", "decided met", "decided violated"),
        "d": texts("d", "decided met", "decided met"),
    }
    return MadeBenchmark(tmp_path / "Made", rows, rubrics=rubrics)


@pytest.fixture
def run(tmp_path, bench):
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded)
    for task_id in "abcd":
        made.settle(loaded, task_id, "An answer")
    judge = FlippingJudge(ungraded=lambda case: case.task.task_id == "d")
    asyncio.run(evaluate_run(made.folder, loaded, asking=Asking(judge=judge)))
    return made


def label(task_id, said, item=None, by="ada", **more):
    return Label(task_id=task_id, label=said, item=item, labeller=by, **more)


def compare(run, bench, *labels, **options):
    given = Labels(labels=labels, ignored=options.pop("ignored", ()))
    return run_agreement(run.folder, run.run, bench.load(), given, **options)


def only(found):
    ((compared,),) = [topic.compared for topic in found.topics]
    return compared.agreement


def words(found):
    return "\n".join(plain_table(table) for table in tables(found))


def test_labels_of_attempts_are_joined_with_the_success_that_counts(run, bench):
    found = only(compare(run, bench, label("a", "success"), label("b", "0"), label("c", "Failure")))
    assert found.classes == ("success", "failure")
    assert found.confusion == ((1, 0), (1, 1))
    assert found.of("success").precision.rate == 0.5


def test_a_verdict_that_is_missing_is_counted_by_its_reason(run, bench):
    found = compare(run, bench, label("a", "1"), label("d", "1"))
    assert only(found).n == 1
    assert only(found).missing.verdict == 1
    assert found.topics[0].ungraded == {"judge_fault": 1}
    assert "1 (judge_fault 1)" in words(found)


def test_items_are_compared_by_credit_or_by_status(run, bench):
    labels = (
        label("a", "met", "I0"),
        label("c", "not_assessable", "I1"),
        label("c", "violated", "I0"),
    )
    credit = only(compare(run, bench, *labels))
    assert credit.classes == ("met", "not met")
    assert credit.confusion == ((1, 0), (1, 1))
    status = only(compare(run, bench, *labels, declared=Declared.of(statuses=True)))
    assert status.classes == ("met", "violated", "not_assessable", "unsupported")
    assert status.accuracy.rate == pytest.approx(1 / 3)


def test_who_disagrees_with_a_finding_says_the_opposite_and_cannot_tell_is_missing(run, bench):
    found = compare(
        run,
        bench,
        label("a", "agree", "I0"),
        label("a", "disagree", "I1"),
        label("c", "disagree", "I1"),
        label("b", "cannot tell", "I0"),
    )
    assert only(found).confusion == ((1, 1), (1, 0))
    assert only(found).missing.truth == 1
    assert (found.topics[0].n_adjudicated, found.topics[0].missing) == (3, {"cannot tell": 1})
    assert "saw the judge's finding first" in words(found)


def test_an_adjudication_stays_with_the_judgement_that_was_shown(run, bench):
    """Ada agreed with the old finding of I1, violated; the judge has changed its mind since."""
    (old,) = [j for j in run.folder.judgements() if j.task_id == "c"]

    class Kind(FlippingJudge):
        async def judge(self, case):
            verdict = await super().judge(case)
            met = tuple(f.model_copy(update={"status": "met"}) for f in verdict.findings)
            return type(verdict)(findings=met)

    asyncio.run(evaluate_run(run.folder, bench.load(), asking=Asking(judge=Kind("kind"))))
    found = only(compare(run, bench, label("c", "agree", "I1", judgement=old.id)))
    assert found.confusion == ((0, 0), (1, 0))
    new = only(compare(run, bench, label("c", "agree", "I1")))
    assert new.confusion == ((1, 0), (0, 0))


def test_everything_that_is_not_there_is_refused_at_once(run, bench):
    with pytest.raises(DataError) as raised:
        compare(
            run,
            bench,
            label("zz", "1"),
            label("a", "1", attempt=9),
            label("a", "1", "I7"),
            label("a", "agree", "I0", judgement="0" * 64),
        )
    assert len(raised.value.problems) == 4
    for problem, words_ in zip(
        raised.value.problems,
        ("no such task", "no such attempt", "no such item", "no judgement"),
        strict=True,
    ):
        assert words_ in problem


def test_a_code_that_was_not_declared_is_refused_and_a_declared_one_is_counted(run, bench):
    """2 is "not executable": never dropped in silence, never a failure by accident."""
    labels = (label("a", "1"), label("b", "2"), label("c", "0"))
    with pytest.raises(DataError, match=r"'2' \(1 times.*--missing '2'"):
        compare(run, bench, *labels)
    missing = compare(run, bench, *labels, declared=Declared.of(missing=["2"]))
    assert only(missing).n == 2
    assert missing.topics[0].missing == {"2": 1}
    own = only(compare(run, bench, *labels, declared=Declared.of(classes=["2"])))
    assert own.classes == ("success", "failure", "2")
    assert own.confusion == ((1, 0, 0), (0, 1, 0), (1, 0, 0))
    assert own.of("2").precision.rate is None


@pytest.mark.parametrize(
    "codes", [{"missing": ["2"], "classes": ["2"]}, {"missing": ["1"]}, {"classes": ["Met"]}]
)
def test_a_code_has_one_meaning(codes):
    with pytest.raises(ConfigError):
        Declared.of(**codes)


def test_a_disagreement_names_no_status(run, bench):
    with pytest.raises(DataError, match="leave out --statuses"):
        compare(run, bench, label("a", "disagree", "I0"), declared=Declared.of(statuses=True))


def test_several_labellers_are_compared_with_the_judge_and_with_each_other(run, bench):
    found = compare(
        run,
        bench,
        *(label(task, said) for task, said in zip("abc", "110", strict=True)),
        *(label(task, said, by="ben") for task, said in zip("abc", "101", strict=True)),
        label("a", "1", by="cleo"),
    )
    (topic,) = found.topics
    pairs = [(each.one, each.other) for each in topic.compared]
    assert pairs == [
        (EVERYONE, "judge"),
        ("ada", "judge"),
        ("ben", "judge"),
        ("cleo", "judge"),
        ("ada", "ben"),
        ("ada", "cleo"),
        ("ben", "cleo"),
    ]
    by_pair = {pair: each.agreement for pair, each in zip(pairs, topic.compared, strict=True)}
    assert by_pair["ada", "judge"].accuracy.rate == 1
    assert by_pair["ada", "ben"].accuracy.rate == pytest.approx(1 / 3)
    assert by_pair["ada", "cleo"].missing.verdict == 2
    assert by_pair[EVERYONE, "judge"].n == 7
    assert by_pair[EVERYONE, "judge"].n_clusters == 3
    assert topic.among.value is not None


def test_labels_of_one_task_are_one_cluster(run, bench):
    found = only(compare(run, bench, *(label("a", "met", item) for item in ("I0", "I1"))))
    assert (found.n, found.n_clusters) == (2, 1)
    assert found.kappa.low is None


def test_also_by_category_and_a_task_without_one_is_in_a_group_of_its_own(run, bench):
    found = compare(run, bench, *(label(t, "1") for t in "abcd"), by="category")
    groups = {each.group: each.agreement for each in found.topics[0].compared}
    assert set(groups) == {None, "shop", "docs", "none"}
    assert groups["shop"].n == 2
    assert groups["docs"].confusion == ((0, 1), (0, 0))
    assert groups["none"].missing.verdict == 1


def test_whose_verdicts_they_are_is_said_and_unlike_judges_too(run, bench):
    found = compare(run, bench, label("a", "1"), label("b", "1"))
    assert found.judges == ("double/1",)
    assert found.notes == ()
    asking = Asking(judge=FlippingJudge("other"))
    asyncio.run(evaluate_run(run.folder, bench.load(), asking=asking, task_ids=["a"]))
    mixed = compare(run, bench, label("a", "1"), label("b", "1"))
    assert mixed.judges == ("double/1", "other/1")
    assert "unlike judges" in mixed.notes[0]


def test_attempts_and_items_are_two_topics(run, bench):
    found = compare(run, bench, label("a", "1"), label("a", "met", "I0"))
    assert [topic.about for topic in found.topics] == ["attempts", "items"]


def test_columns_that_were_not_read_are_said(run, bench):
    found = compare(run, bench, label("a", "1"), ignored=("mood",))
    assert "mood" in words(found)


def test_json_has_null_for_what_has_no_denominator_and_markdown_a_dash(run, bench):
    found = compare(run, bench, label("c", "0"))
    figures = json.loads(found.model_dump_json())["topics"][0]["compared"][0]["agreement"]
    assert figures["by_class"][0]["precision"]["rate"] is None
    assert figures["kappa"]["value"] is None
    assert "| - |" in markdown(found)


# ---- tables of others -----------------------------------------------------------------------

TABLE = "task,person,model,site\na,1,1,x\na,0,1,x\nb,1,0,y\nb,2,0,y\nc,,1,y\nd,0,0,x\n"


def table(tmp_path, text=TABLE, **options):
    path = tmp_path / "table.csv"
    path.write_text(text)
    return table_agreement(path, truth="person", verdict="model", **options)


def test_every_value_is_a_class_and_the_empty_one_is_missing(tmp_path):
    found = only(table(tmp_path))
    assert found.classes == ("1", "0", "2")
    assert found.confusion == ((1, 1, 0), (1, 1, 0), (0, 1, 0))
    assert found.missing.truth == 1


def test_a_declared_code_is_missing_and_counted(tmp_path):
    found = table(tmp_path, missing=["2"])
    assert only(found).classes == ("1", "0")
    assert found.topics[0].missing == {"": 1, "2": 1}
    assert only(found).missing.truth == 2


def test_groups_stand_beside_the_whole_and_clusters_are_counted(tmp_path):
    found = table(tmp_path, group="site", cluster="task")
    assert [each.group for each in found.topics[0].compared] == [None, "x", "y"]
    assert found.topics[0].compared[0].agreement.n_clusters == 3
    assert found.notes == ()
    assert "independent" in table(tmp_path).notes[0]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"positive": "yes"}, "no label is 'yes'.*0, 1, 2"),
        ({"group": "nation"}, "no column 'nation'.*model, person, site, task"),
        ({"missing": ["0", "2"]}, "every label is '1'"),
    ],
)
def test_a_wrong_column_or_class_is_said_with_what_there_is(tmp_path, options, match):
    with pytest.raises(ConfigError, match=match):
        table(tmp_path, **options)


def test_a_column_of_anything_is_no_column_of_labels(tmp_path):
    rows = "person,model\n" + "".join(f"{n},1\n" for n in range(20))
    with pytest.raises(ConfigError, match="right columns"):
        table(tmp_path, rows)


def test_names_of_others_are_text_in_markdown(tmp_path):
    found = table(tmp_path, TABLE.replace(",x", ",<b>|x</b>"), group="site")
    assert "<b>" not in markdown(found)
