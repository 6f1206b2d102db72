"""A replay answers what was recorded, under the same identity, and nothing else."""

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.base import Message, ModelId, Request
from browseruse_bench.models.ledger import Ledger, LedgerModel
from browseruse_bench.models.replay import NotRecordedError, ReplayModel, recorded_model
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.models.spending_log import Spending, What


def asked(text, sample=0):
    return Request(messages=(Message(role="user", parts=(text,)),), sample=sample)


@pytest.fixture
async def recorded(tmp_path):
    ledger = Ledger(tmp_path / "calls")
    private = Ledger(tmp_path / "private", private=True)
    model = LedgerModel(ScriptedModel(lambda t, s: f"{t} {s}"), ledger, restricted=private)
    for sample in (0, 2):
        await model.ask(asked("hello", sample), purpose="judge")
    await model.ask(asked("passport"), purpose="judge", restricted=True)
    return ledger, private, model.id


async def test_what_was_recorded_is_answered_as_it_was_and_costs_nothing_now(recorded):
    ledger, private, id = recorded
    spending = Spending()
    model = ReplayModel(id, ledger, restricted=private, spending=spending)
    reply = await model.ask(asked("hello"), purpose="judge")
    assert (reply.raw, reply.from_ledger, model.id) == ("hello 0", True, id)
    assert spending.reused[What("", "judge", "scripted")].n_calls == 1
    assert spending.now == {}
    assert (await model.ask(asked("passport"), purpose="judge", restricted=True)).raw == (
        "passport 0"
    )


async def test_what_was_not_recorded_is_an_error_that_says_what_is_missing_and_what_is_there(
    recorded,
):
    ledger, _, id = recorded
    model = ReplayModel(id, ledger)
    with pytest.raises(NotRecordedError, match=r"holds no call [0-9a-f]{12} for judge, sample 1; "
                       r"of this request it holds sample 0, 2"):  # fmt: skip
        await model.ask(asked("hello", 1), purpose="judge")
    with pytest.raises(NotRecordedError, match=r"sample 0; ask the model itself"):
        await model.ask(asked("unheard"), purpose="judge")
    # What was recorded as restricted answers only what is.
    with pytest.raises(NotRecordedError):
        await model.ask(asked("passport"), purpose="judge")
    with pytest.raises(ConfigError, match="give the folder of restricted calls"):
        await model.ask(asked("passport"), purpose="judge", restricted=True)


async def test_a_damaged_call_is_not_there(recorded):
    ledger, _, id = recorded
    for file in ledger.files():
        file.write_bytes(file.read_bytes()[:-9])
    said = []
    with pytest.raises(NotRecordedError):
        await ReplayModel(id, Ledger(ledger.path, say=said.append)).ask(
            asked("hello"), purpose="judge"
        )
    assert "damaged" in said[0]


async def test_the_label_names_the_one_model_that_was_recorded(recorded, tmp_path):
    ledger, private, id = recorded
    assert recorded_model("scripted", ledger) == id
    assert recorded_model(id.key, ledger, private) == id
    with pytest.raises(ConfigError, match="did you mean 'scripted'"):
        recorded_model("scriptd", ledger)
    with pytest.raises(ConfigError, match="holds no calls"):
        recorded_model("scripted", Ledger(tmp_path / "none"))
    other = ModelId(label="scripted", provider="openai", name="x")
    ledger.note_model(other)
    with pytest.raises(ConfigError, match=f"holds 2 models of this label.*{other.key}"):
        recorded_model("scripted", ledger)
    assert recorded_model(other.key, ledger) == other
