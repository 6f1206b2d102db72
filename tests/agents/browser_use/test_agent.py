"""What is refused before anything starts; nothing here needs the library."""

import json

import pytest

from browseruse_bench.agents import AGENTS, environments
from browseruse_bench.agents.base import AgentSetup
from browseruse_bench.agents.browser_use.agent import BrowserUseAgent, read_scripts
from browseruse_bench.errors import ConfigError
from browseruse_bench.records.task import TaskView


@pytest.fixture
def looks_installed(tmp_path, monkeypatch):
    """An environment that is there as far as a look can tell."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    found = environments.environment("browser-use")
    found.python.parent.mkdir(parents=True)
    found.python.touch()
    (found.path / environments.MARKER).touch()
    return found


def make(model=None):
    return BrowserUseAgent(AgentSetup(model=model))


def test_it_is_known_by_its_name():
    assert AGENTS.get("browser-use") is BrowserUseAgent


def test_without_its_environment_it_says_what_to_type(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="`bubench agents install browser-use`") as caught:
        make("scripted:x")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_status == 2


def test_without_a_model_it_says_how_to_give_one(looks_installed):
    with pytest.raises(ConfigError, match="'browser-use' needs a model; give --model"):
        make()


def test_without_a_key_it_says_which_variable(looks_installed):
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        make("openai:gpt-5")


def test_a_worker_gets_the_one_key_and_the_order_does_not_hold_it(looks_installed, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-one")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-other")
    agent = make("openai:gpt-5")
    assert agent.secrets() == {"BUBENCH_MODEL_KEY": "sk-one"}
    view = TaskView(task_id="t", text="Do it.")
    assert "sk-" not in json.dumps(agent.settings(view))
    assert "sk-" not in json.dumps(agent.identity().as_json())
    assert "sk-" not in " ".join(agent.command())


def test_a_folder_of_scripts_gives_each_task_its_own(looks_installed, tmp_path):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "a.json").write_text('[[{"wait": {"seconds": 1}}]]')
    (folder / "index.json").write_text("{}")
    agent = make("scripted:scripts")
    told = agent.settings(TaskView(task_id="a", text="A."))["model"]
    assert told["script"] == [[{"wait": {"seconds": 1}}]]
    other = agent.settings(TaskView(task_id="b", text="B."))["model"]
    assert other["script"] is None
    assert other["price"]["input"] == 0


def test_another_script_is_another_run_and_another_place_is_not(looks_installed, tmp_path):
    identities = []
    for folder, text in (("one", "[]"), ("two", "[]"), ("three", '[[{"wait": {}}]]')):
        (tmp_path / folder / "s").mkdir(parents=True)
        (tmp_path / folder / "s" / "a.json").write_text(text)
        identities.append(make(f"scripted:{folder}/s").identity())
    assert identities[0] == identities[1]
    assert identities[0] != identities[2]
    assert str(tmp_path) not in json.dumps(identities[0].as_json())
    assert identities[0].model == "scripted:s"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "not a list of steps"),
        ("[{}]", "not a list of steps"),
        ('[[{"click": {}, "wait": {}}]]', "an action is"),
        ("[[", "not JSON"),
    ],
)
def test_a_broken_script_is_named(content, said, tmp_path):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ConfigError, match=rf"a\.json.*{said}"):
        read_scripts(tmp_path)


def test_a_folder_without_a_script_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no script in it"):
        read_scripts(tmp_path)


def test_a_cost_is_known_only_where_a_price_was_given(looks_installed, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (tmp_path / "bubench.toml").write_text("""
[models.small]
id = "openai:gpt-5-mini"
usd_per_million = {input = 0.25, output = 2}
""")
    assert make("openai:gpt-5").priced() is False
    assert make("small").priced() is True
    told = make("small").settings(TaskView(task_id="t", text="T."))["model"]
    assert told["price"] == {
        "input": 0.25, "cached": 0.25, "output": 2, "source": "bubench.toml: models.small",
    }  # fmt: skip
