"""What personal data looks like, and which words introduce it, in the languages of the personas."""

from __future__ import annotations

import re

from browseruse_bench.factory.persona.kinds import Kind

_I = re.IGNORECASE
EMAIL = re.compile(r"[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]*[A-Za-z0-9])+")
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8}\b")
CARD = re.compile(r"(?<![\d\-])\d(?:[ \-]?\d){12,18}(?![\d\-])")
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
SHAPED: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("IP", re.compile(rf"(?<![\d.])((?:{_OCTET}\.){{3}}{_OCTET})(?![\d.])")),
    ("VIN", re.compile(r"\b((?=\w*\d)(?=\w*[A-Z])[A-HJ-NPR-Z0-9]{17})\b")),
    ("ORDER_ID", re.compile(r"\b(1Z[0-9A-Z]{15,16}|\d{3}-\d{7}-\d{7}|[A-Z]{2}\d{9}[A-Z]{2})\b")),
    ("USERNAME", re.compile(
        r"\b(?:instagram|twitter|x|tiktok|facebook|linkedin|reddit)\.com/"
        r"(?:in/|u/|user/|@)?(?!r/|company/|jobs|search)([A-Za-z0-9_.\-]{3,}[A-Za-z0-9_])", _I)),
)  # fmt: skip
_V = r"[\s:#=]*(?:is|are|no\.?|number|num|nr\.?|id)?[\s:#=]*"
CUED: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("PASSWORD", re.compile(
        rf"\b(?:password|passcode|pw|pwd|passwort|mot de passe|contraseña|senha|wachtwoord|hasło)\b{_V}"
        r"(?=\S*[\d\W])([^\s,;]{6,})", _I)),
    ("PASSWORD", re.compile(rf"\bPIN\b(?! ?code){_V}(\d{{4,8}})\b")),
    ("CARD_CVV", re.compile(rf"\b(?:cvv2?|cvc2?|security code)\b{_V}(\d{{3,4}})\b", _I)),
    ("CARD_EXP", re.compile(rf"\b(?:exp(?:iry|ires|iration)?(?: date)?)\b{_V}(\d{{2}} ?/ ?\d{{2,4}})\b", _I)),
    ("CARD_LAST4", re.compile(r"\bcard (?:ending|ends)(?: in| with)? \W*(\d{4})\b", _I)),
    ("USERNAME", re.compile(
        rf"\b(?:user ?name|user|login|handle|userid)\b{_V}"
        r"((?=[\w.\-]*[\d_.])[A-Za-z][\w.\-]{3,}\w)", _I)),
    ("LOYALTY", re.compile(
        r"\b(?:mileageplus|skymiles|bonvoy|flybuys|rapid ?rewards|a?avantage|aadvantage|loyalty|"
        rf"frequent flyer|membership|member|rewards?)\b(?: account| card| number)*{_V}"
        r"((?=[A-Z0-9]*\d)[A-Z0-9]{6,17})\b", _I)),
    ("ORDER_ID", re.compile(
        r"\b(?:[Cc]onfirmation|[Bb]ooking|[Rr]eservation|[Oo]rder|[Tt]racking|[Pp]ackage|[Pp]arcel|"
        r"PNR|[Cc]ontract|[Cc]laim|[Aa]ccount|[Pp]olicy|[Ii]nvoice|[Cc]ase|[Tt]icket)"
        rf"(?: (?:code|number|no\.?|ref(?:erence)?|id))*\b{_V}((?=[A-Z\-]*\d)[A-Z0-9][A-Z0-9\-]{{4,24}})\b")),
    ("ORDER_ID", re.compile(r"(?<![\d\-])(\d{4}-\d{4}-\d{4})(?![\d\-])")),
    ("BANK", re.compile(rf"\b(?:routing|sort code|aba|bsb|account)\b{_V}(\d[\d\- ]{{4,17}}\d)\b", _I)),
    ("PASSPORT", re.compile(rf"\bpassport\b{_V}((?=[A-Z]*\d)[A-Z0-9]{{7,9}})\b", _I)),
    ("NATIONAL_ID", re.compile(
        r"\b(?:driver'?s?'? licen[sc]e|licen[sc]e number|DL|national insurance(?: number)?|NINO)\b"
        rf"{_V}((?=[A-Z]*\d)[A-Z0-9]{{6,13}})\b", _I)),
    ("PLATE", re.compile(
        rf"\b(?:plate|reg|registration|matr[ií]cula|kennzeichen|targa|placa)\b{_V}"
        r"((?-i:(?=[A-Z ]*\d)(?=[\d ]*[A-Z])[A-Z0-9]{2,5}[ \-]?[A-Z0-9]{2,4}(?: [A-Z]{2,3})?))\b", _I)),
    ("ZIP", re.compile(
        r"\b(?:zip(?: code)?|postal code|post ?code|postcode|plz|cap|cep)\b" + _V +
        r"(\d{5}(?:-\d{4})?|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d|\d{4} ?[A-Z]{2})\b", _I)),
    ("DOB", re.compile(
        r"\b(?:dob|date of birth|birth ?date|born(?: on)?|birthday|née? le|geboren(?: am)?|nacid[oa] el|"
        r"nat[oa] il|geboortedatum|ur\.)\b[\s:,is]*"
        r"(\d{4}-\d{2}-\d{2}|\d{1,2}[/.\-]\d{1,2}[/.\-]\d{2,4}|\d{1,2}(?:st|nd|rd|th)? [a-zéûä]{3,9}\.? \d{4}|"
        r"[A-Z][a-z]{2,8}\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4})", _I)),
)  # fmt: skip
_ST = (
    r"(?:St(?:reet)?|Ave(?:nue)?|R(?:oa)?d|Lane|Ln|Dr(?:ive)?|Blvd|Boulevard|C(?:our)?t|Close|"
    r"Terrace|Ter|Way|Pl(?:ace)?|Sq(?:uare)?|Cres(?:cent)?|Pkwy|Hwy|Cir(?:cle)?|Mews|Gardens)\b\.?"
)
ADDRESSES = (
    re.compile(
        r"\b\d{1,6}(?:/\d{1,5})?[A-Za-z]?\s+(?:[NSEW]\.?\s+)?(?:[A-Z][\w'’.\-]*\s+){1,4}" + _ST +
        r"(?:,?\s*(?:Apt|Suite|Ste|Unit|#|Flat)\.?\s*\w+)?(?:,?\s*[A-Z][a-z'’.\-]{1,20}(?: [A-Z][a-z'’.\-]{1,20})?)?"
        r"(?:,?\s*[A-Z]{2,3}\b)?"
        r"(?:,?\s*(?:\d{5}(?:-\d{4})?|\d{4}|[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d)\b)?"
    ),
    re.compile(r"\bP\.?\s?O\.?\s?Box\s+\d+(?:,\s*[A-Z][\w .\-]+,\s*[A-Z]{2}\s+\d{5})?", _I),
    re.compile(
        r"\b[A-ZÄÖÜ][\wäöüß\-]*(?:straße|strasse|str\.|allee|weg|platz|gasse|damm|ufer|gracht|straat|laan)"
        r"\s+\d+\s?[a-z]?\b(?:,\s*(?:\d{5}|\d{4} ?[A-Z]{2})\s+[A-ZÄÖÜ][\wäöüß\-]+)?"
    ),
    re.compile(
        r"\b\d{1,4}(?:\s?(?:bis|ter))?,?\s+(?:rue|avenue|boulevard|bd|place|impasse|chemin|quai|all[ée]e)"
        r"\s+[\w'’\- ]+?,\s*\d{5}\s+[A-ZÉ][\w\-]+", _I,
    ),
    re.compile(
        r"\b(?:Rua|Avenida|Av\.|Calle|C/|Via|Viale|Piazza|Paseo|ul\.)\s+[A-ZÀ-Ý][\wà-ÿ' ]+,?\s*\d+"
        r"(?:[^.;\n]{0,50}?(?:\d{5}-\d{3}|\d{2}-\d{3}|\d{5})(?: [A-ZÀ-Ýa-z][\wà-ÿ]+)?)?"
    ),
    re.compile(r"〒?\d{3}-\d{4}\s*[^\s,。、]*?[都道府県][^\s,。、]*?\d(?:[\d\-]*\d)?"),
    re.compile(r"\b(?:Flat|House|H\.?\s?No\.?|Plot)\s*\d+\w?,[^.;]*?\b\d{6}\b", _I),
)  # fmt: skip
_ANY = {
    "ssn": r"\bssn\b|social security", "sin": r"\bsin\b|social insurance", "nhs": r"\bnhs\b",
    "nino": r"national insurance|\bnino?\b", "tfn": r"\btfn\b|tax file", "aadhaar": r"aadhaar",
    "pan": r"\bpan\b", "idnr": r"steuer|\bidnr|tax id", "nir": r"sécurité sociale|\bnir\b|\bnss\b",
    "dni": r"\bdni\b|\bnif\b", "nie": r"\bnie\b", "codicefiscale": r"codice fiscale",
    "bsn": r"\bbsn\b|burgerservice", "pesel": r"pesel", "cpf": r"\bcpf\b", "curp": r"\bcurp\b",
    "mynumber": r"マイナンバー|my number|個人番号", "rrn": r"주민등록|\brrn\b|resident registration",
}  # fmt: skip
ID_CUES = {scheme: re.compile(cue, _I) for scheme, cue in _ANY.items()}
PHONE_CUE = re.compile(
    r"(?:tel(?:efono|éfono|efon)?|phone|mobile|móvil|cell|call|text|ring|t[ée]l|number|celular|handy|"
    r"電話|전화번호|fone|whatsapp)\W{0,4}(?:is|at|me at|her at|him at)?\W{0,3}$", _I,
)  # fmt: skip
NO_PHONE = re.compile(
    r"(?:isbn|upc|ean|doi|sku|model|part(?: number)?|item|order|convert|iban|account|routing|"
    r"price|passport|member|nhs number|ssn|card)\W{0,3}(?:the |number |no\.? )?$", _I,
)  # fmt: skip
LIKE_A_DATE = re.compile(r"\d{4}[-–]\d{4}|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}")
GROUPED = re.compile(r"[ .()\-]|^\+")
TRUNK = re.compile(r"0\d{2,4} \d")
_N = r"[A-ZÀ-ÝŁŚŻ][\w'’.\-]*"
_NAME = rf"({_N}(?:\s+(?:van|der|den|de|da|di|del|la|von|bin|al)\b)*(?:\s+{_N}){{0,3}})"
_AGAIN = r"(?=\s*[,(]\s*(?:DOB|born|née?|driver|NHS|IBAN|carte|DNI|codice|titular|contact|mobile|phone|tel|t[ée]l|cell|e-?mail|courriel|correo|CPF|CURP|BSN|PESEL|wohnhaft|geboren|\d))"
NAMES = (
    re.compile(
        r"\b(?:[Mm]y name is|[Nn]ame(?: is|:)|with name|[Uu]nder(?: the name| mom's name,)?|[Tt]his is|"
        r"[Pp]atient|[Cc]laimant|[Tt]ravell?er is|[Rr]ecipient|[Tt]itular|[Dd]river|[Mm]y (?:wife|husband|"
        r"son|daughter|friend|boss|sister|brother|mom|dad|mother|father)|Dr\.|Mr\.?|Mrs\.?|Ms\.?|Mme|Frau|"
        rf"Herr|Sra?\.|[Ss]earch LinkedIn for)\s*:?\s+{_NAME}"
    ),
    re.compile(rf"\b(?:[Ff]or|pour|para|per|voor|an|to|de|dla|using:)\s+{_NAME}{_AGAIN}"),
)
NO_NAMES = frozenset({"the", "a", "an", "my", "your", "me", "martens", "monday", "friday"})
PARTICLES = frozenset({"van", "der", "von", "den", "del", "bin"})
