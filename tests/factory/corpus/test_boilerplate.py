"""Lines that many tasks have in common make no two of them alike."""

import random

import numpy as np

from browseruse_bench.factory.corpus import boilerplate
from browseruse_bench.factory.corpus.texts import of_strings
from tests.factory.corpus.filtering import row, run, story, write_lines

SUFFIX = (
    "Only use the given website to achieve the task, and do not go to any other site at all. The "
    "task is achievable with just navigation from this site, so please do not search the web, do "
    "not sign in anywhere, and tell me at the end which pages you have looked at on your way."
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def tasks(n, seed=1):
    r = random.Random(seed)

    def name():
        return "".join(r.choices(LETTERS, k=8))

    return [
        f"Find the price of {name()} {name()} with {name()} and the {name()} for {name()}."
        for _ in range(n)
    ]


def variants(text, n, seed=2):
    """The same with a typo here and there."""
    r, found = random.Random(seed), []
    for _ in range(n):
        i = r.randrange(len(text) - 1)
        found.append(text[:i] + r.choice("abcdefghijklmnop") + text[i + 1 :])
    return found


def common(tmp_path, texts, n_texts=None, parts=1):
    files = []
    for part in range(parts):
        files.append(tmp_path / f"{part}.npy")
        np.save(files[-1], boilerplate.pairs(of_strings(texts[part::parts])))
    return boilerplate.common(files, len(texts) if n_texts is None else n_texts)


def test_different_tasks_with_one_long_suffix_stay_apart_BL065(tmp_path):  # noqa: N802
    plain = tasks(60)
    write_lines(tmp_path / "in" / "a.jsonl", [row(f"{text}\n{SUFFIX}") for text in plain])
    _, kept = run(tmp_path)
    assert len(kept) == 60
    # So few that it may be what they are about: they are one.
    write_lines(tmp_path / "b" / "in" / "a.jsonl", [row(f"{t}\n{SUFFIX}") for t in plain[:20]])
    _, kept = run(tmp_path / "b")
    assert len(kept) < 10


def test_variants_of_one_task_still_are_one_where_its_suffix_is_boilerplate(tmp_path):
    plain = tasks(40)
    texts = [f"{text}\n{SUFFIX}" for text in plain]
    texts += [f"{text}\n{SUFFIX}" for text in variants(plain[0], 12)]
    write_lines(tmp_path / "in" / "a.jsonl", [row(text) for text in texts])
    _, kept = run(tmp_path)
    assert 40 <= len(kept) <= 42
    assert max(task.count for task in kept) >= 11


def test_the_lines_of_one_task_in_many_variants_are_no_boilerplate(tmp_path):
    one = tasks(1, seed=9)[0] + " Compare it with the one of last year and tell me which is better."
    assert not len(common(tmp_path, [f"{text}\n{SUFFIX}" for text in variants(one, 400)]))
    assert len(common(tmp_path, [f"{text}\n{SUFFIX}" for text in tasks(400)])) == 1


def test_the_least_number_of_texts_decides_on_both_sides(tmp_path):
    texts = [f"{text}\n{SUFFIX}" for text in tasks(boilerplate.TEXTS + 1)]
    assert len(common(tmp_path, texts)) == 1
    assert not len(common(tmp_path, texts[1:]))
    assert len(common(tmp_path, texts, n_texts=100_000)) == 1
    assert not len(common(tmp_path, texts, n_texts=200_000))


def test_a_text_of_which_too_little_would_be_left_stays_whole(tmp_path):
    lines = common(tmp_path, [f"{text}\n{SUFFIX}" for text in tasks(60)])
    texts = [
        SUFFIX,
        f"Go.\n{SUFFIX}",
        f"{tasks(1)[0]}\n\n {SUFFIX.upper()} \nThanks a lot",
        "",
        "x\n",
    ]
    short, changed = boilerplate.stripped(of_strings(texts), lines)
    assert changed.tolist() == [False, False, True, False, False]
    left = [short.text(i) for i in range(len(texts))]
    assert left == [*texts[:2], f"{tasks(1)[0]}\n\nThanks a lot", *texts[3:]]


def test_neither_parts_nor_order_decide(tmp_path):
    texts = [f"{text}\n{SUFFIX}" for text in tasks(90)] + [f"{t}\n{t[::-1]}" for t in tasks(9)]
    (tmp_path / "parts").mkdir()
    expected = common(tmp_path, texts)
    assert common(tmp_path / "parts", texts[::-1], parts=7).tolist() == expected.tolist()
    stories = []
    for partitions in (1, 4):
        root = tmp_path / f"w{partitions}"
        write_lines(root / "in" / "a.jsonl", [row(text) for text in texts[:: partitions or 1]])
        if partitions > 1:
            rest = [text for i, text in enumerate(texts) if i % partitions]
            write_lines(root / "in" / "b.jsonl", [row(text) for text in rest])
        run(root, partitions=partitions)
        stories.append(story(root))
    assert stories[0] == stories[1]


def test_a_later_drop_strips_what_an_earlier_one_found(tmp_path):
    texts = [f"{text}\n{SUFFIX}" for text in tasks(60)]
    write_lines(tmp_path / "in" / "1.jsonl", [row(text) for text in texts])
    run(tmp_path)
    more = [f"{text}\n{SUFFIX}" for text in tasks(5, seed=7)]
    again = f"{variants(tasks(60)[3], 1)[0]}\n{SUFFIX}"
    write_lines(tmp_path / "in" / "2.jsonl", [row(text) for text in (*more, again)])
    _, kept = run(tmp_path)
    assert len(kept) == 65
    assert sum(task.count for task in kept) == 66
