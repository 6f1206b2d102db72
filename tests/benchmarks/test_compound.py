import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.benchmarks.compound import cues, is_read
from tests.benchmarks.labelled import compound_figures
from tests.benchmarks.publishers import oracle
from tests.benchmarks.requirements_by_hand import ATOMIC, COMPOUND


@pytest.mark.parametrize("requirement", ATOMIC)
def test_one_thing_over_one_scope_is_right(requirement):
    assert cues(requirement) == ()


@pytest.mark.parametrize(("requirement", "kind"), COMPOUND.items())
def test_several_results_are_found_and_their_place_is_quoted(requirement, kind):
    found = cues(requirement)
    assert kind in {cue.kind for cue in found}
    for cue in found:
        words = cue.words.removesuffix(" …")
        if "“…”" not in words and ":" not in words:
            first = words.split()[0].strip(",")
            assert first.lower() in requirement.lower()
        assert words in cue.reason


def test_there_are_enough_examples():
    assert min(len(set(ATOMIC)), len(COMPOUND)) >= 25


@given(st.text(max_size=200) | st.lists(st.sampled_from([*ATOMIC, *COMPOUND])).map(" ".join))
def test_any_text_is_read_the_same_each_time(text):
    assert cues(text) == cues(text)


@pytest.mark.parametrize(
    "text",
    ["找出价格，并记录作者和日期。", "Записать цену и автора.", "返回评分较高的菜谱及评分 5"],
)
def test_a_language_that_the_rules_do_not_know_gives_no_cue_and_is_said_to(text):
    assert not is_read(text)
    assert cues(text) == ()


def test_alternatives_are_no_second_result():
    assert cues("Names a hotel or a hostel with a pool, a sauna, or a gym.") == ()


def test_a_way_with_a_count_of_its_own_is_a_result():
    assert cues("Read the review and summarize its verdict.") == ()
    assert cues("Read at least three reviews and summarize their verdict.") != ()


@oracle.needed
@pytest.mark.oracle
@pytest.mark.parametrize(
    ("part", "figures"),
    [("development", (64, 1, 1, 13)), ("held_out", (89, 6, 8, 27))],
)
def test_the_rules_agree_with_what_was_labelled_by_reading(part, figures):
    """(found and compound, found and not, missed, rightly passed); docs/rubrics.md says so."""
    assert compound_figures(part) == figures
