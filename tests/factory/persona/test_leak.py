"""What must not be in a folder is found in whatever form it is there; and after the stages it is not."""

import asyncio
import base64
import gzip
import hashlib
import json
import zipfile

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.persona.leak import leaks, outside
from browseruse_bench.factory.pipeline import Pipeline
from browseruse_bench.factory.stages.persona import Persona
from browseruse_bench.factory.stages.restyle import Restyle
from browseruse_bench.factory.workspace import Workspace, create
from browseruse_bench.models.base import Message, Request
from browseruse_bench.models.open import open_model
from browseruse_bench.records.candidate import new_candidate
from tests.factory.persona.test_stage import ANN, RIGHT, TASK
from tests.factory.test_pipeline import Lines
from tests.models.fake_endpoint import FakeEndpoint

VALUES = ("Élodie Charpentier", "Ann", "06 39 98 14 27")
SECRET = "for Élodie Charpentier"


def _zip(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.json", json.dumps({"x": SECRET}))


def _parquet(path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"t": [SECRET] * 3}), path, compression="zstd")


def _sealed(path):
    fernet = pytest.importorskip("cryptography.fernet")
    key = base64.urlsafe_b64encode(hashlib.sha256(b"Ours").digest())
    path.write_bytes(base64.b64encode(fernet.Fernet(key).encrypt(json.dumps([SECRET]).encode())))


WRITERS = {
    "plain.md": lambda path: path.write_text(SECRET.upper()),
    "escaped.json": lambda path: path.write_text(json.dumps({"t": SECRET})),
    "escaped.jsonl": lambda path: path.write_text("{}\n" + json.dumps([SECRET]) + "\n"),
    "a.warc.gz": lambda path: path.write_bytes(gzip.compress(SECRET.encode())),
    "percent.txt": lambda path: path.write_text("q=%C3%89lodie+Charpentier"),
    "a.zip": _zip,
    "a.parquet": _parquet,
    "tasks.enc": _sealed,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_value_is_found_in_every_form(tmp_path, name):
    WRITERS[name](tmp_path / name)
    assert [leak.value for leak in leaks(tmp_path, VALUES, sealed_as="Ours")] == [0]


def test_names_of_files_count_and_short_values_are_whole_words(tmp_path):
    (tmp_path / "Announce.txt").write_text("annex")
    assert leaks(tmp_path, VALUES) == []
    (tmp_path / "for Ann.txt").write_text("")
    assert [leak.value for leak in leaks(tmp_path, VALUES)] == [1]


CONFIG = """
name = "w"
[roles]
persona = "seer"
restyler = "seer"
[models.seer]
id = "fake"
base_url = "{url}"
api_key_env = "SEER"
schema = "native"
may_see = "{may_see}"
"""


def workspace(tmp_path, monkeypatch, url, may_see):
    monkeypatch.setenv("SEER", "k-0123456789-abcdefgh")
    create(tmp_path / "w", CONFIG.format(url=url, may_see=may_see))
    return Workspace.open(tmp_path / "w")


def answer(asked):
    task = asked.text
    if "Two texts may ask" in task:
        one = task.partition("<first>\n")[2].partition("\n</first>")[0]
        other = task.partition("<second>\n")[2].partition("\n</second>")[0]
        return {
            "first": [{"id": "1", "quote": one}],
            "second": [{"id": "1", "quote": other}],
            "pairs": [{"first": "1", "second": "1"}],
        }
    if "Rewrite the task" in task:
        return {"text": task.partition("<task>\n")[2].partition("\n</task>")[0]}
    return RIGHT


async def run(found, tell=lambda line: None):
    pipeline = Pipeline(found, (Lines(), Persona(found.config), Restyle(found.config)))
    flows = []
    for step in pipeline.steps:
        await pipeline.run(
            step, on_settled=lambda progress: None, on_progress=tell, stop=asyncio.Event()
        )  # fmt: skip
        flows.append(pipeline.flow(step))
    return flows


async def test_no_personal_value_leaves_restricted(tmp_path, monkeypatch):
    with FakeEndpoint(answer) as fake:
        found = workspace(tmp_path, monkeypatch, fake.openai_url, "restricted")
        (found.path / "corpus.txt").write_text(f"{TASK}\n")
        flows = await run(found)
    assert [flow.kept for flow in flows] == [1, 1, 1]
    assert any(ANN in asked.text for asked in fake.asked)
    values = [t["verbatim"] for t in RIGHT["targets"]] + ["Ann", "Delacroix", "312.555.0148"]
    assert leaks(found.path / "clean", values) == []
    assert leaks(found.path / "restricted/persona", values) == []
    assert (found.path / "clean/restyle/kept.jsonl").read_text().count("example.com") == 1
    origin = new_candidate(TASK).key
    assert leaks(found.path / "restricted", [origin])
    assert outside(found.path, [origin], inputs=["corpus.txt"]) == []
    assert outside(found.path, values, inputs=["corpus.txt"]) == []
    rewriting = [asked.text for asked in fake.asked if "Rewrite the task" in asked.text]
    assert rewriting
    assert not any(ANN.casefold() in text.casefold() for text in rewriting)


async def test_what_the_first_version_left_in_clean_goes_to_restricted(tmp_path, monkeypatch):
    with FakeEndpoint(answer) as fake:
        found = workspace(tmp_path, monkeypatch, fake.openai_url, "restricted")
        (found.path / "corpus.txt").write_text(f"{TASK}\n")
        origin = new_candidate(TASK).key
        for name in ("restyle", "restyle.before-1"):
            old = found.path / "clean" / name
            old.mkdir(parents=True)
            (old / "stage.json").write_text('{"name": "restyle", "version": 1}')
            (old / "journal.jsonl").write_text(json.dumps({"origin": origin}) + "\n")
        assert len(outside(found.path, [origin], inputs=["corpus.txt"])) == 2
        said = []
        flows = await run(found, said.append)
    assert flows[-1].kept == 1
    assert outside(found.path, [origin], inputs=["corpus.txt"]) == []
    assert (found.path / "restricted/restyle.of-version-1/journal.jsonl").is_file()
    assert (found.path / "restricted/restyle.before-1.of-version-1/journal.jsonl").is_file()
    assert sum("moved to" in line for line in said) == 2


def test_a_release_is_searched_too(tmp_path):
    release = tmp_path / "releases/Ours"
    release.mkdir(parents=True)
    _sealed(release / "tasks.enc")
    (tmp_path / "restricted").mkdir()
    (tmp_path / "restricted/notes.md").write_text(SECRET)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus/a.txt").write_text(SECRET)
    assert [leak.path for leak in outside(tmp_path, VALUES, inputs=["corpus"])] == [release / "tasks.enc"]  # fmt: skip


async def test_a_model_that_may_not_see_restricted_text_gets_no_byte_on_the_wire(
    tmp_path, monkeypatch
):
    with FakeEndpoint(answer) as fake:
        found = workspace(tmp_path, monkeypatch, fake.openai_url, "clean")
        (found.path / "corpus.txt").write_text(f"{TASK}\n")
        flows = await run(found)
        assert flows[1].failed == 1
        assert fake.asked == []
        model = open_model(
            "seer", calls=found.calls("clean"), restricted_calls=found.calls("restricted"),
            cwd=found.path, config="workspace.toml",
        )  # fmt: skip
        request = Request(messages=(Message(role="user", parts=(TASK,)),))
        with pytest.raises(ConfigError):
            await model.ask(request, purpose="persona", restricted=True)
        assert fake.asked == []
    assert leaks(found.path / "clean", ["Delacroix"]) == []


def test_what_a_live_site_shows_by_itself_is_no_leak_and_all_else_is(tmp_path):
    (tmp_path / "page.html").write_text("Shops in Louisville: call +1 502 555 0100. For Ann.")
    values = ["Louisville", "+1 502 555 0100", "Ann"]
    assert {leak.value for leak in leaks(tmp_path, values)} == {0, 1, 2}
    shown = [b"<h1>Louisville</h1> Announce", b"tel:%2B1%20502%20555%200100"]
    assert {leak.value for leak in leaks(tmp_path, values, shown=shown)} == {2}
