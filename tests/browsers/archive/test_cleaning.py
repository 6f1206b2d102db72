import pytest

from browseruse_bench.browsers.archive.cleaning import Cleaning, Cookie
from browseruse_bench.store.redact import Redactor
from tests.store.archive.made_archive import exchange, mhtml

KEY = "sk-live-4f9aQ27bX81m"
TOKEN = "Zq81mWvT40cXr7Lp"


def cleaning():
    return Cleaning(Redactor.of([KEY]))


def test_our_own_secrets_go_from_everywhere():
    dirty = exchange(
        f"http://a.test/?key={KEY}",
        method="POST",
        request_body=f"k={KEY}".encode(),
        body=b"\xff\x00" + KEY.encode() + b"\xfe",
        request_headers=[("X-Own", KEY)],
        headers=[("X-Echo", f"a {KEY} b")],
    )
    clean = cleaning().exchange(dirty)
    assert KEY not in repr(clean)
    assert len(clean.body) == len(dirty.body)
    assert clean.request_body == b"k=[redacted]"


@pytest.mark.parametrize(
    "name", ["Authorization", "proxy-authorization", "X-API-Key", "x-csrf-token"]
)
def test_headers_that_carry_credentials_lose_any_value(name):
    assert cleaning().headers([(name, "whatever")]) == [(name, "[redacted]")]


def test_a_request_keeps_the_names_of_its_cookies_alone():
    assert cleaning().headers([("Cookie", "a=1; sid=x=y; b")]) == [
        ("Cookie", "a=[redacted]; sid=[redacted]; b=[redacted]")
    ]


@pytest.mark.parametrize(
    ("cookie", "header"),
    [
        (Cookie(name="theme", value="dark"), "theme=dark; Path=/"),
        (Cookie(name="theme", value="dark", http_only=True), "theme=[redacted]; Path=/; HttpOnly"),
        (Cookie(name="theme", value="darkdark"), "theme=[redacted]; Path=/"),
        (Cookie(name="sid", value="abc"), "sid=[redacted]; Path=/"),
        (Cookie(name="a", value="1", domain=".b.test", path="/c", secure=True, same_site="Lax"),
         "a=1; Path=/c; Domain=b.test; Secure; SameSite=Lax"),
    ],
)  # fmt: skip
def test_a_cookie_keeps_a_value_that_can_be_no_credential(cookie, header):
    assert cookie.set_cookie() == header


def test_a_token_of_the_session_goes_by_value_and_a_plain_word_never_does():
    held = cleaning()
    held.learn(
        [
            Cookie(name="sid", value=TOKEN, http_only=True),
            Cookie(name="day", value="2026-08-20", http_only=True),
            Cookie(name="word", value="internationalisation", http_only=True),
            Cookie(name="js", value="aB3" * 10),
        ]
    )
    text = f"{TOKEN} 2026-08-20 internationalisation {'aB3' * 10}"
    assert held.text(text) == f"[redacted] 2026-08-20 internationalisation {'aB3' * 10}"


def test_a_secret_that_an_encoding_tore_apart_goes_from_a_rendered_page():
    head = b'Content-Type: multipart/related; boundary="b"\r\n\r\n--b\r\n'
    torn = (
        f"Content-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n"
        f"Content-Location: http://a.test/?k={KEY}\r\n\r\n<p>a=3D{KEY[:9]}=\r\n{KEY[9:]}</p>\r\n--b--\r\n"
    ).encode()
    clean = cleaning().mhtml(head + torn)
    import email

    part = email.message_from_bytes(clean).get_payload()[0]
    assert part.get_payload(decode=True).strip() == b"<p>a=[redacted]</p>"
    assert KEY not in part["Content-Location"]


def test_a_rendered_page_without_secrets_stays_as_it_was():
    content = mhtml("<p>Kettle</p>")
    assert cleaning().mhtml(content) is content
