from datetime import date

import pytest

from browseruse_bench.factory.persona.observations import observations

TODAY = date(2026, 6, 1)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a flight on 30 July 2025", ["past_date"]),
        ("a flight on May 31st, 2026", ["past_date"]),
        ("a flight on 2026-05-31", ["past_date"]),
        ("a flight on 2026-06-01", []),
        ("a flight on June 2, 2026", []),
        ("on 31 February 2020", []),
        ("Version May 20 2020x", []),
        ("Check my Google Calendar", ["account"]),
        ("Log in and open my last orders", ["account", "account"]),
        ("How do I open an account at a bank?", []),
        ("Find the calendar of the Louvre", []),
    ],
)
def test_accounts_and_past_dates_are_seen(text, kinds):
    assert [seen.kind for seen in observations(text, TODAY)] == kinds
