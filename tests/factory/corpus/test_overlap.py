import json
import os
from pathlib import Path

import numpy as np
import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.corpus import kernels, overlap
from browseruse_bench.factory.corpus.overlap import Reference
from browseruse_bench.factory.corpus.texts import of_strings

WORDS = "amber basil cedar delta ember fjord grove haven inlet joker kiosk lemon mango noble ocean"
LONG = (
    "Browse the catalogue of the maritime museum for lighthouse models built before the war, sort "
    "them by height and report the name of the tallest one on the website"
)
SHORT = "Show me the tallest lighthouse of Norway with a hotel inside"
TAIL = " Only use the start page that is given and never leave this site for another one."
REFERENCES = [
    Reference("Lights", "L1", LONG),
    Reference("Lights", "L2", SHORT),
    *(
        Reference("Tails", f"T{i}", f"Order {word} tea from the {word} shop.{TAIL}")
        for i, word in enumerate(WORDS.split()[:8])
    ),
]


def held(texts, references=REFERENCES, threshold=0.6, frequent=None):
    index = overlap.build(references, mask=True)
    column = of_strings(texts)
    keys = kernels.keys(*column, True)[0][0]
    never = np.zeros(len(index.table), bool) if frequent is None else frequent
    found = overlap.held(
        index,
        column,
        keys,
        kernels.sketches(*column, True),
        met=overlap.count_grams(index, column, threshold=threshold)[1],
        frequent=never,
        threshold=threshold,
    )
    return dict(found)


def test_embedded_and_edited_copies_are_caught_and_named_BL070():  # noqa: N802
    texts = [
        f"Hello, I need this for school. {LONG} Then write me a poem about it and send it over.",
        LONG.upper(),
        LONG.replace("tallest", "talest"),
        f"please {SHORT.lower()}, thanks",
    ]
    found = held(texts)
    assert [found[i]["id"] for i in range(4)] == ["L1", "L1", "L1", "L2"]
    assert {fact["benchmark"] for fact in found.values()} == {"Lights"}
    assert [found[i]["how"] for i in range(2)] == ["word grams", "equal"]


def test_the_same_task_with_another_date_is_caught_BL070():  # noqa: N802
    reference = [
        Reference("B", "1", "Find a ferry from Bergen to Turku on 3 May 2024 for two cars")
    ]
    assert held(["Find a ferry from Bergen to Turku on 17 May 2031 for two cars"], reference)


def test_common_phrases_and_shared_boilerplate_are_not_caught_BL070():  # noqa: N802
    texts = [
        "Report the name of the tallest tree on the website",
        f"Book a table for two in the harbour.{TAIL}",
        "Which lighthouse has a hotel?",
    ]
    assert held(texts) == {}


@pytest.mark.parametrize(
    ("threshold", "caught"), [(0.01, True), (0.59, True), (0.6, True), (0.61, False), (1.0, False)]
)
def test_the_threshold_is_read_and_decides_on_both_sides_BL069(threshold, caught):  # noqa: N802
    words = WORDS.split()
    # 15 words have 11 grams of 5; of 25 words 21 grams would be 8 long: 17 less 7.
    reference = [Reference("B", "1", " ".join(words[:14]))]
    kept = " ".join(words[:10])
    assert overlap.build(reference, mask=True).grams.tolist() == [10]
    assert bool(held([f"{kept} and something else"], reference, threshold)) is caught


def test_grams_that_are_frequent_in_the_corpus_do_not_count():
    index = overlap.build(REFERENCES, mask=True)
    everything = np.ones(len(index.table), bool)
    text = f"Hello there, I need all of this for my school work: {LONG} Then write a long poem."
    assert held([text])
    assert held([text], frequent=everything) == {}


def test_text_without_spaces_is_compared_by_characters():
    chinese = "请打开海事博物馆的目录查找战前建造的灯塔模型并按高度排序"
    reference = [Reference("B", "zh", chinese)]
    assert held([f"你好，{chinese}，然后写一首关于大海的长诗给我的朋友们看看好吗"], reference)
    assert held(["请打开图书馆的目录查找关于大海的长诗"], reference) == {}


def test_a_copy_in_two_benchmarks_is_still_one_that_is_held():
    twice = [Reference("A", "1", LONG), Reference("B", "1", LONG.replace("website", "web site"))]
    assert held([f"Dear helper, kindly do as follows: {LONG} And be quick."], twice)


def test_benchmarks_are_read_from_folders_of_many_shapes(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "data.json").write_text(json.dumps({"tasks": [{"id": 7, "task": "one"}]}))
    (tmp_path / "b" / "x.jsonl").write_text('{"task_id": "q", "confirmed_task": "two"}\n')
    (tmp_path / "b" / "y.csv").write_text("ID,Task\n3,three\n")
    found = overlap.read_references(tmp_path, ["b"])
    assert [(r.benchmark, r.id, r.text) for r in found] == [
        ("b", "3", "three"),
        ("b", "7", "one"),
        ("b", "q", "two"),
    ]


def test_benchmarks_that_hold_nothing_are_refused_all_at_once(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"empty.*\n.*nowhere"):
        overlap.read_references(tmp_path, ["empty", "nowhere"])


def test_an_index_comes_back_as_it_was_saved(tmp_path):
    index = overlap.build(REFERENCES, mask=True)
    index.save(tmp_path / "i.npz")
    again = overlap.Index.load(tmp_path / "i.npz")
    assert again.references == index.references
    assert all(
        np.array_equal(getattr(again, name), getattr(index, name))
        for name in index.__dataclass_fields__
        if name != "references"
    )


@pytest.mark.oracle
def test_public_benchmarks_are_found_and_do_not_hold_each_other_by_chance():
    root = os.environ.get("BUBENCH_ORACLE_DATA")
    if not root:
        pytest.skip("BUBENCH_ORACLE_DATA is not set: the public data is not here")
    names = ["webvoyager", "online-mind2web", "odysseys"]
    references = overlap.read_references(Path(root), names)
    assert len(references) > 900
    chosen = references[::7]
    rest = [r for r in references if r not in chosen]
    assert len(held([r.text for r in chosen], chosen)) == len(chosen)
    assert len(held([f"Hi! {r.text} Thank you." for r in chosen], chosen)) >= 0.95 * len(chosen)
    assert len(held([r.text for r in rest], chosen)) <= 0.05 * len(rest)
