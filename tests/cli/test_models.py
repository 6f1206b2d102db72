"""`bubench models` as typed: what can be asked, what it cost, and batches from end to end."""

import asyncio
import json
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from browseruse_bench.models.base import Message, PendingError, Request
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.models.open import open_model
from browseruse_bench.models.spending_log import FILE, Spending, What
from browseruse_bench.records.trace import Usage
from browseruse_bench.store.run_folder import find_runs
from tests.cli.test_judged_run import AGENT, EVAL, RUN
from tests.models.batch_provider import KEY, BatchProvider, _result
from tests.models.fake_endpoint import FakeEndpoint, Say
from tests.models.made import MET, SCHEMA
from tests.report.made_run import MadeBenchmark, row, rubric

CONFIG = """
[models.judge]
id = "fake"
base_url = "{url}"
api_key_env = "MY_KEY"
schema = "native"
images = true
system = true
params = {{max_tokens = 2000}}
usd_per_million = {{input = 1.0, output = 2.0}}

[models.big]
id = "openai:gpt-4.1"
may_see = "restricted"

[models.local]
id = "qwen"
base_url = "http://localhost:8000/v1"
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "bubench.toml").write_text(CONFIG.format(url="http://localhost:1/v1"))
    return tmp_path


def call(*arguments, status=0):
    done = CliRunner().invoke(bubench, ["models", *map(str, arguments)])
    assert done.exit_code == status, done.output
    return done


def asked(text):
    return Request.model_validate(
        {"messages": (Message(role="user", parts=(text,)),), "schema": SCHEMA}
    )


def configure(project, url):
    (project / "bubench.toml").write_text(CONFIG.format(url=url))


def opened(project, name="judge", **more):
    return open_model(name, calls=project / "experiments" / "calls", cwd=project, **more)


def ask(model, text, purpose="judge"):
    return asyncio.run(model.ask(asked(text), purpose=purpose))


def collected(project, *texts, name="judge"):
    """The requests wait in a batch; returns the folders of its models."""
    model = opened(project, name, batch=project / "batch")
    for text in texts:
        with pytest.raises(PendingError):
            ask(model, text)
    return sorted((project / "batch").iterdir())


# --- list, check, calls -------------------------------------------------------------------------


def test_the_list_says_of_each_model_its_key_price_and_clearance(project):
    rows = {row["name"]: row for row in json.loads(call("list", "--json").stdout)}
    assert rows["judge"]["usd_per_million"] == {"input": 1.0, "output": 2.0}
    assert rows["judge"]["price_source"] == "bubench.toml: models.judge"
    assert (rows["judge"]["key"], rows["judge"]["key_present"]) == ("MY_KEY", True)
    assert (rows["big"]["key_present"], rows["big"]["may_see"]) == (False, "restricted")
    assert rows["big"]["usd_per_million"]["input"] > 0
    assert rows["big"]["price_source"].startswith("genai-prices")
    assert rows["local"]["usd_per_million"] is None
    assert rows["local"]["price_source"].startswith("unknown")
    assert rows["anthropic:..."]["key"] == "ANTHROPIC_API_KEY"
    assert {"openai:...", "google:...", "scripted:..."} <= set(rows)
    text = call("list").stdout
    assert re.search(r"^big +openai:gpt-4\.1 +OPENAI_API_KEY, not set .*restricted$", text, re.M)
    assert re.search(r"^local .* unknown +clean$", text, re.M)
    assert KEY not in text


def test_a_broken_configuration_is_exit_2(project):
    (project / "bubench.toml").write_text("[models.x]\nid = 3")
    assert "models.x.id" in call("list", status=2).output


def answers(asked_for):
    """An endpoint that has every ability."""
    text = asked_for.text
    if asked_for.n_images:
        return Say("4719")
    if "word of the day" in text:
        return Say("plover")
    if asked_for.body.get("tools"):
        return Say(arguments={"greeting": "hi", "polite": True})
    return Say(json.dumps({"greeting": "hi", "polite": True}))


def test_a_check_asks_what_the_endpoint_supports_and_says_what_it_cost(project):
    with FakeEndpoint(answers) as fake:
        configure(project, fake.openai_url)
        found = json.loads(call("check", "judge", "--json").stdout)
        assert set(found["abilities"].values()) == {True}
        assert found["schema"] == "native"
        n_asked = len(fake.asked)
        assert n_asked >= 5
        assert found["cost_usd"] > 0
        text = call("check", "judge").stdout
        assert re.search(r"reads pictures +yes", text)
        assert re.search(r"this check cost +\$0\.\d+ +bubench.toml: models.judge", text)
        assert len(fake.asked) == 2 * n_asked
    spent = Spending(project / "experiments" / "calls" / FILE).ever[What("", "probe", "judge")]
    assert spent.cost_usd == pytest.approx(2 * found["cost_usd"])


def test_a_check_of_what_cannot_be_checked_says_why(project):
    assert "did you mean 'judge'" in call("check", "judgr", status=2).output
    assert "OPENAI_API_KEY" in call("check", "openai:gpt-5", status=2).output
    (project / "d.json").write_text("[]")
    assert "a double has no endpoint" in call("check", "scripted:d.json", status=2).output
    with FakeEndpoint([]) as fake:  # every request is refused
        configure(project, fake.openai_url)
        done = call("check", "judge", status=1)
    assert "bubench: judge: 418" in done.output
    assert KEY not in done.output


def test_the_calls_of_a_ledger_are_added_up_by_purpose_and_model(project):
    with FakeEndpoint(lambda _: MET) as fake:
        configure(project, fake.openai_url)
        model = opened(project)
        for text, purpose in (("a", "judge"), ("b", "judge"), ("c", "writer"), ("a", "judge")):
            reply = ask(model, text, purpose)
    found = json.loads(call("calls", "--json").stdout)
    rows = {row["purpose"]: row for row in found["calls"]}
    assert (rows["judge"]["n_calls"], rows["writer"]["n_calls"]) == (2, 1)
    assert rows["judge"]["cost_usd"] == pytest.approx(
        (rows["judge"]["uncached_tokens"] + 2 * rows["judge"]["output_tokens"]) / 1e6
    )
    assert found["total"]["n_calls"] == 3
    only = json.loads(call("calls", "--purpose", "writer", "--json").stdout)
    assert [row["purpose"] for row in only["calls"]] == ["writer"]
    assert json.loads(call("calls", "--scope", "run-9", "--json").stdout)["calls"] == []
    text = call("calls", "--check").stdout
    assert re.search(r"^all +3 +0 ", text, re.M)
    assert "3 files, 0 damaged" in text
    shown = json.loads(call("calls", "--show", reply.call).stdout)
    assert (shown["value"], shown["purpose"], shown["via"]) == (MET, "judge", "live")


def test_a_cost_that_is_not_known_is_said_and_never_0(project):
    spending = Spending(project / "experiments" / "calls" / FILE)
    spending.record(What("", "judge", "m"), Usage(model="m", cost_usd=0.5))
    spending.end(spending.begin(What("", "judge", "m"), 0.25), "lost")
    spending.begin(What("", "judge", "m"), 0.125)
    found = json.loads(call("calls", "--json").stdout)
    assert found["total"]["cost_usd"] is None
    assert found["under_way"] == {"n": 1, "most_usd": 0.125}
    text = call("calls").stdout
    assert ">= $0.50, 1 unknown" in text
    assert "note: the cost of 1 calls is not known (1 were cut off), at most $0.75 in all" in text
    assert "note: 1 are under way and can cost 0.1250 USD" in text


def test_a_damaged_call_is_listed_and_exit_3(project):
    with FakeEndpoint(lambda _: MET) as fake:
        configure(project, fake.openai_url)
        ask(opened(project), "a")
    (file,) = Ledger(project / "experiments" / "calls").files()
    file.write_bytes(file.read_bytes()[:-5])
    done = call("calls", "--check", status=3)
    assert "1 files, 1 damaged" in done.output
    assert f"{file.name}: damaged" in done.output
    assert "damaged" in call("calls", "--show", file.stem, status=3).output


def test_a_folder_without_calls_is_exit_2(project):
    assert "name the folder of a ledger with --calls" in call("calls", status=2).output
    assert "no call ../x" in call("calls", "--show", "../x", status=3).output


# --- batches ------------------------------------------------------------------------------------


def met(body):
    return Say(json.dumps(MET), model=body["model"])


def test_files_are_exported_answered_by_anything_and_imported(project, monkeypatch):
    (folder,) = collected(project, "a", "b", "c")
    monkeypatch.delenv("MY_KEY")  # nobody is asked
    done = json.loads(call("batch", "export", "batch", "--max-lines", 2, "--json").stdout)
    (said,) = done.values()
    assert [part["n"] for part in said["parts"]] == [2, 1]
    assert said["parts"][0]["most_usd"] > 2 * 2000 * 2 / 1e6
    lines = [
        json.loads(line)
        for part in said["parts"]
        for line in (project / part["file"]).read_text().splitlines()
    ]
    results = [_result("openai", ln["custom_id"], ln["body"], met(ln["body"])) for ln in lines]
    stranger = {**results[0], "custom_id": "0" * 64}
    (project / "a.jsonl").write_text(
        "".join(json.dumps(r) + "\n" for r in (*results[:2], stranger))
    )
    done = call("batch", "import", folder, "a.jsonl", status=3)
    assert "3 lines: 2 answered, 0 of no use, 0 not asked or out of reach; unknown; 1 are" in (
        done.output
    )
    assert "--price-factor says what a batch costs" in done.output
    assert "a.jsonl: line 3: custom_id '00000" in done.output
    (project / "b.jsonl").write_text(json.dumps(results[2]) + "\n")
    done = call("batch", "import", "batch", "b.jsonl", "--price-factor", "0.5", "--json")
    (said,) = json.loads(done.stdout).values()
    assert (said["n_answered"], said["n_owed"], said["problems"]) == (1, 0, [])
    assert said["cost_usd"] > 0
    assert "0 wait, 0 of them" in call("batch", "export", "batch").stdout


def test_a_batch_is_submitted_looked_at_fetched_and_cancelled(project):
    with BatchProvider(met) as provider:
        configure(project, provider.openai_url)
        collected(project, "a", "b")
        refused = call("batch", "submit", "batch", "--budget-usd", "0.001", status=5)
        assert "--budget-usd 0.001 would be passed: part 0001 can cost 0.0" in refused.output
        assert provider.jobs == {}
        assert "part 0001: 2 requests, job batch_0" in call("batch", "submit", "batch").stdout
        assert "nothing to submit" in call("batch", "submit", "batch").stdout
        text = call("batch", "status", "batch").stdout
        assert re.search(r"^0001 +2 +0\.0 +in_progress +0 +0 +- +batch_0$", text, re.M)
        assert "2 requests wait for an answer" in text
        assert "1 parts asked to end" in call("batch", "cancel", "batch").stdout
        provider.end_all()
        done = call("batch", "fetch", "batch", "--wait", "--every", "0.1").stdout
        assert "2 answered" in done
        assert "0 are still owed" in done
        (said,) = json.loads(call("batch", "status", "batch", "--json").stdout).values()
        assert (said["n_waiting"], said["parts"][0]["status"]) == (0, "fetched")
        # An endpoint of one's own gives no discount unless that is said.
        total = json.loads(call("calls", "--json").stdout)["total"]
        assert total["cost_usd"] == pytest.approx(
            (total["uncached_tokens"] + 2 * total["output_tokens"]) / 1e6
        )
    for file in project.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()


def test_a_model_that_means_another_one_now_is_refused(project):
    collected(project, "a")
    text = (project / "bubench.toml").read_text().replace('id = "fake"', 'id = "other"')
    (project / "bubench.toml").write_text(text)
    assert "means another model now" in call("batch", "export", "batch", status=2).output


def test_wrong_words_about_batches_are_exit_2(project):
    (project / "empty").mkdir()
    assert "collect one first" in call("batch", "status", "empty", status=2).output
    assert "Missing argument" in call("batch", "import", "empty", status=2).output


def test_answers_are_to_one_model_and_it_must_be_named(project):
    collected(project, "a")
    assert len(collected(project, "a", name="openai:gpt-4.1-mini")) == 2
    (project / "a.jsonl").write_text("")
    done = call("batch", "import", "batch", "a.jsonl", status=2)
    assert "has batches of several models; name one of them" in done.output
    assert len(json.loads(call("batch", "export", "batch", "--json").stdout)) == 2


# --- from a command to its verdicts -------------------------------------------------------------


def says_no(body):
    """Every item is violated, in the form that the findings judge asks for."""
    text = json.dumps(body["messages"], ensure_ascii=False)
    items = re.findall(r"in this order: (.*?)(?:\\n|\")", text)[-1].split(", ")
    finding = {
        "claim": "c", "citations": [], "reason": "", "because": None, "status": "violated",
    }  # fmt: skip
    value = {
        "reading": "r", "integrity": [], "attribution": [],
        "findings": [{"item": item, **finding} for item in items],
    }  # fmt: skip
    return Say(json.dumps(value), model=body["model"])


def bub(project, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "browseruse_bench", *arguments],
        cwd=project,
        env={
            "PATH": "/usr/bin:/bin", "HOME": str(project), "PYTHONPATH": str(project), "MY_KEY": KEY,
        },
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip


def test_a_run_is_judged_by_a_batch_and_a_second_time_for_nothing(project):
    bench = MadeBenchmark(project / "benchmarks" / "Made", [row("a"), row("b")])
    bench.rubrics = {name: rubric(name, 40, 60, check=False) for name in "ab"}
    bench.load()
    (project / "agent.py").write_text(AGENT)
    made = bub(project, *RUN)
    assert made.returncode == 0, made.stderr
    judge = (*EVAL, "--judge", "judge", "--batch", "batch")
    runner = CliRunner()
    with BatchProvider(says_no) as provider:
        configure(project, provider.openai_url)
        waits = runner.invoke(bubench, judge)
        assert waits.exit_code == 4, waits.output
        assert "2 wait for a batch" in waits.stderr
        assert "without a grade: 2 (waiting for a batch 2) of 2 attempts" in waits.stderr
        assert "--only-ungraded" not in waits.stderr
        call("batch", "submit", "batch", "--price-factor", "0.5")
        provider.end_all()
        call("batch", "fetch", "batch", "--price-factor", "0.5")
    # The provider is gone: everything is answered from the ledger.
    done = runner.invoke(bubench, [*judge, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["figures"]["accounting"]["graded"] == 2
    assert re.search(
        r"judge: 0 calls; 2 answers from the ledger, which had cost \$0\.\d+", done.stderr
    )
    (folder,) = find_runs(project / "experiments")
    usage = [use for judgement in folder.judgements() for use in judgement.usage]
    assert len(usage) == 2
    assert all(use.price_source.endswith("batch, 0.5 of it") for use in usage)
    ever = Spending(project / "experiments" / "calls" / FILE).ever
    assert sum(totals.known_usd for totals in ever.values()) == pytest.approx(
        sum(use.cost_usd for use in usage)
    )
    assert {what.scope for what in ever} == {folder.read_run().run_id}


def test_a_batch_without_a_judge_or_with_a_live_budget_is_exit_2(project):
    judge = ("eval", "--agent", "nop", "--benchmark", "Made", "--batch", "b")
    runner = CliRunner()
    assert "name one with --judge" in runner.invoke(bubench, judge).output
    both = runner.invoke(bubench, [*judge, "--judge", "judge", "--judge-budget-usd", "1"])
    assert "give --budget-usd to `bubench models batch submit`" in both.output
    assert both.exit_code == 2


def test_the_command_line_loads_no_model_library():
    code = (
        "import sys; from click.testing import CliRunner\n"
        "from browseruse_bench.cli.root import bubench\n"
        "CliRunner().invoke(bubench, ['models', '--help'])\n"
        "heavy = {'pydantic_ai', 'httpx', 'httpx2', 'openai', 'anthropic', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
