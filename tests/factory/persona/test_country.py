import pytest

from browseruse_bench.factory.persona.country import country_of

TEXTS = [
    ("US", "Ship it to 4812 Larkspur Lane, Naperville, IL 60540"),
    ("GB", "Find a plumber near LS6 2QX for under £80"),
    ("CA", "Compare phone plans in Toronto, M5V 2T6, on rogers.ca"),
    ("AU", "Book a dentist in Bondi NSW 2026"),
    ("IN", "Compare Jio plans under ₹500 in Bengaluru"),
    ("DE", "Finde die Öffnungszeiten bei dm.de in der Lindenstr. 5"),
    ("FR", "Trouve un train Lyon-Marseille sur sncf-connect.fr"),
    ("ES", "Busca vuelos desde Madrid en renfe.es"),
    ("IT", "Cerca un volo Roma-Catania su alitalia.it"),
    ("NL", "Vergelijk fietsen op bol.nl, bezorgen in 1071 XX"),
    ("PL", "Znajdź pociąg do Krakowa, call +48 22 123 45 67"),
    ("BR", "Ver o preço de R$ 300 em São Paulo, 01304-001"),
    ("MX", "Agenda cita, llama al +52 55 5350 1234"),
    ("JP", "東京のホテルを探してください"),
    ("KR", "서울 호텔을 찾아 주세요"),
]


@pytest.mark.parametrize(("country", "text"), TEXTS)
def test_a_country_is_known_by_what_the_text_shows(country, text):
    found, evidence = country_of(text, default="US" if country != "US" else "GB")
    assert found == country
    assert evidence
    assert all(item.country == country for item in evidence)


@pytest.mark.parametrize("text", ["Find a red scarf", "Fly from London to New York", ""])
def test_where_nothing_speaks_for_one_country_it_is_the_default(text):
    assert country_of(text, default="NL") == ("NL", ())
