import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.models import MODELS
from browseruse_bench.models.config import Asking
from browseruse_bench.models.spec import model_label, model_spec, parse_model, read_env
from browseruse_bench.store.redact import GONE, Redactor

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


# Models of other roles


WHOLE = """
[models.judge]
id = "openai:gpt-5-mini"
may_see = "restricted"
concurrency = 8
requests_per_minute = 500
tokens_per_minute = 200000
timeout_s = 120
params = {temperature = 0.5, max_tokens = 8000, reasoning = "low", seed = 1, top_p = 0.9}
extra_body = {provider = {order = ["x"]}}
prompt_cache = false
schema = "tool"
images = false
system = true
usd_per_million = {input = 1, cached = 0.1, cache_write = 1.25, output = 4, reasoning = 3}
"""


def test_the_configuration_says_how_a_model_is_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (tmp_path / "bubench.toml").write_text(WHOLE)
    spec = model_spec("judge", what="--judge", cwd=tmp_path)
    asking = spec.asking
    assert (asking.may_see, asking.concurrency, asking.timeout_s) == ("restricted", 8, 120)
    assert (asking.requests_per_minute, asking.tokens_per_minute) == (500, 200000)
    assert asking.params.as_json() == {
        "temperature": 0.5, "max_tokens": 8000, "reasoning": "low", "seed": 1, "top_p": 0.9,
    }  # fmt: skip
    assert (asking.schema_, asking.images, asking.system) == ("tool", False, True)
    assert (asking.prompt_cache, asking.extra_body) == (False, {"provider": {"order": ["x"]}})
    assert (spec.price.cache_write, spec.price.reasoning) == (1.25, 3)
    # The same for an agent, which looks at what it can use.
    assert parse("judge", tmp_path) == spec


def test_without_a_word_a_model_is_cleared_for_nothing_and_bound_by_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert model_spec("openai:gpt-5", cwd=tmp_path).asking == Asking()
    assert Asking().may_see == "clean"
    assert Asking().params.as_json() == {}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("may_see = 'all'", r"judge\.may_see"),
        ("concurrency = 0", r"judge\.concurrency"),
        ("timeout_s = 0", r"judge\.timeout_s"),
        ("params = {temprature = 1.0}", r"judge\.params\.temprature"),
        ("params = {reasoning = 'much'}", r"judge\.params\.reasoning"),
        ("schema = 'json'", r"judge\.schema"),
        ("max_tokens = 5", r"judge\.max_tokens"),
    ],
)
def test_a_wrong_word_about_asking_is_named(line, said, tmp_path):
    (tmp_path / "bubench.toml").write_text(f"[models.judge]\nid = 'openai:m'\n{line}\n")
    with pytest.raises(ConfigError, match=said):
        model_spec("judge", cwd=tmp_path)


def test_identity_is_what_makes_other_answers_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key-one-0123456789")

    def identity(*lines):
        content = "\n".join(("[models.judge]", "id = 'openai:gpt-5'", *lines))
        (tmp_path / "bubench.toml").write_text(content)
        return model_spec("judge", cwd=tmp_path).id

    plain = identity()
    assert (plain.label, plain.provider, plain.name) == ("judge", "openai", "gpt-5")
    for line in ("concurrency = 3", "may_see = 'restricted'", "timeout_s = 5",
                 "usd_per_million = {input = 1, output = 1}", "prompt_cache = false"):  # fmt: skip
        assert identity(line) == plain
    for line in ("params = {temperature = 0.0}", "extra_body = {a = 1}", "schema = 'tool'",
                 "base_url = 'http://127.0.0.1:1/v1'"):  # fmt: skip
        assert identity(line).key != plain.key
    monkeypatch.setenv("OPENAI_API_KEY", "key-two-0123456789")
    assert identity() == plain
    # The label is for people.
    assert model_spec("openai:gpt-5", cwd=tmp_path).id.key == plain.key


def test_a_key_of_a_file_is_redacted_from_then_on(tmp_path):
    key = "of-a-file-77aa88bb99"
    (tmp_path / ".env").write_text(f"OPENAI_API_KEY={key}\n")
    assert Redactor.of_environment().own(key) == key
    spec = model_spec("openai:gpt-5", cwd=tmp_path)
    assert (spec.key, spec.key_name) == (key, "OPENAI_API_KEY")
    assert Redactor.of_environment().own(f"Bearer {key}") == f"Bearer {GONE}"


@pytest.mark.parametrize(
    ("model_id", "provider", "name"),
    [
        ("qwen3:8b", "openai-compatible", "qwen3:8b"),
        ("anthropic/claude", "openai-compatible", "anthropic/claude"),
        ("openai-compatible:m", "openai-compatible", "m"),
        ("anthropic:claude-sonnet-4-6", "anthropic", "claude-sonnet-4-6"),
        ("openai:gpt-5", "openai", "gpt-5"),
    ],
)
def test_a_provider_may_be_at_another_address(model_id, provider, name, tmp_path, monkeypatch):
    for variable in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{variable}_API_KEY", "k")
    (tmp_path / "bubench.toml").write_text(
        f"[models.m]\nid = '{model_id}'\nbase_url = 'http://127.0.0.1:8000/v1/'\n"
    )
    spec = model_spec("m", cwd=tmp_path)
    assert (spec.provider, spec.name) == (provider, name)
    assert spec.base_url == "http://127.0.0.1:8000/v1"


def test_a_wrong_model_names_the_flag_and_what_is_known(tmp_path):
    with pytest.raises(ConfigError, match="--judge opnai:x: .*did you mean 'openai'"):
        model_spec("opnai:x", what="--judge", cwd=tmp_path)
    with pytest.raises(ConfigError, match="--judge openai:x: OPENAI_API_KEY is not set"):
        model_spec("openai:x", what="--judge", cwd=tmp_path)


POINTS = "[browseruse_bench.models]\nmine = json:dumps\n"


def test_a_package_may_bring_a_provider_along(tmp_path, monkeypatch):
    info = tmp_path / "site" / "my_models-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-models\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path / "site")
    spec = model_spec("mine:big", cwd=tmp_path)
    assert (spec.provider, spec.name, spec.key_name) == ("mine", "big", "MINE_API_KEY")
    assert MODELS.get("mine")([]) == "[]"
    with pytest.raises(ConfigError, match="unknown provider 'mine'"):
        parse("mine:big", tmp_path)


def test_to_name_a_model_loads_no_library_of_a_provider():
    import subprocess
    import sys

    heavy = ("pydantic_ai", "openai", "anthropic", "google.genai", "genai_prices", "httpx2")
    code = (
        "import sys; import browseruse_bench.models.provider, browseruse_bench.models.doubles;"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
