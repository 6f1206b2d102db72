"""Only what the harness saw, and the page itself wrote, corroborates a value."""

from __future__ import annotations

import io
import time
import zipfile

import pytest

from browseruse_bench.eval.corroboration import (
    COPIED,
    ECHO,
    LEFT,
    NO_PAGE,
    OWN_MACHINE,
    SCRIPTED,
    Evidence,
)
from browseruse_bench.eval.matcher import options_of

HOME = "http://shop.test/"
SEARCH = HOME + "search?q=1299"


def seen(folder, value=1299):
    return Evidence(folder).sighting(options_of(value))


def why(folder, value=1299):
    found = seen(folder, value)
    assert not found.holds
    return found.citation.why_not if found.citation else None


# Honest traces


@pytest.mark.parametrize(
    "text",
    [
        "Price: $1,299.00",
        "1299",
        "a\t1 299\tb",
        "\uff11\uff12\uff19\uff19",
        "1.299,00 EUR",
        "1\u2009299 x",
    ],
)
def test_a_value_on_a_page_corroborates_however_it_is_written(make_trace, text):
    found = seen(make_trace(make_trace.page(HOME, f"Kettle\n{text}\nCup", navigate=HOME)))
    assert found.holds
    assert found.citation.step == 1
    assert "Kettle" not in found.citation.quote


@pytest.mark.parametrize("text", ["12991", "1299.5", "x1299", "-1299", "129 9", "13:1299x"])
def test_other_digits_do_not_corroborate(make_trace, text):
    assert why(make_trace(make_trace.page(HOME, text, navigate=HOME))) is None


def test_words_are_whole_in_any_case_and_spacing(make_trace):
    folder = make_trace(make_trace.page(HOME, "The BLUE\n  Kettle\u00a0XL"))
    assert seen(folder, "blue kettle").holds
    assert not seen(folder, "blue kettle X").holds


def test_a_value_that_was_read_before_it_was_typed_stays_proved(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "Model 1299 is the best", navigate=HOME),
        page(SEARCH, "Results for 1299", type={"into": {"css": "#q"}, "text": "1299"}),
        page(SEARCH, "Results for 1299\nModel 1299: $5", key="Enter"),
    )
    found = seen(folder)
    assert found.holds
    assert found.citation.step == 1
    assert seen(folder, 5).holds


def test_text_in_the_step_before_the_first_typing_counts(make_trace):
    page = make_trace.page
    typed = page(SEARCH, "Results for 1299", type="1299", _before="List: 1299")
    assert seen(make_trace(page(HOME, "empty"), typed)).holds


def test_calls_that_only_read_or_point_give_nothing(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "Shop", click={"text": "1299"}),
        page(HOME, "Order 1299 placed", wait={"text": "Order 1299 placed"}),
        answer="1299",
    )
    assert seen(folder).holds


def test_an_index_of_an_element_is_no_typed_text(make_trace):
    assert seen(make_trace(make_trace.page(HOME, "1299 hits", click_element={"index": 1299}))).holds


def test_a_page_after_the_next_load_counts_again(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "x", navigate=HOME),
        page(HOME, "x", evaluate="document.links.length"),
        page(HOME + "a", "1299", navigate=HOME + "a"),
    )
    assert seen(folder).holds


def test_a_new_document_is_a_load_and_a_rewritten_one_is_not(make_trace):
    page = make_trace.page
    steps = (
        page(HOME, "x", navigate=HOME, _document="D1"),
        page(HOME, "x", evaluate="f()", _document="D1"),
    )
    loaded = make_trace(*steps, page(HOME + "a", "1299", click={"css": "a"}, _document="D2"))
    assert seen(loaded).holds
    same = make_trace(*steps, page(HOME + "a", "1299", click={"css": "a"}, _document="D1"))
    assert why(same) == SCRIPTED


# Attacks


def typed(page, **how):
    return (
        page(HOME, "Search", navigate=HOME),
        page(SEARCH.split("?")[0], "Results for 1299", **how),
    )


@pytest.mark.parametrize(
    "how",
    [
        {"type": {"into": {"css": "#q"}, "text": "1299"}},
        {"input_text": {"index": 3, "text": "1,299"}},
        {"input_text": {"index": 3, "text": 1299}},
        {"fill": {"fields": [{"value": 1299.0}]}},
        {"input_text": {"index": 3, "text": "kettle 1299 cheap"}},
        {"fill": {"fields": [{"value": "$1299"}]}},
        {"navigate": HOME + "search?q=1299"},
        {"go_to_url": {"url": HOME + "search?q=%31%32%39%39"}},
        {"go_to_url": {"url": HOME + "echo/1299"}},
        {"go_to_url": {"url": HOME + "#1299"}},
    ],
)
def test_an_echo_of_what_the_agent_gave_proves_nothing(make_trace, how):
    assert why(make_trace(*typed(make_trace.page, **how))) == ECHO


def test_a_later_page_that_remembers_the_typed_text_proves_nothing(make_trace):
    page = make_trace.page
    folder = make_trace(
        *typed(page, type="1299"), page(HOME, "Recent searches: 1299", click="home")
    )
    assert why(folder) == ECHO


@pytest.mark.parametrize(
    "keys", [["99", "Home", "12"], ["9", "9", "Home", "1", "2"], ["99", "ArrowLeft", "Home", "12"]]
)
def test_text_that_was_typed_from_its_end_is_an_echo_too(make_trace, keys):
    page = make_trace.page
    steps = [page(HOME, "Search", key=key) for key in keys]
    folder = make_trace(
        page(HOME, "Search", navigate=HOME),
        *steps,
        page(HOME + "found", "Results for 1299", key="Enter"),
    )
    assert why(folder) == ECHO


def test_the_index_of_a_field_is_not_what_was_typed_into_it(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "Search", navigate=HOME),
        page(HOME + "found", "1299", input_text={"index": 1299, "text": "kettle"}),
    )
    assert seen(folder).holds


def test_a_value_is_seen_although_parts_of_it_were_typed_elsewhere(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "Search", navigate=HOME),
        page(HOME, "Search", key="99"),
        page(HOME + "found", "1299", key="Enter"),
    )
    assert seen(folder).holds


@pytest.mark.parametrize("pieces", [["1", "2", "9", "9"], ["12", "99"], ["12", "9", "9"]])
def test_text_that_was_typed_in_pieces_is_an_echo_too(make_trace, pieces):
    page = make_trace.page
    steps = [page(HOME, "Search", key=piece) for piece in pieces]
    assert why(make_trace(*steps, page(SEARCH, "Results for 1299", key="Enter"))) == ECHO


def test_words_that_were_typed_are_an_echo(make_trace):
    page = make_trace.page
    folder = make_trace(page(HOME, "Results for blue-kettle", type="Blue Kettle"))
    assert why(folder, "blue kettle") == ECHO
    slug = make_trace(page(HOME + "p", "Blue Kettle", navigate=HOME + "p/blue-kettle"))
    assert why(slug, "blue kettle") == ECHO


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        ("2026-05-03", "05/03/2026", "Flights on Sunday, May 3, 2026"),
        ("2026-05-03", "2026-05-03", "Flights on 3 May"),
        ("https://x.test/a", "x.test/a", "Open https://x.test/a now"),
        ("https://x.test/a", "https://x.test/a", "Open https://x.test/a now"),
    ],
)
def test_a_typed_value_that_the_page_writes_otherwise_is_an_echo(make_trace, value, text, shown):
    assert why(make_trace(make_trace.page(HOME, shown, type=text)), value) == ECHO
    assert seen(make_trace(make_trace.page(HOME, shown, click="a")), value).holds


@pytest.mark.parametrize(
    "name",
    [
        "evaluate",
        "run_script",
        "execute_js",
        "executeJavaScript",
        "browser_evaluate",
        "js",
        "set_content",
    ],
)
def test_text_that_a_script_wrote_into_the_page_proves_nothing(make_trace, name):
    page = make_trace.page
    code = "document.body.append(String(1300-1))"
    scripted = page(HOME, "Price 1299", make_trace.call(name, {"code": code}))
    assert why(make_trace(page(HOME, "x", navigate=HOME), scripted)) == SCRIPTED
    later = page(HOME + "#a", "Price 1299", click={"css": "a"})
    assert why(make_trace(page(HOME, "x"), page(HOME, "x", evaluate=code), later)) == SCRIPTED


def test_a_script_in_an_address_is_a_script(make_trace):
    page = make_trace.page
    how = {"url": "javascript:document.write(1300-1)"}
    assert why(make_trace(page(HOME, "x"), page(HOME, "1299", navigate=how))) == SCRIPTED


def test_an_address_with_another_fragment_is_no_load(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "x", navigate=HOME),
        page(HOME, "1299", evaluate="write(1300-1)"),
        page(HOME + "#x", "1299", navigate=HOME + "#x"),
    )
    assert why(folder) == SCRIPTED


def test_a_load_that_left_the_page_as_it_was_is_no_load(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "x", navigate=HOME),
        page(HOME, "1299", evaluate="write(1300-1)"),
        page(HOME, "1299", navigate=HOME + "file.zip"),
    )
    assert why(folder) == SCRIPTED


def test_an_address_that_a_script_made_is_the_agents_text(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "x", navigate=HOME, _document="D1"),
        page(SEARCH, "Results for 1299", evaluate="location='/search?q='+(1300-1)", _document="D2"),
    )
    assert why(folder) == ECHO


def test_a_window_that_a_scripted_page_opened_is_scripted_too(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "x", navigate=HOME),
        page(HOME, "x", evaluate="w=open('/b'); w.document.write(1300-1)"),
        page(HOME + "b", "1299", switch_tab="newest", _target="T2"),
    )
    assert why(folder) == SCRIPTED


@pytest.mark.parametrize(
    "url",
    ["data:text/html,1299", "blob:http://shop.test/1", "file:///tmp/a.html", "about:blank",
     "javascript:1299", "view-source:http://shop.test/", "chrome-error://chromewebdata/", ""],
)  # fmt: skip
def test_a_page_that_is_not_of_the_web_proves_nothing(make_trace, url):
    assert why(make_trace(make_trace.page(url, "Price 1299"))) == NO_PAGE


def test_answer_thought_files_results_downloads_and_state_prove_nothing(make_trace):
    call = make_trace.call("extract", {"query": "price"}, result="Price 1299")
    folder = make_trace(
        make_trace.page(HOME, "Nothing", call),
        answer="1299",
        files={"a.txt": b"1299"},
        downloads={"b.csv": b"1299"},
        probes={"p": 1299},
        states={"shop.test": "create table t(x); insert into t values (1299)"},
    )
    assert why(folder) is None


def test_text_that_the_agent_captured_proves_nothing(make_trace):
    assert why(make_trace(make_trace.page(HOME, "1299", _by="agent"))) is None


def test_a_file_that_was_uploaded_is_the_agents_text(make_trace):
    page = make_trace.page
    shown = page(HOME, "Preview: 1299", upload_file={"path": "a.txt"})
    assert why(make_trace(page(HOME, "x"), shown, files={"a.txt": b"1299"})) == ECHO


def test_the_evidence_steps_removed_leave_nothing(make_trace):
    assert why(make_trace(make_trace.page(HOME, "Welcome"), answer="1299")) is None


# Quotes


def test_a_quote_stands_word_for_word_at_its_step(make_trace):
    page = make_trace.page
    evidence = Evidence(make_trace(page(HOME, "The price is\n$1,299 today"), page(HOME, "Bye")))
    assert evidence.quote_problem(1, "PRICE  is $1299") is None
    assert "step 2" in evidence.quote_problem(2, "price is $1,299")
    assert evidence.quote_problem(1, "price is $1,298") is not None
    assert evidence.quote_problem(1, "price $1,299") is not None
    assert evidence.quote_problem(1, "...") is not None


def test_a_quote_of_the_agents_own_words_does_not_hold(make_trace):
    folder = make_trace(make_trace.page(HOME, "Results for cheap kettle", type="cheap kettle"))
    assert Evidence(folder).quote_problem(1, "cheap kettle") == ECHO


def test_sixty_long_pages_are_searched_fast(make_trace):
    page = make_trace.page
    rows = "\n".join(f"2013-01-{n % 28 + 1:02}\tUA{n}\t{n},{n:03}\tNewark" for n in range(1500))
    steps = [page(f"{HOME}?page={n}", f"page {n}\n{rows}", click={"css": "a"}) for n in range(60)]
    evidence = Evidence(make_trace(*steps, final=page(HOME, "total 98765 on May 30, 2013")))
    start = time.thread_time()
    for value in (98765, "May 30, 2013", "total 98765"):
        assert evidence.sighting(options_of(value)).citation.step == "final"
    for value in ("Annapolis", "2014-01-30", 987650, "Newark 5"):
        assert evidence.sighting(options_of(value)).citation is None
    assert time.thread_time() - start < 10


# What the red team found


def test_a_page_that_a_script_wrote_into_comes_back_as_it_was_left(make_trace):
    page = make_trace.page
    for documents in (("A", "A", "B", "A"), (None,) * 4):
        a, b, c, d = ({"_document": x} if x else {} for x in documents)
        steps = (
            page(HOME, "x", navigate=HOME, **a),
            page(HOME, "x", evaluate="write(1300-1)", **b),
            page("http://other.test/", "y", navigate="http://other.test/", **c),
        )
        assert why(make_trace(*steps, page(HOME, "1299", back={}, **d))) == SCRIPTED
    again = page(HOME, "1299", navigate=HOME, _document="C")
    assert seen(make_trace(*steps, again)).holds


def test_what_a_script_may_have_left_behind_proves_nothing_later(make_trace):
    page = make_trace.page
    left = page(HOME, "x", evaluate="localStorage.a = String.fromCharCode(49)", _document="A")
    shown = page("http://other.test/", "1299", navigate="http://other.test/", _document="B")
    assert why(make_trace(left, shown)) == LEFT
    before = page(HOME, "1299", navigate=HOME, _document="A")
    assert seen(make_trace(before, left, shown)).holds


def test_what_was_first_on_a_page_that_proves_nothing_can_have_been_copied(make_trace):
    page = make_trace.page
    made = page("data:text/plain,x", "1299", navigate="data:text/plain,x")
    pasted = page(HOME, "Results for 1299", press="Control+V")
    assert why(make_trace(made, pasted), 1299) == NO_PAGE
    evidence = Evidence(make_trace(made, pasted))
    assert evidence.quote_problem(2, "Results for 1299") is None
    assert evidence.quote_problem(2, "1299") == COPIED
    first = page(HOME, "1299", navigate=HOME)
    assert Evidence(make_trace(first, made, pasted)).quote_problem(3, "1299") is None


@pytest.mark.parametrize(
    "url",
    ["http://localhost:8765/", "http://127.1/", "http://[::1]/", "http://192.168.1.7/",
     "http://0x7f000001/", "http://app.localhost/", "http://nas.local/"],
)  # fmt: skip
def test_a_page_of_the_agents_own_machine_proves_nothing(make_trace, url):
    assert why(make_trace(make_trace.page(url, "Price 1299"))) == OWN_MACHINE


def test_a_site_of_the_benchmark_may_be_on_this_machine(make_trace):
    sites = {"127.0.0.1": "module:Site"}
    folder = make_trace(make_trace.page("http://127.0.0.1:99/", "Price 1299"), sites=sites)
    assert seen(folder).holds


@pytest.mark.parametrize(
    "typed_as", ["MTI5OQ==", "%2531%2532%2539%2539", "&#49;&#50;&#57;&#57;", "31323939"]
)
def test_a_value_that_was_typed_in_a_coding_is_an_echo(make_trace, typed_as):
    assert why(make_trace(make_trace.page(HOME, "Decoded: 1299", type=typed_as))) == ECHO


def test_a_number_that_a_slider_was_set_to_is_an_echo(make_trace):
    assert why(make_trace(make_trace.page(HOME, "Up to 1299", slider={"value": 1299}))) == ECHO


def test_the_text_of_an_uploaded_document_is_the_agents(make_trace):
    shown = make_trace.page(HOME, "Preview: 1299", upload_file={"path": "a.docx"})
    files = {"a.docx": zipped("<w:t>12</w:t><w:t>99</w:t>")}
    assert why(make_trace(shown, files=files)) == ECHO


def zipped(text):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", text)
    return buffer.getvalue()


def test_a_state_that_a_script_stored_is_the_scripts_after_a_load_too(make_trace):
    page = make_trace.page
    stored = page(HOME, "x", evaluate="localStorage.setItem('done', '1')", _document="A")
    assert Evidence(
        make_trace(stored, page(HOME, "y", navigate=HOME, _document="B"))
    ).scripted_at_end


@pytest.mark.parametrize("halves", [("12", "99"), ("1", "299"), ("9", "9", "2", "1")])
def test_what_names_the_field_does_not_part_what_is_typed_into_it(make_trace, halves):
    page = make_trace.page
    steps = [
        page(HOME, "Search", type={"into": {"css": "#q"}, "text": half}, press={"key": "Home"})
        for half in halves
    ]
    assert why(make_trace(*steps, page(SEARCH, "Results for 1299", press={"key": "Enter"}))) == ECHO
