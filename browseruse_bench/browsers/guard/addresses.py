"""Which addresses belong to the public web, in whatever notation they are written.

Pure: a name that is no address is not resolved here.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address

_PART = re.compile(r"0[xX][0-9a-fA-F]*|0[0-7]*|[1-9][0-9]*")
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)
# Not public, whatever the Python release's tables say of them.
_NEVER_V4 = tuple(
    IPv4Network(net)
    for net in ("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15")
)
_NEVER_V6 = tuple(IPv6Network(net) for net in ("64:ff9b:1::/48", "fec0::/10", "100::/64"))


def literal(host: str) -> Address | None:
    """The address that `host` spells; None if it is a name.

    IPv6 with or without brackets and zone; IPv4 as the system's `inet_aton` and browsers read
    it: one to four parts, each decimal, octal (0177) or hexadecimal (0x7f), the last one
    filling what is left; with or without a final dot.
    """
    host = host.strip("[]").partition("%")[0].removesuffix(".")
    if ":" in host:
        try:
            return ip_address(host)
        except ValueError:
            return None
    parts = host.split(".")
    if len(parts) > 4 or not all(_PART.fullmatch(part) for part in parts):
        return None
    *head, last = (_number(part) for part in parts)
    room = 256 ** (4 - len(head))
    if last >= room or any(part > 255 for part in head):
        return None
    value = last
    for place, part in enumerate(head):
        value += part << (24 - 8 * place)
    return IPv4Address(value)


def why_not_public(address: Address, also_public: frozenset[Address] = frozenset()) -> str | None:
    """The reason why an address is no part of the public web; None if it is.

    An IPv6 address that carries an IPv4 one (mapped, compatible, NAT64, 6to4, Teredo, ISATAP)
    is judged by that one.

    Args:
        address: what would be dialled.
        also_public: addresses that count as public, which tests say of one of their own.
    """
    if address in also_public:
        return None
    if isinstance(address, IPv6Address):
        carried = _carried(address)
        if carried is not None:
            return why_not_public(carried, also_public)
    for kind, holds in (
        ("unspecified", address.is_unspecified),
        ("loopback", address.is_loopback),
        ("link-local", address.is_link_local),
        ("multicast", address.is_multicast),
        ("private", address.is_private or not address.is_global or address.is_reserved),
        ("private", _in_never(address)),
    ):
        if holds:
            return f"{kind} address {address}"
    return None


def _number(part: str) -> int:
    if part[:2] in ("0x", "0X"):
        return int(part[2:] or "0", 16)
    return int(part, 8) if part.startswith("0") else int(part)


def _carried(address: IPv6Address) -> IPv4Address | None:
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)


def _in_never(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return any(address in net for net in _NEVER_V4)
    return any(address in net for net in _NEVER_V6)
