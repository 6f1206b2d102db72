"""Every selected attempt is in exactly one place, or the record cannot be made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from browseruse_bench.records.run import Accounting

COUNTS = st.integers(0, 1000)


@pytest.mark.parametrize(
    "parts",
    [
        {"selected": 16, "graded": 10},
        {"selected": 10, "graded": 10, "infrastructure": 6},
        {"selected": 4, "graded": 1, "ungraded": {"judge_fault": 2}},
    ],
)
def test_counts_that_lose_or_double_an_attempt_are_refused_bl060(parts):
    """BL060: 6 of 16 errored and are reported nowhere."""
    with pytest.raises(ValidationError, match="selected"):
        Accounting.model_validate(parts)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_the_sentence_names_every_part_bl058(graded, faults, infrastructure, pending):
    """BL058: what has no verdict is counted where a reader sees it."""
    total = graded + faults + infrastructure + pending
    sentence = Accounting(
        selected=total,
        graded=graded,
        ungraded={"judge_fault": faults},
        infrastructure=infrastructure,
        not_run={"pending": pending},
    ).sentence
    ungraded = f"{faults} (judge_fault {faults})" if faults else "0"
    not_run = f"{pending} (pending {pending})" if pending else "0"
    assert sentence == (
        f"selected {total} = graded {graded} + ungraded {ungraded}"
        f" + infrastructure {infrastructure} + not run {not_run}"
    )
