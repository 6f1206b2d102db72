import pytest
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from browseruse_bench.factory.corpus import language
from browseruse_bench.factory.corpus.texts import of_strings

ENGLISH = [
    "Nike Air Max 90 size 42 in white: find the cheapest shop",
    "iPhone 15 Pro Max price at the three biggest stores",
    "When does the bakery at 12 Rue de la République in Lyon open?",
    "404 error on checkout, tell me what the help page says about it",
    "find wan28 waschmaschine by bosch and compare the prices of two shops",
    "Navigate to https://www.google.com/",
    "CHECK THE OPENING HOURS OF THE LIBRARY IN BERGEN",
]
OTHERS = [
    "Suche bitte die günstigste Unterkunft in Graz und nenne mir den Preis",
    "Busca el hotel más barato de Quito y dime el precio con impuestos",
    "Trouve le meilleur restaurant de Lyon et donne-moi ses horaires",
    "Найди самый дешёвый билет в Ригу и напиши цену",
    "请在网站上查找最便宜的酒店并告诉我价格和地址",
]
MIXED = "Bitte finde den besten kettle und tell me ob er noch available ist, danke"


def verdicts(texts, at_least=0.8):
    found = dict(language.not_english(of_strings(texts), at_least=at_least))
    return [found[i].verdict if i in found else "english" for i in range(len(texts))]


def test_short_and_brand_heavy_english_is_english_BL071():  # noqa: N802
    assert verdicts(ENGLISH) == ["english"] * len(ENGLISH)


def test_other_languages_are_not_english():
    assert verdicts(OTHERS) == ["not_english"] * len(OTHERS)


def test_mixed_languages_are_not_taken_for_english_BL071():  # noqa: N802
    assert verdicts([MIXED])[0] != "english"


def test_the_same_text_is_judged_alike_twenty_times_and_in_any_company_BL071():  # noqa: N802
    texts = [*ENGLISH, *OTHERS, MIXED]
    alone = [verdicts([text])[0] for text in texts]
    assert all(verdicts(texts) == alone for _ in range(20))


def test_the_compiled_model_gives_what_the_library_gives():
    theirs = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    texts = [*ENGLISH, *OTHERS, MIXED, "", "!!", "Vamos a la playa", "Où est la gare ?"]
    for text, (code, probability) in zip(texts, language.detect(texts), strict=True):
        if text.strip("!"):
            assert (code, pytest.approx(probability, abs=1e-5)) == theirs.classify(text)


def test_the_threshold_decides_on_both_sides():
    text = "brown kayak quickly jumping lazily underneath wooden bridges"
    code, probability = language.detect([language.prose(text)])[0]
    assert code == "en"
    assert verdicts([text], at_least=probability - 0.01) == ["english"]
    assert verdicts([text], at_least=probability + 0.01) == ["uncertain_language"]


def test_names_addresses_and_numbers_say_nothing_of_a_language():
    assert language.prose("please open www.zalando.de and buy Adidas shoes in size 42") == (
        "please open and buy shoes in size"
    )
