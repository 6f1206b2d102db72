"""Attacks are named once, say what they do, and are chosen by name or family."""

from typing import get_args

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.eval.redteam.catalogue import ATTACKS, chosen
from browseruse_bench.eval.redteam.draft import Draft
from browseruse_bench.measure.redteam import Family
from tests.eval.redteam.made import honest


def test_names_are_unique_and_none_is_that_of_a_family():
    names = [attack.name for attack in ATTACKS]
    assert len(names) == len(set(names))
    assert not set(names) & set(get_args(Family))
    assert {attack.family for attack in ATTACKS} == set(get_args(Family))
    assert all(attack.says for attack in ATTACKS)


def test_honest_copies_are_those_that_must_stay_as_they_are():
    for attack in ATTACKS:
        assert (attack.family == "honest") == (attack.must in ("lose_nothing", "same"))
        assert (attack.family == "files") == (attack.must == "refused")
        assert (attack.damage is not None) == (attack.must == "refused")


def test_names_and_families_are_chosen_in_the_order_of_the_catalogue():
    found = chosen(["honest", "typed"])
    assert found[0].name == "typed"
    assert {attack.family for attack in found[1:]} == {"honest"}
    assert chosen([]) == ATTACKS


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'typed-base64'"):
        chosen(["typed-bas64"])


def test_who_can_tell_depends_on_who_reads_and_whose_word_it_is(tmp_path, make_trace):
    harness = Draft.of(honest(make_trace, tmp_path / "harness"))
    told = Draft.of(honest(make_trace, tmp_path / "told", evidence_policy="agent_reported"))
    by_name = {attack.name: attack for attack in ATTACKS}

    def who(name, draft, *, model):
        return by_name[name].told_by(draft, model=model)

    assert who("verdict-in-page", harness, model=False) == "code"
    assert who("verdict-in-page", harness, model=True) == "judge"
    assert who("typed", harness, model=True) == "code"
    assert who("captured-by-agent", harness, model=True) == "code"
    assert who("captured-by-agent", told, model=True) == "nobody"
    assert who("file-from-memory", harness, model=True) == "code"
