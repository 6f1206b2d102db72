"""Which country a task belongs to, by what its text shows, with the evidence."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from browseruse_bench.factory.personas import COUNTRIES

_DOMAINS = {"uk": "GB"} | {c.lower(): c for c in COUNTRIES if c not in ("US", "GB")}
_DOMAIN = re.compile(r"\b[\w-]+\.(?:com?\.|gov\.|org\.)?([a-z]{2})\b(?!\.\w)")
_PLACES = {
    "US": "United States|USA|New York|Chicago|Los Angeles|Seattle|Boston|Houston|Denver|Atlanta|Phoenix",
    "GB": "United Kingdom|England|Scotland|London|Manchester|Leeds|Glasgow|Birmingham UK|Edinburgh|NHS",
    "CA": "Canada|Toronto|Vancouver|Montr[eé]al|Ottawa|Calgary|Ontario|Qu[eé]bec",
    "AU": "Australia|Sydney|Melbourne|Brisbane|Perth|Adelaide|NSW|Queensland",
    "IN": "India|Mumbai|Delhi|Bengaluru|Bangalore|Chennai|Hyderabad|Kolkata|Pune|IRCTC|Aadhaar",
    "DE": "Germany|Deutschland|Berlin|M[üu]nchen|Munich|Hamburg|K[öo]ln|Cologne|Frankfurt|Leipzig",
    "FR": "France|Paris|Lyon|Marseille|Toulouse|Nantes|Bordeaux|SNCF",
    "ES": "Spain|España|Madrid|Barcelona|Sevilla|Valencia|Zaragoza|\\bDNI\\b",
    "IT": "Italy|Italia|Roma|Rome|Milano?|Napoli|Torino|Bologna|codice fiscale",
    "NL": "Netherlands|Nederland|Amsterdam|Rotterdam|Utrecht|Den Haag|\\bBSN\\b",
    "PL": "Poland|Polska|Warszaw\\w|Warsaw|Krak[oó]w|Gda[nń]sk|Wroc[lł]aw|PESEL",
    "BR": "Brazil|Brasil|São Paulo|Rio de Janeiro|Curitiba|Recife|Brasília|\\bCPF\\b",
    "MX": "Mexico|México|CDMX|Guadalajara|Monterrey|Puebla|\\bCURP\\b",
    "JP": "Japan|Tokyo|Osaka|Kyoto|Hakone|Sapporo|Fukuoka|東京|大阪|京都",
    "KR": "Korea|Seoul|Busan|Incheon|서울|부산",
}  # fmt: skip
_PLACE = {c: re.compile(rf"(?<!\w)(?:{words})(?!\w)") for c, words in _PLACES.items()}
_MONEY = {
    "GB": "£|\\bGBP\\b", "CA": "\\bCAD\\b|C\\$", "AU": "\\bAUD\\b|A\\$", "IN": "₹|\\bINR\\b|\\bRs\\.? ?\\d",
    "PL": "\\bPLN\\b|zł\\b", "BR": "R\\$|\\bBRL\\b", "MX": "\\bMXN\\b|MX\\$", "JP": "¥|\\bJPY\\b|円",
    "KR": "₩|\\bKRW\\b|\\d원", "US": "US\\$|\\bUSD\\b",
}  # fmt: skip
_ADDRESS = {
    "GB": r"\b[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}\b", "CA": r"\b[A-Z]\d[A-Z] \d[A-Z]\d\b",
    "US": r"\b[A-Z]{2} \d{5}(?:-\d{4})?\b", "JP": r"〒\d{3}-\d{4}|[\u3040-\u30ff]", "KR": "[\uac00-\ud7a3]",
    "BR": r"\b\d{5}-\d{3}\b", "NL": r"\b\d{4} [A-Z]{2}\b", "PL": r"\b\d{2}-\d{3}\b [A-Z]",
    "DE": r"(?:straße|strasse|str\.) \d", "AU": r"\b(?:NSW|VIC|QLD|TAS|ACT) \d{4}\b",
    "FR": r"\b\d+ (?:bis )?(?:rue|avenue|boulevard) ", "IT": r"\b(?:Via|Viale|Piazza) [A-Z]",
}  # fmt: skip


class Evidence(NamedTuple):
    """What speaks for one country."""

    country: str
    kind: str
    weight: int


def country_of(text: str, default: str = "US") -> tuple[str, tuple[Evidence, ...]]:
    """The country that most speaks for, and what speaks for it; the default if nothing does or
    two are even.
    """
    import phonenumbers

    found: list[Evidence] = []
    for match in phonenumbers.PhoneNumberMatcher(text, None):
        region = phonenumbers.region_code_for_number(match.number)
        if region in COUNTRIES:
            found.append(Evidence(region, "phone_prefix", 4))
    for match in _DOMAIN.finditer(text.lower()):
        if match.group(1) in _DOMAINS:
            found.append(Evidence(_DOMAINS[match.group(1)], "domain", 3))
    for kind, weight, patterns in (("address", 3, _ADDRESS), ("currency", 2, _MONEY)):
        found += [Evidence(c, kind, weight) for c, p in patterns.items() if re.search(p, text)]
    found += [Evidence(c, "place", 2) for c, pattern in _PLACE.items() if pattern.search(text)]
    votes: Counter[str] = Counter()
    for evidence in found:
        votes[evidence.country] += evidence.weight
    ranked = votes.most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return default, ()
    best = ranked[0][0]
    return best, tuple(evidence for evidence in found if evidence.country == best)
