"""What is written or printed holds no secret, and everything else stays as it was."""

import base64
import json
import sqlite3
import string
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from browseruse_bench.store.redact import GONE, Redaction, Redactor, register, secrets_of

ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-planted-0123456789abcdef",
    "GITHUB_TOKEN": "ghp_planted0123456789abcdefghij",
    "DB_PASSWORD": 'pl4nted "quoted" pässword',
    "DATABASE_URL": "postgres://someone:planted-pw-1@db.test/x",
    "SESSION_COOKIE": "planted=cookie-1",
    "SHORT_KEY": "abc",
    "SSH_AUTH_SOCK": "/tmp/ssh-planted/agent.1",
    "EDITOR": "planted-editor",
    "PGPASSWORD": "postgres",
}
REDACTOR = Redactor.of(secrets_of(ENVIRONMENT))

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA1\nabc+/=\n-----END RSA PRIVATE KEY-----"
SHAPES = {
    "openai": "sk-proj-Ab1_cdEFghij23456789klmnopQRST",
    "anthropic": "sk-ant-api03-A1bcdefghijklmnopqrst-uvwxyz0123456789AA",
    "google": "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "groq": "gsk_1234567890abcdefghijklmnop",
    "hugging face": "hf_AbCdEfGhIjKlMnOpQrStUv1234",
    "browser-use": "bu_AbCdEfGhIjKlMnOpQrStUv1234",
    "github": "ghp_AbCdEfGhIjKlMnOpQrStUv1234",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "xai": "xai-AbCdEfGhIjKlMnOpQrStUv1234",
    "jwt": JWT,
    "pem": PEM,
}
IN_CONTEXT = [
    ("Authorization: Bearer abcdef123456.xyz", "abcdef123456.xyz"),
    ('{"Authorization": "Bearer abcdef1234567"}', "abcdef1234567"),
    ("authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("Authorization: token abc123abc123", "abc123abc123"),
    ("x-api-key: 0a1b2c3d4e5f", "0a1b2c3d4e5f"),
    ('"x-api-key": "0a1b2c3d4e5f"', "0a1b2c3d4e5f"),
    ("Cookie: sid=s3cr3tvalue; theme=dark", "s3cr3tvalue"),
    ("set-cookie: id=abcd1234; Path=/; HttpOnly", "abcd1234"),
    ("GET https://user:pass@host.test/path", "user:pass"),
    ("git clone https://x0123456789abcdefghijk@git.test/a", "x0123456789abcdefghijk"),
    ("https://a.test/?access_token=abcdefgh&x=1", "abcdefgh"),
    ("https://a.test/cb#id_token=abcdefgh", "abcdefgh"),
    ("https://a.test/?x=1&token=0123456789abcdef01", "0123456789abcdef01"),
    ("ws://127.0.0.1:9222/devtools/browser/5c6d-77", "127.0.0.1:9222/devtools/browser/5c6d-77"),
    ("wss://h.test/devtools/page/ABCDEF", "ABCDEF"),
]
ORDINARY = [
    "Compare the 3 cheapest flights from SFO to JFK on 2026-05-14 for $1,299.00",
    "https://www.example.com/search?q=red+shoes&page=2&sort=price&key=shoes#reviews",
    "https://shop.test/sk-bratislava-hotels-with-breakfast-2026?session=morning",
    "https://en.wikipedia.org/wiki/JSON_Web_Token",
    "https://maps.test/@48.1486,17.1077,15z?code=12345",
    "Write to jane.doe@example.com or call +1 555 867 5309",
    "Authorization: required for all visitors. Cookie: chocolate. Bearer of good news",
    "The bearer responsibilities-and-duties; basic information; token ring; secret garden",
    "a_b hf_hub sk-learn scikit-learn gsk_ r8_ xai- pplx- -----BEGIN CERTIFICATE-----",
    '{"action": "click", "index": 12, "xpath": "//div[@id=\'a\']"}',
    "d41d8cd98f00b204e9800998ecf8427e 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362",
    "ftp://files.test:21/a http://[::1]:8080/ 10:30@noon a:b@c",
]


def test_a_variables_name_or_an_address_makes_a_value_a_secret():
    found = secrets_of(ENVIRONMENT)
    assert found == {
        ENVIRONMENT["OPENAI_API_KEY"],
        ENVIRONMENT["GITHUB_TOKEN"],
        ENVIRONMENT["DB_PASSWORD"],
        ENVIRONMENT["SESSION_COOKIE"],
        "postgres",
        "planted-pw-1",
    }


@pytest.mark.parametrize("secret", sorted(secrets_of(ENVIRONMENT) - {"postgres"}))
@pytest.mark.parametrize("spell", [str, json.dumps, lambda s: quote(s, safe="")])
def test_a_known_value_goes_in_every_spelling_BL097(secret, spell):
    text = f"model error: 401 for {spell(secret)}!"
    for clean in (REDACTOR.said(text), REDACTOR.own(text)):
        assert GONE in clean
        assert secret not in clean
        assert spell(secret).strip('"') not in clean


@pytest.mark.parametrize("secret", SHAPES.values(), ids=SHAPES)
def test_what_has_the_shape_of_a_secret_goes_wherever_it_stands_BL097(secret):
    for text in (secret, f"key={secret}.", f'{{"a": "{secret}"}}', f"--api-key\n{secret}\n"):
        clean = REDACTOR.said(text)
        assert secret not in clean
        assert GONE in clean


@pytest.mark.parametrize(("text", "secret"), IN_CONTEXT)
def test_a_secret_is_known_by_what_stands_before_it_BL097(text, secret):
    clean = REDACTOR.said(text)
    assert secret not in clean
    assert GONE in clean
    assert clean[:4] == text[:4]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_as_it_was(text):
    assert REDACTOR.said(text) == text
    assert REDACTOR.own(text) == text


@given(st.text(alphabet=string.ascii_letters + string.digits + " .,;:!?/-_()$%&\n", max_size=300))
@settings(max_examples=300)
def test_words_and_numbers_stay_as_they_were(text):
    words = " ".join(word[:7] for word in text.split(" "))
    assert REDACTOR.said(words) == words


fragments = st.sampled_from(
    [*SHAPES.values(), *(text for text, _ in IN_CONTEXT), *ORDINARY, GONE, "[", "]", "redacted"]
)


@given(st.lists(st.one_of(fragments, st.text(max_size=20)), max_size=8), st.sampled_from(["", " "]))
@example(["Authorization: ", GONE, "1234567890"], "")
def test_redacting_twice_is_redacting_once(parts, between):
    once = REDACTOR.said(between.join(parts))
    assert REDACTOR.said(once) == once
    own = REDACTOR.own(between.join(parts))
    assert REDACTOR.own(own) == own


@given(st.lists(st.text(alphabet="[]redact1", min_size=8, max_size=14), max_size=4), st.data())
def test_a_value_that_looks_like_the_mark_does_no_harm(secrets, data):
    redactor = Redactor.of(secrets)
    words = st.one_of(st.sampled_from([*secrets, GONE, "x"]), st.text(alphabet="[]redact1"))
    text = "".join(data.draw(st.lists(words, max_size=6)))
    once = redactor.said(text)
    assert redactor.said(once) == once


def test_evidence_loses_own_secrets_only():
    text = f"The key {ENVIRONMENT['OPENAI_API_KEY']}, a sample {JWT}, postgres and 12 others"
    own = REDACTOR.own(text)
    assert own == f"The key {GONE}, a sample {JWT}, postgres and 12 others"
    assert "postgres" not in REDACTOR.said(text)


def test_a_secret_that_was_registered_is_known_like_one_of_the_environment():
    secret = "of-a-file-4f81c2aa"
    assert Redactor.of_environment().own(secret) == secret
    register(secret)
    assert Redactor.of_environment().own(f"key={secret}") == f"key={GONE}"
    assert Redactor.of_environment({}).own(secret) == secret


def test_every_text_of_a_json_value_is_cleaned_also_names():
    secret = ENVIRONMENT["OPENAI_API_KEY"]
    value = {"a": [secret, {"b": f"x {secret}", secret: 1}], "n": 3, "none": None, "t": True}
    clean = REDACTOR.said_value(value)
    assert secret not in json.dumps(clean)
    assert clean == {"a": [GONE, {"b": f"x {GONE}", GONE: 1}], "n": 3, "none": None, "t": True}


def test_a_field_named_like_a_secret_is_emptied_where_that_is_asked_for():
    value = {"api_key": "short", "headers": {"authorization": "x"}, "token": None, "tokens": "9"}
    assert REDACTOR.said_value(value) == value
    assert REDACTOR.said_value(value, by_name=True) == {
        "api_key": GONE, "headers": {"authorization": GONE}, "token": None, "tokens": "9",
    }  # fmt: skip


def test_a_database_with_a_secret_stays_a_database(tmp_path):
    path = tmp_path / "state.sqlite"
    secret = ENVIRONMENT["OPENAI_API_KEY"]
    with sqlite3.connect(path) as connection:
        connection.execute("create table notes (text, n)")
        connection.execute("insert into notes values (?, 7)", (f"typed {secret}",))
    path.write_bytes(REDACTOR.own_bytes(path.read_bytes()))
    with sqlite3.connect(path) as connection:
        assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
        assert connection.execute("select * from notes").fetchone() == (
            f"typed {'*' * len(secret)}",
            7,
        )


def test_a_log_is_cleaned_as_text_and_a_picture_is_left_alone():
    log = f"calling with Bearer {JWT}\n".encode()
    assert JWT.encode() not in REDACTOR.said_bytes(log)
    picture = base64.b64decode("iVBORw0KGgo=") + bytes(range(256))
    assert REDACTOR.said_bytes(picture) == REDACTOR.own_bytes(picture) == picture


def test_what_was_taken_from_the_agent_proves_nothing_on_a_page():
    """Else an agent could hide by a secret's shape that it typed the answer itself."""
    redaction = Redaction(REDACTOR)
    page = "No results for https://x.test/?password=price-is-1299 of 12"
    assert redaction.seen(page) == page
    said = redaction.said({"text": "https://x.test/?password=price-is-1299"})
    assert said == {"text": f"https://x.test/?password={GONE}"}
    assert redaction.seen(page) == f"No results for https://x.test/?password={GONE} of 12"
    assert redaction.seen("You asked for price-is-1299") == f"You asked for {GONE}"


def test_a_long_text_is_cleaned_in_time_that_grows_with_it():
    import time

    seconds = []
    for n in (1, 4):
        text = ("a" * 5000 + " sk-" + "a-" * 3000 + "://" + "b" * 4000 + "cookie: ?key=") * 8 * n
        start = time.process_time()
        REDACTOR.said(text)
        seconds.append(time.process_time() - start)
    assert seconds[1] < max(0.05, seconds[0] * 12)
