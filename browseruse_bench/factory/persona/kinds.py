"""Kinds of personal data, and which of them are what."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal[
    "NAME", "EMAIL", "PHONE", "ADDRESS", "STREET", "CITY", "REGION", "ZIP", "DOB", "AGE",
    "USERNAME", "PASSWORD", "CARD", "CARD_EXP", "CARD_CVV", "CARD_LAST4", "IBAN", "BANK",
    "NATIONAL_ID", "PASSPORT", "PLATE", "VIN", "IP", "URL", "LOYALTY", "ORDER_ID", "COMPANY",
]  # fmt: skip
NUMBERS: frozenset[Kind] = frozenset(
    {"PHONE", "CARD", "CARD_CVV", "CARD_LAST4", "IBAN", "BANK", "NATIONAL_ID", "PASSPORT", "PLATE"}
)
"""Compared by their letters and digits, however these are grouped; the grouping stays."""
ACCOUNT: frozenset[Kind] = frozenset({"ORDER_ID", "LOYALTY", "USERNAME", "PASSWORD"})
"""What only the real one opens: where the work needs it, no fake can succeed."""
NEVER_PUBLIC: frozenset[Kind] = frozenset(
    {"CARD", "CARD_CVV", "CARD_EXP", "CARD_LAST4", "IBAN", "BANK", "NATIONAL_ID", "PASSPORT",
     "PASSWORD", "DOB"}
)  # fmt: skip
"""No model can say that it is anybody's business."""
SHORT_CUES: dict[Kind, re.Pattern[str]] = {
    "CARD_CVV": re.compile(r"\b(?:cvv2?|cvc2?|csc|security code)\W{0,12}(?:\w{2,3}\W)?$", re.I),
    "CARD_LAST4": re.compile(
        r"\b(?:ending|ends|last (?:four|4)(?: digits)?)\W(?:in|with|is)?\W{0,3}$", re.I
    ),
    "BANK": re.compile(r"\b(?:pin|sort code|branch)\W{0,4}(?:is)?\W{0,3}$", re.I),
}
"""What must stand before a number of four digits or fewer."""
