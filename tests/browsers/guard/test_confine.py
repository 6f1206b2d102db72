"""A confined process reaches what it was given, and nothing else; nor do its children."""

import json
import os
import socket
import subprocess
import sys

import pytest

from browseruse_bench.browsers.guard import confine
from browseruse_bench.browsers.guard.confinement import PROGRAM, why_not_confined

pytestmark = pytest.mark.skipif(why_not_confined() is not None, reason=str(why_not_confined()))

SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", sys.base_prefix)
PRELUDE = """
import ctypes, json, os, socket, subprocess, sys
def outcome(way):
    try:
        way()
    except OSError as error:
        return os.strerror(error.errno) if error.errno else str(error)
    return "done"
def call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), "call")
"""


def run(script, *options, status=0):
    """What a confined Python prints as JSON, and its result."""
    given = [word for path in SYSTEM for word in ("--ro", path)]
    argv = [
        *(sys.executable, "-I", "-S", str(PROGRAM), *given, "--ro", "/proc", "--rw", "/dev/null"),
        *(
            *map(str, options),
            "--",
            os.path.realpath(sys.executable),
            "-I",
            "-S",
            "-c",
            PRELUDE + script,
        ),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if done.stdout else None


def outcomes(ways, *options):
    """Name -> outcome of expressions that a confined Python carries out."""
    lines = ", ".join(f"{name!r}: outcome(lambda: {way})" for name, way in ways.items())
    return run(f"print(json.dumps({{{lines}}}))", *options)


def test_files_are_read_and_written_where_they_may_be(tmp_path):
    for name in ("read", "write", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    ways = {
        "read": f"open({str(tmp_path / 'read/file')!r}).read()",
        "write what is read": f"open({str(tmp_path / 'read/file')!r}, 'w')",
        "write": f"open({str(tmp_path / 'write/new')!r}, 'w').write('y')",
        "other": f"open({str(tmp_path / 'other/file')!r}).read()",
        "list other": f"os.listdir({str(tmp_path / 'other')!r})",
        "link": f"os.symlink({str(tmp_path / 'other/file')!r}, {str(tmp_path / 'write/l')!r})",
        "read by link": f"open({str(tmp_path / 'write/l')!r}).read()",
        "hard link": f"os.link({str(tmp_path / 'other/file')!r}, {str(tmp_path / 'write/h')!r})",
        "rename": f"os.rename({str(tmp_path / 'other/file')!r}, {str(tmp_path / 'write/r')!r})",
    }
    got = outcomes(ways, "--ro", tmp_path / "read", "--rw", tmp_path / "write")
    done = {name for name, result in got.items() if result == "done"}
    assert done == {"read", "write", "link"}
    assert (tmp_path / "other" / "file").exists()


def test_a_hidden_folder_stays_unreadable_below_a_readable_one(tmp_path):
    for name in ("a/b/keys", "a/b/open", "a/c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text("x")
    (tmp_path / "a" / "b" / "beside").write_text("x")
    (tmp_path / "a" / "way").symlink_to(tmp_path / "a/b/keys")
    ways = {
        name: f"open({str(tmp_path / 'a' / name)!r}).read()"
        for name in ("b/keys/file", "way/file", "b/open/file", "b/beside", "c/file")
    }
    got = outcomes(ways, "--ro", tmp_path / "a", "--hide", tmp_path / "a/b/keys")
    done = {name for name, result in got.items() if result == "done"}
    assert done == {"b/open/file", "b/beside", "c/file"}


def test_sockets_are_tcp_to_the_given_ports_and_unix(tmp_path):
    with (
        socket.create_server(("127.0.0.1", 0)) as given,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        ports = given.getsockname()[1], other.getsockname()[1]
        connect = "socket.create_connection(('127.0.0.1', {}), 3)"
        ways = {
            "given": connect.format(ports[0]),
            "other": connect.format(ports[1]),
            "fast open": f"socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', {ports[1]}))",
            "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
            "udp over version 6": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM | 0o4000)",
            "raw": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
            "multipath": "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",
            "packets": "socket.socket(17, socket.SOCK_RAW, 0)",
            "vsock": "socket.socket(40, socket.SOCK_STREAM)",
            "unix": "socket.socketpair()[0].close() or socket.socket(socket.AF_UNIX)",
            "io_uring": "call(425, 8, ctypes.create_string_buffer(256))",
        }
        got = outcomes(ways, "--tcp", ports[0])
    assert {name for name, result in got.items() if result == "done"} == {"given", "unix"}


def test_other_processes_and_the_kernel_are_out_of_reach(tmp_path):
    key = tmp_path / "key"
    key.write_text("x")
    harness = os.getpid()
    ways = {
        "environ": f"open('/proc/{harness}/environ').read()",
        "root": f"open('/proc/{harness}/root{key}').read()",
        "cwd": f"os.listdir('/proc/{harness}/cwd')",
        "memory": f"open('/proc/{harness}/mem', 'rb').read(1)",
        "signal": f"os.kill({harness}, 0)",
        "core pattern": "open('/proc/sys/kernel/core_pattern', 'a')",
        "disk": "open([f'/dev/{n}' for n in os.listdir('/sys/block')][0], 'rb').read(1)",
        "mount": "call(165, b'none', b'/tmp', b'tmpfs', 0, 0)",
        "own environ": "open('/proc/self/environ').read()",
    }
    got = outcomes(ways, "--ro", "/sys")
    assert {name for name, result in got.items() if result == "done"} == {"own environ"}


def test_no_capability_is_left():
    script = "print(json.dumps([l.split()[1] for l in open('/proc/self/status') if l.startswith('Cap')]))"
    held = run(script)
    assert {int(mask, 16) for mask in held[:3] + held[4:]} == {0}


def test_a_child_is_held_too(tmp_path):
    key = tmp_path / "key"
    key.write_text("x")
    script = f"print(json.dumps(subprocess.run(['/bin/cat', {str(key)!r}], capture_output=True).returncode))"
    assert run(script) != 0
    assert run(script, "--ro", key) == 0


def test_a_canary_that_is_reached_keeps_the_program_from_starting(tmp_path):
    key = tmp_path / "key"
    key.write_text("x")
    started = tmp_path / "w" / "started"
    started.parent.mkdir()
    script = f"open({str(started)!r}, 'w')"
    run(script, "--rw", started.parent, "--ro", key, "--file", key, status=confine.EXIT_HOLE)
    assert not started.exists()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        canary = ("--rw", started.parent, "--tcp", port, "--port", port)
        run(script, *canary, status=confine.EXIT_HOLE)
        assert not started.exists()
        run(script, "--rw", started.parent, "--port", port)
    assert started.exists()
