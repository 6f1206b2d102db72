"""What a page may decode is known; words are not taken for codes."""

import base64
import io
import zipfile
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.eval.decoding import MAX_FORMS, forms, texts_of


def escaped(text):
    return "".join(f"%{byte:02x}" for byte in text.encode())


WAYS = {
    "percent": escaped,
    "percent twice": lambda t: escaped(escaped(t)),
    "entities": lambda t: "".join(f"&#{ord(c)};" for c in t),
    "hex entities": lambda t: "".join(f"&#x{ord(c):x};" for c in t),
    "unicode": lambda t: "".join(f"\\u{ord(c):04x}" for c in t),
    "braces": lambda t: "".join(f"\\u{{{ord(c):x}}}" for c in t),
    "base64": lambda t: base64.b64encode(t.encode()).decode(),
    "base64 of addresses": lambda t: base64.urlsafe_b64encode(t.encode()).decode().rstrip("="),
    "hex": lambda t: t.encode().hex(),
    "base64, escaped": lambda t: quote(base64.b64encode(t.encode()).decode(), safe=""),
    "hex in base64": lambda t: base64.b64encode(t.encode().hex().encode()).decode(),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", ["1,299", "Kettle Deluxe", "Müller & Söhne", "2026-05-03"])
def test_a_text_is_found_in_any_coding(way, text):
    assert text in forms(WAYS[way](text))


@pytest.mark.parametrize("way", WAYS)
def test_a_text_is_found_within_an_address(way):
    address = f"http://site.test/wiki/{WAYS[way]('1299 USD')}?x=1"
    assert any("1299 USD" in form.replace("+", " ") for form in forms(address))


@pytest.mark.parametrize(
    "text",
    ["kettle", "Blue Kettle 1299", "https://shop.test/product/blue-kettle?page=2", "May 3"],
)
def test_a_plain_text_has_no_other_form(text):
    assert forms(text) == (text,)


@given(st.text(max_size=300))
def test_any_text_is_among_its_forms_and_they_are_few(text):
    found = forms(text)
    assert found[0] == text
    assert len(found) == len(set(found)) <= MAX_FORMS


@given(st.binary(max_size=300))
def test_any_file_has_texts(content):
    assert texts_of(content)
    assert texts_of(b"PK\x03\x04" + content)


def zipped(text, name="word/document.xml"):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)
    return buffer.getvalue()


def test_the_text_of_an_office_document_is_read_across_its_markup():
    assert any("1,299" in t for t in texts_of(zipped("<w:t>1,</w:t><w:t>299</w:t>")))


def test_an_encrypted_or_broken_zip_file_is_read_as_it_is():
    whole = zipped("x" * 1000)
    assert texts_of(whole[: len(whole) // 2])
    flagged = bytearray(whole)
    flagged[6] |= 1
    assert texts_of(bytes(flagged))
