import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.factory.facts.quoting import excerpt, instead, shows


@pytest.mark.parametrize(
    ("text", "quote", "shown"),
    [
        ("Warranty\t3 years", "Warranty 3 years", True),
        ("WARRANTY\n3  years", "warranty 3 years", True),
        ("price: €18.90", "€18.90", True),
        ("price: $18.90", "€18.90", False),
        ("14.50", "14.5", False),
        ("114.5", "14.5", False),
        ("14.5.", "14.5", True),
        ("14,500", "14", False),
        ("It costs 14, and more", "14", True),
        ("1.14", "14", False),
        ("catalogue", "cat", False),
        ("the “Orbit” speaker", 'the "Orbit" speaker', True),
        ("10\u2013 20 °C", "10- 20 °C", True),
        ("在庫 3", "在庫 3", True),
        ("anything", "  ", False),
        ("", "x", False),
    ],
)
def test_a_quote_is_whole_words_numbers_and_signs(text, quote, shown):
    assert shows(text, quote) is shown


@given(st.text(max_size=30), st.text(max_size=30), st.text("abc 12.€$", min_size=1, max_size=12))
def test_a_quote_of_its_own_line_is_always_found(before, after, quote):
    if quote.strip():
        assert shows(f"{before}\n|\n{quote}\n|\n{after}", quote)


OLD = "Kettle\nPrice\n€57.50\nStock\n8\nWarranty 3 years"


@pytest.mark.parametrize(
    ("now", "quote", "found"),
    [
        ("Kettle\nPrice\n€61.00\nStock\n8\nWarranty 3 years", "€57.50", "€61.00"),
        (
            "Kettle\nPrice\n€57.50\nStock\n8\nWarranty 2 years",
            "Warranty 3 years",
            "Warranty 2 years",
        ),
        ("Kettle\nPrice\n€57.50\nStock\n11\nWarranty 3 years", "8", "11"),
        ("", "€57.50", None),
    ],
)
def test_what_stands_there_instead_is_found_by_its_place(now, quote, found):
    assert instead(now, quote, OLD) == found


def test_what_stands_there_instead_is_found_by_its_likeness_where_the_old_page_is_lost():
    assert instead("Kettle\nWarranty 2 years\nDelivery", "Warranty 3 years") == "Warranty 2 years"
    assert instead("something else entirely", "31.90") is None


def test_an_excerpt_is_the_line():
    assert excerpt(OLD, "3 years") == "Warranty 3 years"
    assert excerpt(OLD, "Stock 8") == "Stock 8"
    assert excerpt(OLD, "9") is None
