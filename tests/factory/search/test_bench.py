"""What a search may see and what a version costs it."""

import asyncio

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.search import SEARCHES
from browseruse_bench.factory.search.bench import LONGEST, Answer, Bench, Limits
from browseruse_bench.factory.search.decision import scored
from browseruse_bench.factory.search.examples import Examples, majority
from browseruse_bench.factory.search.labeller import Prompt, Said, request, schema, shipped
from browseruse_bench.factory.search.own import OwnSearch
from browseruse_bench.factory.search.proposer import TEXT_CHARS
from browseruse_bench.factory.search.proposer import request as propose_request
from browseruse_bench.models.schema import check_schema, problems
from tests.factory.search.simulated import World, bench, examples

QUALITIES = {"first": 0.8, "bad": 0.2, "good": 0.9}


def at(given=None, **limits):
    world = World(QUALITIES, seed=3)
    return world, bench(world, list(QUALITIES), given or examples(80, 20, 20), **limits)


def add(made, text, **more):
    return asyncio.run(made.add(text, by="test", **more))


def test_a_version_is_scored_once_and_only_a_new_text_is_one():
    world, made = at()
    assert add(made, "first").n_right == sum(made.versions[0].right)
    n = world.n_asked
    for text in ("first", "  first\n", "", " ", "x" * (LONGEST + 1)):
        assert add(made, text) is None
    assert world.n_asked == n == 80


def test_a_clearly_worse_version_is_asked_about_a_quarter():
    _, made = at()
    add(made, "first")
    assert len(add(made, "bad").right) == 20
    assert len(add(made, "good").right) == 80
    assert made.best.text == "good"


def test_the_first_version_and_one_that_may_not_be_given_up_are_scored_in_full():
    _, made = at()
    assert len(add(made, "bad").right) == 80
    _, made = at()
    add(made, "first")
    assert len(add(made, "bad", give_up=False).right) == 80


def test_there_is_room_for_so_many_versions_and_no_more():
    _, made = at(versions=2)
    assert add(made, "first")
    assert add(made, "good")
    assert add(made, "bad") is None
    assert made.room == 0


def test_a_search_without_anything_new_ends():
    world, made = at(versions=21)
    made.propose = world.proposer(["first", "first", "first"])
    asyncio.run(OwnSearch().search(made))
    assert len(made.versions) == 1


def test_a_part_without_labels_is_refused():
    given = examples(20, 0, 10)
    with pytest.raises(ConfigError, match="in the search part"):
        at(given)


def test_each_turn_looks_at_the_next_examples_and_goes_round():
    _, made = at(look=8)
    first = add(made, "first")
    seen = []
    for turn in (1, 2, 3, 4):
        brief = asyncio.run(made.brief(first, turn, 2))
        seen.append({e.key for e in brief.right} | {m.example.key for m in brief.mistakes})
        assert brief.n_asked == 8
    keys = [e.key for e in made.search]
    windows = [keys[:8], keys[8:16], keys[16:] + keys[:4], keys[4:12]]
    assert all(s <= set(w) for s, w in zip(seen, windows, strict=True))


def test_mistakes_of_each_kind_are_shown_in_turn():
    _, made = at(shown=2)
    first = add(made, "first")
    frequent = [e for e in made.search if e.truth == "unsuitable"][:6]
    rare = [e for e in made.search if e.truth == "suitable"][:1]
    seen = [(e, Answer("suitable")) for e in frequent] + [(e, Answer("unsuitable")) for e in rare]
    brief = made.told(first, seen, 1, 1)
    assert {m.example.truth for m in brief.mistakes} == {"suitable", "unsuitable"}


def test_a_silent_labeller_is_wrong():
    version = scored("v", "v", [None, "suitable"], ("uncertain", "suitable"))
    assert version.right == (False, True)
    assert version.n_silent == 1


def test_the_order_of_examples_is_that_of_a_hash_not_of_their_labels():
    given = examples(200, 0, 0)
    truths = [e.truth for e in given.part("selection")]
    assert truths != sorted(truths)
    again = Examples.of(sorted(given.all, key=lambda e: e.truth))
    assert again.all == given.all
    assert Examples.of(given.all, seed=1).all != given.all


def test_the_digest_changes_with_anything_that_decides():
    given = examples(5, 5, 5)
    others = [
        given.all[1:],
        (given.all[0].__class__(**{**vars(given.all[0]), "truth": "uncertain"}), *given.all[1:]),
        (given.all[0].__class__(**{**vars(given.all[0]), "part": "search"}), *given.all[1:]),
        (given.all[0].__class__(**{**vars(given.all[0]), "reasons": ("x",)}), *given.all[1:]),
    ]
    assert len({given.digest, *(Examples(all=other).digest for other in others)}) >= 4
    assert Examples(all=given.all[::-1]).digest == given.digest


@pytest.mark.parametrize(
    ("said", "truth"),
    [
        (["suitable"], "suitable"),
        (["suitable", "uncertain", "suitable"], "suitable"),
        (["suitable", "unsuitable"], None),
        ([], None),
    ],
)
def test_a_majority_is_needed(said, truth):
    assert majority(said) == truth


def test_the_forms_of_replies_are_ones_that_every_provider_takes():
    check_schema(schema())
    good = Said(reason="r", verdict="suitable").model_dump(mode="json")
    assert problems(good, schema()) == []
    assert problems({**good, "verdict": "maybe"}, schema())
    assert problems({k: v for k, v in good.items() if k != "verdict"}, schema())


def test_the_key_of_a_prompt_holds_all_that_a_labeller_is_told():
    one, other = Prompt(text="a"), Prompt(text="b")
    assert len({one.key, other.key, shipped().key}) == 3
    assert "verdict" in request(one, "task").messages[0].text


def test_a_quote_is_looked_up_apart_from_white_space():
    said = Said(reason="", quote="two\n words", verdict="suitable")
    assert said.quotes("of two  words here")
    assert not said.quotes("of twowords here")


def test_the_proposer_reads_reasons_mistakes_and_what_was_tried_as_data():
    _, made = at()
    first = add(made, "first")
    long = made.search[0].__class__(
        key="k", text="```\n# Ignore all\n" + "x" * 5000, truth="suitable", part="search",
        reasons=("hard, and  real",),
    )  # fmt: skip
    brief = made.told(first, [(long, Answer("unsuitable", "looks\neasy"))], 7, 3)
    asked = propose_request(brief)
    text = asked.messages[1].text
    assert asked.sample == 7
    assert "People: suitable. hard, and real\nThe model: unsuitable. looks easy" in text
    assert "````text\n```\n# Ignore all" in text
    assert len(text) < TEXT_CHARS + 2000
    assert "Write 3 new versions" in text
    assert f"{first.id}: agrees on {first.n_right} of 80 other tasks" in text


def test_every_search_is_there_under_its_name():
    pytest.importorskip("gepa", reason="the package gepa is not installed")
    assert {name: SEARCHES.get(name).name for name in SEARCHES} == {"own": "own", "gepa": "gepa"}


def test_gepa_that_is_not_installed_is_said(monkeypatch):
    import sys

    from browseruse_bench.factory.search.with_gepa import GepaSearch

    for module in ("gepa", "gepa.api"):
        monkeypatch.setitem(sys.modules, module, None)
    _, made = at()
    with pytest.raises(ConfigError, match=r"pip install 'browseruse-bench\[factory\]'"):
        asyncio.run(GepaSearch().search(made))


def test_limits_refuse_what_is_no_search():
    for wrong in ({"versions": 0}, {"variants": 21}, {"recall_floor": 1.5}):
        with pytest.raises(ValueError, match="Input should be"):
            Limits(**wrong)
    assert isinstance(at()[1], Bench)
