"""Keys fill in the form and label; no terminal is needed to say what they do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.cli.factory_labelling import page
from browseruse_bench.factory.labels.form import MAX_REASON, Form, pressed
from browseruse_bench.factory.labels.lines import new_task
from browseruse_bench.factory.labels.session import IDLE_S, Session
from tests.factory.labels.labelling_doubles import open_store, texts

KEYS = [
    *"sunh?rzkq b1234567xyz",
    "enter", "escape", "backspace", "ctrl-u", "ctrl-w", "ctrl-d", "page-up", "page-down", "unknown",
]  # fmt: skip


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def session(folder, n=5, clock=None, **more):
    store = open_store(folder)
    store.add_tasks(new_task(text) for text in texts(n))
    return store, Session(store, "ada", monotonic=clock or Clock(), **more)


def press(sitting, *keys):
    for key in keys:
        sitting.press(key)


def after(*keys, form=None):
    form, actions = form or Form(), []
    for key in keys:
        form, action = pressed(form, key)
        actions += [action] if action else []
    return form, actions


def test_keys_choose_verdict_hardness_and_tags():
    form, actions = after("u", "h", "7", "1", "2", "2")
    assert (form.verdict, form.hard, form.tags) == ("unsuitable", True, ("too_easy", "time_bound"))
    assert after("h", "h")[0].hard is False
    assert after("h", "h", "h")[0].hard is None
    assert [after(key)[0].verdict for key in "sun?"] == [
        "suitable",
        "unsuitable",
        "uncertain",
        "uncertain",
    ]
    assert actions == []


def test_nothing_is_saved_without_a_verdict_and_a_reason():
    form, actions = after("enter")
    assert (actions, form.message) == ([], "first a verdict: s, u or n")
    form, actions = after("s", "enter")
    assert (actions, form.mode) == ([], "reason")
    assert after("s", "enter", "enter")[1] == []
    form, actions = after("s", "enter", "o", "k", "enter")
    assert (actions, form.reason) == (["save"], "ok")
    assert after("s", "enter", form=Form(needs_reason=False))[1] == ["save"]


def test_letters_of_a_reason_are_no_commands():
    form, actions = after("r", *"quz 1s", "escape")
    assert (form.reason, form.verdict, form.tags, actions) == ("quz 1s", None, (), [])
    assert form.mode == "choose"


def test_a_reason_is_edited_by_letters_words_and_wholly():
    assert after("r", *"ab", "backspace")[0].reason == "a"
    assert after("r", *"one two ", "ctrl-w")[0].reason == "one "
    assert after("r", *"one two", "ctrl-u")[0].reason == ""
    assert after("r", *"né", "unknown")[0].reason == "né"


def test_a_reason_has_an_end():
    full = Form(mode="reason", reason="x" * MAX_REASON)
    assert len(after("y", form=full)[0].reason) == MAX_REASON
    assert "most" in after("y", form=full)[0].message


@given(st.lists(st.sampled_from(KEYS), max_size=40))
def test_whatever_is_pressed_only_a_verdict_is_saved(keys):
    form = Form()
    for key in keys:
        form, action = pressed(form, key)
        if action == "save":
            assert form.verdict is not None
            assert form.reason.strip()
        assert form.page >= 0
        assert len(set(form.tags)) == len(form.tags)


def test_a_saved_label_carries_all_that_was_said_and_the_time(tmp_path):
    clock = Clock()
    store, sitting = session(tmp_path, clock=clock)
    assert sitting.assignment is not None
    key = sitting.assignment.task
    clock.now = 4
    press(sitting, "u", "3", "h", "h", "r", *"breaks things")
    clock.now = 10
    press(sitting, "enter")
    [(where, given)] = store.given().items()
    assert where == (key, "ada")
    assert given.label is not None
    assert given.label.model_dump(include={"verdict", "hard", "tags", "reason", "seconds"}) == {
        "verdict": "unsuitable",
        "hard": False,
        "tags": ("destructive",),
        "reason": "breaks things",
        "seconds": 10,
    }
    assert sitting.assignment.task != key
    assert sitting.form == Form()


def test_a_long_pause_counts_only_in_part(tmp_path):
    clock = Clock()
    store, sitting = session(tmp_path, clock=clock)
    clock.now = 5000
    press(sitting, "s", "r", "x")
    clock.now = 5003
    press(sitting, "enter")
    assert store.labels()[0].seconds == IDLE_S + 3


def test_undo_gives_the_last_task_back_and_a_later_sitting_can_undo_too(tmp_path):
    store, sitting = session(tmp_path)
    first = sitting.assignment
    press(sitting, "s", "r", "a", "enter")
    second = sitting.assignment
    press(sitting, "s", "r", "b", "enter", "z")
    assert sitting.assignment == second
    assert len(store.given()) == 1
    later = Session(open_store(tmp_path), "ada", monotonic=Clock())
    press(later, "z")
    assert later.assignment == first
    press(later, "z")
    assert later.form.message == "nothing to take back"
    assert later.assignment == first


def test_a_later_sitting_goes_on_with_the_next_task(tmp_path):
    _, sitting = session(tmp_path)
    press(sitting, "s", "r", "a", "enter")
    later = Session(open_store(tmp_path), "ada", monotonic=Clock())
    assert later.assignment == sitting.assignment


def test_later_goes_round_all_that_is_left(tmp_path):
    _, sitting = session(tmp_path, n=3)
    seen = []
    for _ in range(6):
        seen.append(sitting.assignment.task)
        press(sitting, "k")
    assert seen[:3] == seen[3:]
    assert len(set(seen)) == 3


def test_the_end_is_said_and_undo_and_leaving_still_work(tmp_path):
    store, sitting = session(tmp_path, n=1)
    press(sitting, "s", "r", "a", "enter")
    assert sitting.assignment is None
    assert any("Nothing is left" in line for line, _ in page(sitting, width=80, height=24))
    press(sitting, "s", "enter", "z")
    assert sitting.assignment is not None
    assert len(store.given()) == 0
    press(sitting, "q")
    assert sitting.is_over


@pytest.mark.parametrize("mode_keys", [(), ("r",)])
def test_ctrl_d_leaves_from_anywhere(tmp_path, mode_keys):
    _, sitting = session(tmp_path)
    press(sitting, *mode_keys, "ctrl-d")
    assert sitting.is_over


def test_the_rate_is_that_of_this_sitting(tmp_path):
    clock = Clock()
    _, sitting = session(tmp_path, n=5, clock=clock)
    assert sitting.rate.per_hour is None
    for _ in range(3):
        clock.now += 20
        press(sitting, "s", "r", "a", "enter")
    rate = sitting.rate
    assert (rate.n_saved, rate.per_hour, rate.median_s, rate.left_s) == (3, 180, 20, 40)
    assert "180 an hour" in page(sitting, width=80, height=24)[0][0]
    press(sitting, "z")
    assert sitting.rate.n_saved == 2


def test_rechecks_are_marked_on_the_page_and_in_the_label(tmp_path):
    store, sitting = session(tmp_path, n=3)
    for _ in range(3):
        press(sitting, "s", "r", "a", "enter")
    again = Session(store, "ada", monotonic=Clock(), rechecks=2)
    assert "again" in page(again, width=80, height=24)[0][0]
    press(again, "u", "r", "a", "enter", "u", "r", "a", "enter")
    assert again.assignment is None
    assert [x.verdict for x in store.labels(recheck=True)] == ["unsuitable"] * 2


def test_a_long_task_is_paged_and_steers_no_terminal(tmp_path):
    store = open_store(tmp_path)
    text = "\x1b[31mred\x07 [bold]x[/bold]\n" + "\n".join(f"line {i}" for i in range(90))
    store.add_tasks([new_task(text)])
    sitting = Session(store, "ada", monotonic=Clock())
    seen = set()
    for _ in range(12):
        lines = [line for line, _ in page(sitting, width=60, height=20)]
        assert len(lines) <= 20
        assert not any("\x1b" in line or "\x07" in line for line in lines)
        seen |= {line for line in lines if line.startswith("line ")}
        press(sitting, " ")
    assert len(seen) == 90
    press(sitting, *["b"] * 20)
    assert any("[bold]x[/bold]" in line for line, _ in page(sitting, width=60, height=20))
