import threading

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.corpus import engines
from browseruse_bench.factory.corpus.books import Job
from tests.factory.corpus.filtering import run, story, submissions, write_lines


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
