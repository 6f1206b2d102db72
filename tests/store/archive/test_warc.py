import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.store.archive.exchange import request_key
from browseruse_bench.store.archive.warc import (
    DamagedError,
    WarcWriter,
    http_block,
    parse_http,
    read_warc,
)
from tests.store.archive.made_archive import ABOUT, exchange

names = st.text("abcdefgh-", min_size=1, max_size=8)
values = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp", "Zs")), max_size=20)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a file with three exchanges, and where its records end."""
    path = tmp_path_factory.mktemp("warc") / "a.warc.gz"
    with WarcWriter(path, ABOUT) as writer:
        for n in range(3):
            exchange(f"http://shop.test/{n}", bytes([n]) * (500 * n)).write(writer)
    content = path.read_bytes()
    return content, [r.offset + r.length for r in read_warc(io.BytesIO(content))]


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "a.warc.gz"
    with WarcWriter(path, ABOUT) as writer:
        exchange(method="POST", request_body=b'{"a": 1}').write(writer)
    with path.open("rb") as file:
        info, answer, request = read_warc(file)
    assert (info.type, answer.type, request.type) == ("warcinfo", "response", "request")
    assert answer.http.body == b"<p>Kettle, 31.90</p>"
    assert ("Content-Length", "20") in answer.http.headers
    assert "content-encoding" not in {n.lower() for n, _ in answer.http.headers}
    assert request.http == (
        "POST /kettle HTTP/1.1",
        (("Accept", "*/*"), ("Content-Length", "8")),
        b'{"a": 1}',
    )
    assert request.headers["warc-concurrent-to"] == answer.headers["warc-record-id"]


def test_a_file_that_is_there_is_not_overwritten(tmp_path):
    (tmp_path / "a.warc.gz").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        WarcWriter(tmp_path / "a.warc.gz", ABOUT)
    assert (tmp_path / "a.warc.gz").read_bytes() == b"mine"


@given(share=st.floats(0, 1, exclude_max=True))
def test_a_torn_file_gives_its_whole_records_and_says_that_it_is_torn(whole, share):
    content, ends = whole
    cut = int(len(content) * share)
    given_, torn = [], None
    try:
        for record in read_warc(io.BytesIO(content[:cut])):
            given_.append(record)
    except DamagedError as error:
        torn = str(error)
    assert len(given_) == sum(end <= cut for end in ends)
    at_an_end = cut == 0 or cut in ends
    assert (torn is None) == at_an_end
    assert at_an_end or "torn" in torn


@given(share=st.floats(0, 1, exclude_max=True))
def test_a_changed_byte_is_found(whole, share):
    content = bytearray(whole[0])
    place = int(len(content) * share)
    content[place] ^= 0x55
    try:
        found = [(r.type, r.uri, r.block) for r in read_warc(io.BytesIO(bytes(content)))]
    except DamagedError:
        return
    # Some bytes of a gzip header (time, system) are not of what was packed.
    assert found == [(r.type, r.uri, r.block) for r in read_warc(io.BytesIO(whole[0]))]


@pytest.mark.parametrize("part", [b"Kettle, 31.90", b"HTTP/1.1 200 OK"])
def test_a_record_that_was_changed_and_packed_anew_is_found(tmp_path, part):
    path = tmp_path / "a.warc.gz"
    with WarcWriter(path, ABOUT) as writer:
        exchange().write(writer)
    with path.open("rb") as file:
        records = list(read_warc(file))
    content = gzip.decompress(
        path.read_bytes()[records[1].offset : records[1].offset + records[1].length]
    )
    assert part in content
    forged = gzip.compress(content.replace(part, part[::-1]))
    with pytest.raises(DamagedError, match="was changed since it was written"):
        list(read_warc(io.BytesIO(forged)))


def test_what_is_no_archive_is_said_to_be_none():
    for content in (b"hello, this is no archive at all", gzip.compress(b"nor this")):
        with pytest.raises(DamagedError, match="record at byte 0"):
            list(read_warc(io.BytesIO(content)))


@given(st.lists(st.tuples(names, values), max_size=5), st.binary(max_size=200))
def test_an_http_message_keeps_its_headers_and_its_body(headers, body):
    found = parse_http(http_block("HTTP/1.1 200 OK", headers, body), 0)
    assert found.body == body
    assert found.headers == tuple((name, value.strip()) for name, value in headers)


def test_a_header_cannot_add_another_message():
    block = http_block("HTTP/1.1 200 OK", [("X-A", "1\r\n\r\nbody"), ("X-B", "2\n3")], b"real")
    found = parse_http(block, 0)
    assert found.body == b"real"
    assert found.headers == (("X-A", "1"), ("X-A", "body"), ("X-B", "2"), ("X-B", "3"))


FORM = {"Content-Type": "multipart/form-data; boundary=----X1"}


@pytest.mark.parametrize(
    ("one", "other", "equal", "loosely"),
    [
        (("GET", "http://A.test/x?b=2&a=1#f", {}, b""), ("GET", "http://a.test/x?a=1&b=2", {}, b""), True, True),
        (("GET", "http://a.test/x?a=1", {}, b""), ("GET", "http://a.test/x?a=2", {}, b""), False, False),
        (("GET", "http://a.test/x?_=1796102712591", {}, b""), ("GET", "http://a.test/x?_=1796102719999", {}, b""), False, True),
        (("GET", "http://a.test/x?q=1796102712591", {}, b""), ("GET", "http://a.test/x?q=1796102719999", {}, b""), False, False),
        (("GET", "http://a.test/x?t=3", {}, b""), ("GET", "http://a.test/x?t=4", {}, b""), False, False),
        (("GET", "http://a.test/X", {}, b""), ("GET", "http://a.test/x", {}, b""), False, False),
        (("POST", "http://a.test/x", {}, b"1"), ("POST", "http://a.test/x", {}, b"2"), False, False),
        (("POST", "http://a.test/x", {}, b""), ("GET", "http://a.test/x", {}, b""), False, False),
        (("POST", "http://a.test/x", FORM, b"------X1 a"),
         ("POST", "http://a.test/x", {"content-type": "multipart/form-data; boundary=----Y22"}, b"------Y22 a"), True, True),
    ],
)  # fmt: skip
def test_which_requests_get_the_same_answer(one, other, equal, loosely):
    assert (request_key(*one) == request_key(*other)) is equal
    assert (request_key(*one, loose=True) == request_key(*other, loose=True)) is loosely
