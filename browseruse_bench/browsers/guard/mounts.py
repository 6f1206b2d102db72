"""A file system that holds what a process was given, and nothing else.

Part of `enclose`, and like it run by a bare Python. Folders and files keep their paths. What
was not given is not there: it has no name, no size and no socket to connect to.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from .confine import check, libc  # noqa: TID252  it runs outside the package, too

BASE = "/tmp"
"""Where the new root is put together before it becomes the root."""
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_HERE, _EMPTY_PATH, _RECURSIVE, _CLOEXEC = -100, 0x1000, 0x8000, 0o2000000
_READ_ONLY, _NO_SUID, _NO_DEVICES, _NO_EXEC = 1, 2, 4, 8
_PRIVATE = 0x40000 | 0x4000
_DETACH = 2
_MAX_LINKS = 40

Item = tuple[str, str, bool]
"""(path without symbolic links, "ro" | "rw" | "hide", whether it is a folder)"""


def enter(ro: list[str], rw: list[str], hide: list[str], texts: dict[str, str]) -> None:
    """The root of this process holds what is given, in a mount namespace of its own.

    Args:
        ro: may be read and executed. /proc is a new one, of this process's own numbers.
        rw: may be written, too.
        hide: empty, although a folder above it is given.
        texts: path -> content of further files.

    Raises:
        OSError: the kernel does not do it.
    """
    check(libc().mount(None, b"/", None, _PRIVATE, None), "private mounts")
    items, links = plan([p for p in ro + rw if p != "/proc"], set(rw), hide)
    # Before the new root covers what is there.
    trees = [_tree("/dev/null" if kind == "hide" else path) for path, kind, _ in items]
    _tmpfs(BASE)
    empty = [BASE, *(_put(item, tree) for item, tree in zip(items, trees, strict=True))]
    for place, target in links:
        if not os.path.lexists(BASE + place):
            os.makedirs(os.path.dirname(BASE + place), exist_ok=True)  # noqa: PTH103, PTH120
            os.symlink(target, BASE + place)  # noqa: PTH211
    for path, text in texts.items():
        _write(BASE + path, text)
    _make_proc(read_only="/proc" in ro)
    os.makedirs(BASE + "/tmp", exist_ok=True)  # noqa: PTH103
    for folder in filter(None, empty):
        _protect(folder, _READ_ONLY | _NO_SUID | _NO_DEVICES)
    _pivot()


def plan(
    given: list[str], writable: set[str], hide: list[str]
) -> tuple[list[Item], list[tuple[str, str]]]:
    """What is to be put where, parents first, and the symbolic links (place, target) on the way.

    The nearest given or hidden folder above a path, or the path itself, says what becomes of
    it. Given as several at once, "rw" counts before "hide", and "hide" before "ro".
    """
    wanted: dict[str, str] = {}
    links: list[tuple[str, str]] = []
    for path in given:
        real, passed = resolve(path)
        if os.access(real, os.F_OK):
            kind = "rw" if path in writable else "ro"
            wanted[real] = "rw" if wanted.get(real) == "rw" else kind
            links += passed
    for path in hide:
        real, _ = resolve(path)
        if wanted.get(real) != "rw" and os.path.lexists(real):
            wanted[real] = "hide"
    items: list[Item] = []
    for path in sorted(wanted, key=lambda path: path.split("/")):
        above = next((kind for there, kind, _ in reversed(items) if _is_below(path, there)), None)
        if wanted[path] != (above or "hide"):
            items.append((path, wanted[path], os.path.isdir(path)))  # noqa: PTH112
    return items, links


def resolve(path: str) -> tuple[str, list[tuple[str, str]]]:
    """An absolute path without symbolic links, and the links (place, target) that it went by.

    Raises:
        OSError: the links lead in a circle.
    """
    links: list[tuple[str, str]] = []
    real = "/"
    parts = path.split("/")[::-1]
    while parts:
        part = parts.pop()
        if part in ("", "."):
            continue
        if part == "..":
            real = os.path.dirname(real)  # noqa: PTH120
            continue
        here = os.path.join(real, part)  # noqa: PTH118
        try:
            target = os.readlink(here)  # noqa: PTH115
        except OSError:
            real = here
            continue
        links.append((here, target))
        if len(links) > _MAX_LINKS:
            raise OSError(errno.ELOOP, "too many symbolic links", path)
        real = "/" if target.startswith("/") else real
        parts += target.split("/")[::-1]
    return real, links


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _put(item: Item, tree: int) -> str | None:
    """Attach a tree at its path below BASE; returns the place if it is an empty folder."""
    path, kind, is_folder = item
    place = BASE + path
    if not os.path.lexists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)  # noqa: PTH103, PTH120
        if is_folder:
            os.mkdir(place)  # noqa: PTH102
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
    if kind == "hide" and is_folder:
        os.close(tree)
        _tmpfs(place)
        return place
    attributes = _NO_SUID | (0 if kind == "rw" else _READ_ONLY)
    # A device is one only where devices are allowed.
    attributes |= 0 if path.startswith("/dev/") else _NO_DEVICES
    _protect(tree, attributes)
    moved = libc().syscall(_MOVE_MOUNT, tree, b"", _HERE, place.encode(), 4)
    check(moved, f"put {path}")
    os.close(tree)
    return None


def _tree(path: str) -> int:
    """A descriptor of a copy of the mounts at and below a path."""
    flags = 1 | _RECURSIVE | _CLOEXEC
    return check(libc().syscall(_OPEN_TREE, _HERE, os.fsencode(path), flags), path)


def _protect(what: int | str, attributes: int) -> None:
    """Set attributes of a copied tree with all below it, or of the mount at a path alone."""
    block = struct.pack("QQQQ", attributes, 0, 0, 0)
    at, path, flags = (
        (_HERE, what.encode(), 0)
        if isinstance(what, str)
        else (what, b"", _EMPTY_PATH | _RECURSIVE)
    )
    done = libc().syscall(_MOUNT_SETATTR, at, path, flags, block, ctypes.c_size_t(len(block)))
    check(done, f"attributes of {what}")


def _tmpfs(place: str) -> None:
    flags = _NO_SUID | _NO_DEVICES
    options = b"mode=755,size=1m"
    check(libc().mount(b"tmpfs", place.encode(), b"tmpfs", flags, options), f"tmpfs {place}")


def _make_proc(*, read_only: bool) -> None:
    place = BASE + "/proc"
    os.makedirs(place, exist_ok=True)  # noqa: PTH103
    flags = _NO_SUID | _NO_DEVICES | _NO_EXEC | (_READ_ONLY if read_only else 0)
    check(libc().mount(b"proc", place.encode(), b"proc", flags, None), "mount /proc")


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)


def _pivot() -> None:
    """BASE becomes the root, and the old one is gone from this namespace."""
    os.chdir(BASE)
    number = _PIVOT_ROOT[os.uname().machine]
    check(libc().syscall(number, b".", b"."), "pivot_root")
    check(libc().umount2(b".", _DETACH), "leave the old root")
    os.chdir("/")
