"""A double answers from a file or a function, and fails in every way that a provider can."""

import asyncio
import json

import pytest

from browseruse_bench.errors import ConfigError, ModelError
from browseruse_bench.models import MODELS
from browseruse_bench.models.base import (
    MalformedError,
    OutageError,
    RefusalError,
    TooLongError,
    TruncatedError,
)
from browseruse_bench.models.spec import model_spec
from tests.models.made import MET, SCHEMA, request


def double(text, folder):
    spec = model_spec(text, cwd=folder)
    return MODELS.get(spec.provider)(spec, limiter=None)


def ask(model, what=None, **more):
    return asyncio.run(model.ask(what or request(), purpose="test", **more))


def script(folder, content, name="answers.json"):
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return f"scripted:{name}"


def test_answers_come_in_their_order(tmp_path):
    model = double(script(tmp_path, [MET, json.dumps(MET), "plain"]), tmp_path)
    first = ask(model)
    assert (first.value, first.usage.cost_usd, first.usage.price_source) == (
        MET, 0.0, "scripted, free",
    )  # fmt: skip
    assert ask(model).value == MET
    assert ask(model, request(schema=None)).raw == "plain"
    with pytest.raises(ConfigError, match="more often than it has answers"):
        ask(model)


def test_the_first_rule_that_fits_answers(tmp_path):
    rules = [
        {"when": "kettle", "sample": 1, "answer": {**MET, "status": "violated"}},
        {"when": "(?i)KETTLE", "answer": MET},
        {"when": "", "answer": {**MET, "why": "else"}},
    ]
    model = double(script(tmp_path, rules), tmp_path)
    assert ask(model, request("a kettle")).value == MET
    assert ask(model, request("a kettle", sample=1)).value["status"] == "violated"
    assert ask(model, request("a pot", sample=1)).value["why"] == "else"
    only = double(script(tmp_path, rules[:1]), tmp_path)
    with pytest.raises(ConfigError, match="no rule of the script fits"):
        ask(only, request("a pot"))


@pytest.mark.parametrize(
    ("fail", "error"),
    [
        ("outage", OutageError),
        ("truncated", TruncatedError),
        ("refusal", RefusalError),
        ("too_long", TooLongError),
        ("malformed", MalformedError),
    ],
)
def test_it_plays_every_failure_bl035(fail, error, tmp_path):
    model = double(script(tmp_path, [{"when": "", "fail": fail}]), tmp_path)
    with pytest.raises(error) as raised:
        ask(model)
    assert raised.value.usage.cost_usd == 0


@pytest.mark.parametrize(
    "answer", ["not JSON", {"status": "MET ", "why": ""}, {"status": "met"}, []]
)
def test_what_does_not_fit_is_malformed_as_from_a_provider_bl032(answer, tmp_path):
    model = double(script(tmp_path, [answer]), tmp_path)
    with pytest.raises(MalformedError) as raised:
        ask(model)
    assert raised.value.raw == (answer if isinstance(answer, str) else json.dumps(answer))


FUNCTION = """
def answer(text, sample):
    if "raise" in text:
        raise KeyError("x")
    return {"status": "met", "why": f"{text}/{sample}"}
"""


def test_a_function_of_a_file_or_a_module_answers(tmp_path, monkeypatch):
    script(tmp_path, FUNCTION, "own_judge.py")
    monkeypatch.syspath_prepend(tmp_path)
    for text in ("scripted:own_judge.py:answer", "scripted:own_judge:answer"):
        model = double(text, tmp_path)
        assert ask(model, request("hello", sample=3)).value["why"] == "hello/3"
        assert model.id.label == text
        with pytest.raises(ModelError, match=r"model scripted:own_judge.*KeyError"):
            ask(model, request("raise"))


def test_its_identity_is_its_script(tmp_path):
    one = double(script(tmp_path, [MET], "a.json"), tmp_path).id
    same = double(script(tmp_path, [MET], "b.json"), tmp_path).id
    other = double(script(tmp_path, [MET, MET], "a.json"), tmp_path).id
    assert one.detail == same.detail != other.detail
    assert str(tmp_path) not in one.as_line()
    script(tmp_path, FUNCTION, "j.py")
    first = double("scripted:j.py:answer", tmp_path).id
    script(tmp_path, FUNCTION + "\n# changed", "j.py")
    assert double("scripted:j.py:answer", tmp_path).id.key != first.key


def test_it_may_be_shown_anything_unless_the_configuration_says_otherwise(tmp_path):
    text = script(tmp_path, [MET, MET])
    assert ask(double(text, tmp_path), restricted=True).value == MET
    (tmp_path / "bubench.toml").write_text(f"""
[models.fake]
id = "{text}"
[models.strict]
id = "{text}"
may_see = "clean"
""")
    assert ask(double("fake", tmp_path), restricted=True).value == MET
    with pytest.raises(ConfigError, match="not cleared"):
        ask(double("strict", tmp_path), restricted=True)


@pytest.mark.parametrize(
    ("text", "content", "said"),
    [
        ("scripted:no.json", None, "no file"),
        ("scripted:no.py:answer", None, "no file"),
        ("scripted:.", None, "a folder of scripts is for an agent"),
        ("scripted:judge", None, "give scripted:FILE.json"),
        ("scripted:no_such_module:answer", None, "No module named 'no_such_module'"),
        ("scripted:json:no_such_function", None, "no function no_such_function"),
        ("scripted:s.json", "{", "not JSON"),
        ("scripted:s.json", {"a": 1}, "a list of answers"),
        ("scripted:s.json", [[{"navigate": {"url": "x"}}], [{"done": {}}]], "an agent's steps"),
        ("scripted:s.json", [{"when": "a", "answer": 1}, "plain"], r"s\.json\["),
        ("scripted:s.json", [{"when": "(", "answer": "a"}], "when"),
        ("scripted:s.json", [{"when": "a"}], "give answer or fail"),
        ("scripted:s.json", [{"when": "a", "fail": "boom"}], "fail"),
        ("scripted:s.py:answer", "def other(): pass", "no function answer"),
        ("scripted:s.py:answer", "1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_wrong_script_says_what_is_wrong(text, content, said, tmp_path):
    if content is not None:
        script(tmp_path, content, text.split(":")[1])
    with pytest.raises(ConfigError, match=said):
        double(text, tmp_path)


def test_the_schema_of_a_request_is_looked_at_before_it_answers(tmp_path):
    model = double(script(tmp_path, [MET]), tmp_path)
    with pytest.raises(ConfigError, match="'if'"):
        ask(model, request(schema={**SCHEMA, "if": {}}))
