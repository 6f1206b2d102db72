"""Enclose a program in namespaces of its own, confine it, prove it by canaries, and run it.

    python -I -S -c START FOLDER OPTION... -- PROGRAM ARGUMENT...

The options are those of `confine`, and

    --door FD       a unix socket of whoever started this; see below
    --join FD       a namespace to join, of a program that was enclosed before: its users, if
                    it has its own, and then its network. Without it new ones are made.
    --landlock 1    Landlock holds as well
    --policy JSON   managed policies of a Chromium that is run

Three processes come of it. The outer one stays in the file system of the machine, holds the
door, and ends with what the program ended with. The first one inside, number 1 there, waits
for all that the program leaves behind. Then there is the program. When one of them is killed,
or the door's other end closes, nothing is left of them, nor of the namespaces.

Through the door come the namespaces at once, unless they were joined, with a new TCP socket of
the network inside; and after that, for each byte that is written to it, another one (b"4" or
b"6"). Whoever gets it may bind or connect it.
"""

from __future__ import annotations

import _socket
import os
import select
import struct
import sys

# It runs as guard.enclose, and is looked at as a part of the package.
from . import confine, devices, mounts  # noqa: TID252
from .confine import check, libc  # noqa: TID252

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:  # to import the module that is made of it takes 5 ms
    import _signal as signal

START = (
    "import sys; sys.path.append(sys.argv.pop(1));"
    "from guard.enclose import main; main(sys.argv[1:])"
)
POLICIES = (
    "/etc/chromium",
    "/etc/chromium-browser",
    "/etc/opt/chrome",
    "/etc/opt/chrome_for_testing",
)
"""Where builds of Chromium look for policies."""
_PATIENCE_MS = 1000
_NEW_MOUNTS, _NEW_NAME, _NEW_IPC = 0x20000, 0x4000000, 0x8000000
_NEW_USERS, _NEW_NUMBERS, _NEW_NETWORK = 0x10000000, 0x20000000, 0x40000000
_DIE_WITH_PARENT, _DUMPABLE = 1, 4


class Rules(confine.Rules):
    """What the command line asks for."""

    numbers = (*confine.Rules.numbers, "--door", "--join", "--landlock")

    def __init__(self) -> None:
        """Namespaces are made, not joined."""
        super().__init__()
        self.door: list[int] = []
        self.join: list[int] = []
        self.landlock: list[int] = []
        self.policy: list[str] = []


def main(argv: list[str]) -> None:
    """Carry out the command line; it never returns."""
    rules = Rules()
    command = confine.parse(argv, rules)
    for descriptor in (*rules.door, *rules.join, *rules.report):
        os.set_inheritable(descriptor, False)
    door = _socket.socket(fileno=rules.door[0])
    if rules.join:
        _join(rules.join)
    else:
        made, first_socket = _make(), _tcp(_socket.AF_INET)
        door.sendmsg([b"+"], _rights([*made, first_socket.fileno()]))
        first_socket.close()
    told, tells = os.pipe()
    lives, holds = os.pipe()
    cwd = os.getcwd()  # noqa: PTH109
    first = os.fork()
    if first == 0:
        os.close(holds)
        _Inside(tells).run(rules, command, lives=lives, cwd=cwd)
    confine.drop_capabilities()
    _leave_open(door.fileno(), told, holds)
    _end_as(_wait(first, door, told))


def _join(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        check(libc().setns(descriptor, 0), "join a namespace")
        os.close(descriptor)
    check(libc().unshare(_NEW_NUMBERS), "process numbers")


def _make() -> list[int]:
    """Descriptors of a new network's namespace, before it of its users' where that is new too."""
    kinds = ["net"]
    try:
        check(libc().unshare(_NEW_NETWORK | _NEW_NUMBERS), "network and process numbers")
    except PermissionError:
        kinds = ["user", "net"]
        user, group = os.geteuid(), os.getegid()
        new = _NEW_USERS | _NEW_NETWORK | _NEW_NUMBERS
        check(libc().unshare(new), "users, network and process numbers")
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
                file.write(text)
    devices.bring_up()
    return [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY) for kind in kinds]


def _rights(descriptors: list[int]) -> list[tuple[int, int, bytes]]:
    packed = struct.pack(f"{len(descriptors)}i", *descriptors)
    return [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)]


class _Inside:
    """The first process inside: confined like the program, which is its child."""

    def __init__(self, tells: int) -> None:
        self.tells = tells
        self.child = 0

    def run(self, rules: Rules, command: list[str], *, lives: int, cwd: str) -> NoReturn:
        """Hold this process to the rules, run the program, and tell with what it ended."""
        try:
            signal.signal(signal.SIGUSR1, self._end)
            check(libc().prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0), "die with parent")
            if _hung_up(lives, 0):
                os._exit(1)
            _hold(rules, cwd)
            confine.prove(rules)
            self.child = os.fork()
            if self.child == 0:
                _become(command)
            _leave_open(self.tells)
            os.write(self.tells, str(self._wait()).encode())
            os._exit(0)
        except BaseException as error:  # noqa: BLE001  it must not go on as the outer process
            status = error.code if isinstance(error, SystemExit) else 1
            if status == 1:
                print(f"not enclosed: {error}", file=sys.stderr, flush=True)
            os._exit(status if isinstance(status, int) else 1)

    def _wait(self) -> int:
        while True:
            number, status = os.waitpid(-1, 0)
            if number == self.child:
                return status

    def _end(self, *_: object) -> None:
        """The other end wants it to end: what the program used of the processor is counted."""
        if self.child == 0:
            os._exit(1)
        os.kill(self.child, signal.SIGKILL)


def _hold(rules: Rules, cwd: str) -> None:
    check(libc().unshare(_NEW_MOUNTS | _NEW_NAME | _NEW_IPC), "mounts")
    name = b"localhost"
    check(libc().sethostname(name, len(name)), "host name")
    given = rules.ro
    texts = {}
    if rules.policy:
        # What the machine's owner has set there would be another browser.
        given = [path for path in given if path not in (*POLICIES, "/etc/opt")]
        texts = {f"{place}/policies/managed/guard.json": rules.policy[0] for place in POLICIES}
    mounts.enter(given, rules.rw, rules.hide, texts)
    if os.path.isdir(cwd):  # noqa: PTH112
        os.chdir(cwd)
    # Without UDP sockets Chromium cannot name its network devices, and takes itself to be offline.
    confine.confine(rules, landlock=bool(rules.landlock), udp=True)


def _become(command: list[str]) -> NoReturn:
    try:
        os.execv(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
    os._exit(127)


def _leave_open(*descriptors: int) -> None:
    """Nothing else of this process is open but its standard error.

    Whoever reads what the program writes sees its end as soon as the program's own side closes.
    """
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    kept = {0, 1, 2, *descriptors}
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue  # the folder's own


def _wait(first: int, door: _socket.socket, told: int) -> int:
    """Hand out sockets until the program has ended, or the door closes; its wait status."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are for the program
    waiting = select.poll()
    waiting.register(door.fileno(), select.POLLIN)
    waiting.register(told, select.POLLIN)
    while told not in (ready := [descriptor for descriptor, _ in waiting.poll()]):
        if door.fileno() in ready and not _served(door):
            os.kill(first, signal.SIGUSR1)
            if not _hung_up(told, _PATIENCE_MS):
                os.kill(first, signal.SIGKILL)
            break
    _, ended = os.waitpid(first, 0)
    said = os.read(told, 32)
    return int(said) if said else ended


def _served(door: _socket.socket) -> bool:
    """Answer one request; False if nobody will make another."""
    try:
        asked = door.recv(1)
        if not asked:
            return False
        family = _socket.AF_INET6 if asked == b"6" else _socket.AF_INET
        try:
            made = _tcp(family)
        except OSError:
            door.send(b"-")
            return True
        door.sendmsg([b"+"], _rights([made.fileno()]))
        made.close()
    except OSError:
        return False
    return True


def _tcp(family: int) -> _socket.socket:
    return _socket.socket(family, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)


def _hung_up(descriptor: int, timeout_ms: int) -> bool:
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(timeout_ms))


def _end_as(status: int) -> NoReturn:
    """End with a wait status, also where it was a signal."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        libc().prctl(_DUMPABLE, 0, 0, 0, 0)  # no second core file
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
