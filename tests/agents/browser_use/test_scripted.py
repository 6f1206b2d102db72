import pytest

from browseruse_bench.agents.browser_use.scripted import (
    GIVE_UP,
    Player,
    ScriptError,
    elements,
    page_of,
    words_of,
)

PAGE = """<user_request>
Find it.
</user_request>
<browser_state>
Interactive elements:
[Start of page]
*[29]<a />
\tLarkfield
*[3]<form role=search />
\t|SHADOW(open)|*[4]<input type=search name=q maxlength=100 aria-label=Search the shop />
\t*[34]<button />
\t\tSearch
Minimum price
|SHADOW(open)|[59]<input id=min_price type=text inputmode=decimal />
Rating
|SHADOW(open)|*[61]<select id=rating expanded=false compound_components=(name=Options,role=listbox) />
*[63]<input id=in_stock type=checkbox value=yes checked=false />
In stock only
*[70]<a />
\tKettle
*[71]<tr />
\tWarranty
\t*[72]<td />
\t\t3\u00a0years
[80]<a />
\tKettle
|scroll element[81]<div role=button title=More of it /> (2 pages below)
[82]<a />
€33.90
[End of page]
</browser_state>
"""


def play(*step, page=PAGE):
    return Player([step]).actions(page)


@pytest.mark.parametrize(
    ("target", "index"),
    [
        ({"role": "link", "name": "Larkfield"}, 29),
        ({"role": "searchbox", "name": "Search the shop"}, 4),
        ({"role": "button", "name": "Search"}, 34),
        ({"role": "textbox", "name": "Minimum price"}, 59),
        ({"role": "combobox", "name": "Rating"}, 61),
        ({"role": "checkbox", "name": "In stock only"}, 63),
        ({"role": "button", "name": "More of it"}, 81),
        ({"role": "link", "name": "Kettle"}, 70),
        ({"role": "link", "name": "Kettle", "nth": 1}, 80),
        ({"role": "link", "nth": 3}, 82),
    ],
)
def test_an_element_is_found_by_role_and_name(target, index):
    assert play({"click": {"index": target}}) == [{"click": {"index": index}}]


def test_the_number_is_that_of_the_page_at_hand():
    moved = PAGE.replace("[34]", "[7134]")
    target = {"click": {"index": {"role": "button", "name": "Search"}}}
    assert play(target, page=moved) == [{"click": {"index": 7134}}]


def test_what_is_not_there_is_told_with_what_is():
    with pytest.raises(ScriptError, match=r"step 1: no link 'Tent' .*Larkfield; Kettle"):
        play({"click": {"index": {"role": "link", "name": "Tent"}}})


def test_a_value_is_read_from_the_words_of_the_page():
    player = Player(
        [
            [{"read": {"years": r"Warranty\n(\d+ years)", "price": r"€[\d.]+"}}, {"wait": {}}],
            [{"done": {"text": "{years}, {price}, {other}", "success": True}}],
        ]
    )
    assert player.actions(PAGE) == [{"wait": {}}]
    assert player.actions(PAGE)[0]["done"]["text"] == "3 years, €33.90, {other}"


def test_a_value_that_is_not_there_is_a_failing_model_and_tried_again():
    player = Player([[{"read": {"x": "tent (.*)"}}, {"done": {"text": "{x}", "success": True}}]])
    with pytest.raises(ScriptError, match="nothing like /tent"):
        player.actions(PAGE)
    again = player.actions(PAGE.replace("Kettle", "tent one"))
    assert again[0]["done"]["text"] == "one"


def test_a_step_that_is_to_fail_fails_once():
    player = Player([[{"fail": "no credit"}], [{"wait": {"seconds": 1}}]])
    with pytest.raises(ScriptError, match="no credit"):
        player.actions(PAGE)
    assert player.actions(PAGE) == [{"wait": {"seconds": 1}}]


def test_behind_the_last_step_it_is_played_again():
    player = Player([[{"wait": {"seconds": 1}}]])
    assert player.actions(PAGE) == player.actions(PAGE) == [{"wait": {"seconds": 1}}]


def test_without_a_script_it_gives_up():
    (action,) = Player([]).actions(PAGE)
    assert action == GIVE_UP[0][0]
    assert action["done"]["success"] is False


def test_lists_and_other_values_pass_as_they_are():
    action = {"done": {"files_to_display": ["a.csv"], "success": True, "n": 1, "x": None}}
    assert play(action) == [action]


def test_of_several_messages_the_newest_page_counts():
    assert (
        page_of(["old <browser_state>", "new <browser_state>", "advice"]) == "new <browser_state>"
    )
    assert page_of(["advice"]) == ""


def test_the_words_of_a_page_are_without_markup():
    words = words_of(PAGE).splitlines()
    assert words[:3] == ["Larkfield", "Search", "Minimum price"]
    assert "3 years" in words
    assert not any("<" in line for line in words)


def test_every_element_of_the_page_is_seen():
    assert [e.index for e in elements(PAGE)] == [29, 3, 4, 34, 59, 61, 63, 70, 71, 72, 80, 81, 82]
