"""An enclosed program has what it was given, a network of its own, and no way to more."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from browseruse_bench.browsers.guard.confinement import (
    ENCLOSED,
    has_landlock,
    takes_user_namespace,
    why_not_layered,
)

pytestmark = pytest.mark.skipif(why_not_layered() is not None, reason=str(why_not_layered()))

NOBODY = 65534
PRELUDE = """
import ctypes, json, os, socket, subprocess, sys, time
def outcome(way):
    try:
        done = way()
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)
    return "done" if done is None or not isinstance(done, (str, list)) else done
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def system_of(python):
    base = Path(python).resolve().parents[1]
    return ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", str(base))


class Enclosed:
    """A process that was started enclosed, with the harness's end of its door."""

    def __init__(self, argv, *options, landlock=True, python=sys.executable, join=(), **popen):
        self.door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [word for path in system_of(python) for word in ("--ro", path)]
        words += ["--ro", "/proc", "--rw", "/dev/null", "--door", theirs.fileno(), *options]
        words += ["--landlock", 1] if landlock and has_landlock() else []
        words += [word for space in join for word in ("--join", space)]
        prefix = popen.pop("prefix", ())
        with theirs:
            self.process = subprocess.Popen(
                [*prefix, python, "-I", "-S", *ENCLOSED, *map(str, words), "--", *argv],
                pass_fds=(theirs.fileno(), *join),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                **popen,
            )
        *self.spaces, first = (0,) if join else self.receive()
        self.first = None if join else socket.socket(fileno=first)

    def receive(self):
        """The descriptors of the next message."""
        self.door.settimeout(10)
        return tuple(socket.recv_fds(self.door, 1, 4)[1])

    def socket(self, family=b"4"):
        self.door.send(family)
        (descriptor,) = self.receive()
        return socket.socket(fileno=descriptor)

    def members(self):
        """All living processes of its session, as the machine sees them."""
        listed = subprocess.run(
            ["ps", "-ww", "-eo", "sid=,pid=,stat=,args="],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        rows = [line.split(None, 3) for line in listed.splitlines()]
        return [row for row in rows if int(row[0]) == self.process.pid and row[2][0] != "Z"]

    def gone(self, within_s=5):
        deadline = time.monotonic() + within_s
        while self.members() and time.monotonic() < deadline:
            time.sleep(0.02)
        return self.members() == []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.door.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()
        for space in self.spaces:
            os.close(space)
        if self.first is not None:
            self.first.close()


def python_argv(script, python=sys.executable):
    return [os.path.realpath(python), "-I", "-S", "-c", PRELUDE + script]


def run(script, *options, python=sys.executable, **changes):
    """What an enclosed Python prints as JSON."""
    argv = python_argv(script, python)
    with Enclosed(argv, *options, python=python, **changes) as enclosed:
        out, err = enclosed.process.communicate(timeout=30)
        assert enclosed.process.returncode == 0, err
    return json.loads(out)


def outcomes(ways, *options, **changes):
    lines = ", ".join(f"{name!r}: outcome(lambda: {way})" for name, way in ways.items())
    return run(f"print(json.dumps({{{lines}}}))", *options, **changes)


@pytest.fixture(params=[True, False], ids=["Landlock", "namespaces alone"])
def landlock(request):
    if request.param and not has_landlock():
        pytest.skip("this kernel has no Landlock")
    return request.param


def test_its_devices_give_themselves_no_address_that_comes_later():
    """Chromium drops what it loads when one comes: two pages of sixty lost a script so."""
    script = """
import time
time.sleep(0.3)
print(json.dumps([line.split()[-1] for line in open("/proc/self/net/if_inet6")]))
"""
    assert set(run(script)) <= {"lo"}


def test_what_was_given_is_there_and_nothing_else_has_a_name(tmp_path, landlock):
    for name in ("read/keys", "read/open", "write", "other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("x")
    here = str(tmp_path)
    ways = {
        "read": f"open({here!r} + '/read/open/file').read()",
        "write": f"open({here!r} + '/write/new', 'w').write('y')",
        "write what is read": f"open({here!r} + '/read/open/file', 'w')",
        "beside": f"os.listdir({here!r})",
        "hidden": f"os.listdir({here!r} + '/read/keys')",
        "root": "os.listdir('/')",
        "write to the root": "open('/new', 'w')",
        "the other": f"os.stat({here!r} + '/other/file')",
        "mount": "call('mount', b'none', b'/tmp', b'tmpfs', 0, 0)",
        "unmount": f"call('umount2', {(here + '/read/keys').encode()!r}, 2)",
        "remount": f"call('mount', None, {(here + '/read').encode()!r}, None, 4128, None)",
    }
    given = (
        "--ro",
        tmp_path / "read",
        "--rw",
        tmp_path / "write",
        "--hide",
        tmp_path / "read/keys",
    )
    got = outcomes(ways, *given, landlock=landlock)
    assert {name for name in ways if got[name] == "done"} == {"write"}
    assert got["read"] == "x"
    # Landlock keeps even these few names from being listed.
    if not landlock:
        assert sorted(got["beside"]) == ["read", "write"]
        assert got["hidden"] == []
        given = {Path(path).parts[1] for path in (*system_of(sys.executable), here)}
        assert set(got["root"]) <= {*given, "proc", "dev", "tmp"}
    assert (tmp_path / "write/new").read_text() == "y"
    assert not (tmp_path / "read/open/new").exists()


def test_the_network_has_no_way_out(tmp_path, landlock):
    name = f"\0bubench-test-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        abstract.bind(name)
        abstract.listen()
        path = str(tmp_path / "socket")
        named.bind(path)
        named.listen()
        datagrams.bind(server.getsockname())
        datagrams.setblocking(False)
        port = server.getsockname()[1]
        ways = {
            "tcp": f"socket.create_connection(('127.0.0.1', {port}), 3)",
            "udp": f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))",
            "abstract": f"socket.socket(socket.AF_UNIX).connect({name!r})",
            "named": f"socket.socket(socket.AF_UNIX).connect({path!r})",
            "public": "socket.create_connection(('93.184.216.34', 80), 3)",
            "raw": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
            "packets": "socket.socket(17, socket.SOCK_RAW, 0)",
            "ping": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)",
            "devices": "sorted(name for _, name in socket.if_nameindex())",
        }
        got = outcomes(ways, "--tcp", port, "--tcp", 80, landlock=landlock)
        with pytest.raises(BlockingIOError):
            datagrams.recv(1)
    assert {way for way in ways if got[way] == "done"} <= {"udp"}  # it is sent, to nobody
    assert got["devices"] == ["lo", "out0", "out1"]


def test_no_capability_is_left_and_other_processes_are_not_to_be_seen(landlock):
    status = "[line.split()[1] for line in open('/proc/self/status') if line.startswith({})]"
    ways = {
        "capabilities": status.format("'Cap'"),
        "privileges": status.format("'NoNewPrivs'"),
        "processes": "sorted(name for name in os.listdir('/proc') if name.isdigit())",
        "own": "str(os.getpid())",
        "parent's root": "os.listdir('/proc/1/root/') and os.listdir('/proc/1/root/home')",
        "signal": f"os.kill({os.getpid()}, 0)",
        "core pattern": "open('/proc/sys/kernel/core_pattern', 'a')",
        "name": "os.uname().nodename",
        "namespace": "call('setns', os.open('/proc/1/ns/net', 0), 0)",
        "another root": "call('chroot', b'/tmp')",
    }
    got = outcomes(ways, landlock=landlock)
    assert {int(mask, 16) for mask in got["capabilities"]} == {0}
    assert len(got["capabilities"]) == 5
    assert got["privileges"] == ["1"]
    assert got["processes"] == ["1", got["own"]]
    assert got["name"] == "localhost"
    assert {way for way in ways if got[way] == "done"} == set()


def test_a_nested_namespace_of_users_gains_nothing(tmp_path):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys/file").write_text("secret")
    script = f"""
made = outcome(lambda: call("unshare", 0x10000000 | 0x20000))
got = {{
    "made": made,
    "unmount": outcome(lambda: call("umount2", {str(tmp_path / "keys").encode()!r}, 2)),
    "root": outcome(lambda: call("umount2", b"/", 2)),
    "read": outcome(lambda: open({str(tmp_path / "keys/file")!r}).read()),
}}
print(json.dumps(got))
"""
    got = run(script, "--ro", tmp_path, "--hide", tmp_path / "keys", landlock=False)
    assert "secret" not in got.values()
    assert got["unmount"] != "done"


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 3", 3),
        ("kill -TERM $$", -signal.SIGTERM),
        ("kill -KILL $$", -signal.SIGKILL),
        ("", 0),
    ],
)
def test_it_ends_as_the_program_did(script, status):
    with Enclosed(["/bin/sh", "-c", script]) as enclosed:
        assert enclosed.process.wait(10) == status


def test_a_program_that_is_not_there_is_said():
    with Enclosed(["/nowhere/program"]) as enclosed:
        _, err = enclosed.process.communicate(timeout=10)
        assert enclosed.process.returncode == 127
        assert "/nowhere/program: No such file" in err


def test_it_hears_what_its_group_is_told():
    """A grace period is the program's, not the outer processes'."""
    script = "trap 'echo heard; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    with Enclosed(["/bin/sh", "-c", script]) as enclosed:
        assert enclosed.process.stdout.readline() == "ready\n"
        os.killpg(enclosed.process.pid, signal.SIGTERM)
        assert enclosed.process.wait(10) == 5
        assert enclosed.process.stdout.read() == "heard\n"


LINGERS = "(sleep 1000 & setsid sleep 1000 &) ; echo ready; exec sleep 1000"


@pytest.mark.parametrize("end", ["door", "outer", "first", "program"])
def test_when_any_of_it_ends_nothing_is_left(end):
    with Enclosed(["/bin/sh", "-c", LINGERS]) as enclosed:
        assert enclosed.process.stdout.readline() == "ready\n"
        if end == "door":
            enclosed.door.close()
        else:
            pids = sorted(int(row[1]) for row in enclosed.members() if "enclose" in row[3])
            program = [int(row[1]) for row in enclosed.members() if row[3] == "sleep 1000"]
            victim = {"outer": pids[0], "first": pids[1], "program": min(program)}[end]
            os.kill(victim, signal.SIGKILL)
        assert enclosed.gone()
        listed = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True, check=True)
        assert "sleep 1000" not in listed.stdout.splitlines()


def test_namespaces_and_mounts_are_gone_with_it(tmp_path):
    def spaces():
        found = set()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                found |= spaces_of(process.name)
        return found

    def spaces_of(pid):
        return {(Path("/proc") / str(pid) / "ns" / kind).readlink() for kind in ("net", "mnt")}

    def mounted():
        return Path("/proc/self/mountinfo").read_text()

    before = mounted()
    with Enclosed(["/bin/sh", "-c", "echo ready; exec sleep 1000"], "--rw", tmp_path) as enclosed:
        assert enclosed.process.stdout.readline() == "ready\n"
        own = spaces_of(enclosed.members()[-1][1])
        assert own <= spaces()
        assert mounted() == before
        enclosed.door.close()
        assert enclosed.gone()
        assert not own & spaces()
    assert mounted() == before
    tmp_path.rmdir()


def test_the_door_hands_out_sockets_by_which_one_is_inside():
    connect = "socket.create_connection(('127.0.0.1', 3128), 3).makefile().read()"
    waits = f"sys.stdin.readline(); print(json.dumps(outcome(lambda: {connect})))"
    argv = python_argv(waits)
    options = ("--tcp", 3128)
    with Enclosed(argv, *options, stdin=subprocess.PIPE) as enclosed, enclosed.socket() as listener:
        enclosed.first.bind(("127.0.0.1", 3128))
        with pytest.raises(OSError, match="in use"):
            listener.bind(("127.0.0.1", 3128))
        enclosed.first.close()
        listener.bind(("127.0.0.1", 3128))
        listener.listen()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", 3128), 3).close()
        enclosed.process.stdin.write("\n")
        enclosed.process.stdin.flush()
        listener.settimeout(10)
        connection, _ = listener.accept()
        connection.sendall(b"hello")
        connection.close()
        assert json.loads(enclosed.process.stdout.readline()) == "hello"


def test_a_second_program_joins_the_network_and_a_third_one_has_its_own(tmp_path):
    serve = "s = socket.create_server(('127.0.0.1', 4000)); print('ready', flush=True); s.accept()"
    ask = "outcome(lambda: socket.create_connection(('127.0.0.1', 4000), 3))"
    asks = f"print(json.dumps({{'asked': {ask}, 'processes': os.listdir('/proc')}}))"
    with Enclosed(python_argv(serve)) as first:
        assert first.process.stdout.readline() == "ready\n"
        assert run(asks, "--tcp", 4000)["asked"] != "done"
        joined = run(asks, "--tcp", 4000, join=first.spaces)
        assert joined["asked"] == "done"
        assert len([name for name in joined["processes"] if name.isdigit()]) == 2


def test_the_managed_policy_is_where_chromium_looks(tmp_path):
    places = ("/etc/chromium", "/etc/opt/chrome")
    ways = {place: f"open('{place}/policies/managed/guard.json').read()" for place in places}
    given = [word for place in (*places, "/etc/opt") for word in ("--ro", place)]
    got = outcomes(ways, *given, "--policy", '{"QuicAllowed": false}')
    assert set(got.values()) == {'{"QuicAllowed": false}'}


def readable_python():
    """A Python that an ordinary user may run."""
    for name in (os.path.realpath(sys.executable), "/usr/bin/python3", "/usr/local/bin/python3"):
        script = "import sys; sys.exit(sys.version_info < (3, 11))"
        with contextlib.suppress(OSError):
            argv = [name, "-I", "-S", "-c", script]
            if subprocess.run(argv, user=NOBODY, group=NOBODY, check=False).returncode == 0:
                return name
    return None


USER = "[l.split() for l in open('/proc/self/uid_map')]"


@needs_root
def test_an_ordinary_user_gets_it_in_a_namespace_of_users(tmp_path, landlock):
    python = readable_python()
    folder = ENCLOSED[-1]
    as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": ()}
    if python is None:
        pytest.skip("no Python 3.11 that another user may run")
    if subprocess.run(
        ["ls", f"{folder}/guard"], **as_user, capture_output=True, check=False
    ).returncode:
        pytest.skip(f"another user may not read {folder}")
    makes = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x10000000) != 0)"
    if subprocess.run([python, "-c", makes], **as_user, check=False).returncode:
        pytest.skip("ordinary users get no namespaces here")
    ways = {
        "user": "str(os.getuid())",
        "map": f"{USER}[0]",
        "capabilities": "[l.split()[1] for l in open('/proc/self/status') if l.startswith('Cap')]",
        "keys": f"os.listdir({str(tmp_path)!r})",
        "devices": "sorted(name for _, name in socket.if_nameindex())",
        "processes": "sorted(name for name in os.listdir('/proc') if name.isdigit())",
    }
    with Enclosed(["/bin/true"], python=python, **as_user) as enclosed:
        assert len(enclosed.spaces) == 2
    got = outcomes(ways, python=python, landlock=landlock, cwd="/", **as_user)
    assert got["user"] == str(NOBODY)
    assert got["map"] == [str(NOBODY), str(NOBODY), "1"]
    assert {int(mask, 16) for mask in got["capabilities"]} == {0}
    assert got["keys"] == "No such file or directory"
    assert got["devices"] == ["lo", "out0", "out1"]
    assert len(got["processes"]) == 2


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv here")
@pytest.mark.skipif(takes_user_namespace(), reason="there is no CAP_SYS_ADMIN here to be dropped")
def test_root_without_sys_admin_gets_it_in_a_namespace_of_users():
    prefix = ("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-all")
    with Enclosed(["/bin/true"], prefix=prefix) as enclosed:
        assert len(enclosed.spaces) == 2
        assert enclosed.process.wait(10) == 0


@needs_root
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="no setpriv here")
def test_where_no_namespace_is_to_be_had_the_reason_is_said(tmp_path):
    """As in a container: no CAP_SYS_ADMIN, and none within a namespace of users."""
    limit = "/proc/sys/user/max_user_namespaces"
    script = (
        "from browseruse_bench.browsers.guard import levels, confinement;"
        "print(confinement.why_not_layered()); print(levels.choose('auto').level)"
    )
    # A namespace of users whose own limit is none: what is inside cannot make another.
    shell = f'echo 0 > {limit} && exec setpriv --bounding-set -sys_admin --inh-caps -all "$@"'
    argv = ["unshare", "-Ur", "sh", "-c", shell, "sh", sys.executable, "-c", script]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    why, level = done.stdout.splitlines()
    assert "a trial failed" in why
    assert level == ("confined" if has_landlock() else "flags")
