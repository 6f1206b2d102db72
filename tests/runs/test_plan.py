import json

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.runs.plan import plan


def test_a_trial_grows_into_the_full_run(benchmark, request_of, carry_out):
    """The guide's first_n --count 3, then everything: one run, the three are not made again."""
    benchmark(*"abcde")
    trial, _, _ = carry_out(mode="first_n", count=3)
    full = plan(request_of())
    assert full.run.run_id == trial.run.run_id
    assert [o.task.task_id for o in full.owed] == ["t4", "t5"]
    assert full.n_settled == 3
    assert len(full.run.selections) == 2


def test_the_selected_ids_are_stored(benchmark, carry_out):
    benchmark(*"abcde")
    planned, _, _ = carry_out(mode="sample_n", count=2, seed=7)
    stored = json.loads((planned.folder.path / "run.json").read_text())["selections"][0]
    assert stored["mode"] == "sample_n"
    assert stored["seed"] == 7
    assert len(stored["task_ids"]) == 2


def test_another_seed_in_the_same_run_adds_its_own_tasks(benchmark, request_of, carry_out):
    """BL018: counts alone never stand for a selection."""
    benchmark(*"abcdefghij")
    first, _, _ = carry_out(mode="sample_n", count=3, seed=1)
    second = plan(request_of(mode="sample_n", count=3, seed=2))
    before = set(first.run.selections[0].task_ids)
    assert {o.task.task_id for o in second.owed} == set(second.run.selections[-1].task_ids) - before


@pytest.mark.parametrize(
    "change",
    [{"model": "x:y"}, {"max_steps": 6}, {"timeout_s": 21}, {"agent": "tests.runs.doubles:Echo2"}],
)
def test_other_settings_are_another_run(benchmark, request_of, change):
    """BL018: agent version, model and limits are part of the identity."""
    benchmark("a")
    assert plan(request_of()).run.run_id != plan(request_of(**change)).run.run_id


def test_a_changed_task_text_is_another_run(benchmark, request_of):
    benchmark("a")
    before = plan(request_of()).run.run_id
    benchmark("b")
    assert plan(request_of()).run.run_id != before


def test_the_order_of_the_file_does_not_make_another_run(benchmark, request_of):
    rows = [{"task_id": f"t{n}", "task": f"do {n}"} for n in range(5)]
    benchmark(*rows)
    before = plan(request_of()).run.run_id
    benchmark(*reversed(rows))
    assert plan(request_of()).run.run_id == before


def test_a_declared_revision_does_not_hide_a_changed_task(benchmark, request_of, carry_out):
    benchmark("a", "b", revision="1")
    carry_out()
    benchmark("a", "B", revision="1")
    assert [o.task.task_id for o in plan(request_of()).owed] == ["t2"]


def test_a_named_run_with_other_settings_is_refused_with_the_difference(
    benchmark, request_of, carry_out
):
    benchmark("a")
    carry_out(run_id="mine")
    with pytest.raises(ConfigError, match=r"limits\.max_steps: 5 -> 9"):
        plan(request_of(run_id="mine", max_steps=9))


@pytest.mark.parametrize("run_id", ["../x", "a/b", "..", "", "NUL", "x" * 200, "a\x00b"])
def test_a_run_id_that_is_no_path_segment_is_refused(benchmark, request_of, run_id):
    """BL098."""
    benchmark("a")
    with pytest.raises(ConfigError, match="--run-id"):
        plan(request_of(run_id=run_id))


def test_fresh_begins_the_next_run_and_the_next_command_goes_on_with_it(
    benchmark, request_of, carry_out
):
    benchmark("a")
    first, _, _ = carry_out()
    second, _, _ = carry_out(fresh=True)
    assert second.run.run_id == f"{first.run.run_id}.2"
    assert plan(request_of()).run.run_id == second.run.run_id


def test_repeats_may_grow(benchmark, request_of, carry_out):
    benchmark("a")
    carry_out()
    grown = plan(request_of(repeat=3))
    assert [o.attempt for o in grown.owed] == [2, 3]


def test_a_task_that_needs_a_login_is_left_out_without_one(benchmark, request_of):
    benchmark("a", {"task_id": "in", "task": "b", "requires_login": True})
    planned = plan(request_of())
    assert [o.task.task_id for o in planned.owed] == ["t1"]
    assert planned.no_login == (("in", 1),)


def test_a_login_that_is_given_is_used(benchmark, request_of, project):
    benchmark({"task_id": "in", "task": "b", "requires_login": True})
    state = project / "state.json"
    state.write_text('{"cookies": [], "origins": []}')
    planned = plan(request_of(storage_state=state))
    assert [o.task.task_id for o in planned.owed] == ["in"]


def test_a_dry_plan_writes_nothing(benchmark, request_of, project):
    benchmark("a")
    plan(request_of())
    assert not (project / "experiments").exists()


def test_a_stand_in_is_part_of_the_identity_and_fences_the_browser_in(benchmark, request_of):
    benchmark("a")
    without = plan(request_of())
    planned = plan(request_of(sites={"example.com": "tests.runs.doubles:Site"}))
    assert planned.run.run_id != without.run.run_id
    assert planned.run.stand_in_hosts == ("example.com",)
    assert planned.fence
    assert not without.fence


def test_an_agent_that_needs_a_browser_is_not_run_without_one(benchmark, request_of):
    benchmark("a")
    with pytest.raises(ConfigError, match="needs a browser"):
        plan(request_of(agent="tests.runs.doubles:InBrowser"))


def test_nop_needs_no_browser(benchmark, carry_out):
    benchmark("a")
    assert carry_out(agent="nop")[1].statuses == {"finished": 1}


@pytest.mark.parametrize("target", ["os:path", "json:dumps", "pathlib:Path"])
def test_what_is_no_agent_is_refused(benchmark, request_of, target):
    benchmark("a")
    with pytest.raises(ConfigError, match="not a subclass of"):
        plan(request_of(agent=target))


def test_only_an_agent_that_plays_solutions_is_given_them(benchmark, carry_out):
    folder = benchmark("a")
    (folder / "solutions").mkdir()
    (folder / "solutions" / "t1.json").write_text('[{"done": "secret"}]')
    planned, _, _ = carry_out(agent="tests.runs.doubles:Nosy")
    trace = planned.folder.try_path("t1", 1, 1) / "trace.json"
    assert json.loads(trace.read_text())["outcome"]["answer"] == "None"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sites": {"example.com": "no_such:Site"}}, "--site example.com=no_such:Site"),
        ({"cdp_url": "http://127.0.0.1:1"}, "--cdp-url belongs to --browser cdp"),
        ({"browser_path": "/usr/bin/chromium"}, "--browser-path belongs to --browser local"),
        ({"browser": "cdp"}, "give the endpoint"),
    ],
)
def test_what_would_not_be_used_or_cannot_be_found_is_refused(
    benchmark, request_of, changes, message
):
    benchmark("a")
    with pytest.raises(ConfigError, match=message):
        plan(request_of(**changes))


def test_the_oracle_is_refused_before_a_browser_starts_where_nothing_can_be_played(
    benchmark, request_of
):
    benchmark("a")
    with pytest.raises(ConfigError, match="this benchmark has none"):
        plan(request_of(agent="oracle", browser="local"))


def test_a_foreign_browser_cannot_reach_the_sites_and_the_plan_says_so(benchmark, request_of):
    benchmark("a", sites={"shop.test": "my:Site"})
    with pytest.raises(ConfigError, match=r"cannot reach the sites of Small \(shop\.test\)"):
        plan(request_of(browser="cdp", cdp_url="http://127.0.0.1:1"))


def test_browser_use_is_refused_in_one_line_where_it_is_not_installed(
    benchmark, request_of, monkeypatch, tmp_path
):
    benchmark("a")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="type `bubench agents install browser-use`"):
        plan(request_of(agent="browser-use", browser="local"))
    assert ConfigError.exit_status == 2


def test_an_unknown_agent_lists_what_there_is(benchmark, request_of):
    benchmark("a")
    with pytest.raises(ConfigError, match=r"did you mean 'oracle'\?.*nop"):
        plan(request_of(agent="orakle"))


def test_a_path_in_a_result_does_not_name_the_user(benchmark, request_of, monkeypatch, project):
    benchmark("a")
    monkeypatch.setenv("HOME", str(project.parent))
    elsewhere = project / "elsewhere"
    elsewhere.mkdir()
    assert plan(request_of()).run.benchmark_dir == "benchmarks/Small"
    monkeypatch.chdir(elsewhere)
    assert plan(request_of()).run.benchmark_dir == "~/project/benchmarks/Small"


def test_the_level_that_was_taken_is_part_of_the_identity(benchmark, request_of):
    benchmark("a")
    auto = plan(request_of(agent="nop", browser="local")).run
    assert auto.identity.guard == auto.guard.level
    observed = plan(request_of(agent="nop", browser="local", guard="observed")).run
    assert observed.identity.guard == "observed"
    assert observed.run_id != auto.run_id
    same = plan(request_of(agent="nop", browser="local", guard=auto.guard.level)).run
    assert same.run_id == auto.run_id


def test_a_foreign_browser_can_only_be_observed(benchmark, request_of):
    benchmark("a")
    foreign = {"agent": "nop", "browser": "cdp", "cdp_url": "http://127.0.0.1:1"}
    assert plan(request_of(**foreign)).run.guard.level == "observed"
    with pytest.raises(ConfigError, match="--guard flags: .*only be observed"):
        plan(request_of(**foreign, guard="flags"))
