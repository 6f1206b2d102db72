"""The devices of a new network namespace: loopback, and a cable that leads nowhere.

Part of `enclose`, and like it run by a bare Python. Chromium tells pages that they are offline
where loopback is all there is, so a pair of devices is joined to each other, one of which has
an address that is reserved for documentation.
"""

from __future__ import annotations

import _socket
import errno
import fcntl
import os
import struct

ADDRESS = "192.0.2.1"
_SET_FLAGS, _SET_ADDRESS, _SET_MASK = 0x8914, 0x8916, 0x891C
_UP = 1
_NEW_LINK, _ERROR = 16, 2
_CHANGED = 0x1 | 0x4  # answered
_MADE = _CHANGED | 0x200 | 0x400  # exclusive, made anew
_NAME, _LINK_INFO, _KIND, _DATA, _PEER = 3, 18, 1, 2, 1
_FAMILIES, _VERSION_6, _WAY_OF_ADDRESSES, _NONE = 26, 10, 8, 1
_LINK = struct.Struct("=BxHiII")


def bring_up() -> None:
    """Loopback is up, and there is a device by which Chromium takes itself to be online.

    Raises:
        OSError: the kernel has no such device.
    """
    with _socket_of(_socket.AF_INET) as any_socket:
        _make_cable()
        for device in (b"lo", b"out0", b"out1"):
            _ask(any_socket, _SET_FLAGS, device, struct.pack("=h", _UP))
        for request, address in ((_SET_ADDRESS, ADDRESS), (_SET_MASK, "255.255.255.255")):
            packed = struct.pack("=HH4s", _socket.AF_INET, 0, _socket.inet_aton(address))
            _ask(any_socket, request, b"out0", packed)


class _socket_of:  # noqa: N801  a context manager, used like a function
    def __init__(self, family: int) -> None:
        kind = _socket.SOCK_RAW if family == _socket.AF_NETLINK else _socket.SOCK_DGRAM
        self.socket = _socket.socket(family, kind | _socket.SOCK_CLOEXEC)

    def __enter__(self) -> _socket.socket:
        return self.socket

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def _ask(any_socket: _socket.socket, request: int, device: bytes, value: bytes) -> None:
    fcntl.ioctl(any_socket.fileno(), request, struct.pack("16s24s", device, value))


def _make_cable() -> None:
    """Two devices that are joined to each other.

    They give themselves no address of version 6: it would be there a second or two later, for
    which Chromium drops what it is loading (net::ERR_NETWORK_CHANGED), a page's script say.
    """
    link = _LINK.pack(0, 0, 0, 0, 0)
    peer = link + _attribute(_NAME, b"out1\0")
    info = _attribute(_KIND, b"veth\0") + _attribute(_DATA, _attribute(_PEER, peer))
    _tell(link + _attribute(_NAME, b"out0\0") + _attribute(_LINK_INFO, info), _MADE)
    still = _attribute(_VERSION_6, _attribute(_WAY_OF_ADDRESSES, bytes([_NONE])))
    for device in (b"out0\0", b"out1\0"):
        try:
            _tell(link + _attribute(_NAME, device) + _attribute(_FAMILIES, still), _CHANGED)
        except OSError as error:
            if error.errno != errno.EAFNOSUPPORT:  # a kernel without version 6
                raise


def _tell(body: bytes, flags: int) -> None:
    with _socket_of(_socket.AF_NETLINK) as routes:
        head = struct.pack("=IHHII", 16 + len(body), _NEW_LINK, flags, 1, 0)
        routes.sendto(head + body, (0, 0))
        answer = routes.recv(4096)
    kind, number = struct.unpack("=H", answer[4:6])[0], struct.unpack("=i", answer[16:20])[0]
    if kind != _ERROR or number != 0:
        raise OSError(-number, os.strerror(-number), "a pair of network devices (veth)")


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
