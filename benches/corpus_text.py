"""A corpus with known truth: what is the same task, what must be dropped, and why.

Texts are made from templates and a vocabulary of this file, by a seed. A task is a row of pieces,
some of which are slots (a name, a city, a product, a number, a date); a submission is a task that
one mutation went over: none, white space, case, other numbers and dates, an affix, typos, added
context, synonyms. Tasks repeat by Zipf's law, half of them hardly ever. One row in 15 is flagged:
local address, local file, another language, too short, or text of a public benchmark.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

VERBS = [
    "find",
    "locate",
    "compare",
    "check",
    "track",
    "review",
    "collect",
    "summarise",
    "look",
    "up",
    "note",
    "down",
    "verify",
]
ADJECTIVES = [
    "cheapest",
    "newest",
    "quietest",
    "lightest",
    "sturdiest",
    "greenest",
    "roomiest",
    "smallest",
    "best-rated",
    "most-reviewed",
    "second-hand",
    "organic",
    "waterproof",
    "foldable",
    "wireless",
    "handmade",
    "vintage",
    "beginner-friendly",
    "discounted",
]
NOUNS = [
    "kettle",
    "trail shoes",
    "desk lamp",
    "kayak",
    "violin",
    "sewing machine",
    "road bike",
    "tent",
    "camera lens",
    "bookshelf",
    "rain jacket",
    "garden hose",
    "chess set",
    "telescope",
    "guitar amp",
    "cutting board",
    "air purifier",
    "hammock",
    "water filter",
    "drawing tablet",
    "label printer",
    "snowboard",
    "ukulele",
    "toolbox",
    "wall clock",
    "pressure cooker",
    "baby monitor",
    "bird feeder",
    "yoga block",
    "espresso grinder",
    "travel pillow",
    "phone stand",
    "record player",
]
CITIES = [
    "Lisbon",
    "Porto",
    "Seville",
    "Lyon",
    "Ghent",
    "Bergen",
    "Turku",
    "Tartu",
    "Riga",
    "Gdansk",
    "Brno",
    "Graz",
    "Zagreb",
    "Split",
    "Sofia",
    "Izmir",
    "Haifa",
    "Accra",
    "Dakar",
    "Perth",
    "Hobart",
    "Napier",
    "Quito",
    "Cusco",
    "Rosario",
    "Leon",
    "Tucson",
    "Boise",
    "Omaha",
    "Halifax",
]
FIRST = [
    "Ada",
    "Bram",
    "Chloe",
    "Dario",
    "Edda",
    "Farid",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Kira",
    "Leon",
    "Mira",
    "Nils",
    "Oona",
    "Pavel",
    "Rosa",
    "Sven",
    "Tara",
    "Uma",
    "Viktor",
    "Wanda",
    "Xenia",
    "Yara",
    "Zeno",
]
LAST = [
    "Abbott",
    "Bakker",
    "Castel",
    "Dorn",
    "Ekberg",
    "Fontana",
    "Grieg",
    "Holm",
    "Ibsen",
    "Jansen",
    "Keller",
    "Lund",
    "Marek",
    "Novak",
    "Olsen",
    "Pires",
    "Quist",
    "Rossi",
    "Strand",
    "Toth",
    "Ullman",
    "Visser",
    "Weiss",
    "Zeman",
]
FIELDS = [
    "price",
    "delivery time",
    "seller",
    "rating",
    "number of reviews",
    "warranty",
    "return policy",
    "opening hours",
    "street address",
    "phone number",
    "author",
    "publication year",
    "star rating",
    "deposit",
    "capacity",
    "weight",
    "colour options",
    "stock level",
    "ingredients",
    "battery life",
    "energy label",
    "cancellation terms",
    "languages",
    "duration",
]
EXTRAS = [
    "Answer in two sentences.",
    "Give the answer as a table.",
    "Do not sign in anywhere.",
    "Skip adverts.",
    "Stop at the first match.",
    "Dismiss cookie banners before you start.",
    "Say so if nothing fits.",
    "Use the official website only.",
    "Cite the page for each figure.",
    "Round prices to whole euros.",
    "Prefer results from this year.",
    "Sort by customer rating first.",
    "Ignore bundles and accessories.",
]
TOPICS = [
    "ferry",
    "timetable",
    "museum",
    "exhibition",
    "library",
    "catalogue",
    "city",
    "council",
    "recipe",
    "collection",
    "weather",
    "archive",
    "train",
    "strike",
    "notice",
    "hiking",
    "route",
    "concert",
    "programme",
    "property",
    "listing",
    "scholarship",
    "deadline",
    "grant",
    "register",
    "language",
    "course",
    "volunteer",
    "shift",
    "festival",
    "line-up",
    "tide",
    "table",
    "ski",
    "pass",
]
FILLER = [
    "page",
    "section",
    "table",
    "entry",
    "list",
    "form",
    "menu",
    "panel",
    "filter",
    "result",
    "header",
    "footer",
    "column",
    "chart",
    "map",
    "calendar",
    "ticket",
    "booking",
    "account",
    "basket",
    "voucher",
    "invoice",
    "receipt",
    "address",
    "review",
    "question",
    "answer",
    "article",
    "chapter",
    "report",
    "summary",
    "figure",
    "photo",
    "video",
    "comment",
    "profile",
    "forum",
    "thread",
    "category",
    "option",
    "setting",
    "button",
    "link",
    "search",
    "field",
    "date",
    "time",
    "price",
    "rating",
    "stock",
    "size",
    "colour",
    "brand",
    "model",
    "version",
    "team",
    "player",
    "match",
    "score",
    "season",
    "route",
    "stop",
    "station",
    "airport",
    "gate",
    "seat",
    "room",
    "floor",
    "garden",
    "view",
    "with",
    "from",
    "under",
    "over",
    "near",
    "after",
    "before",
    "between",
    "during",
    "without",
    "inside",
    "about",
    "against",
    "the",
    "a",
    "each",
    "every",
    "any",
    "which",
    "whose",
    "that",
    "this",
    "first",
    "last",
    "next",
    "open",
    "closed",
    "current",
    "recent",
    "local",
    "regional",
]
TEMPLATES = (
    "Go to {site} and {verb} the {adj} {noun} below {num} euros, then report its {f1} and {f2}. {e1}",
    "On {site}, {verb} {noun} offers in {city} and list the first {num} with {f1}, {f2} and {f3}. {e1}",
    "{verb} a {adj} place to stay in {city} from {date} to {date2} on {site}; I need the {f1} and {f2}. {e1}",
    "For {name}, check on {site} whether the {noun} ordered on {date} has shipped, and what its {f1} is. {e1}",
    "Compare the {adj} {noun} with the {adj2} one on {site} by {f1}, {f2} and {f3}. {e1} {e2}",
    "Which {topic} pages on {site} mention {city}? Collect the {f1} and the {f2} of each. {e1}",
    "Plan {num} days in {city} starting {date} with {site}: {adj} stays first, with their {f1}. {e1} {e2}",
    "Open {site}, search for {topic}, and tell me the {f1}, the {f2} and who published it. {e1}",
    "I want to know the {f1} of the {adj} {noun} at {site}, and whether the {f2} changed since {date}. {e1}",
)
SYLLABLES = [
    "ka",
    "lo",
    "mi",
    "ru",
    "ne",
    "so",
    "ta",
    "vi",
    "pe",
    "do",
    "zu",
    "fa",
    "li",
    "mo",
    "qui",
    "bra",
    "sten",
    "lor",
    "vek",
    "nim",
    "tas",
    "gol",
    "hep",
]
SYNONYMS = {
    "find": "locate",
    "check": "verify",
    "list": "enumerate",
    "report": "return",
    "tell me": "let me know",
    "collect": "gather",
    "search for": "look for",
    "go to": "head to",
    "open": "visit",
    "compare": "contrast",
}
AFFIXES = ("Please ", "Hi! ", "Could you please ", "Task: ", "I would like you to ")
TAILS = (" Thanks!", " thank you", " ASAP", " Be brief.", " please")
CONTEXT = (
    " The last attempt timed out, so wait for the page to load.",
    " I am comparing a few options for a friend and need this today.",
    " You are already on the website, so there is no need to search for it.",
)
MUTATIONS = ("exact", "space", "case", "swap", "affix", "typo", "context", "synonym")
WEIGHTS = (50, 7, 5, 21, 6, 4, 3, 4)
FLAGS = ("local_address", "local_file", "not_english", "too_short", "benchmark")
FLAG_SHARE = (0.010, 0.018, 0.048, 0.058, 0.066)
ADDRESSES = (
    "http://localhost:4000/{w}",
    "http://127.0.0.1:9090/",
    "http://192.168.{n}.17/",
    "http://10.{n}.0.8/setup",
    "http://0x7f000001/",
    "http://2130706433/{w}",
    "http://[::1]:7000/",
    "https://wiki.corp.internal/{w}",
    "http://intranet/{w}",
    "https://nas.local/{w}",
)
FILES = (
    "file:///home/{w}/notes.html",
    "C:\\Users\\{w}\\Desktop\\list.xlsx",
    "~/Documents/{w}.csv",
    "/Users/{w}/Downloads/plan.pdf",
    "/tmp/{w}.json",
    "\\\\files\\team\\{w}.docx",
)
FOREIGN = (
    "Suche bitte die günstigste Unterkunft in {city} ab dem {date} und nenne mir den Preis und die Lage",
    "Busca por favor el hotel más barato de {city} para el {date} y dime el precio con impuestos",
    "Trouve le meilleur restaurant de {city} pour le {date} et donne-moi ses horaires et son adresse",
    "Trova il treno più comodo per {city} il {date} e scrivimi il prezzo del biglietto e la durata",
    "Zoek de goedkoopste vlucht naar {city} op {date} en stuur mij de prijs en de vertrektijd",
    "Procure o apartamento mais barato em {city} para {date} e diga o preço e a distância do centro",
    "Найди самый дешёвый билет в город {city} на {date} и напиши цену и время отправления",
    "{city}で{date}に泊まれる一番安い宿を探して、料金と住所を教えてください",
)
_SLOT = re.compile(r"\{(\w+)\}")
_SYNONYM = re.compile(r"\b(" + "|".join(SYNONYMS) + r")\b", re.IGNORECASE)
_FILLED = {"num", "date", "date2", "city", "name"}


@dataclass(frozen=True)
class Made:
    """A submission with what is true of it."""

    text: str
    cluster: int
    """Which task it is; below 0 for flagged rows, which are nobody's."""
    flag: str
    """`ok`, or why it must be dropped."""


def date(r: random.Random) -> str:
    """A day in one of several notations."""
    year, month, day = r.randint(2024, 2027), r.randint(1, 12), r.randint(1, 28)
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    return r.choice(
        (f"{year}-{month:02}-{day:02}", f"{day} {names[month - 1]} {year}", f"{day}.{month}.{year}")
    )


def filling(slot: str, r: random.Random) -> str:
    """What stands in a slot that tells no tasks apart."""
    if slot.startswith("date"):
        return date(r)
    if slot == "num":
        return str(r.choice((r.randint(3, 90), r.randint(100, 9000))))
    if slot == "city":
        return r.choice(CITIES)
    return f"{r.choice(FIRST)} {r.choice(LAST)}"


def _site(r: random.Random) -> str:
    name = "".join(r.choice(SYLLABLES) for _ in range(r.randint(2, 4)))
    return name + r.choice((".com", ".org", ".net", ".io", ".co.uk"))


@dataclass(frozen=True)
class Task:
    """Pieces of a task; a piece in `slots` is refilled by the mutation `swap`."""

    pieces: tuple[str, ...]
    slots: dict[int, str]


@functools.lru_cache(maxsize=400_000)
def task(seed: int) -> Task:
    """The task of a seed: a filled template, or a longer text of random words."""
    r = random.Random(seed)
    if r.random() < 0.4:
        return _of_template(r)
    return _of_words(r)


def _of_template(r: random.Random) -> Task:
    fields, adjectives, extras = r.sample(FIELDS, 3), r.sample(ADJECTIVES, 2), r.sample(EXTRAS, 2)
    fixed = {
        "site": _site(r),
        "verb": r.choice(VERBS),
        "adj": adjectives[0],
        "adj2": adjectives[1],
        "noun": r.choice(NOUNS),
        "topic": r.choice(TOPICS),
        "f1": fields[0],
        "f2": fields[1],
        "f3": fields[2],
        "e1": extras[0] if r.random() < 0.6 else "",
        "e2": extras[1] if r.random() < 0.6 else "",
    }
    pieces: list[str] = []
    slots: dict[int, str] = {}
    for i, part in enumerate(_SLOT.split(r.choice(TEMPLATES))):
        if i % 2 and part in _FILLED:
            slots[len(pieces)] = part
            pieces.append(filling(part, r))
        else:
            pieces.append(fixed[part] if i % 2 else part)
    return Task(tuple(pieces), slots)


def _of_words(r: random.Random) -> Task:
    n = int(min(15_000, max(40, r.lognormvariate(5.1, 0.8))))
    pieces = [f"On {_site(r)} {r.choice(VERBS)} the {r.choice(TOPICS)} "]
    slots: dict[int, str] = {}
    length = len(pieces[0])
    while length < n:
        words = " ".join(r.choice(FILLER) for _ in range(10)) + " "
        pieces.append(words)
        slots[len(pieces)] = slot = r.choice(("num", "date", "city", "name"))
        pieces.append(filling(slot, r))
        pieces.append(" ")
        length += len(words) + 8
    return Task(tuple(pieces), slots)


def rendered(made: Task, mutation: str, r: random.Random) -> str:
    """A submission of a task."""
    pieces = list(made.pieces)
    if mutation == "swap" and made.slots:
        chosen = r.sample(sorted(made.slots), max(1, len(made.slots) * r.choice((1, 2)) // 2))
        for place in chosen:
            pieces[place] = filling(made.slots[place], r)
    text = "".join(pieces).strip()
    if mutation == "space":
        return r.choice((f"  {text}\n", text.replace(" ", "  ", 4), text.replace(". ", ".\n")))
    if mutation == "case":
        return r.choice((text.lower(), text.upper()))
    if mutation == "affix":
        return r.choice(AFFIXES) + text if r.random() < 0.6 else text + r.choice(TAILS)
    if mutation == "typo":
        return _mistyped(text, r)
    if mutation == "context":
        return text + r.choice(CONTEXT)
    if mutation == "synonym":
        return _SYNONYM.sub(lambda match: SYNONYMS[match[1].lower()], text)
    return text


def _mistyped(text: str, r: random.Random) -> str:
    letters = list(text)
    for _ in range(min(5, 1 + len(letters) // 300)):
        i = r.randrange(1, len(letters) - 1)
        if r.random() < 0.5:
            letters[i], letters[i - 1] = letters[i - 1], letters[i]
        else:
            letters[i] = r.choice("abcdefghijklmnopqrstuvwxyz")
    return "".join(letters)


@functools.lru_cache
def benchmark_texts(n: int = 1500) -> list[str]:
    """Tasks that a public benchmark would hold; no seed of a corpus makes one of them."""
    return ["".join(task(-1 - i).pieces).strip() for i in range(n)]


def flagged(flag: str, seed: int, benchmark: list[str]) -> str:
    """A submission that must be dropped."""
    r = random.Random(seed)
    if flag == "too_short":
        return r.choice(("hi", "test", "go on", "open mail", "click it")) + f" {r.randint(0, 999)}"
    if flag == "not_english":
        return _SLOT.sub(lambda match: filling(match[1], r), r.choice(FOREIGN))
    own = "".join(task(seed).pieces).strip()
    if flag == "benchmark":
        text = r.choice(benchmark)
        return r.choice(
            (text, text.lower(), r.choice(AFFIXES) + text, f"{own[:80]} {text} {own[80:160]}")
        )
    what = r.choice(ADDRESSES if flag == "local_address" else FILES)
    what = what.format(w=r.choice(FIRST).lower(), n=r.randint(0, 255))
    return f"{own[: len(own) // 2]} {what} {own[len(own) // 2 :]}"


def corpus(n: int, *, seed: int, ratio: float = 30) -> Iterator[Made]:
    """`n` submissions of about `n / ratio` tasks."""
    return rows(0, n, n=n, seed=seed, ratio=ratio)


def rows(start: int, stop: int, *, n: int, seed: int, ratio: float = 30) -> Iterator[Made]:
    """Rows `start` to `stop` of a corpus of `n`: each block of rows has chance of its own."""
    n_tasks = max(10, int(n / ratio))
    weights = (k**-0.95 * (0.05 if 2 * k > n_tasks else 1) for k in range(1, n_tasks + 1))
    reach = list(itertools.accumulate(weights))
    benchmark = benchmark_texts()
    r = random.Random(f"{seed}/{start}")
    for i in range(start, stop):
        chance = r.random()
        if chance < FLAG_SHARE[-1]:
            flag = FLAGS[bisect.bisect(FLAG_SHARE, chance)]
            yield Made(flagged(flag, seed * 10**10 + 5 * 10**9 + i, benchmark), -1 - i, flag)
            continue
        which = min(n_tasks - 1, bisect.bisect(reach, r.random() * reach[-1]))
        mutation = r.choices(MUTATIONS, WEIGHTS)[0]
        made = task(seed * 10**10 + which)
        yield Made(rendered(made, mutation, r), which, "ok")


def write(path: Path, start: int, stop: int, *, n: int, seed: int, ratio: float = 30) -> None:
    """Rows of a corpus as one Parquet file; truth in columns that the filter does not read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = list(rows(start, stop, n=n, seed=seed, ratio=ratio))
    first = 1_700_000_000
    table = pa.table(
        {
            "text": [m.text for m in made],
            "time": pa.array([first + 7 * i for i in range(start, stop)], pa.int64()),
            "data_use": ["research"] * len(made),
            "cluster": pa.array([m.cluster for m in made], pa.int64()),
            "flag": [m.flag for m in made],
        }
    )
    temporary = path.with_suffix(".tmp")
    pq.write_table(table, temporary, compression="zstd", row_group_size=100_000)
    temporary.rename(path)
