"""Is a text confidently English?

First by words: enough common English words and hardly any common ones of other languages settle
most texts. The others are asked of a model over bytes, that of py3langid with its calibrated
probabilities, applied in a compiled loop. What names a thing rather than says something is left
out before: addresses, numbers, and capitalised words inside a sentence of words in lower case;
"Nike Air Max 90" is no language.
"""

# What arrays and tables hold is said in the docstrings: pyarrow ships no types, and those of numpy
# and polars say nothing of columns.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from browseruse_bench.factory.corpus.texts import Texts, of_strings

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ADDRESS = re.compile(r"(?:https?://\S+|www\.\S+|\S+@\S+|\b[\w-]+(?:\.[\w-]+)*\.[a-z]{2,12}\b\S*)")
_WITHOUT_AT = re.compile(_ADDRESS.pattern.replace(r"|\S+@\S+", ""))
"""The same where no @ is, for which it would go through every word from each of its letters."""
_NUMBER = re.compile(r"(?<!\S)[^\s\d]*+\d\S*")
_NAME = re.compile(r"(?<=[\w,;) ])(?<![.!?:\n] )\b[A-Z][\w'-]*")
_LEAST_LETTERS = 12
_NOT_LOWER = bytes(c for c in range(128) if not 97 <= c <= 122)
_NOT_UPPER = bytes(c for c in range(128) if not 65 <= c <= 90)

# Only words that no other language of the list below writes alike, as far as that can be had.
_ENGLISH = (
    "the and for with from that this what which where when how who are is was were will would "
    "should could have has had been your you my our their them they these those there then than "
    "find search check open visit navigate click list show tell give get compare book report "
    "look locate display extract collect track read please first then after before under over "
    "between each any all most best cheapest price prices available using website page site "
    "results item items order hotel flight flights near about into its it of to on by not or if "
    "be as at can do make me need want only also more less than number name date review reviews "
    "rating summary"
)
_COMMON = frozenset(_ENGLISH.split())
_OTHERS = (
    "der das und ist nicht ein eine einen dem den mit für auf von zum zur ich bitte finde suche "
    "auch nach wie oder heute noch preis günstigsten "
    "el los las una por para con que del más encuentra busca dime precio mejor como está "
    "le les une des et pour avec dans sur trouve cherche donne plus meilleur prix "
    "il lo gli della di per che con trova cerca prezzo più migliore "
    "o os uma não com encontre procure preço melhor em "
    "het een van voor met niet op zoek goedkoopste prijs naar "
    "na do się jest znajdź najtańszy oraz cenę ve için bir bul en ucuz fiyatını"
)
_AMBIGUOUS = frozenset(
    [
        "do",
        "per",
        "on",
        "in",
        "me",
        "a",
        "an",
        "or",
        "as",
        "of",
        "to",
        "met",
        "op",
        "con",
        "die",
        "den",
    ]
)

Verdict = Literal["uncertain_language", "not_english"]


class Spoken(NamedTuple):
    """What a text that is not confidently English is written in."""

    verdict: Verdict
    language: str
    """ISO 639-1; of the model."""
    confidence: float
    """Probability that the model gives the language."""


@dataclass(frozen=True)
class _Model:
    """What `kernels.languages` takes."""

    classes: tuple[str, ...]
    arrays: tuple[NDArray[Any], ...]


@cache
def _model() -> _Model:
    import numpy as np
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    known: Any = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    return _Model(
        tuple(known.nb_classes),
        (
            np.asarray(known.tk_nextmove),
            np.asarray(known.tk_row),
            np.asarray(known.tk_output, dtype=np.int32),
            np.ascontiguousarray(known.nb_ptc, dtype=np.float32),
            np.asarray(known.nb_pc, dtype=np.float32),
        ),
    )


@cache
def _word_hashes() -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    from browseruse_bench.factory.corpus import kernels

    found: list[NDArray[Any]] = []
    for words in (set(_ENGLISH.split()), set(_OTHERS.split()) - _AMBIGUOUS):
        hashes = kernels.keys(*of_strings(sorted(words)), False)[0][1]
        found.append(np.sort(hashes))
    return found[0], found[1]


def prose(text: str) -> str:
    """The part of a text that says something; all of it where too little would be left."""
    said = _said(text)
    return said if _has_letters(said) else " ".join(text.split())


def _said(text: str) -> str:
    address = _ADDRESS if "@" in text else _WITHOUT_AT
    said = _NUMBER.sub(" ", address.sub(" ", text))
    lower, upper = _cases(said)
    if lower > upper * 4:
        said = _NAME.sub(" ", said)
    return " ".join(said.split())


def _is_plain(text: str) -> bool:
    """Whether two words or more are left of a text, and all are common English ones:
    "Navigate to https://...".
    """
    words = re.findall(r"\w+", _said(text).lower())
    return len(words) >= 2 and _COMMON.issuperset(words)


def _cases(text: str) -> tuple[int, int]:
    """Letters in lower and in upper case."""
    if text.isascii():
        plain = text.encode()
        lower, upper = (
            len(plain.translate(None, _NOT_LOWER)),
            len(plain.translate(None, _NOT_UPPER)),
        )
        return lower, upper
    return sum(map(str.islower, text)), sum(map(str.isupper, text))


def _has_letters(text: str) -> bool:
    """Whether a text has the least number of letters, or more."""
    letters = filter(str.isalpha, text)
    return next(islice(letters, _LEAST_LETTERS - 1, None), None) is not None


def detect(texts: Sequence[str]) -> list[tuple[str, float]]:
    """(ISO 639-1 code, probability) of each text, as it is: nothing is left out of it."""
    from browseruse_bench.factory.corpus import kernels

    model = _model()
    plain = [
        unicodedata.normalize("NFC", text.lower() if text.isupper() else text) for text in texts
    ]
    best, probability = kernels.languages(*of_strings(plain), *model.arrays)
    return [(model.classes[c], float(p)) for c, p in zip(best, probability, strict=True)]


def not_english(texts: Texts, *, at_least: float) -> list[tuple[int, Spoken]]:
    """(index, what it is written in) of each text that is not confidently English, in order.

    English is: three common English words or more that are a quarter of all words, or six that
    are an eighth, with at most one word of another language to eight of them; or common English
    words and nothing else beside names, numbers and addresses; or the model's English at
    `at_least`; or the model's English below that, where two common English words and none of
    another language say the same. Otherwise another language that the model is at least half
    sure of is not English, and the rest is uncertain.

    Args:
        texts: as the kernels take them.
        at_least: probability of the model from which a text is English.
    """
    from browseruse_bench.factory.corpus import kernels

    counted = kernels.word_counts(*texts, *_word_hashes())
    n, kinds, ours, others = (counted[:, i] for i in range(4))
    enough = ((kinds >= 3) & (4 * ours >= n)) | ((kinds >= 6) & (8 * ours >= n))
    settled = enough & (8 * others <= ours)
    open_ones = [int(i) for i in (~settled).nonzero()[0]]
    said = detect([prose(texts.text(i)) for i in open_ones])
    found: list[tuple[int, Spoken]] = []
    for i, (language, p) in zip(open_ones, said, strict=True):
        if language == "en" and (p >= at_least or (kinds[i] >= 2 and not others[i])):
            continue
        if kinds[i] >= 2 and _is_plain(texts.text(i)):
            continue
        sure = language != "en" and p >= 0.5
        verdict: Verdict = "not_english" if sure else "uncertain_language"
        found.append((i, Spoken(verdict, language, round(p, 3))))
    return found
