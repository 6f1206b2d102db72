"""What decides a stage's outcome is part of its configuration."""

import pytest

from browseruse_bench.factory import STAGES
from browseruse_bench.factory.workspace import WorkspaceConfig


@pytest.mark.parametrize("stage", ["suitability", "persona", "restyle"])
def test_another_model_under_the_same_name_is_another_configuration(stage):
    def settings(**model):
        roles = dict.fromkeys(("labeller", "persona", "restyler"), "mine")
        config = {"name": "w", "roles": roles, "models": {"mine": model}}
        return STAGES.get(stage)(WorkspaceConfig.model_validate(config)).settings()

    before = settings(id="google:gemini-3-flash")
    assert settings(id="openai:gpt-5-mini") != before
    assert settings(id="google:gemini-3-flash", params={"temperature": 0}) != before
    assert settings(id="google:gemini-3-flash", concurrency=3) == before
