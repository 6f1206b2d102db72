import json
import threading

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.corpus import engines
from browseruse_bench.factory.corpus.books import Job
from tests.factory.corpus.filtering import COLUMNS, run, story, submissions, write_lines


class Counts(Job):
    def work(self):
        return {"n": 1}

    def outputs(self):
        return ()


def jobs(folder, n):
    return [Counts(manifest=folder / f"{i}.json") for i in range(n)]


def test_nothing_further_starts_once_it_is_stopped(tmp_path):
    stop = threading.Event()
    engine = engines.Embedded(2, stop)
    assert engine.settle_all(jobs(tmp_path, 3)) == [{"n": 1}] * 3
    stop.set()
    with pytest.raises(engines.Stopped):
        engine.settle_all(jobs(tmp_path / "more", 3))
    assert not (tmp_path / "more").exists()


def test_without_ray_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ConfigError, match=r"browseruse-bench\[ray\]"):
        engines.OnRay()


def test_a_flag_chooses_the_engine_and_nothing_else_changes(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    write_lines(tmp_path / "in" / "a.jsonl", submissions(n=40))
    columns = ", ".join(f'{meaning} = "{name}"' for meaning, name in COLUMNS.items())
    (tmp_path / "workspace.toml").write_text(
        'name = "w"\n[corpus]\npaths = ["in"]\npermitted_tags = ["ok"]\nengine = "ray"\n'
        f"columns = {{ {columns} }}\n"
    )

    def bub(*arguments):
        given = ["factory", "run", "filter", "--workspace", str(tmp_path), *arguments]
        return CliRunner().invoke(bubench, given)

    refused = bub()
    assert refused.exit_code == 2
    assert "browseruse-bench[ray]" in str(refused.output) + str(refused.exception)
    assert bub("--engine", "spark").exit_code == 2
    done = bub("--engine", "embedded", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["flow"]["n_in"] == 40


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # Ray's own
def test_workers_of_ray_come_to_the_same_clusters(tmp_path, monkeypatch):
    # A busy machine takes its time to start them.
    monkeypatch.setenv("RAY_gcs_server_request_timeout_seconds", "300")
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")
    ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")
    for engine in ("embedded", "ray"):
        for i in range(4):
            write_lines(tmp_path / engine / "in" / f"{i}.jsonl", submissions(i, 300))
    expected = run(tmp_path / "embedded", partitions=4)
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    try:
        assert run(tmp_path / "ray", partitions=4, engine="ray") == expected
    finally:
        ray.shutdown()
    assert story(tmp_path / "ray") == story(tmp_path / "embedded")
