import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.factory.corpus import kernels
from browseruse_bench.factory.corpus.engines import Embedded
from browseruse_bench.factory.corpus.grouping import record_type
from browseruse_bench.factory.corpus.linking import link_all
from browseruse_bench.factory.corpus.overlap import need
from browseruse_bench.factory.corpus.texts import of_strings

WORDS = [
    "amber",
    "basil",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "haven",
    "inlet",
    "joker",
    "kiosk",
    "lemon",
    "mango",
    "noble",
    "ocean",
    "petal",
    "quilt",
    "raven",
    "sable",
    "tulip",
    "umbra",
    "velvet",
    "willow",
    "yonder",
    "zephyr",
    "anchor",
    "bridge",
    "candle",
    "drift",
]


def records(texts, *, mask=True):
    column = of_strings(texts)
    hashes, _ = kernels.keys(*column, mask)
    made = np.zeros(len(texts), record_type(kernels.SKETCH))
    made["key"], made["entity"] = hashes[0], hashes[2]
    made["sketch"] = kernels.sketches(*column, mask)
    return np.sort(made, order="key")


def clusters(folder, texts, *, old=(), similarity=0.5, mask=True, part_records=250_000, files=1):
    """Text -> text of its leader; texts are dealt to so many files in the order given."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for place, some in enumerate([*(texts[n::files] for n in range(files)), old]):
        paths.append(folder / f"{place}.npy")
        np.save(paths[-1], records(some, mask=mask))
    links = link_all(
        folder / "link",
        new=paths[:-1],
        old=paths[-1:],
        need=need(similarity),
        engine=Embedded(2),
        part_records=part_records,
    )
    every = [*texts, *old]
    keys = kernels.keys(*of_strings(every), mask)[0][0].tolist()
    named = dict(zip(keys, every, strict=True))
    leader = dict(zip(links.child.tolist(), links.leader.tolist(), strict=True))
    return {text: named[leader.get(key, key)] for key, text in zip(keys, every, strict=True)}


def jaccard(one, other):
    def grams(text):
        return {text[i : i + 5] for i in range(len(text) - 4)}

    return len(grams(one) & grams(other)) / len(grams(one) | grams(other))


def sentences(seed, n):
    r = random.Random(seed)
    made = []
    for _ in range(n):
        words = r.choices(WORDS, k=14)
        made.append(" ".join(words))
        for _ in range(r.randrange(4)):
            words[r.randrange(14)] = r.choice(WORDS)
            made.append(" ".join(words))
    return sorted(set(made))


def test_short_texts_that_differ_stay_apart_and_equal_ones_merge_BL064():  # noqa: N802
    hashes = kernels.keys(*of_strings(["cat", "dog", "", "  CAT!", "!!!", "???"]), True)[0][0]
    cat, dog, empty, again, bangs, marks = hashes.tolist()
    assert cat == again
    assert len({cat, dog, empty, bangs, marks}) == 5


def test_a_chain_of_like_texts_is_no_cluster_BL065(tmp_path):  # noqa: N802
    r = random.Random(5)
    words = r.choices(WORDS, k=40)
    chain = []
    for step in range(120):
        words[step % 40] = f"{r.choice(WORDS)}{r.choice(WORDS)}"
        chain.append(" ".join(words))
    assert jaccard(chain[0], chain[-1]) < 0.2
    led = clusters(tmp_path, chain)
    assert len(set(led.values())) >= 4
    assert all(jaccard(text, leader) > 0.35 for text, leader in led.items())


def test_a_common_suffix_does_not_merge_tasks_BL065(tmp_path):  # noqa: N802
    suffix = " Only use the given page for this. Do not go to any other site."
    r = random.Random(3)
    letters = "abcdefghijklmnopqrstuvwxyz"
    texts = [
        " ".join("".join(r.choices(letters, k=6)) for _ in range(12)) + suffix for _ in range(500)
    ]
    led = clusters(tmp_path, texts)
    assert len(set(led.values())) == 500


def test_numbers_tell_tasks_apart_where_they_are_not_masked_BL067(tmp_path):  # noqa: N802
    texts = [f"price of flight UA 10{i} from Lisbon to Quito on May {i + 3}" for i in range(5)]
    apart = clusters(tmp_path / "apart", texts, mask=False)
    assert all(text == leader for text, leader in apart.items())
    assert len(set(kernels.keys(*of_strings(texts), True)[0][0].tolist())) == 1


def test_similarity_decides_on_both_sides(tmp_path):
    one = " ".join(WORDS)
    other = " ".join([*WORDS[:22], *(word[::-1] for word in WORDS[22:])])
    like = kernels.alike(*kernels.sketches(*of_strings([one, other]), True)) / kernels.SKETCH
    assert 0.4 < like < 0.8
    assert abs(like - jaccard(one, other)) < 0.15
    below = clusters(tmp_path / "a", [one, other], similarity=like - 0.05)
    above = clusters(tmp_path / "b", [one, other], similarity=like + 0.05)
    assert len(set(below.values())) == 1
    assert len(set(above.values())) == 2


@pytest.mark.parametrize("similarity", [0.5, 0.7, 1.0])
def test_need_is_the_least_number_of_bins(similarity):
    bins = need(similarity)
    expected = similarity + (1 - similarity) / 256
    assert (bins - 1) / kernels.SKETCH < expected <= bins / kernels.SKETCH + 1e-9


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_neither_order_nor_parts_change_who_leads(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("parts")
    texts = sentences(seed, 60)
    whole = clusters(folder / "whole", texts)
    # Within a file records are sorted: only who is in which file, and which file is first, says
    # in which order they came in.
    dealt = clusters(folder / "dealt", texts, files=3)
    shuffled = random.Random(seed).sample(texts, len(texts))
    assert [sorted(shuffled[n::3]) for n in range(3)] != [sorted(texts[n::3]) for n in range(3)]
    assert clusters(folder / "shuffled", shuffled, files=3) == dealt == whole
    small = -(-len(texts) // 3)
    assert clusters(folder / "parts", shuffled[::-1], files=4, part_records=small) == whole
    assert 0 < len(set(whole.values())) < len(texts)


def test_everyone_is_like_the_leader_that_it_follows(tmp_path):
    led = clusters(tmp_path, sentences(11, 120))
    followers = [(text, leader) for text, leader in led.items() if text != leader]
    assert len(followers) > 50
    assert all(led[leader] == leader for _, leader in followers)
    assert all(jaccard(text, leader) > 0.33 for text, leader in followers)


@pytest.mark.parametrize("part_records", [250_000, 250])
def test_who_is_unsure_of_its_leader_follows_the_most_alike_one_that_it_meets(
    tmp_path, part_records
):
    texts = sentences(23, 150)
    led = clusters(tmp_path, texts, part_records=part_records)
    sketch = dict(zip(texts, kernels.sketches(*of_strings(texts), True), strict=True))
    leaders = sorted(set(led.values()))
    several = 0
    for text, leader in led.items():
        if text == leader:
            continue
        met = [o for o in leaders if meets(sketch[text], sketch[o])]
        several += len(met) > 1
        own = kernels.alike(sketch[text], sketch[leader])
        best = max([own, *(kernels.alike(sketch[text], sketch[o]) for o in met)])
        assert own == best or own >= 0.7 * kernels.SKETCH
    assert several > 10


def meets(one, other):
    return (one == other).reshape(kernels.BANDS, kernels.ROWS).all(axis=1).any()


def test_leaders_of_earlier_drops_join_nothing_and_are_joined(tmp_path):
    texts = sentences(7, 80)
    first, second = texts[::2], texts[1::2]
    led = clusters(tmp_path / "one", first)
    leaders = sorted(set(led.values()))
    later = clusters(tmp_path / "two", second, old=leaders)
    assert all(later[leader] == leader for leader in leaders)
    assert any(later[text] in leaders for text in second)
