import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.spec import model_label, parse_model, read_env

NAMES = ("OPENAI", "ANTHROPIC", "GOOGLE", "GEMINI", "OPENROUTER", "OPENAI_COMPATIBLE")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)


def parse(text, cwd):
    return parse_model(text, "browser-use", cwd=cwd)


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-6", "ANTHROPIC_API_KEY"),
        ("google:gemini-3-pro", "GOOGLE_API_KEY or GEMINI_API_KEY"),
        ("openrouter:meta/llama-4:free", "OPENROUTER_API_KEY"),
    ],
)
def test_a_missing_key_is_named(model, variable, tmp_path):
    with pytest.raises(ConfigError, match=rf"{model}: {variable} is not set"):
        parse(model, tmp_path)


def test_a_key_comes_from_the_environment_before_the_file(tmp_path, monkeypatch):
    (tmp_path / ".env").write_text("# keys\nexport OPENAI_API_KEY='from the file' # mine\n")
    assert parse("openai:gpt-5", tmp_path).key == "from the file"
    monkeypatch.setenv("OPENAI_API_KEY", "from the environment")
    assert parse("openai:gpt-5", tmp_path).key == "from the environment"


def test_a_spec_never_shows_its_key(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    spec = parse("openai:gpt-5", tmp_path)
    assert "sk-secret" not in repr(spec)
    assert "sk-secret" not in str(spec.parameters)


def test_the_name_may_hold_colons_and_slashes(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    spec = parse("openrouter:meta/llama-4:free", tmp_path)
    assert (spec.provider, spec.name) == ("openrouter", "meta/llama-4:free")
    assert spec.label == "openrouter:meta/llama-4:free"


def test_an_endpoint_of_ones_own_needs_no_key(tmp_path):
    spec = parse("openai-compatible:qwen@http://127.0.0.1:8000/v1/", tmp_path)
    assert (spec.name, spec.base_url, spec.key) == ("qwen", "http://127.0.0.1:8000/v1", None)
    assert spec.label == "openai-compatible:qwen"
    assert spec.parameters["base_url"] == "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (None, "needs a model; give --model as provider:name"),
        ("gpt-5", "unknown model 'gpt-5'"),
        ("opnai:gpt-5", "did you mean 'openai'"),
        ("openai:", "no name behind the colon"),
        ("openai-compatible:qwen", "openai-compatible:NAME@http"),
        ("openai-compatible:qwen@localhost:8000", "is not an address"),
        ("openai-compatible:qwen@http://u:p@h/v1", "no password, key or query"),
        ("openai-compatible:qwen@http://h/v1?key=1", "no password, key or query"),
        ("scripted:nowhere.json", "no file or folder"),
    ],
)
def test_a_wrong_model_says_what_is_wrong(model, said, tmp_path):
    with pytest.raises(ConfigError, match=said):
        parse(model, tmp_path)


def test_models_are_named_in_the_configuration(tmp_path, monkeypatch):
    (tmp_path / "bubench.toml").write_text("""
[models.small]
id = "openai:gpt-5-mini"
api_key_env = "MINE"
usd_per_million = {input = 0.25, output = 2.0}

[models.local]
id = "qwen"
base_url = "http://localhost:8000/v1"

[agents.browser-use]
model = "local"
""")
    with pytest.raises(ConfigError, match="MINE is not set"):
        parse("small", tmp_path)
    monkeypatch.setenv("MINE", "k")
    small = parse("small", tmp_path)
    assert (small.provider, small.name, small.key) == ("openai", "gpt-5-mini", "k")
    assert (small.price.input, small.price.cached) == (0.25, None)
    assert small.price_source == "bubench.toml: models.small"
    assert small.parameters == {"model_id": "openai:gpt-5-mini"}
    local = parse(None, tmp_path)
    assert (local.label, local.provider, local.name) == ("local", "openai-compatible", "qwen")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[models", "not TOML"),
        ("[models.m]\nid = 3", r"m\.id"),
        ("[models.m]\nid = 'gpt-5'", "neither provider:name"),
        ("[models.m]\nid = 'openai:m'\nusd_per_million = {input = -1, output = 1}", "input"),
    ],
)
def test_a_broken_configuration_is_named(content, said, tmp_path):
    (tmp_path / "bubench.toml").write_text(content)
    with pytest.raises(ConfigError, match=said):
        parse("m", tmp_path)


def test_a_price_is_known_where_it_is_given_and_nowhere_else(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert parse("openai:gpt-5", tmp_path).price is None
    (tmp_path / "s.json").write_text("[]")
    assert parse("scripted:s.json", tmp_path).price.input == 0


@pytest.mark.parametrize(
    ("typed", "label"),
    [
        ("scripted:/home/somebody/scripts/browser-use", "scripted:browser-use"),
        ("scripted:scripts/one.json", "scripted:one"),
        ("openai-compatible:m@http://10.0.0.1/v1", "openai-compatible:m"),
        ("openai:gpt-5", "openai:gpt-5"),
        ("small", "small"),
    ],
)
def test_results_call_a_model_without_path_or_address(typed, label):
    assert model_label(typed) == label


def test_a_file_of_variables_is_read_with_quotes_comments_and_export(tmp_path):
    path = tmp_path / ".env"
    path.write_text("A=1\nexport B = \"two # 2\"\n#C=3\nD='x' # y\nE=a b # c\nnonsense\nF=\n")
    assert read_env(path) == {"A": "1", "B": "two # 2", "D": "x", "E": "a b", "F": ""}
    assert read_env(tmp_path / "none") == {}
