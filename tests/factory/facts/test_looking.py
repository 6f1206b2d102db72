"""What a page says about a fact: only an answer without the quote is rot."""

import pytest

from browseruse_bench.factory.facts.looking import Seen, addresses, judge
from browseruse_bench.records.fact_check import ROTTED
from browseruse_bench.records.rubric import Fact
from tests.store.archive.made_archive import page_of

URL = "http://shop.test/kettle"
PRESENT = Fact(id="F1", claim="It costs 31.90.", quote="Kettle, 31.90", url=URL)
ABSENT = Fact(
    id="F2", claim="No steel.", kind="absent", values=("steel",), pages_searched=(URL, URL + "/2")
)
LONG = "More about this kettle and others.\n" * 200


def seen(text, url=URL, **changes):
    return Seen(url=url, page=page_of(text, url=url, **changes)[0], text=text)


def judged(fact, *pages, before=None, was_shown=True):
    by_url = {page.url: page for page in pages}
    at = "2026-12-01T10:00:00Z"
    return judge("kettle", fact, by_url, at=at, before=before, was_shown=was_shown)


@pytest.mark.parametrize(
    ("page", "outcome"),
    [
        (seen("Kettle, 31.90"), "confirmed"),
        (seen("Kettle, 32.90"), "changed"),
        (seen("Kettle, 31.90", status=None), "confirmed"),
        (seen("nothing here", status=404), "gone"),
        (seen("nothing here", status=410), "gone"),
        (seen("Kettle, 32.90", status=500), "unreachable"),
        (seen("Kettle, 31.90", status=503), "unreachable"),
        (seen("No.", status=403), "blocked"),
        (seen("Slow down.", status=429), "blocked"),
        (seen("Please verify you are human to go on"), "blocked"),
        (seen("Just a moment..."), "blocked"),
        (seen("Who are you?", status=401), "login"),
        (seen("E-mail\nPassword", asks_login=True), "login"),
        (seen("E-mail", final_url="http://shop.test/login?next=%2Fkettle"), "login"),
        (seen("E-mail\nPassword", final_url="http://id.test/", asks_login=True), "login"),
        (seen(LONG + "Kettle, 32.90", asks_login=True), "changed"),
        (seen("Kettle, 31.90", asks_login=True), "confirmed"),
        (seen("  \n"), "unfinished"),
        (seen("Kettle, loading", settled=False), "unfinished"),
        (seen("Kettle, 31.90", settled=False), "confirmed"),
        (seen(LONG + "Are you a human? Just a moment..."), "changed"),
        (Seen(url=URL, page=None, why="net::ERR_NAME_NOT_RESOLVED"), "unreachable"),
    ],
)
def test_a_present_fact(page, outcome):
    check = judged(PRESENT, page)
    assert check.outcome == outcome
    assert (check.outcome in ROTTED) == (outcome in ("changed", "gone"))
    assert check.pages == (() if page.page is None else (page.page.key,))
    assert check.reason or outcome == "confirmed"


def test_what_opening_the_page_never_showed_is_not_gone():
    """A value that stands behind a click, say."""
    page = seen("Kettle, 32.90")
    assert [judged(PRESENT, page, was_shown=b).outcome for b in (True, False)] == [
        "changed",
        "unseen",
    ]
    for one, outcome in ((seen("Kettle, 31.90"), "confirmed"), (seen("no", status=404), "gone")):
        assert judged(PRESENT, one, was_shown=False).outcome == outcome
    steel = [seen("tin"), seen("all of steel", url=URL + "/2")]
    assert judged(ABSENT, *steel, was_shown=False).outcome == "changed"


def test_a_changed_fact_tells_both_quotes():
    check = judged(PRESENT, seen("Our kettle\nKettle, 32.90"), before="Our kettle\nKettle, 31.90")
    assert (check.quote, check.found) == ("Kettle, 31.90", "Kettle, 32.90")


@pytest.mark.parametrize(
    ("pages", "outcome"),
    [
        ((seen("tin"), seen("brass", url=URL + "/2")), "confirmed"),
        ((seen("tin"), seen("all of steel", url=URL + "/2")), "changed"),
        ((seen("login", status=401), seen("all of steel", url=URL + "/2")), "changed"),
        ((seen("tin"), seen("brass", url=URL + "/2", status=500)), "unreachable"),
        ((seen("tin"), seen("brass", url=URL + "/2", status=404)), "unreachable"),
        ((seen("tin"), seen("brass", url=URL + "/2", settled=False)), "unfinished"),
    ],
)
def test_an_absent_fact_is_falsified_by_one_page_and_needs_all_to_stand(pages, outcome):
    check = judged(ABSENT, *pages)
    assert check.outcome == outcome
    assert len(check.pages) == 2


def test_a_fact_with_nothing_to_look_for_is_never_settled():
    bare = Fact(id="F3", claim="It is nice.", url=URL)
    assert judged(bare, seen("Kettle")).outcome == "unquoted"
    nowhere = Fact(id="F4", claim="It costs 31.90.", quote="31.90")
    assert (addresses(nowhere), judged(nowhere).outcome) == ((), "unquoted")


def test_without_a_quote_every_value_is_wanted():
    fact = Fact(id="F5", claim="3 in stock at 31.90.", values=(3, 31.9), url=URL)
    assert judged(fact, seen("3 left, 31.9 each")).outcome == "confirmed"
    assert judged(fact, seen("4 left, 31.9 each")).outcome == "changed"
