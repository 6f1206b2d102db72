"""What holds for all tests: no key of a provider is there, and nothing but this machine is."""

import ipaddress
import os
import re
import socket

import pytest
from hypothesis import settings

from browseruse_bench.store import redact

# How long an example takes depends on what else the machine does; speed is for benches/.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# At import, so that a module that asks for a key when it is collected finds none, either.
for name in [n for n in os.environ if re.search(r"_API_KEY$|_AUTH_TOKEN$|^AWS_|CREDENTIALS$", n)]:
    del os.environ[name]

_connect, _connect_ex = socket.socket.connect, socket.socket.connect_ex


def _refuse_strangers(sock, address):
    """A failure of the test, which no `except Exception` of what it tests can hide."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6) or sock.type == socket.SOCK_DGRAM:
        return
    host = str(address[0]).partition("%")[0]
    try:
        here = ipaddress.ip_address(host)
        here = getattr(here, "ipv4_mapped", None) or here
        on_this_machine = here.is_loopback or here.is_unspecified
    except ValueError:
        on_this_machine = host == "localhost"
    if not on_this_machine:
        pytest.fail(f"a test tried to reach {host}: tests never leave this machine")


def connect(sock, address):
    _refuse_strangers(sock, address)
    return _connect(sock, address)


def connect_ex(sock, address):
    _refuse_strangers(sock, address)
    return _connect_ex(sock, address)


# Set once and for all: a fixture would leave gaps between tests, where tasks may still run.
socket.socket.connect = connect
socket.socket.connect_ex = connect_ex


def pytest_runtest_teardown():
    redact._REGISTERED.clear()
