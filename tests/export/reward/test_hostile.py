import io
import json
import struct
import zipfile

import pytest

from browseruse_bench.export.reward import intake
from tests.export.reward.conftest import told, zipped

BAD_JSON = {
    "torn": b'{"task_id": "a"',
    "empty": b"",
    "not UTF-8": b"\xff\xfe{}",
    "list": b"[]",
    "deep": b'{"task_id":' + b"[" * 100_000,
    "deep arguments": b'{"task_id":"a","steps":[{"calls":[{"name":"x","arguments":{"v":'
    + b"[" * 5000
    + b"]" * 5000
    + b"}}]}]}",
    "NaN": b'{"task_id":"a","steps":[{"calls":[{"name":"x","arguments":{"v":NaN}}]}]}',
    "infinity": b'{"task_id":"a","steps":[{"calls":[{"name":"x","arguments":{"v":1e999}}]}]}',
    "half a character": b'{"task_id":"a","answer":"\\ud800"}',
    "wrong type": b'{"task_id":"a","answer":[1]}',
    "unknown field": b'{"task_id":"a","reward":1}',
    "no task": b"{}",
    "policy of its own": b'{"task_id":"a","evidence_policy":"harness"}',
    "sample": b'{"task_id":"a","sample":1000}',
    "key with slash": b'{"trace_key":"../../etc/passwd"}',
    "status": b'{"task_id":"a","status":"great"}',
    "infrastructure": b'{"task_id":"a","status":"infrastructure"}',
}


def refused(answer, *statuses):
    body = answer.json()
    assert answer.status_code in statuses, answer.text
    assert set(body) <= {"status", "error", "id"}
    assert body["error"]["message"]
    assert "\n" not in body["error"]["message"]
    return body["error"]


@pytest.mark.parametrize("name", BAD_JSON)
async def test_a_bad_body_is_one_line_and_never_a_fault_of_the_server(setting, name):
    async with setting.served() as served:
        headers = {"content-type": "application/json"}
        answer = await served.client.post("/v1/gradings", content=BAD_JSON[name], headers=headers)
        refused(answer, 400, 422)
        assert not served.service.faults
        assert not any((setting.tmp / "state" / "incoming").iterdir())


@pytest.mark.parametrize("task_id", ["../a", "a/../../b", "/etc/passwd", "a\x00b", "", "x" * 9999])
async def test_an_id_is_never_a_path(setting, task_id):
    async with setting.served() as served:
        refused(await served.grade(told(task_id)), 404, 422)
        got = await served.client.get("/v1/gradings/..%2f..%2fetc%2fpasswd")
        refused(got, 404)
        assert not any((setting.tmp / "state" / "traces").iterdir())


async def test_what_is_too_large_is_refused_before_it_is_taken(setting, monkeypatch):
    from browseruse_bench.export.reward import server

    monkeypatch.setattr(server, "MAX_JSON_BYTES", 1000)
    async with setting.served() as served:

        async def endless():
            for _ in range(1000):
                yield b" " * 100

        headers = {"content-type": "application/json"}
        big = await served.client.post("/v1/gradings", content=b" " * 1001, headers=headers)
        unsaid = await served.client.post("/v1/gradings", content=endless(), headers=headers)
    refused(big, 413)
    refused(unsaid, 413)


async def test_other_media_and_packed_transfers_are_refused(setting):
    async with setting.served() as served:
        for headers in (
            {"content-type": "text/plain"},
            {"content-type": "application/json", "content-encoding": "gzip"},
        ):
            answer = await served.client.post("/v1/gradings", content=b"{}", headers=headers)
            refused(answer, 415)
        for query in ({"wait_s": "x"}, {"wait_s": "nan"}, {"wait_s": "-1"}, {"wait_s": "601"}):
            refused(await served.client.post("/v1/gradings", json=told(), params=query), 400)
        refused(await served.client.put("/v1/gradings"), 405)
        refused(await served.client.get("/v1/nowhere"), 404)


def made_zip(files, **more):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = more.get("mode", 0o644) << 16
            info.compress_type = more.get("method", zipfile.ZIP_DEFLATED)
            archive.writestr(info, content)
    return made.getvalue()


ESCAPES = ["../x", "/abs", "evidence/../../x", "evidence\\..\\x", "other/x", "evidence//x", "x"]


@pytest.mark.parametrize("name", ESCAPES)
async def test_no_name_in_a_zip_file_leads_elsewhere(setting, name):
    before = set(setting.tmp.rglob("*"))
    async with setting.served() as served:
        refused(await served.grade(content=made_zip({name: b"x"})), 422)
        assert not served.service.faults
    made = {path.name for path in set(setting.tmp.rglob("*")) - before}
    assert "x" not in made


async def test_links_and_foreign_methods_in_a_zip_file_are_refused(setting):
    async with setting.served() as served:
        link = made_zip({"files/x": b"/etc/passwd"}, mode=0o120777)
        refused(await served.grade(content=link), 422)
        bzip = made_zip({"files/x": b"x"}, method=zipfile.ZIP_BZIP2)
        refused(await served.grade(content=bzip), 422)
        refused(await served.grade(content=b"PK\x03\x04 torn"), 422)
        refused(await served.grade(content=b""), 422)
        twice = made_zip({"files/x": b"x", "files/X": b"y"})
        refused(await served.grade(content=twice), 422)


async def test_a_zip_bomb_is_stopped_by_what_it_says_and_by_what_comes_out(setting, monkeypatch):
    monkeypatch.setattr(intake, "MAX_UNPACKED_BYTES", 10_000)
    bomb = made_zip({"evidence/x": b"\0" * 1_000_000})
    # The central directory and the local header say that it is small.
    lying = bomb.replace(struct.pack("<I", 1_000_000), struct.pack("<I", 100))
    async with setting.served() as served:
        refused(await served.grade(content=bomb), 413)
        refused(await served.grade(content=lying), 413, 422)
        monkeypatch.setattr(intake, "MAX_FILES", 3)
        many = made_zip({f"evidence/{n}": b"" for n in range(4)})
        refused(await served.grade(content=many), 413)
        assert not served.service.faults
        assert not any((setting.tmp / "state" / "incoming").iterdir())


async def test_a_changed_trace_is_refused(setting):
    folder = setting.run().folder.try_path("a", 1, 1)
    manifest = json.loads((folder / "MANIFEST.json").read_bytes())
    async with setting.served() as served:
        good = (folder / "trace.json").read_bytes()
        for name, content in (
            ("trace.json", good.replace(b"Paris", b"Roma!")),
            ("steps.jsonl", b"{}\n"),
            ("MANIFEST.json", b"[]"),
            ("MANIFEST.json", b"{"),
            ("MANIFEST.json", json.dumps({**manifest, "files/y": "0" * 64}).encode()),
            ("MANIFEST.json", json.dumps({**manifest, "trace.json": 7}).encode()),
        ):
            old = (folder / name).read_bytes()
            (folder / name).write_bytes(content)
            error = refused(await served.grade(content=zipped(folder)), 422)
            assert error["code"] == "not_a_trace"
            assert str(setting.tmp) not in error["message"]
            (folder / name).write_bytes(old)
        assert not served.service.faults
        assert (await served.grade(content=zipped(folder))).status_code == 200
