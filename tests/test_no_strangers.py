"""No test can reach a paid endpoint: not by a socket, a client, or through what is tested."""

import os
import socket

import httpx
import pytest

from browseruse_bench.models.base import Message, Request
from browseruse_bench.models.config import Asking
from browseruse_bench.models.provider import ProviderModel
from browseruse_bench.models.spec import ModelSpec

PUBLIC = "203.0.113.7"
"""Of a block that is kept for documentation: nobody answers there in any case."""
refused = pytest.raises(pytest.fail.Exception, match="never leave this machine")
# Where connections are made in a group of tasks.
refused_in_group = pytest.RaisesGroup(
    pytest.RaisesExc(pytest.fail.Exception, match="never leave this machine"),
    flatten_subgroups=True,
)


@pytest.mark.parametrize("address", [PUBLIC, "10.0.0.1", "169.254.169.254", "::ffff:8.8.8.8"])
def test_a_socket_to_another_machine_fails_the_test(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for name in ("connect", "connect_ex"):
        with socket.socket(family) as sock, refused:
            getattr(sock, name)((address, 443))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "0.0.0.0"])
def test_this_machine_can_be_reached(host):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as sock:
        assert sock.connect_ex((host, server.getsockname()[1])) in (0, 111)


def test_a_client_fails_the_test():
    with httpx.Client(trust_env=False) as client, refused:
        client.get(f"http://{PUBLIC}/")


async def test_an_asynchronous_client_fails_the_test():
    async with httpx.AsyncClient(trust_env=False) as client:
        with refused_in_group:
            await client.get(f"http://{PUBLIC}/")


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "openai-compatible"])
async def test_a_model_fails_the_test_and_is_not_tried_again(provider, tmp_path):
    spec = ModelSpec(
        label="m", provider=provider, name="m", base_url=f"http://{PUBLIC}/v1", key="k" * 20,
        asking=Asking.model_validate({"schema": "native", "images": True, "system": True}),
    )  # fmt: skip
    request = Request(messages=(Message(role="user", parts=("Hello",)),))
    with refused_in_group:
        await ProviderModel(spec, cache=tmp_path).ask(request, purpose="test")


def test_no_key_of_a_provider_is_in_the_environment():
    assert [name for name in os.environ if name.endswith("_API_KEY")] == []
