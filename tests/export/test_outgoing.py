import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric

CANARY = "BUB-CANARY-0123456789abcdef"


@pytest.fixture
def bench(tmp_path):
    rows = [row("a", expected_result="SECRET-1", hint="SECRET-2", category="c"), row("b/../c")]
    made = MadeBenchmark(tmp_path / "Made", rows)
    made.rubrics = {"a": {**rubric("a", 40, 60), "canary": CANARY}}
    made.load()
    return made


@pytest.fixture
def run(bench, tmp_path):
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded, repeat=2)
    made.settle(loaded, "a", "half \ud83d", urls=("http://shop.test/1",))
    made.settle(loaded, "a", None, attempt=2, status="infrastructure")
    made.settle(loaded, "b/../c", "Rome")
    arguments = ["eval", "--agent", "scripted", "--benchmark", str(bench.path)]
    CliRunner().invoke(bubench, [*arguments, "--experiments", str(tmp_path / "experiments")])
    return made


def export(*arguments):
    return CliRunner().invoke(bubench, ["export", *map(str, arguments)])


def everything(path):
    """All text of an export: files, rows of tables, members of zip files."""
    import pyarrow.parquet as pq

    found = []
    for file in [path, *path.rglob("*")]:
        if file.suffix == ".parquet":
            found.append(json.dumps(pq.read_table(file).to_pylist()))
        elif file.suffix == ".eval":
            with zipfile.ZipFile(file) as archive:
                found += [archive.read(name).decode() for name in archive.namelist()]
        elif file.is_file():
            found.append(file.read_text())
    return "\n".join(found)


SECRETS = ("SECRET-1", "SECRET-2", CANARY, "requirement 0")


def test_the_answer_key_leaves_a_table_only_where_it_is_asked_for_and_with_its_canary(
    bench, tmp_path
):
    shown = export("parquet", bench.path, tmp_path / "out")
    assert shown.exit_code == 0, shown.output
    text = everything(tmp_path / "out")
    assert "Do a" in text
    assert [secret for secret in SECRETS if secret in text] == []
    export("parquet", bench.path, tmp_path / "all", "--answers")
    text = everything(tmp_path / "all")
    assert [secret for secret in SECRETS if secret not in text] == []
    assert CANARY in (tmp_path / "all" / "README.md").read_text()
    assert CANARY in (tmp_path / "all" / "croissant.json").read_text()


def test_a_log_of_a_run_holds_no_answer_key_and_no_score_where_there_is_none(run, tmp_path):
    out = tmp_path / "run.eval"
    shown = export("inspect", run.folder.path, out)
    assert shown.exit_code == 0, shown.output
    assert "1 attempts have not run" in shown.output
    text = everything(out)
    assert [secret for secret in SECRETS if secret in text] == []
    with zipfile.ZipFile(out) as archive:
        header = json.loads(archive.read("header.json"))
        names = [name for name in archive.namelist() if name.startswith("samples/")]
        samples = {n: json.loads(archive.read(n)) for n in names}
    assert all(name.count("/") == 1 for name in names)
    first, second = samples["samples/a_epoch_1.json"], samples["samples/a_epoch_2.json"]
    assert first["scores"]["points"]["value"] == 60
    assert first["scores"]["success"]["value"] == 0
    assert ("scores" in second, second["error"]["message"] != "") == (False, True)
    (other,) = [s for s in samples.values() if s["metadata"]["task_id"] == "b/../c"]
    assert "scores" not in other
    points = header["results"]["scores"][0]
    assert (points["scored_samples"], points["unscored_samples"]) == (1, 2)
    assert points["metrics"]["mean"]["value"] == 60
    export("inspect", run.folder.path, tmp_path / "again.eval")
    assert (tmp_path / "again.eval").read_bytes() == out.read_bytes()
    export("inspect", run.folder.path, tmp_path / "all.eval", "--answers")
    assert "I1: met" in everything(tmp_path / "all.eval")


@pytest.mark.parametrize("format_", ["parquet", "inspect"])
def test_what_is_private_or_restricted_leaves_only_with_its_flag(bench, run, tmp_path, format_):
    source = bench.path if format_ == "parquet" else run.folder.path
    bench.info = {"private": True}
    bench.load()
    out = tmp_path / "x.eval"
    refused = export(format_, source, out)
    assert (refused.exit_code, "--private" in refused.output) == (2, True)
    assert not out.exists()
    assert export(format_, source, out, "--private").exit_code == 0
    bench.info = {}
    bench.rows[0]["rights"] = "restricted-research"
    bench.load()
    refused = export(format_, source, tmp_path / "y.eval")
    assert (refused.exit_code, "--restricted" in refused.output) == (2, True)
    assert export(format_, source, tmp_path / "y.eval", "--restricted").exit_code == 0


def test_what_lies_in_restricted_of_a_workspace_leaves_only_with_its_flag(tmp_path):
    (tmp_path / "workspace.toml").write_text("")
    made = MadeBenchmark(tmp_path / "restricted" / "Made", [row("a")])
    made.load()
    refused = export("parquet", made.path, tmp_path / "out")
    assert (refused.exit_code, "--restricted" in refused.output) == (2, True)
    assert export("parquet", made.path, tmp_path / "out", "--restricted").exit_code == 0


def test_an_export_never_overwrites_and_says_what_it_takes(bench, run, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    assert export("parquet", bench.path, tmp_path / "full").exit_code == 2
    (tmp_path / "x.eval").touch()
    assert export("inspect", run.folder.path, tmp_path / "x.eval").exit_code == 2
    assert "ends with .eval" in export("inspect", run.folder.path, tmp_path / "x").output
    assert "is a run" in export("parquet", run.folder.path, tmp_path / "y").output
    assert "is no run folder" in export("inspect", bench.path, tmp_path / "y.eval").output
    unknown = export("parket", bench.path, tmp_path / "y")
    assert (unknown.exit_code, "did you mean 'parquet'" in unknown.output) == (2, True)
    assert not (tmp_path / "y").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


def test_a_package_for_trainers_holds_no_answer_key_and_refuses_to(bench, tmp_path):
    for format_ in ("verifiers", "openenv"):
        out = tmp_path / format_
        assert export(format_, bench.path, out).exit_code == 0
        text = everything(out)
        assert "Do a" in text
        assert [secret for secret in SECRETS if secret in text] == []
        for file in out.rglob("*.py"):
            compile(file.read_text(), file.name, "exec")
        refused = export(format_, bench.path, tmp_path / "y", "--answers")
        assert (refused.exit_code, "serve-reward" in refused.output) == (2, True)


STEPS = [{"saw": "page", "url": "http://shop.test/1"}]


@pytest.mark.parametrize(
    ("report", "reward"),
    [({"answer": "x", "steps": STEPS}, 0.6), ("torn", 0.0), (None, 0.0), ([1], 0.0)],
)
def test_the_reward_of_a_harbor_task_is_that_of_bubench_grade(bench, tmp_path, report, reward):
    assert export("harbor", bench.path, tmp_path / "x").exit_code == 2
    assert export("harbor", bench.path, tmp_path / "out", "--answers").exit_code == 0
    (folder,) = (tmp_path / "out").iterdir()
    assert CANARY in (folder / "tests/benchmark/rubrics/a.json").read_text()
    outside = [path for path in folder.rglob("*") if "tests" not in path.parts[-4:]]
    text = "".join(path.read_text() for path in outside if path.is_file())
    assert [secret for secret in SECRETS if secret in text] == []
    file = tmp_path / "report.json"
    if report is not None:
        file.write_text(report if isinstance(report, str) else json.dumps(report))
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "BUBENCH_TESTS": str(folder / "tests"),
        "BUBENCH_LOGS": str(tmp_path / "logs"),
        "BUBENCH_REPORT": str(file),
    }
    subprocess.run(["bash", folder / "tests" / "test.sh"], env=env, check=True)
    assert json.loads((tmp_path / "logs" / "reward.json").read_text()) == {"reward": reward}
