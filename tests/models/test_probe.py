"""What an endpoint supports is found by what it does, not by what it says."""

import asyncio
import io
import json
from datetime import UTC, datetime, timedelta

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import MalformedError, OutageError, TruncatedError
from browseruse_bench.models.config import Price
from browseruse_bench.models.probe import ABILITIES, ProbeFile, picture_of
from tests.models.fake_endpoint import Fail, FakeEndpoint, Say
from tests.models.made import KEY, MET, model_of, picture, request, spec_of

UNKNOWN = {"schema": None, "images": None, "system": None}
GREETING = {"greeting": "Hello!", "polite": True}


class Endpoint:
    """What a server does with each feature: "yes", "ignored" or "rejected"."""

    def __init__(self, **features):
        self.does = {name: "yes" for name in ABILITIES} | features

    def __call__(self, asked):
        body, text = asked.body, asked.text
        system = "\n".join(
            m["content"] for m in body.get("messages", []) if m["role"] == "system"
        ) + json.dumps(body.get("system", "") or body.get("systemInstruction", ""))
        has = {
            "native": any(n in json.dumps(body) for n in ("json_schema", "output_config",
                                                          "responseJsonSchema", "responseSchema")),
            "tool": bool(body.get("tools")),
            "images": asked.n_images > 0,
            "system": len(system) > 4,
        }  # fmt: skip
        for name, used in has.items():
            if used and self.does[name] == "rejected":
                return Fail(400, f"unknown field: {name}")
        held = (has["native"] and self.does["native"] == "yes") or (
            "JSON Schema" in text and self.does["prompted"] == "yes"
        )
        calls = has["tool"] and self.does["tool"] == "yes"
        if "word of the day" in text:
            known = self.does["system"] == "yes" or (not has["system"] and "plover" in text)
            return "Plover." if known else "I do not know."
        if "Which number" in text:
            return "4719" if self.does["images"] == "yes" else "No idea."
        value = GREETING if "Say hello" in text else MET
        if calls:
            return Say(arguments=value)
        return json.dumps(value) if held else "Hello there!"


def probed(fake, cache, provider="openai-compatible", **spec):
    return model_of(spec_of(fake, provider, **{**UNKNOWN, **spec}), cache)


def run(model, what=None):
    return asyncio.run(model.ask(what or request(), purpose="test"))


@pytest.mark.parametrize("provider", ["openai-compatible", "anthropic", "google", "openrouter"])
def test_an_endpoint_that_can_do_everything_is_asked_once_for_each(provider, tmp_path):
    with FakeEndpoint(Endpoint()) as fake:
        found = asyncio.run(probed(fake, tmp_path, provider).probe())
    assert {name: found.known(name) for name in ABILITIES} == dict.fromkeys(ABILITIES, True)
    assert (found.mode, found.notes, len(fake.asked)) == ("native", {}, 5)
    # Cheap: the picture is the largest part.
    assert sum(len(asked.text) for asked in fake.asked) < 1500


@pytest.mark.parametrize("how", ["ignored", "rejected"])
@pytest.mark.parametrize("ability", ["system", "native", "tool", "images"])
def test_what_is_ignored_or_rejected_is_not_there_and_the_rest_is(ability, how, tmp_path):
    with FakeEndpoint(Endpoint(**{ability: how})) as fake:
        found = asyncio.run(probed(fake, tmp_path).probe())
    assert found.known(ability) is False
    assert [name for name in ABILITIES if not found.known(name)] == [ability]
    assert found.notes[ability]
    assert ("unknown field" in found.notes[ability]) == (how == "rejected")


@pytest.mark.parametrize(
    ("features", "mode"),
    [
        ({}, "native"),
        ({"native": "ignored"}, "tool"),
        ({"native": "rejected"}, "tool"),
        ({"native": "ignored", "tool": "ignored"}, "prompted"),
        ({"native": "rejected", "tool": "rejected"}, "prompted"),
        ({"native": "rejected", "tool": "rejected", "system": "rejected"}, "prompted"),
    ],
)
def test_the_schema_goes_native_then_as_a_tool_then_prompted(features, mode, tmp_path):
    with FakeEndpoint(Endpoint(**features)) as fake:
        reply = run(probed(fake, tmp_path), request(system="Be short."))
    assert reply.value == MET
    last = fake.asked[-1]
    ways = ("native" if "response_format" in last.body else "tool" if "tools" in last.body else
            "prompted" if "JSON Schema" in last.text else "none")  # fmt: skip
    assert ways == mode
    roles = [message["role"] for message in last.body["messages"]]
    if features.get("system") == "rejected":
        assert roles == ["user"]
        assert last.text.startswith("Be short.")
    else:
        assert roles == ["system", "user"]


def test_only_what_a_request_needs_is_asked_for_and_only_once(tmp_path):
    with FakeEndpoint(Endpoint()) as fake:
        model = probed(fake, tmp_path)
        for what, n in (
            (request(schema=None), 1),
            (request(), 2),
            (request(), 1),
            (request(system="Be short."), 2),
            (request(picture()), 2),
            (request(picture(), system="Be short."), 1),
        ):
            before = len(fake.asked)
            run(model, what)
            assert len(fake.asked) - before == n
        # Another process, and another key of the same endpoint.
        before = len(fake.asked)
        run(probed(fake, tmp_path), request(picture(), system="Be short."))
        assert len(fake.asked) - before == 1
        # Another model of the same endpoint.
        run(probed(fake, tmp_path, name="other"))
        assert len(fake.asked) - before == 3
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    assert KEY not in written
    assert "fake" in written


async def test_many_tasks_probe_once(tmp_path):
    with FakeEndpoint(Endpoint()) as fake:
        model = probed(fake, tmp_path)
        await asyncio.gather(*(model.ask(request(), purpose="test") for _ in range(8)))
    assert sum("Say hello" in asked.text for asked in fake.asked) == 1


def test_what_a_probe_cost_is_in_the_reply_that_needed_it(tmp_path):
    price = Price(input=1000, output=0)
    with FakeEndpoint(Endpoint(native="ignored")) as fake:
        model = probed(fake, tmp_path, price=price)
        first, second = run(model), run(model)
    n_tokens = [len(asked.text) // 4 + 1 for asked in fake.asked]
    assert len(n_tokens) == 4
    assert first.usage.uncached_tokens == sum(n_tokens[:3])
    assert second.usage.uncached_tokens == n_tokens[3]
    assert first.usage.cost_usd == pytest.approx(sum(n_tokens[:3]) / 1000)
    assert (first.n_asked, second.n_asked) == (1, 1)


def test_what_the_configuration_says_is_not_asked_for(tmp_path):
    with FakeEndpoint(Endpoint(native="ignored")) as fake:
        model = probed(fake, tmp_path, schema="tool", images=True, system=False)
        run(model, request(picture(), system="Be short."))
    assert len(fake.asked) == 1
    assert "tools" in fake.asked[0].body
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_reads_no_pictures_is_given_none(tmp_path):
    with FakeEndpoint(Endpoint(images="ignored")) as fake:
        with pytest.raises(ConfigError, match=r"reads no pictures \(a picture of 4719 was read as"):
            run(probed(fake, tmp_path), request(picture()))
        assert len(fake.asked) == 1
        assert run(probed(fake, tmp_path, images=True), request(picture())).value == MET


# What cannot be told


def test_an_endpoint_that_takes_nothing_at_all_lacks_no_ability(tmp_path):
    with FakeEndpoint(lambda asked: Fail(422, "temperature must be 1")) as fake:
        with pytest.raises(OutageError, match="temperature must be 1"):
            run(probed(fake, tmp_path, params={"temperature": 0.0}))
        assert len(fake.asked) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [401, 402, 503])
def test_an_outage_tells_nothing_and_keeps_nothing(status, tmp_path):
    price = Price(input=1000, output=0)
    script = [Say("Plover."), *[Fail(status)] * 20]
    with FakeEndpoint(script) as fake, pytest.raises(OutageError) as raised:
        run(probed(fake, tmp_path, price=price), request(system="Be short."))
    assert raised.value.usage.uncached_tokens == len(fake.asked[0].text) // 4 + 1
    found = ProbeFile(probed(fake, tmp_path).spec, tmp_path).read()
    assert (found.system, found.native) == (True, None)


def test_what_could_not_be_told_is_asked_again_by_the_next_process_only(tmp_path):
    def cut(asked):
        return Say("{", finish="length") if "Say hello" in asked.text else Endpoint()(asked)

    with FakeEndpoint(cut) as fake:
        model = probed(fake, tmp_path)
        for asks, n in ((model, 3), (model, 1), (probed(fake, tmp_path), 3)):
            before = len(fake.asked)
            assert run(asks).value == MET
            assert len(fake.asked) - before == n
            assert "JSON Schema" in fake.asked[-1].text
    notes = ProbeFile(model.spec, tmp_path).read().notes
    assert notes["native"] == notes["tool"] == "cannot be told: the reply ended with 'length'"


# What changed since it was probed


@pytest.mark.parametrize("how", ["ignored", "rejected"])
def test_an_endpoint_that_lost_an_ability_is_probed_again(how, tmp_path):
    with FakeEndpoint(Endpoint()) as fake:
        spec = probed(fake, tmp_path).spec
        run(probed(fake, tmp_path))
        fake._script = Endpoint(native=how)
        model = probed(fake, tmp_path)
        assert run(model).value == MET
        assert "tools" in fake.asked[-1].body
        assert ProbeFile(spec, tmp_path).read().native is False
        before = len(fake.asked)
        assert run(model).value == MET
        assert len(fake.asked) == before + 1


def test_an_error_that_has_another_cause_is_told_after_one_new_probe(tmp_path):
    with FakeEndpoint(Endpoint()) as fake:
        run(probed(fake, tmp_path), request(picture(), system="Be short."))

        def picky(asked):
            return Fail(400, "bad word") if "Is it met" in asked.text else Endpoint()(asked)

        fake._script = picky
        before = len(fake.asked)
        model = probed(fake, tmp_path)
        with pytest.raises(OutageError, match="bad word"):
            run(model)
        assert len(fake.asked) - before == 2
        with pytest.raises(OutageError, match="bad word"):
            run(model)
        assert len(fake.asked) - before == 3


def test_a_value_that_does_not_fit_says_nothing_against_the_endpoint(tmp_path):
    with FakeEndpoint(Endpoint()) as fake:
        run(probed(fake, tmp_path))
        fake._script = lambda asked: '{"status": "perhaps"}'
        before = len(fake.asked)
        with pytest.raises(MalformedError):
            run(probed(fake, tmp_path))
        assert len(fake.asked) - before == 3


def test_a_reply_that_was_cut_short_says_nothing_against_it_either(tmp_path):
    with FakeEndpoint(Endpoint()) as fake:
        run(probed(fake, tmp_path))
        fake._script = lambda asked: Say("{", finish="length")
        before = len(fake.asked)
        with pytest.raises(TruncatedError):
            run(probed(fake, tmp_path))
        assert len(fake.asked) - before == 1


# The file


def test_a_file_that_is_old_or_damaged_is_not_believed(tmp_path):
    with FakeEndpoint(Endpoint()) as fake:
        spec = probed(fake, tmp_path).spec
        file = ProbeFile(spec, tmp_path)
        old = (datetime.now(UTC) - timedelta(days=31)).isoformat(timespec="seconds")
        for spoil in (
            lambda text: text.replace("2", "x"),
            lambda text: "",
            lambda text: text.replace(file.read().probed_at, old),
        ):
            run(probed(fake, tmp_path))
            assert file.read().native is True
            file.path.write_text(spoil(file.path.read_text()))
            assert file.read().native is None


def test_a_cache_that_cannot_be_written_is_none(tmp_path):
    (tmp_path / "file").write_text("")
    with FakeEndpoint(Endpoint()) as fake:
        assert run(probed(fake, tmp_path / "file")).value == MET


def test_the_cache_is_in_the_users_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with FakeEndpoint(Endpoint()) as fake:
        run(probed(fake, None))
    (file,) = (tmp_path / "browseruse-bench" / "models").iterdir()
    assert file.name.startswith("openai-compatible-fake-")


def test_the_picture_shows_its_digits():
    from PIL import Image

    shown = Image.open(io.BytesIO(picture_of("4719")))
    assert (shown.format, shown.mode, shown.size) == ("PNG", "L", (350, 126))
    # Seven and one have few dots, and no two digits look alike.
    black = {d: Image.open(io.BytesIO(picture_of(d))).tobytes() for d in "0123456789"}
    assert len(set(black.values())) == 10
