"""Public is public in every notation, and nothing else is."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.browsers.guard.addresses import literal, why_not_public

PRIVATE_V4 = (
    "127.0.0.1", "127.9.9.9", "0.0.0.0", "0.0.0.1", "10.0.0.5", "172.16.0.1", "172.31.255.255",
    "192.168.1.1", "169.254.169.254", "100.64.0.9", "198.18.0.1", "192.0.0.8", "224.0.0.1",
    "240.0.0.1", "255.255.255.255", "192.0.2.1", "203.0.113.7",
)  # fmt: skip
PUBLIC_V4 = ("8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "1.1.1.1", "11.0.0.1")


def spellings(address):
    """Every way to write one IPv4 address."""
    value = int(IPv4Address(address))
    a, b, c, d = IPv4Address(address).packed
    yield from (address, f"{address}.", str(value), hex(value), f"0{value:o}", f"0X{value:X}")
    yield from (f"{a}.{value & 0xFFFFFF}", f"{a}.{b}.{value & 0xFFFF}")
    yield from (f"0x{a:x}.0{b:o}.{c}.{d}", f"0{a:o}.0{b:o}.0{c:o}.0{d:o}")


def carriers(address):
    """Every way to put one IPv4 address into an IPv6 one."""
    value = int(IPv4Address(address))
    yield f"::ffff:{address}"
    yield f"[::ffff:{value >> 16:x}:{value & 0xFFFF:x}]"
    yield f"64:ff9b::{address}"
    yield str(IPv6Address((0x2002 << 112) | (value << 80)))
    yield str(IPv6Address((0x20010000 << 96) | (value ^ 0xFFFFFFFF)))
    yield str(IPv6Address((0x2A00 << 112) | (0x5EFE << 32) | value))
    if value > 1:
        yield f"::{address}"


@pytest.mark.parametrize("address", PRIVATE_V4)
def test_a_private_address_is_refused_in_every_notation_BL072(address):  # noqa: N802
    for text in (*spellings(address), *carriers(address)):
        found = literal(text)
        assert found is not None, text
        assert why_not_public(found) is not None, text


@pytest.mark.parametrize("address", PUBLIC_V4)
def test_a_public_address_is_public_in_every_notation(address):
    for text in spellings(address):
        found = literal(text)
        assert found == IPv4Address(address), text
        assert why_not_public(found) is None, text


@pytest.mark.parametrize(
    "address",
    ["::", "::1", "[::1]", "fe80::1", "[fe80::1%25eth0]", "fc00::1", "fd12::9", "fec0::1", "ff02::1",
     "64:ff9b:1::1", "2001:db8::1", "100::1"],
)  # fmt: skip
def test_a_private_ipv6_address_is_refused(address):
    assert why_not_public(literal(address)) is not None


@pytest.mark.parametrize("address", ["2606:4700:4700::1111", "2a00:1450:4001:81b::200e"])
def test_a_public_ipv6_address_is_public(address):
    assert why_not_public(literal(address)) is None


@pytest.mark.parametrize(
    "name",
    ["example.com", "localhost", "1.2.3.4.5", "256.1.1.1", "1.2.3.256", "0x", "", "a.1", "08.1.1.1",
     "4294967296", "1..2", "127.0.0.1.nip.io", "version"],
)  # fmt: skip
def test_a_name_is_no_address(name):
    assert literal(name) is None or name == "0x"


def test_an_address_counts_as_public_only_where_it_is_said():
    address = ip_address("127.93.184.34")
    assert why_not_public(address) is not None
    assert why_not_public(address, frozenset({address})) is None
    assert why_not_public(IPv6Address("::ffff:127.93.184.34"), frozenset({address})) is None
    assert why_not_public(ip_address("127.93.184.35"), frozenset({address})) is not None


@given(st.integers(0, 2**32 - 1))
def test_all_spellings_of_an_address_are_judged_alike(value):
    address = str(IPv4Address(value))
    verdicts = {why_not_public(literal(text)) for text in spellings(address)}
    assert len(verdicts) == 1
