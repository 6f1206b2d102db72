"""What passports, number plates and bank data look like, country by country.

Forms, and check digits where a scheme has them (routing numbers, CLABE). Sources: ICAO 9303 and
the issuing states for passports and plates, the ABA, and Banco de México.
"""

from __future__ import annotations

import re
from collections.abc import Callable

PASSPORTS = {
    "US": r"[A-Z]\d{8}|\d{9}", "CA": r"[A-Z]{2}\d{6}|[A-Z]\d{6}[A-Z]{2}", "GB": r"\d{9}",
    "AU": r"[A-Z]{1,2}\d{7}", "IN": r"[A-Z]\d{7}", "DE": r"[CFGHJKLMNPRTVWXYZ\d]{9}",
    "FR": r"\d{2}[A-Z]{2}\d{5}", "ES": r"[A-Z]{3}\d{6}|[A-Z]{2}\d{7}", "IT": r"[A-Z]{2}\d{7}",
    "NL": r"[A-NP-Z]{2}[A-NP-Z\d]{6}\d", "PL": r"[A-Z]{2}\d{7}", "BR": r"[A-Z]{2}\d{6}",
    "MX": r"[A-Z]\d{8}", "JP": r"[A-Z]{2}\d{7}", "KR": r"[MSRODG](?:\d{8}|\d{3}[A-Z]\d{4})",
}  # fmt: skip
PLATES = {
    "US": r"[A-Z0-9]{2,7}|[A-Z0-9]{1,4}[ -][A-Z0-9]{1,4}", "CA": r"[A-Z]{3,4}[ -]?\d{3,4}|[A-Z]\d{2}[ -]?[A-Z]{3}",
    "GB": r"[A-Z]{2}\d{2} ?[A-Z]{3}|[A-Z]\d{1,3} ?[A-Z]{3}", "AU": r"[A-Z0-9]{2,3}[ -]?[A-Z0-9]{2,3}",
    "IN": r"[A-Z]{2}[ -]?\d{1,2}[ -]?[A-Z]{1,3}[ -]?\d{4}", "DE": r"[A-ZÄÖÜ]{1,3}[ -][A-Z]{1,2}[ -]?\d{1,4}[EH]?",
    "FR": r"[A-HJ-NP-TV-Z]{2}-?\d{3}-?[A-HJ-NP-TV-Z]{2}", "ES": r"\d{4}[ -]?[BCDFGHJ-NPR-TV-Z]{3}",
    "IT": r"[A-HJ-NPR-TV-Z]{2} ?\d{3} ?[A-HJ-NPR-TV-Z]{2}", "NL": r"[A-Z\d]{1,3}-[A-Z\d]{2,3}-[A-Z\d]{1,2}",
    "PL": r"[A-Z]{2,3} ?[A-Z\d]{4,5}", "BR": r"[A-Z]{3}[ -]?\d[A-Z\d]\d{2}",
    "MX": r"[A-Z]{3}-?\d{2}-?\d{2}|[A-Z]{3}-?\d{3}-?[A-Z]", "JP": r"\S{1,4} ?\d{2,3} ?[\u3041-\u3096] ?\d{2}-?\d{2}",
    "KR": r"\d{2,3}[\uac00-\ud7a3] ?\d{4}",
}  # fmt: skip
ACCOUNTS = {
    "US": r"\d{4,17}", "CA": r"\d{7,12}", "GB": r"\d{8}", "AU": r"\d{5,9}", "IN": r"\d{9,18}",
    "DE": r"\d{10}", "FR": r"[A-Z\d]{11}", "ES": r"\d{10}", "IT": r"[A-Z\d]{12}", "NL": r"\d{10}",
    "PL": r"\d{16}", "BR": r"\d{4,12}", "MX": r"\d{10,11}", "JP": r"\d{7}", "KR": r"\d{10,14}",
}  # fmt: skip


def plain(number: str) -> str:
    """Its letters and digits."""
    return re.sub(r"[^\w]|_", "", number)


def is_routing(number: str) -> bool:
    """Whether nine digits are a routing number of a US bank, by their check digit."""
    digits = plain(number)
    if not re.fullmatch(r"\d{9}", digits):
        return False
    return sum(int(d) * w for d, w in zip(digits, (3, 7, 1) * 3, strict=True)) % 10 == 0


def is_clabe(number: str) -> bool:
    """Whether 18 digits are a Mexican CLABE, by their check digit."""
    digits = plain(number)
    if not re.fullmatch(r"\d{18}", digits):
        return False
    weighed = (int(d) * w % 10 for d, w in zip(digits[:17], (3, 7, 1) * 6, strict=False))
    return (10 - sum(weighed) % 10) % 10 == int(digits[17])


def _form(pattern: str) -> Callable[[str], bool]:
    return lambda number: re.fullmatch(pattern, number) is not None


BANKS: dict[str, Callable[[str], bool]] = {
    "routing": is_routing,
    "clabe": is_clabe,
    "sort_code": _form(r"\d{2}[- ]?\d{2}[- ]?\d{2}"),
    "bsb": _form(r"\d{3}[- ]?\d{3}"),
}
"""Codes of banks and branches -> whether a text is one; `account` is checked by country."""


def is_of(forms: dict[str, str], country: str, number: str) -> bool:
    """Whether a number has the form of a country, with or without spaces and hyphens."""
    pattern, written = forms[country], number.strip().upper()
    return any(re.fullmatch(pattern, text) for text in (written, plain(written)))


def bank_problems(country: str, bank: dict[str, str], iban: str | None) -> list[str]:
    """What of bank data is not valid: a form, a check digit, or another account than the IBAN's."""
    problems: list[str] = []
    for scheme, value in bank.items():
        if scheme == "account":
            valid = re.fullmatch(ACCOUNTS[country], value) is not None
        else:
            valid = scheme in BANKS and BANKS[scheme](value)
        if not valid:
            problems.append(f"{value}: no {scheme} of {country}")
        if iban is not None and plain(value) not in iban:
            problems.append(f"{value}: not of the account of {iban}")
    if "account" not in bank:
        problems.append("no account")
    if "clabe" in bank and bank["account"] not in bank["clabe"]:
        problems.append(f"{bank['account']}: not of the account of {bank['clabe']}")
    return problems
