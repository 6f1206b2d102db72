import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import threading
import time

import pytest
from click.testing import CliRunner

from browseruse_bench import factory
from browseruse_bench.cli import factory_labelling
from browseruse_bench.cli.factory_labelling import keys
from browseruse_bench.cli.root import bubench
from browseruse_bench.factory.labels.store import LabelStore
from browseruse_bench.factory.search.bench import Answer
from browseruse_bench.factory.search.chosen import Chosen, write_chosen
from browseruse_bench.factory.search.examples import Example
from browseruse_bench.factory.search.figures import figures
from browseruse_bench.factory.search.labeller import Prompt
from browseruse_bench.factory.workspace import Workspace
from browseruse_bench.registry import Registry

LABELLER = """
def say(text, sample):
    if "kind 7" in text:
        return "no label"
    verdict = "suitable" if "kind" in text else "unsuitable"
    return {"reason": "r", "quote": "", "tags": [], "verdict": verdict}
"""


@pytest.fixture(autouse=True)
def workspace(tmp_path, monkeypatch):
    """A workspace whose first stage kept 200 tasks, and whose labeller is a function."""
    from browseruse_bench.factory import pipeline

    stages = Registry("stage", {"offers": "tests.factory.labels.made_offers:made_offers"})
    monkeypatch.setattr(factory, "STAGES", stages)
    monkeypatch.setattr(pipeline, "STAGES", stages)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    assert bub("init", "w").exit_code == 0
    folder = tmp_path / "w"
    config = (folder / "workspace.toml").read_text()
    old = 'id = "google:gemini-3-flash"\nmay_see = "restricted"'
    assert old in config
    new = 'id = "scripted:say.py:say"\nmay_see = "restricted"'
    (folder / "workspace.toml").write_text(config.replace(old, new))
    (folder / "say.py").write_text(LABELLER)
    monkeypatch.chdir(folder)
    return folder


def bub(*arguments):
    return CliRunner().invoke(bubench, ["factory", *arguments])


def good(*arguments):
    done = bub(*arguments)
    assert done.exit_code == 0, done.output
    return done


def labelled(workspace, n=120):
    """`n` tasks of the first stage, all labelled suitable by two people."""
    good("run")
    good("labels", "sample", str(n))
    tasks = LabelStore.of(Workspace.open(workspace)).tasks.values()
    rows = [
        {"text": task.text, "labeller": who, "label": "suitable", "reason": "r"}
        for task in tasks
        for who in ("ada", "ben")
    ]
    (workspace / "labels.json").write_text(json.dumps(rows))
    return good("labels", "import", "labels.json", "--json")


def test_a_sample_is_drawn_from_what_the_first_stage_kept(workspace):
    assert "never ran" in bub("labels", "sample", "10").output
    good("run")
    done = good("labels", "sample", "20", "--by", "count", "--share", "1=0.5", "--json")
    told = json.loads(done.stdout)
    assert (told["n"], told["n_new"]) == (20, 20)
    assert told["strata"]["1"]["drawn"] == 10
    assert json.loads(good("labels", "sample", "30", "--by", "count", "--json").stdout)["n"] == 30
    assert "two samples in one" in bub("labels", "sample", "30").output
    assert bub("labels", "sample", "30", "--share", "1=0.5").exit_code == 2
    assert bub("labels", "sample", "30", "--by", "count", "--share", "1=half").exit_code == 2


def test_split_is_shown_and_frozen_once(workspace):
    assert json.loads(good("split", "--json").stdout)["frozen"] is False
    good("split", "--freeze", "--salt", "x", "--development", "0.6")
    assert bub("split", "--freeze").exit_code == 2
    assert bub("split", "--freeze", "--development", "0.95").exit_code == 2
    labelled(workspace)
    told = json.loads(good("split", "--json").stdout)
    assert told["rule"]["salt"] == "x"
    assert sum(told["tasks"].values()) == 120
    assert sum(told["development"].values()) == told["tasks"]["development"]
    assert "sealed: " in good("split").stdout


def test_import_and_report_tell_agreement(workspace):
    told = json.loads(labelled(workspace).stdout)
    assert (told["n_labels"], told["n_tasks"], told["n_known"]) == (240, 0, 0)
    assert told["pairs"][0]["agreement"]["accuracy"]["rate"] == 1
    assert "240 were here already" in good("labels", "import", "labels.json").stdout
    report = json.loads(good("labels", "report", "--json").stdout)
    assert {part["part"]: part["n_tasks"] for part in report["parts"]}["sealed"] > 0
    assert "Agreement of people" in good("labels", "report").stdout


def test_a_tag_that_is_none_of_ours_is_refused_with_the_ones_that_are(workspace):
    (workspace / "x.json").write_text('[{"text": "a", "labeller": "A", "label": "suitable"}]')
    done = bub("labels", "import", "x.json", "--tag", "vague=unclear")
    assert done.exit_code == 2
    assert "too_vague" in done.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("label", "--as", "ada"), "labels sample"),
        (("labels", "report"), "nothing is labelled yet"),
        (("unseal",), "no sealed label"),
        (("unseal", "--check"), "no sealed label"),
        (("unseal", "--check", "--receipt", "x"), "N:HASH"),
    ],
)
def test_what_cannot_be_done_yet_says_what_comes_first(arguments, told):
    done = bub(*arguments)
    assert done.exit_code == 2
    assert told in done.output


def test_a_prompt_is_looked_at_once_and_the_receipt_holds(workspace):
    labelled(workspace)
    n = json.loads(good("split", "--json").stdout)["tasks"]["sealed"]
    found = json.loads(good("unseal", "--json").stdout)
    result = found["result"]["agreement"]
    assert result["n"] + result["missing"]["verdict"] == n
    assert result["accuracy"]["rate"] == 1
    second = bub("unseal")
    assert second.exit_code == 2
    assert "a second look" in second.output
    assert (
        "all is as it was left" in good("unseal", "--check", "--receipt", found["receipt"]).stdout
    )
    (workspace / "restricted" / "labels" / "unsealed.jsonl").unlink()
    done = bub("unseal", "--check", "--json")
    assert done.exit_code == 3
    assert any("removed" in problem for problem in json.loads(done.stdout)["noticed"])


def test_a_copied_prompt_file_is_the_same_candidate(workspace):
    labelled(workspace)
    (workspace / "a.md").write_text("Is it suitable?")
    (workspace / "b.md").write_text("is it  suitable?\n")
    (workspace / "c.md").write_text("May it be used?")
    shown = good("unseal", "--prompt", "a.md", "--among", "c.md").stdout
    assert "This is the first look" in shown
    for name in ("b.md", "c.md"):
        done = bub("unseal", "--prompt", name, "--again", "I want to")
        assert done.exit_code == 2
        assert "a second look" in done.output
    done = bub("unseal")
    assert done.exit_code == 2
    assert "--again" in done.output
    assert "not a first look" in good("unseal", "--again", "a new search").stdout


def test_a_runner_up_of_the_search_gets_no_look_after_the_chosen_one(workspace):
    labelled(workspace)
    example = Example(key="k", text="t", truth="suitable", part="selection")
    known = figures([example], [Answer("suitable")])
    write_chosen(
        workspace,
        Chosen(
            prompt=Prompt(text="Version 3"),
            search="s",
            model="labeller",
            model_key="k",
            decision="it leads",
            selection=known,
            validation=known,
            among=("Version 1", "Version 2", "Version 3"),
            at="2026-01-01T00:00:00+00:00",
        ),
    )
    found = json.loads(good("unseal", "--json").stdout)
    assert len(found["opened"]["candidate"]["among"]) == 3
    (workspace / "v2.md").write_text("version  2")
    done = bub("unseal", "--prompt", "v2.md", "--again", "it was close")
    assert done.exit_code == 2
    assert "one of the 3 candidates" in done.output


def test_a_model_that_may_not_see_restricted_text_is_not_asked(workspace):
    labelled(workspace)
    # Nobody listens there: it must be refused before it is asked.
    done = bub("unseal", "--model", "openai-compatible:m@http://127.0.0.1:9/v1")
    assert done.exit_code == 2
    assert "not cleared" in done.output.replace("\n", " ")
    assert not (workspace / "restricted" / "labels" / "unsealed.jsonl").exists()


def test_labelling_without_a_terminal_is_refused(workspace):
    good("run")
    good("labels", "sample", "5")
    done = bub("label", "--as", "ada")
    assert done.exit_code == 2
    assert "in a terminal" in done.output


class Terminal:
    """`bubench factory label` in a pseudo-terminal."""

    def __init__(self, folder, *arguments):
        self.screen = ""
        self.other_end, end = pty.openpty()
        termios.tcsetwinsize(end, (24, 100))
        self.before = termios.tcgetattr(end)
        self.end = end
        self.process = subprocess.Popen(
            [sys.executable, "-m", "browseruse_bench", "factory", "label", *arguments],
            cwd=folder,
            stdin=end,
            stdout=end,
            stderr=end,
            env={**os.environ, "TERM": "xterm"},
            start_new_session=True,
        )

    def press(self, text):
        os.write(self.other_end, text.encode())

    def wait_for(self, pattern, timeout_s=30.0):
        """What was shown since the last wait, once the pattern stands in it."""
        until = time.monotonic() + timeout_s
        while (found := re.search(pattern, self.screen, re.DOTALL)) is None:
            if time.monotonic() > until or self.process.poll() is not None:
                pytest.fail(f"{pattern!r} was not shown: {self.screen!r}")
            if select.select([self.other_end], [], [], 0.2)[0]:
                self.screen += os.read(self.other_end, 65536).decode(errors="replace")
        shown, self.screen = self.screen[: found.end()], self.screen[found.end() :]
        return shown

    def ended(self):
        until = time.monotonic() + 30
        while self.process.poll() is None and time.monotonic() < until:
            if select.select([self.other_end], [], [], 0.1)[0]:
                self.screen += os.read(self.other_end, 65536).decode(errors="replace")
        while select.select([self.other_end], [], [], 0.1)[0]:
            self.screen += os.read(self.other_end, 65536).decode(errors="replace")
        return self.process.wait(timeout=1)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.end)
        if self.other_end >= 0:
            os.close(self.other_end)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ([b"su\r"], ["s", "u", "enter"]),
        ([b"\x1b"], ["escape"]),
        ([b"\x1b[A", b"s"], ["unknown", "s"]),
        ([b"\x1b[A\r\x1b[6~\x1bOPz"], ["unknown", "enter", "page-down", "unknown", "z"]),
        ([b"\x1b", b"[5~s"], ["page-up", "s"]),
        ([b"\x1b[1;5", b"Cs"], ["unknown", "s"]),
        (["né".encode()[:2], "né".encode()[2:]], ["n", "é"]),
        ([b"\xff"], ["\ufffd"]),
        ([b"\x15\x17\x7f\x04"], ["ctrl-u", "ctrl-w", "backspace", "ctrl-d"]),
    ],
)
def test_bytes_of_a_terminal_become_keys(sent, read, monkeypatch):
    monkeypatch.setattr(factory_labelling, "_ESCAPE_S", 5.0)
    source, sink = os.pipe()

    def write():
        for part in sent:
            os.write(sink, part)
            time.sleep(0.01)
        time.sleep(0.1)
        os.close(sink)

    writer = threading.Thread(target=write)
    writer.start()
    assert list(keys(source)) == read
    writer.join()
    os.close(source)


@pytest.fixture
def terminal(workspace):
    good("run")
    good("labels", "sample", "5", "--twice", "0")
    opened = []

    def open_(*arguments):
        opened.append(Terminal(workspace, *arguments))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


def test_a_person_labels_in_a_terminal_leaves_and_goes_on(workspace, terminal):
    sitting = terminal("--as", "ada")
    sitting.wait_for("0 of 5 labels.*q leave")
    sitting.press("u2")
    sitting.wait_for(r"unsuitable.*\[x\] personal_data.*time_bound.*q leave")
    # An arrow is no key of ours, and must not swallow the one behind it.
    sitting.press("\x1b[A\r")
    sitting.wait_for("why")
    sitting.press("names a pérson\r")
    sitting.wait_for("1 of 5 labels")
    sitting.press("srx\r")
    sitting.wait_for("2 of 5 labels")
    sitting.press("z")
    sitting.wait_for("1 of 5 labels.*taken back")
    sitting.press("q")
    assert sitting.ended() == 0
    assert "1 labels saved now" in sitting.screen
    assert termios.tcgetattr(sitting.end) == sitting.before

    again = terminal("--as", "ada")
    again.wait_for("1 of 5 labels")
    again.press("\x04")
    assert again.ended() == 0
    store = LabelStore.of(Workspace.open(workspace))
    assert len(store.given()) == 1
    [kept] = store.labels()
    assert (kept.verdict, kept.tags, kept.reason) == (
        "unsuitable",
        ("personal_data",),
        "names a pérson",
    )
    assert kept.seconds is not None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_whatever_ends_it_the_terminal_is_as_before_and_labels_are_kept(
    workspace, terminal, number
):
    sitting = terminal("--as", "ada")
    sitting.wait_for("0 of 5 labels.*q leave")
    sitting.press("srx\r")
    sitting.wait_for("1 of 5 labels.*q leave")
    sitting.process.send_signal(number)
    assert sitting.ended() != 0
    assert termios.tcgetattr(sitting.end) == sitting.before
    assert len(LabelStore.of(Workspace.open(workspace)).given()) == 1


def test_a_terminal_that_goes_away_ends_labelling_and_keeps_labels(workspace, terminal):
    sitting = terminal("--as", "ada")
    sitting.wait_for("0 of 5 labels.*q leave")
    sitting.press("srx\r")
    sitting.wait_for("1 of 5 labels.*q leave")
    os.close(sitting.other_end)
    sitting.other_end = -1
    sitting.process.wait(timeout=30)
    assert len(LabelStore.of(Workspace.open(workspace)).given()) == 1
