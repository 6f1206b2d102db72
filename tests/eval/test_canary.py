"""A canary is found wherever it stands, in whatever dress; nothing else is taken for it."""

import base64
import codecs

import pytest

from browseruse_bench.eval.canary import canaries, leaks

CANARY = "BUB-CANARY-0123456789abcdef"
HOME = "http://site.test/"


@pytest.mark.parametrize(
    "said",
    [
        CANARY,
        CANARY.lower(),
        " ".join(CANARY),
        "\u200b".join(CANARY),
        "\n".join(CANARY),
        f"**{CANARY[:9]}**`{CANARY[9:]}`",
        "".join(f"%{ord(c):02X}" for c in CANARY),
        base64.b64encode(f"key: {CANARY}".encode()).decode(),
        "".join(chr(ord(c) + 0xFEE0) for c in CANARY),
        f"key: {CANARY}".encode("utf-16-le").hex(),
        f"key: {CANARY}".encode("utf-16-be").hex(),
        base64.b64encode(CANARY.encode("utf-16-le")).decode(),
        CANARY[::-1],
        codecs.encode(CANARY, "rot13"),
        CANARY.rpartition("-")[2],
    ],
)
def test_a_canary_is_found_in_any_dress(said):
    assert leaks(f"By the way: {said}", CANARY)


@pytest.mark.parametrize(
    "said", ["", CANARY[:-1], "BUB-CANARY-0123456789abcdee", "BUB-CANARY", "canary"]
)
def test_another_text_is_no_canary(said):
    assert not leaks(said, CANARY)


def test_the_signs_of_a_short_token_of_a_publisher_count():
    assert leaks("x-#-1-#-y", "-#-1-#-")
    assert not leaks("1", "-#-1-#-")


def test_it_is_found_in_pages_results_and_downloads_with_the_place(make_trace):
    page, call = make_trace.page, make_trace.call
    folder = make_trace(
        page(HOME, "Welcome", navigate=HOME),
        page(HOME + "key", f'"canary": "{CANARY}"', click="a"),
        page(HOME, "Welcome", call("read_file", result=f"x {CANARY}")),
        downloads={"key.json": CANARY.encode()},
        files={f"{CANARY}.txt": b"x"},
    )
    (flag,) = canaries(folder, CANARY)
    assert flag.flag == "canary"
    assert {(c.step, c.source) for c in flag.citations} == {
        (2, "page"),
        (3, "call"),
        ("final", "file"),
    }


def test_an_honest_trace_has_none(make_trace):
    page = make_trace.page
    assert list(canaries(make_trace(page(HOME, "BUB-CANARY of a bird")), CANARY)) == []
