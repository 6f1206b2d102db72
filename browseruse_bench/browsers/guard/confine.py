"""Confine this process for good, prove it by canaries, and become another program.

    python -I -S confine.py OPTION... -- PROGRAM ARGUMENT...

    --ro PATH       may be read and executed: a folder with all below it, or a file
    --rw PATH       may be written too
    --hide PATH     stays unreadable although a folder above it is given with --ro
    --tcp PORT      may be connected to (Landlock knows ports, not addresses)
    --file PATH     canary: a readable file that must no longer be
    --port PORT     canary: a port of 127.0.0.1, TCP and UDP, that must no longer be reachable
    --report FD     where the canaries' results go, one "name result" a line

Landlock holds files and TCP connections; a seccomp filter holds what Landlock does not know:
UDP, raw and other sockets, and io_uring, which would go past it. All capabilities go, so root
is held too. Both are inherited by every descendant and cannot be undone. No privilege is
needed. Run by path, outside the package, by a bare Python: it imports nothing of ours.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # to import it takes 1 ms
    from collections.abc import Iterator

EXIT_HOLE = 97
"""Exit status: a canary was reached, so the program was not started."""
MIN_ABI = 4
"""The first Landlock that knows TCP (Linux 6.7)."""

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH, _NET_PORT = 1, 2
_EXECUTE, _WRITE, _READ, _LIST = 1, 2, 4, 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_CONNECT_TCP = 2
_SCOPES = 3  # abstract unix sockets and signals: none outside
_NO_NEW_PRIVS, _SECCOMP, _CAPBSET_DROP, _FILTER = 38, 22, 24, 2
_CAPABILITY_VERSION = 0x20080522

# Per machine: the audit number of its calls, and the numbers of the calls that are looked at.
_CALLS = {
    "x86_64": (0xC000003E, {"socket": 41, "sendto": 44, "sendmsg": 46, "sendmmsg": 307}),
    "aarch64": (0xC00000B7, {"socket": 198, "sendto": 206, "sendmsg": 211, "sendmmsg": 269}),
}
MACHINES = tuple(_CALLS)
"""The machines whose calls are known."""
_IO_URING_SETUP = 425
_FLAGS_AT = {"sendto": 3, "sendmsg": 2, "sendmmsg": 3}
_FASTOPEN = 0x20000000
_DONT_WAIT = 0x40
_ASKS, _ASK_S = 3, 0.01
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.EACCES, 0x80000000

Instruction = tuple[int, int, int, int]


class Rules:
    """What the command line asks for. No dataclass: that would take 8 ms to import."""

    numbers = ("--tcp", "--port", "--report")

    def __init__(self) -> None:
        """Nothing is allowed and no canary is tried."""
        self.ro: list[str] = []
        self.rw: list[str] = []
        self.hide: list[str] = []
        self.tcp: list[int] = []
        self.file: list[str] = []
        self.port: list[int] = []
        self.report: list[int] = []


def landlock_abi() -> int:
    """The version of Landlock that this kernel has; 0 where there is none."""
    if sys.platform != "linux" or os.uname().machine not in _CALLS:
        return 0
    return max(0, libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))


def confine(rules: Rules, *, landlock: bool = True, udp: bool = False) -> None:
    """This thread and all it starts are held to the rules, for good.

    Args:
        rules: what they may reach.
        landlock: False where namespaces hold files and connections already; then what is held
            here are capabilities and kinds of sockets.
        udp: whether UDP sockets are allowed, where there is nobody whom they reach.

    Raises:
        OSError: the kernel does not do it.
    """
    check(libc().prctl(_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    ruleset = _ruleset(rules) if landlock else None
    drop_capabilities()
    if ruleset is not None:
        check(libc().syscall(_RESTRICT_SELF, ruleset, 0), "restrict_self")
        os.close(ruleset)
    _filter_calls(udp=udp)


def tries(rules: Rules) -> Iterator[tuple[str, bool]]:
    """Try the canaries from inside: (name, whether it was reached)."""
    for path in rules.file:
        yield "file", _reads(path)
    for port in rules.port:
        yield "port", _connects(port)
        yield "udp", _sends(port)
    yield "raw", _makes_raw_socket()


def shown(path: str, hidden: list[str]) -> Iterator[tuple[str, int]]:
    """(path, rights) that give all below `path` but what is hidden.

    A folder above a hidden one is given by its parts; its names can be listed, which gives the
    names below it too, but no content.
    """
    real = os.path.realpath(path)
    if not any(h == real or h.startswith(real.rstrip("/") + "/") for h in hidden):
        yield path, _EXECUTE | _READ | _LIST
        return
    if real in hidden:
        return
    yield path, _LIST
    for entry in os.scandir(real):
        if not entry.is_symlink():
            yield from shown(entry.path, hidden)


def _ruleset(rules: Rules) -> int:
    abi = landlock_abi()
    if abi < MIN_ABI:
        raise OSError(errno.ENOSYS, f"Landlock {abi}, {MIN_ABI} is needed")
    everything = (1 << 13) - 1 | (1 << 13) | _TRUNCATE | (_IOCTL if abi >= 5 else 0)
    attributes = struct.pack("QQQ", everything, _CONNECT_TCP, _SCOPES if abi >= 6 else 0)
    size = ctypes.c_size_t(24 if abi >= 6 else 16)
    ruleset = check(libc().syscall(_CREATE_RULESET, attributes, size, 0), "create_ruleset")
    hidden = [os.path.realpath(path) for path in rules.hide]
    given = [pair for path in rules.ro for pair in shown(path, hidden)]
    given += [(path, everything) for path in rules.rw]
    for path, rights in given:
        _allow(ruleset, path, rights)
    for port in rules.tcp:
        rule = struct.pack("QQ", _CONNECT_TCP, port)
        check(libc().syscall(_ADD_RULE, ruleset, _NET_PORT, rule, 0), f"port {port}")
    return ruleset


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # not every system has every folder
    try:
        if not os.path.isdir(path):  # noqa: PTH112  pathlib is slow to import
            rights &= _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
        if rights:
            rule = struct.pack("=Qi", rights, at)
            check(libc().syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0), path)
    finally:
        os.close(at)


def drop_capabilities() -> None:
    """No capability is left, nor can one come back; nothing to do for an ordinary user."""
    for capability in range(64):
        if libc().prctl(_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    check(libc().capset(header, struct.pack("6I", *[0] * 6)), "capset")


def _program(*, udp: bool) -> list[Instruction]:
    """The filter: TCP, unix and netlink sockets only, and UDP if it may be; no fast open; no
    io_uring.
    """
    machine = os.uname().machine
    audit, calls = _CALLS[machine]
    p: list[Instruction] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
    ]
    if machine == "x86_64":  # the x32 calls
        p += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _KILL)]
    p += [(_EQUAL, 0, 1, _IO_URING_SETUP), (_RETURN, 0, 0, _REFUSE)]
    for name, at in _FLAGS_AT.items():
        p += [
            (_EQUAL, 0, 4, calls[name]),
            (_LOAD, 0, 0, 16 + 8 * at),
            (_ANY_BIT, 0, 1, _FASTOPEN),
            (_RETURN, 0, 0, _REFUSE),
            (_RETURN, 0, 0, _ALLOW),
        ]
    datagrams: list[Instruction] = [
        (_EQUAL, 0, 5, 2),  # no datagrams: go on
        (_LOAD, 0, 0, 32),  # the protocol
        (_EQUAL, 1, 0, 0),
        (_EQUAL, 0, 1, 17),  # neither 0 nor UDP: refused
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    n = len(datagrams) if udp else 0
    p += [
        (_EQUAL, 1, 0, calls["socket"]),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, 16),  # the family
        (_EQUAL, 8 + n, 0, 1),  # unix: allowed
        (_EQUAL, 7 + n, 0, 16),  # netlink: allowed
        (_EQUAL, 1, 0, 2),  # internet
        (_EQUAL, 0, 6 + n, 10),  # internet, version 6; any other: refused
        (_LOAD, 0, 0, 24),  # the type, without its flags
        (_AND, 0, 0, 15),
        *datagrams[:n],
        (_EQUAL, 0, 3, 1),  # no stream: refused
        (_LOAD, 0, 0, 32),  # the protocol
        (_ANY_BIT, 1, 0, 0xFFFFFFF9),  # neither 0 nor TCP (6): refused
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    return p


def _filter_calls(*, udp: bool) -> None:
    instructions = _program(udp=udp)
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    kept = ctypes.create_string_buffer(code)
    header = struct.pack("HxxxxxxQ", len(instructions), ctypes.addressof(kept))
    check(libc().prctl(_SECCOMP, _FILTER, header, 0, 0), "seccomp")


def _reads(path: str) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  pathlib is slow to import
            file.read(1)
    except OSError:
        return False
    return True


def _connects(port: int) -> bool:
    client = _libc_socket(1)
    if client < 0:
        return False
    address = _loopback(port)
    done = libc().connect(client, address, len(address))
    os.close(client)
    return bool(done == 0)


def _sends(port: int) -> bool:
    """Whether a datagram arrives: to a port that nobody listens to, the kernel says so."""
    client = _libc_socket(2)
    if client < 0:
        return False
    address = _loopback(port)
    refused = libc().connect(client, address, len(address)) < 0
    refused = refused or libc().send(client, b"?", 1, 0) < 0
    # Not at once where the machine has more processors than one.
    for _ in range(_ASKS):
        answer = libc().recv(client, ctypes.create_string_buffer(1), 1, _DONT_WAIT)
        refused = refused or (answer < 0 and ctypes.get_errno() == errno.ECONNREFUSED)
        if refused:
            break
        time.sleep(_ASK_S)
    os.close(client)
    return not refused


def _makes_raw_socket() -> bool:
    made = _libc_socket(3)
    if made >= 0:
        os.close(made)
    return made >= 0


def _libc_socket(kind: int) -> int:
    return int(libc().socket(2, kind, 0))


def _loopback(port: int) -> bytes:
    return struct.pack("=H", 2) + struct.pack("!H", port) + bytes((127, 0, 0, 1)) + bytes(8)


def check(result: int, what: str) -> int:
    """What a call of the C library returned.

    Raises:
        OSError: it failed; says what was to be done.
    """
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


_LIBC: list[ctypes.CDLL] = []


def libc() -> ctypes.CDLL:
    """The C library."""
    if not _LIBC:
        _LIBC.append(ctypes.CDLL(None, use_errno=True))
    return _LIBC[0]


def parse(argv: list[str], rules: Rules) -> list[str]:
    """Fill in the rules that a command line gives; returns the program and its arguments."""
    cut = argv.index("--")
    for option, value in zip(argv[:cut:2], argv[1:cut:2], strict=True):
        kept = getattr(rules, option.removeprefix("--"))
        kept.append(int(value) if option in rules.numbers else value)
    return argv[cut + 1 :]


def prove(rules: Rules) -> None:
    """Try the canaries and report; this process ends if one of them was reached."""
    results = list(tries(rules))
    text = "".join(f"{name} {'reached' if reached else 'blocked'}\n" for name, reached in results)
    for descriptor in rules.report:
        os.write(descriptor, text.encode())
        os.close(descriptor)
    if any(reached for _, reached in results):
        sys.exit(EXIT_HOLE)


def main(argv: list[str]) -> None:
    """Confine, prove, report and become the program; it never returns."""
    rules = Rules()
    command = parse(argv, rules)
    confine(rules)
    prove(rules)
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
