"""A search over the interface of models: what is asked, paid, kept and told."""

import json

import pytest

from browseruse_bench.errors import BudgetError, ConfigError, IncompleteError
from browseruse_bench.factory.search.book import Book
from browseruse_bench.factory.search.result import Result
from browseruse_bench.models.base import MalformedError, OutageError, RefusalError
from browseruse_bench.records.trace import Usage
from browseruse_bench.store.files import read_json
from tests.factory.search.scripted import Labeller, Proposer, Setting, parsed

FOUR = {"first prompt": 0.6, "worse": 0.5, "better": 0.95, "other": 0.6}


class KilledError(BaseException):
    """What no code of ours catches, as a kill is."""


def paid(usage=0.01):
    return Usage(model="small", cost_usd=usage, price_source="test")


def test_the_best_version_is_chosen_and_its_ledger_has_text_score_cost_and_parent(tmp_path):
    setting = Setting(tmp_path, FOUR)
    result = setting.search()
    chosen = next(v for v in result.versions if v.id == result.decision.chosen)
    assert chosen.text == "better"
    run = tmp_path / "restricted" / "search" / "runs" / result.id
    lines = [json.loads(line) for line in (run / "versions.jsonl").read_text().splitlines()]
    assert [line["text"] for line in lines] == list(FOUR)
    assert all(line["cost_usd"] == 0 and line["agreement"]["of"] for line in lines)
    assert {line.get("parent") for line in lines[1:]} == {lines[0]["id"]}
    assert lines[2]["change"] == "change to better"
    assert Result.model_validate(read_json(run / "result.json")) == result
    assert "better" in (run / "report.md").read_text()


def test_nothing_of_selection_or_validation_is_ever_shown_to_the_proposer(tmp_path):
    setting = Setting(tmp_path, FOUR)
    setting.search()
    hidden = [e for e in setting.examples.all if e.part != "search"]
    told = "\n".join(setting.proposer.asked)
    words = {line.strip() for line in told.splitlines()}
    assert setting.proposer.asked
    assert not [
        e for e in hidden if e.text in words or f"because {e.key}" in told.split("People: ")
    ]
    seen = [e for e in setting.examples.part("search") if e.text in words]
    assert seen


def test_validation_is_asked_for_two_versions_only_and_after_the_last_proposal(tmp_path):
    order = []
    setting = Setting(tmp_path, FOUR)
    validation = {e.text for e in setting.examples.part("validation")}
    setting.labeller = lambda text, sample, ask=setting.labeller: (
        order.append(parsed(text)), ask(text, sample))[1]  # fmt: skip
    setting.search()
    where = [i for i, (_, task) in enumerate(order) if task in validation]
    assert {order[i][0] for i in where} == {"first prompt", "better"}
    assert min(where) == len(order) - len(where)


def test_the_same_search_again_asks_nobody(tmp_path):
    first = Setting(tmp_path, FOUR).search()
    again = Setting(tmp_path, FOUR)
    assert again.search() == first
    assert again.labeller.asked == again.proposer.asked == []


@pytest.fixture(scope="module")
def unkilled(tmp_path_factory):
    return Setting(tmp_path_factory.mktemp("unkilled"), FOUR).search().decision


@pytest.mark.parametrize("at", [1, 20, 45, 98])
def test_a_search_killed_at_any_question_goes_on_and_pays_nothing_twice(tmp_path, unkilled, at):
    answered = []

    class Dies(Labeller):
        def __call__(self, text, sample):
            if len(answered) == at:
                raise KilledError
            answered.append(parsed(text))
            return super().__call__(text, sample)

    setting = Setting(tmp_path, FOUR)
    setting.labeller = Dies(setting.world, setting.examples)
    try:
        setting.search()
    except KilledError:
        pass
    else:
        assert len(answered) <= at
    again = Setting(tmp_path, FOUR)
    result = again.search()
    everything = [*answered, *again.labeller.asked]
    assert len(set(everything)) == len(everything)
    assert result.decision == unkilled


def test_a_proposer_that_dies_is_asked_again_only_for_what_it_did_not_say(tmp_path):
    class Dies(Proposer):
        def __call__(self, text, sample):
            if sample == 2:
                raise KilledError
            return super().__call__(text, sample)

    order = [f"version {i}" for i in range(9)]
    with pytest.raises(KilledError):
        Setting(tmp_path, dict.fromkeys(order, 0.7), proposer=Dies(order[1:])).search()
    again = Setting(tmp_path, dict.fromkeys(order, 0.7))
    assert len(again.search().versions) == 9
    assert len(again.proposer.asked) == 1


def test_a_refusal_counts_as_wrong_and_is_not_paid_twice(tmp_path):
    setting = Setting(tmp_path, FOUR)
    target = setting.examples.part("selection")[0].text
    n = []

    def refuses(text, sample):
        if parsed(text)[1] == target:
            n.append(1)
            raise RefusalError("no", usage=paid())
        return Labeller(setting.world, setting.examples)(text, sample)

    setting.labeller = refuses
    result = setting.search()
    n_versions = sum(not v.given_up or v.agreement.of for v in result.versions)
    assert len(n) == n_versions
    assert all(v.n_silent == 1 for v in result.versions)
    assert result.cost_usd == pytest.approx(0.01 * n_versions)
    setting.search()
    assert len(n) == n_versions


def test_a_reply_of_the_proposer_that_cannot_be_used_is_counted_and_not_paid_twice(tmp_path):
    def garbles(text, sample):
        garbled.append(sample)
        raise MalformedError("no JSON", usage=paid(1))

    garbled = []
    setting = Setting(tmp_path, FOUR, proposer=garbles)
    result = setting.search()
    assert (result.n_proposals, result.n_proposals_silent, len(garbled)) == (2, 2, 2)
    assert result.cost_usd == pytest.approx(2)
    assert result.decision.sentence.endswith("is the only version that was scored in full")
    setting.search()
    assert len(garbled) == 2


def test_an_outage_is_owed_and_all_that_was_answered_is_kept(tmp_path):
    setting = Setting(tmp_path, FOUR)
    away = {e.text for e in setting.examples.part("selection")[5:8]}

    def sometimes(text, sample):
        if parsed(text)[1] in away:
            raise OutageError("503")
        return Labeller(setting.world, setting.examples)(text, sample)

    setting.labeller = sometimes
    with pytest.raises(IncompleteError, match=r"3 of 20 tasks have no answer yet \(503\)"):
        setting.search()
    again = Setting(tmp_path, FOUR)
    again.search()
    assert [task for v, task in again.labeller.asked if v == "first prompt"][:3] == [
        e.text for e in again.examples.part("selection")[5:8]
    ]


def test_a_provider_that_is_away_is_not_asked_for_everything(tmp_path):
    n = []

    def away(text, sample):
        n.append(1)
        raise OutageError("503")

    with pytest.raises(IncompleteError, match="90 of 90"):
        Setting(tmp_path, FOUR, n=(90, 2, 2), labeller=away).search()
    assert len(n) < 70


def test_a_reached_budget_is_said_and_what_was_paid_is_kept(tmp_path):
    setting = Setting(tmp_path, FOUR)

    def poor(text, sample):
        if len(asked) == 15:
            raise BudgetError("[budget] usd 1 is reached")
        asked.append(text)
        return Labeller(setting.world, setting.examples)(text, sample)

    asked = []
    setting.labeller = poor
    with pytest.raises(BudgetError, match="is reached"):
        setting.search()
    again = Setting(tmp_path, FOUR)
    again.search()
    assert not {parsed(text) for text in asked} & set(again.labeller.asked)


def test_a_model_that_may_not_see_restricted_text_is_refused_before_anything_is_paid(tmp_path):
    setting = Setting(tmp_path, FOUR, may_see="clean")
    with pytest.raises(ConfigError, match='may_see = "restricted"'):
        setting.search()
    assert setting.labeller.asked == []


def test_two_searches_at_a_time_in_one_folder_are_refused(tmp_path):
    from browseruse_bench.factory.search.run import alone

    setting = Setting(tmp_path, FOUR)
    with alone(tmp_path / "restricted" / "search"), pytest.raises(ConfigError, match="under way"):
        setting.search()


def test_other_labels_make_another_search_beside_the_old_one_with_the_same_books(tmp_path):
    first = Setting(tmp_path, FOUR)
    one = first.search()
    more = Setting(tmp_path, FOUR, examples=type(first.examples)(all=first.examples.all[1:]))
    other = more.search()
    assert other.id != one.id
    assert more.labeller.asked == []
    assert len(list((tmp_path / "restricted" / "search" / "runs").iterdir())) == 2


def test_more_versions_go_on_with_the_same_search(tmp_path):
    order = {f"version {i}": 0.7 for i in range(8)}
    short = Setting(tmp_path, order, limits={"versions": 5})
    long = Setting(tmp_path, order)
    one, other = short.search(), long.search()
    assert one.id == other.id
    assert (len(one.versions), len(other.versions)) == (5, 8)
    assert not set(short.labeller.asked) & set(long.labeller.asked)


def test_a_damaged_book_is_refused_with_its_line(tmp_path):
    from browseruse_bench.errors import DataError

    Setting(tmp_path, FOUR).search()
    path = tmp_path / "restricted" / "search" / "answers.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0].replace('"verdict"', '"verdikt"'), *lines[1:]]) + "\n")
    with pytest.raises(DataError, match="line 1 is damaged"):
        Book(path.parent)


def test_labelled_by_heart_shows_in_the_validation_figure(tmp_path):
    order = {"first prompt": 0.7, "learned by heart": 0.7}
    result = Setting(tmp_path, order, n=(80, 6, 40)).search()
    assert result.outcome.selection.agreement.rate == 1
    assert result.outcome.overfitted
    assert "is fitted to the labels" in result.outcome.drop_sentence
    report = next((tmp_path / "restricted/search/runs").glob("*/report.md")).read_text()
    assert "believe the validation figure" in report


def test_gepa_stops_and_goes_on_without_paying_twice(tmp_path):
    pytest.importorskip("gepa", reason="the package gepa is not installed")
    order = {f"version {i}": 0.5 + i / 20 for i in range(7)}
    short = Setting(tmp_path, order, method="gepa", limits={"shown": 8}, proposer=_one(order))
    n = []

    def dies(text, sample, ask=short.labeller):
        if len(n) == 60:
            raise KilledError
        n.append(parsed(text))
        return ask(text, sample)

    short.labeller = dies
    with pytest.raises(KilledError):
        short.search()
    again = Setting(tmp_path, order, method="gepa", limits={"shown": 8}, proposer=_one(order))
    result = again.search()
    assert {v.by for v in result.versions} == {"first", "gepa"}
    everything = [*n, *again.labeller.asked]
    assert len(set(everything)) == len(everything)


def _one(order):
    return Proposer(list(order)[1:], n=1)
