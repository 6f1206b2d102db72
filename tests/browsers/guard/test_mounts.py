"""What is where in a root of given folders: the nearest given or hidden one above a path says."""

import os
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.browsers.guard import mounts

NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda p: "/" + "/".join(p))
PATHS = st.lists(NAMES, max_size=5)


def expected(path, ro, rw, hide):
    """By the rule in words: what becomes of a path."""
    for above in (PurePosixPath(path), *PurePosixPath(path).parents):
        if str(above) in rw:
            return "rw"
        if str(above) in hide:
            return "hide"
        if str(above) in ro:
            return "ro"
    return "hide"


def found(path, items):
    """By the items in their order: the last one that covers it."""
    kind = "hide"
    for place, what, _ in items:
        if path == place or path.startswith(place + "/"):
            kind = what
    return kind


@given(PATHS, PATHS, PATHS, NAMES)
def test_the_nearest_folder_says_and_parents_come_first(ro, rw, hide, path):
    class Everything:
        """A file system in which every path is a folder."""

        def __getattr__(self, name):
            return {
                "access": lambda *_: True,
                "readlink": lambda path: (_ for _ in ()).throw(OSError(path)),
                "path": Paths(),
            }.get(name) or getattr(os, name)

    class Paths:
        def __getattr__(self, name):
            always = {"isdir": lambda _: True, "lexists": lambda _: True}
            return always.get(name) or getattr(os.path, name)

    real, mounts.os = mounts.os, Everything()
    try:
        items, links = mounts.plan(ro + rw, set(rw), hide)
    finally:
        mounts.os = real
    assert links == []
    assert found(path, items) == expected(path, set(ro), set(rw), set(hide))
    assert len({place for place, *_ in items}) == len(items)


def test_links_on_the_way_are_told_and_what_they_lead_to_is_given(tmp_path):
    real = tmp_path.resolve()
    (real / "store/v1.2/bin").mkdir(parents=True)
    (real / "store/v1").symlink_to("v1.2")
    (real / "env").mkdir()
    (real / "env/bin").symlink_to(real / "store/v1/bin")
    items, links = mounts.plan([str(real / "env/bin")], set(), [])
    assert items == [(str(real / "store/v1.2/bin"), "ro", True)]
    assert links == [
        (str(real / "env/bin"), str(real / "store/v1/bin")),
        (str(real / "store/v1"), "v1.2"),
    ]


def test_what_is_not_there_is_left_out_and_a_circle_is_an_error(tmp_path):
    assert mounts.plan([str(tmp_path / "none")], set(), [str(tmp_path / "neither")]) == ([], [])
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="too many symbolic links"):
        mounts.resolve(str(tmp_path / "a"))
