import asyncio
import json

import pytest

from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.eval.regrading import read_judgements
from browseruse_bench.eval.stability import choose, journal_of, regrade_run
from browseruse_bench.records.trace import Usage
from browseruse_bench.report.render import plain_table
from browseruse_bench.report.stability import stability
from browseruse_bench.report.stability_text import claim_sentence, markdown, tables
from tests.eval.flipping import FlippingJudge
from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric


def texts(task_id, *requirements, check=()):
    made = rubric(task_id, *[100 // len(requirements)] * len(requirements))
    for n, (item, text) in enumerate(zip(made["items"], requirements, strict=True)):
        item["requirement"] = text
        if n not in check:
            item["check"] = None
    return made


@pytest.fixture
def bench(tmp_path):
    rows = [row("a"), row("b"), row("c")]
    rubrics = {
        "a": texts("a", "decided met", "decided violated"),
        "b": texts("b", "met with 0.5", "decided met"),
        "c": texts("c", "decided met", "decided met", check=(1,)),
    }
    return MadeBenchmark(tmp_path / "Made", rows, rubrics=rubrics)


@pytest.fixture
def run(tmp_path, bench):
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded, repeat=2)
    for task_id in "abc":
        for attempt in (1, 2):
            made.settle(loaded, task_id, "An answer", attempt=attempt)
    return made


def report(run, bench, *judges, samples=5, **options):
    chosen = choose(run.folder, bench.load())
    judges = judges or (FlippingJudge(),)
    asyncio.run(regrade_run(run.folder, chosen.specimens, judges, samples=samples))
    keys = options.pop("judge_keys", [judge.judge_key for judge in judges])
    return stability(
        run.run,
        chosen.specimens,
        read_judgements(journal_of(run.folder)),
        judge_keys=keys,
        **options,
    )


def words(found):
    return "\n".join(plain_table(table) for table in tables(found))


def test_the_item_that_flips_comes_first_and_is_to_be_reworded(run, bench):
    (judge,) = report(run, bench).judges
    first, *others = judge.items
    assert (first.flips.task_id, first.flips.item, first.over) == ("b", "I0", True)
    assert first.requirement == "met with 0.5"
    assert all(not item.over and item.flips.credit.n_disagreeing == 0 for item in others)
    assert judge.pooled.n_disagreeing == first.flips.credit.n_disagreeing > 0
    assert judge.pooled.n_pairs == (4 * 2 + 2) // 2 * 20


def test_items_that_code_decides_are_counted_and_left_out_of_the_rate(run, bench):
    found = report(run, bench)
    assert found.n_by_code == 1
    assert ("c", "I1") not in {(i.flips.task_id, i.flips.item) for i in found.judges[0].items}
    assert found.judges[0].pooled.n_items == 5
    assert "1 items: not compared" in words(found)


def test_the_scores_of_a_judge_that_flips_spread_by_judge_and_not_by_run(run, bench):
    (judge,) = report(run, bench, samples=10).judges
    assert judge.variance.judge > 0
    assert judge.points_apart > 0
    assert judge.variance.df_run == 3
    assert judge.success.n_disagreeing > 0


def test_a_judge_that_holds_still_has_no_spread_and_still_claims_nothing_from_few(run, bench):
    bench.rubrics["b"] = texts("b", "decided met", "decided met")
    found = report(run, bench)
    (judge,) = found.judges
    assert (judge.pooled.here.rate, judge.variance.judge, judge.points_apart) == (0, 0, 0)
    assert not judge.claim.shown
    assert judge.claim.n_comparisons == pytest.approx(6 * 2.5)
    assert judge.pooled.here.high > 0.1
    assert "not shown" in words(found)
    assert f"{judge.claim.more_regrades} more regrades" in words(found)
    assert "decided" not in words(found).replace("decided by code", "")


def test_ungraded_regrades_are_counted_apart_and_forbid_the_claim(run, bench):
    judge = FlippingJudge(ungraded=lambda case: case.sample == 0)
    (of_judge,) = report(run, bench, judge).judges
    assert of_judge.ungraded == {"judge_fault": 6}
    assert (of_judge.n_regrades, of_judge.n_graded, of_judge.n_short) == (30, 24, 0)
    assert of_judge.pooled.n_pairs == 10 // 2 * 12
    assert of_judge.claim.ungraded == pytest.approx(0.2)
    ungraded = of_judge.claim.model_copy(update={"upper": 0.001})
    assert "not claimed, 20.0% of the regrades have no grade" in claim_sentence(ungraded)


def test_a_trace_without_two_grades_is_too_few_and_is_said(run, bench):
    judge = FlippingJudge(ungraded=lambda case: case.task.task_id == "a" and case.sample > 0)
    found = report(run, bench, judge)
    assert found.judges[0].n_short == 2
    assert "2 traces with fewer than two grades" in words(found)
    never = [i for i in found.judges[0].items if i.flips.task_id == "a"]
    assert [item.flips.credit.share.rate for item in never] == [None, None]


def test_flags_that_flip_are_counted_and_shown_side_by_side_before_all_items(run, bench):
    judge = FlippingJudge(flagged=lambda c: c.task.task_id == "a" and c.sample == 2)
    found = report(run, bench, judge)
    every, lying = found.judges[0].flags
    assert (every.flag, lying.flag, every.n_raised) == ("any", "lying", 2)
    assert every.flips.n_disagreeing == 2 * 4
    first = found.disagreements[0]
    assert (first.task_id, first.item) == ("a", None)
    assert first.no_credit.integrity[0].claim == "it lied"
    assert first.credit.integrity == ()
    assert "lying: it lied" in markdown(found)
    assert found.judges[0].success.n_disagreeing >= 0


def test_two_judges_disagree_where_one_reads_an_item_otherwise(run, bench):
    class Strict(FlippingJudge):
        """Denies the first item of "a" and "c", always."""

        async def judge(self, case):
            verdict = await super().judge(case)
            findings = tuple(
                f.model_copy(update={"status": "violated"})
                if f.item == "I0" and case.task.task_id != "b"
                else f
                for f in verdict.findings
            )
            return type(verdict)(findings=findings)

    found = report(run, bench, FlippingJudge(), Strict("strict"))
    assert [judge.judge for judge in found.judges] == ["double/1", "strict/1"]
    between = {(row.task_id, row.item): row.share.rate for row in found.between.items}
    assert between["a", "I0"] == between["c", "I0"] == 1
    assert found.between.pooled.n_pairs == 5 * 2 * 25
    assert found.between.pooled.here.rate > found.between.within
    assert found.between.flags.rate == 0
    pair = next(d for d in found.disagreements if (d.task_id, d.item) == ("a", "I0"))
    assert {pair.credit.judge, pair.no_credit.judge} == {"double/1", "strict/1"}
    assert "Between the two judges" in words(found)


def test_judges_are_named_by_their_models(run, bench):
    usage = (Usage(model="small", cost_usd=0.5),)
    found = report(run, bench, FlippingJudge(usage=usage))
    assert found.judges[0].judge == "small (double/1)"
    assert found.judges[0].cost.cost_usd == pytest.approx(15)
    assert "$15.00, $0.5000 a regrade" in words(found)


def test_a_cost_that_is_unknown_is_never_0(run, bench):
    usage = (Usage(model="small", cost_usd=None),)
    found = report(run, bench, FlippingJudge(usage=usage))
    assert (found.judges[0].cost.cost_usd, found.judges[0].cost.n_unknown) == (None, 30)
    assert "unknown" in words(found)


def test_without_a_named_judge_those_that_are_there_are_reported(run, bench):
    report(run, bench, FlippingJudge(), FlippingJudge("other", seed=1))
    found = report(run, bench, judge_keys=[])
    assert len(found.judges) == 2
    with pytest.raises(ConfigError, match="3 judges"):
        report(run, bench, FlippingJudge("third"), judge_keys=[])


def test_without_regrades_there_is_nothing_to_report(run, bench):
    chosen = choose(run.folder, bench.load())
    with pytest.raises(ConfigError, match="--judge"):
        stability(run.run, chosen.specimens, [])


def test_regrades_of_another_rubric_do_not_count(run, bench):
    report(run, bench)
    bench.rubrics["b"] = texts("b", "decided met", "decided met")
    chosen = choose(run.folder, bench.load())
    found = stability(run.run, chosen.specimens, read_judgements(journal_of(run.folder)))
    assert found.judges[0].pooled.n_traces == 4
    assert found.judges[0].n_short == 2


def test_traces_in_which_nothing_was_done_are_not_compared(run, bench):
    class Idle(FlippingJudge):
        async def judge(self, case):
            verdict = await super().judge(case)
            if case.task.task_id == "b":
                return type(verdict)(findings=verdict.findings, details={"mode": "none"})
            return verdict

    found = report(run, bench, Idle())
    assert found.n_idle == 2
    assert found.judges[0].pooled.n_traces == 4
    assert "2 traces in which the agent did nothing" in words(found)


def test_a_regrade_of_other_items_than_the_rubrics_is_a_data_error(run, bench):
    class Short(FlippingJudge):
        async def judge(self, case):
            verdict = await super().judge(case)
            return type(verdict)(findings=verdict.findings[1:])

    with pytest.raises(DataError, match="no finding for item 'I0'"):
        report(run, bench, Short())


def test_where_code_decides_everything_only_flags_are_compared(tmp_path):
    rubrics = {"a": texts("a", "decided met", "decided met", check=(0, 1))}
    bench = MadeBenchmark(tmp_path / "Made", [row("a")], rubrics=rubrics)
    run = MadeRun.of(tmp_path / "e", bench.load())
    run.settle(bench.load(), "a", "x")
    found = report(run, bench)
    (judge,) = found.judges
    assert (judge.items, judge.pooled.n_pairs, judge.pooled.here.rate) == ((), 0, None)
    assert (found.n_by_code, judge.flags[0].flips.n_pairs) == (2, 10)
    assert "only integrity flags could flip" in words(found)
    every = report(run, bench, by_code=False).judges[0]
    assert every.pooled.n_pairs == 20


def test_what_code_decides_and_flips_all_the_same_is_called_a_defect(tmp_path):
    rubrics = {"a": texts("a", "met with 0.5", "decided met", check=(0,))}
    bench = MadeBenchmark(tmp_path / "Made", [row("a")], rubrics=rubrics)
    run = MadeRun.of(tmp_path / "e", bench.load())
    run.settle(bench.load(), "a", "x")
    assert "a defect of the harness" in words(report(run, bench, samples=10))


def test_what_rests_on_the_agents_word_is_marked(tmp_path):
    rubrics = {"a": texts("a", "decided met", "decided met")}
    bench = MadeBenchmark(tmp_path / "Made", [row("a")], rubrics=rubrics)
    run = MadeRun.of(tmp_path / "e", bench.load())
    run.settle(bench.load(), "a", "x", evidence_policy="agent_reported")
    assert "agent_reported" in words(report(run, bench))


def test_markdown_shows_the_disagreement_in_two_columns_and_hostile_text_stays_text(run, bench):
    bench.rubrics["b"] = texts("b", "met with 0.5 <script>alert(1)</script> | [x](http://y)", "x")
    found = report(run, bench)
    text = markdown(found)
    assert "| attempt 1 | credit | no credit |" in text
    assert "| status | met | violated |" in text
    assert "<script>" not in text
    assert "://" not in text


def test_json_holds_all_of_it_and_nulls_for_what_is_not_known(run, bench):
    judge = FlippingJudge(ungraded=lambda case: True)
    found = report(run, bench, judge)
    plain = json.loads(found.model_dump_json())
    assert plain["judges"][0]["pooled"]["here"]["rate"] is None
    assert plain["judges"][0]["claim"]["upper"] is None
    assert plain["judges"][0]["variance"]["judge"] is None
    assert "nothing was compared" in words(found)


def test_the_report_lists_items_with_intervals_and_claims_no_determinism_bl051(run, bench):
    """A judge that flips one item with a known probability: its rate, an interval, what is over
    the threshold; a judge that did not flip gets an interval that is not empty.
    """
    (judge,) = report(run, bench, samples=10).judges
    item = judge.items[0]
    assert item.flips.credit.share.low <= 0.5 <= item.flips.credit.share.high
    assert item.over
    for other in judge.items[1:]:
        assert other.flips.credit.share.rate == 0
        assert other.flips.credit.share.high > 0.2


def test_equal_scores_of_unlike_findings_are_flips_bl052(tmp_path):
    """Identical input, two readings with 50 points each: the points never differ, both items do."""

    class Swapping(FlippingJudge):
        async def judge(self, case):
            verdict = await super().judge(case)
            odd = case.sample % 2
            findings = tuple(
                f.model_copy(update={"status": "met" if n == odd else "violated"})
                for n, f in enumerate(verdict.findings)
            )
            return type(verdict)(findings=findings)

    rubrics = {"a": texts("a", "first half", "second half")}
    bench = MadeBenchmark(tmp_path / "Made", [row("a")], rubrics=rubrics)
    run = MadeRun.of(tmp_path / "e", bench.load())
    run.settle(bench.load(), "a", "x")
    (judge,) = report(run, bench, Swapping(), samples=4).judges
    assert judge.points_apart == 0
    assert judge.pooled.here.rate == pytest.approx(4 / 6)
    assert [item.flips.credit.n_disagreeing for item in judge.items] == [4, 4]
