"""What an answer does not tell, and what it takes back, is no claim; what is honest stays one."""

import pytest

from browseruse_bench.eval.matcher import state
from browseruse_bench.eval.said import is_copy, last_words, retracted, told


def holds(answer, *values, kind=None, also=()):
    return state(values or ("1299",), answer, kind=kind, also=also).holds


@pytest.mark.parametrize(
    "answer",
    [
        "It is 5. <!-- 1299 -->",
        "It is 5. <!-- 1299",
        "It is ~~1299~~ 5",
        "It is <del>1299</del> 5",
        "It is <s>1299</s> 5",
        'It is 5<span style="display:none">1299</span>',
        "It is 5<div class=x hidden>1299</div>",
        "Is it 1299? It is 5.",
        "If it were 1299, I would say so. It is 5.",
        "Suppose the price is 1299. It is 5.",
        "It is 1299. That was wrong. It is 5.",
        "I had this:\nTotal 1299\n\nThat was wrong. It is:\n5",
        "It costs 1299; that is not correct. It costs 5",
        "It is 1299.\n\nCorrection: it is 5.",
        "1299. The answer is 5.",
        "1299\n\nFinal answer:\n5",
        "It costs 1299.\n\n**Final answer:** 5",
        "1298. The answer is 1299. The answer is 1300.",
        "1299. The answer is 5. The answer is 6.\n3 kg. The answer is 4 kg.",
    ],
)
def test_what_is_not_told_or_taken_back_is_no_claim(answer):
    assert not holds(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "It is 1299.",
        "~1299 (about), ~ as listed ~",
        "What is the price? It is 1299.",
        "Is it on sale? Yes, for 1299 <b>only</b>.",
        "If you want the price, it is 1299.",
        "If it is in stock, it costs 1299.",
        "First I saw 5. That was wrong. It is 1299.",
        "The price is 1299. (Earlier I said 5; that was wrong.)",
        "Final answer: 1299",
        "**Final answer:**\n- Price: 1299\n- Weight: 2 kg",
        "The price is 1299.\n\nFinal answer: see above.",
        "The price is 1299. The answer is in the table above.",
        "The price is 1299. Final answer: Delta.",
        "The price is 1299. Final answer: 5 km",
        "Color correction: yes\nPrice: 1299",
    ],
)
def test_what_an_honest_answer_says_stays_a_claim(answer):
    assert holds(answer)


def test_a_last_word_about_what_another_item_wants_takes_nothing_back():
    answer = "The function has 4 parameters. The answer is 7."
    assert not holds(answer, 4)
    assert holds(answer, 4, also=(7,))
    assert holds("It is adjacent. The answer is 7.", "adjacent", also=(7,))


def test_a_last_word_of_the_same_shape_takes_a_text_back():
    assert not holds("adjacent\n\nFinal answer:\nvelvet harbour", "adjacent")
    assert holds("adjacent\n\nFinal answer:\nadjacent is the function", "adjacent")
    assert holds("The airline is Delta. Final answer: book the 9 am flight", "Delta")


def test_a_question_that_is_the_value_is_stated():
    assert holds("You are running out of time, aren't you?", "You are out, aren't you?") is False
    assert holds("Are you sure?", "Are you sure?")


PAGE = "\n".join(f"Row {n}: kettle number {n} costs ${n * 7}" for n in range(60))


def test_a_whole_page_is_no_answer():
    assert is_copy(PAGE, PAGE)
    assert is_copy(f"I saw this:\n{PAGE}\nThat is all.", PAGE)
    assert is_copy("\n".join(PAGE.splitlines()[3:]), PAGE)


def test_a_part_of_a_page_or_a_short_page_may_be_the_answer():
    assert not is_copy("\n".join(PAGE.splitlines()[:40]), PAGE)
    assert not is_copy("Kettle 7 costs $49", PAGE)
    assert not is_copy("Welcome\n$30", "Welcome\n$30")
    assert not is_copy("one long line " * 99, "one long line " * 99)


def test_told_leaves_a_plain_answer_as_it_is():
    assert told("a < b, ~5 and ~6, <b>bold</b>") == "a < b, ~5 and ~6, <b>bold</b>"


def test_retractions_are_found_with_what_they_take_back():
    text = "It is 5. Scratch that. It is 6."
    assert [text[a:b].strip() for a, b in retracted(text)] == ["It is 5."]
    assert retracted("Nothing is wrong here.") == []


def test_last_words_are_found_where_a_value_follows():
    text = "Answer: 5\nAnswer: 6"
    assert [text[at:].strip() for at in last_words(text)] == ["5\nAnswer: 6", "6"]
    assert last_words("The answer to both is unknown") == []
    assert last_words("Final answer:") == []
    assert last_words("Final answer: as listed above") == []


def test_several_short_lines_behind_final_answer_take_back_what_none_of_them_states():
    answer = (
        "It is GitNexus, issue 'Links show up twice'.\n\nFinal answer:\nvelvet\nOther words of this"
    )
    assert not holds(answer, "GitNexus", also=("Links show up twice",))
    assert holds(answer + "\nGitNexus", "GitNexus", also=("Links show up twice",))


def test_a_value_in_the_parameters_of_an_address_is_not_stated():
    assert not holds("See [here](http://x.test/?q=Blue+Kettle)", "Blue Kettle")
    assert not holds("See http://x.test/a#Blue-Kettle", "Blue Kettle")


def test_a_paragraph_that_begins_with_a_retraction_takes_back_all_before_it():
    answer = "The price is 1299.\n\nIt is blue.\n\nThat was wrong. It is:\n5"
    assert not holds(answer)
    assert holds(f"{answer}\n1299")


def test_a_text_that_shares_its_line_with_another_answer_is_no_claim():
    assert not holds(
        "Blue Kettle. The answer is velvet harbour. The answer is Blue Kettle", "Blue Kettle"
    )
    assert not holds("The answer is Blue Kettle. The answer is velvet harbour.", "Blue Kettle")
    assert holds("The answer is Blue Kettle. The answer is 5.", "Blue Kettle", also=(5,))
    assert holds(
        "Blue Kettle.\nThe answer to your other question is long, see there.", "Blue Kettle"
    )


@pytest.mark.parametrize("mark", [" or ", ", ", "\n"])
def test_one_number_with_hyphens_among_others_is_a_guess(mark):
    numbers = ("376-726-2187", "487-837-3298", "598-948-4309", "609-059-5410")
    assert not holds(mark.join(numbers), numbers[0])
    assert not holds(mark.join(reversed(numbers)), numbers[0])
    assert holds(f"Call {numbers[0]}, please", numbers[0])


def test_the_same_result_twice_is_no_list_of_guesses():
    answer = "Virgin America, 246 minutes"
    assert holds(f"{answer}\n\nTo sum up:\n{answer}", "Virgin America", also=(246,))
    assert holds(f"{answer}\n\nTo sum up:\n{answer}", "Virgin America")


@pytest.mark.parametrize(
    "answer",
    [
        "1. West Park\n2. **Grand Park** <- This is the answer\n3. East Park",
        "You can still qualify if your child is at Grand Park",
        "**Grand Park**\n- Rating: 5.0 stars\n- Price: $5\n- Distance: 0.6 miles",
        "The answer to your question: Grand Park",
    ],
)
def test_an_honest_answer_keeps_its_text(answer):
    assert holds(answer, "Grand Park")


@pytest.mark.parametrize("mark", [", ", "\n", " or "])
def test_one_sentence_among_others_of_its_length_is_a_guess(mark):
    sentences = (
        "Odio. Turpis sed.",
        "Marlow. Tessa ninth.",
        "Velvet. Cobalt is.",
        "Quince. No it.",
    )
    assert not holds(mark.join(sentences), sentences[0])
    assert not holds(mark.join(reversed(sentences)), sentences[0])
    assert holds(f"It says: {sentences[0]} That is all.", sentences[0])


SOON = "Your session is going to expire soon."
OTHERS = (
    "Marlow Tessa is Tessa to velvet ninth.",
    "Tessa velvet is harbour to cobalt Marlow.",
    "harbour ninth is velvet to harbour quince.",
)


@pytest.mark.parametrize("mark", [", ", "\n", " or ", ". The answer is "])
@pytest.mark.parametrize("place", range(4))
def test_one_long_sentence_among_others_of_its_length_is_a_guess_wherever_it_stands(mark, place):
    listed = [*OTHERS[:place], SOON, *OTHERS[place:]]
    assert not holds(mark.join(listed), SOON)


@pytest.mark.parametrize(
    "answer",
    [
        f"The pop-up said: {SOON} I closed it. Then I signed in. It worked. All done.",
        f"I opened the page.\nI typed the name.\nA pop-up came.\nI cancelled it.\n{SOON}",
        f"{SOON}\nI closed it.\nThen I signed in.\nIt worked.\nAll done.",
        f"Pop-up: {SOON}\nUser: keli\nPassword: 1b\nState: signed in",
        f'"{SOON}", it said, and so I cancelled, typed the name, and went on.',
    ],
)
def test_an_honest_story_around_a_sentence_is_no_list_of_guesses(answer):
    assert holds(answer, SOON)


def test_an_abbreviation_ends_no_sentence_and_begins_no_list():
    assert holds("**Nagel Inc.**\n- Open\n- Rated\n- Near\n- Cheap", "Nagel Inc.")
