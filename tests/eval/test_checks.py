"""Code checks find what the frozen trace shows."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from browseruse_bench.errors import GraderError
from browseruse_bench.eval.checks import _is_from, grade, json_equal
from browseruse_bench.records.rubric import Rubric

CANARY = "BUB-CANARY-0123456789abcdef"
HOME = "http://shop.test/"
ORDERS = "create table orders(id integer, item text, total real); insert into orders values (7, 'Kettle', 30.0), (8, 'Cup', 4.5);"


def rubric(check: dict, **fields) -> Rubric:
    item = {"id": "A1", "requirement": "r", "weight": 100, "check": check}
    return Rubric.model_validate({"task_id": "task-1", "items": [item], **fields})


def only(folder, check: dict):
    (finding,) = grade(folder, rubric(check)).findings
    if finding.status == "met":
        assert finding.citations
        assert all(citation.holds for citation in finding.citations)
    return finding


CHECKS = {
    "answer": {"kind": "answer", "values": [30], "match": "number"},
    "url": {"kind": "url", "host": "shop.test", "path": "/cart"},
    "state": {
        "kind": "state",
        "site": "shop.test",
        "sql": "select id, total from orders where item = 'Kettle'",
        "equals": [[7, 30]],
    },
    "file": {"kind": "file", "name": "*.csv", "contains": "Kettle,30"},
    "probe": {"kind": "probe", "name": "reward", "equals": {"r": 1}},
}


@pytest.fixture
def right(make_trace):
    page = make_trace.page
    return make_trace(
        page(HOME, "Kettle\n$30", navigate=HOME),
        page(HOME + "cart/?a=1", "Total $30.00", click={"css": "#b"}),
        answer="It costs $30.",
        states={"shop.test": ORDERS},
        probes={"reward": {"r": 1.0}},
        downloads={"orders.csv": b"item,price\r\nKettle,30\r\n"},
    )


@pytest.fixture
def wrong(make_trace):
    page = make_trace.page
    return make_trace(
        page(HOME, "Kettle\n$31", navigate=HOME),
        page(HOME + "carts", "Total $31.00", click={"css": "#b"}),
        answer="It costs $31.",
        states={"shop.test": ORDERS.replace("30.0", "31.0")},
        probes={"reward": {"r": True}},
        downloads={"orders.csv": b"item,price\r\nKettle,300\r\n"},
    )


@pytest.mark.parametrize("kind", CHECKS)
def test_each_check_is_met_by_a_right_trace(right, kind):
    assert only(right, CHECKS[kind]).status == "met"


@pytest.mark.parametrize("kind", CHECKS)
def test_each_check_is_violated_by_a_wrong_trace(wrong, kind):
    finding = only(wrong, CHECKS[kind])
    assert finding.status == "violated"
    assert finding.claim
    assert not any(citation.holds for citation in finding.citations)


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("answer", "not_assessable", "absent_scope"),
        ("url", "not_assessable", "absent_scope"),
        ("state", "not_assessable", "missing_evidence"),
        ("file", "not_assessable", "absent_scope"),
        ("probe", "not_assessable", "missing_evidence"),
    ],
)
def test_an_empty_trace_meets_nothing_and_says_why_bl045(make_trace, kind, status, reason):
    finding = only(make_trace(), CHECKS[kind])
    assert (finding.status, finding.reason) == (status, reason)


def test_findings_come_in_the_rubrics_order(right):
    items = [
        {"id": f"I{n}", "requirement": "r", "weight": 20, "check": check}
        for n, check in enumerate(CHECKS.values())
    ]
    made = grade(right, Rubric.model_validate({"task_id": "t", "items": items}))
    assert [f.item for f in made.findings] == ["I0", "I1", "I2", "I3", "I4"]
    assert {f.status for f in made.findings} == {"met"}


@pytest.mark.parametrize("status", ["time_limit", "step_limit", "agent_error", "gave_up"])
def test_a_trace_that_was_cut_short_is_graded_on_what_there_is(make_trace, status):
    folder = make_trace(make_trace.page(HOME + "cart", "Total"), status=status)
    assert only(folder, CHECKS["url"]).status == "met"
    assert only(folder, CHECKS["answer"]).reason == "absent_scope"


def test_an_infrastructure_outcome_is_never_graded(make_trace):
    with pytest.raises(GraderError, match="owed again"):
        grade(make_trace(status="infrastructure"), rubric(CHECKS["url"]))


def test_an_item_without_a_check_is_not_graded_by_code(right):
    plain = {"id": "V1", "requirement": "r", "weight": 100}
    with pytest.raises(GraderError, match="V1"):
        grade(right, Rubric.model_validate({"task_id": "t", "items": [plain]}))


# Answer


def test_a_right_answer_from_memory_is_unsupported(make_trace):
    folder = make_trace(make_trace.page(HOME, "Nothing here"), answer="$30")
    finding = only(folder, CHECKS["answer"])
    assert finding.status == "unsupported"
    assert "on no page" in finding.reason


def test_a_computed_answer_needs_its_operands_seen(make_trace):
    page = make_trace.page
    check = {"kind": "answer", "values": [30], "match": "number", "seen": [12, "18 in stock"]}
    both = make_trace(page(HOME, "12"), page(HOME + "b", "18 in stock"), answer="30")
    assert only(both, check).status == "met"
    one = make_trace(page(HOME, "12"), page(HOME + "b", "180 in stock"), answer="30")
    assert only(one, check).status == "unsupported"


def test_tolerance_holds_on_both_sides(make_trace):
    check = {"kind": "answer", "values": [30], "match": "number", "tolerance": 0.5}
    seen = make_trace.page(HOME, "about 30.4 or 30.6")
    assert only(make_trace(seen, answer="30.4"), check).status == "met"
    assert only(make_trace(seen, answer="30.6"), check).status == "violated"


def test_a_value_that_is_no_number_is_a_broken_check_whatever_the_answer(make_trace):
    check = {"kind": "answer", "values": ["many"], "match": "number"}
    for answer in (None, "many"):
        with pytest.raises(GraderError, match="rubric of task 'task-1': item 'A1': 'many'"):
            grade(make_trace(answer=answer), rubric(check))


def test_alternatives_are_read_in_values_and_in_seen_bl039(make_trace):
    folder = make_trace(make_trace.page(HOME, "Carrier: DL"), answer="It is Delta.")
    check = {"kind": "answer", "values": ["Delta|OR|DL"], "seen": ["Delta |OR| DL"]}
    assert only(folder, check).status == "met"


# Address


@pytest.mark.parametrize(
    ("url", "met"),
    [
        ("http://shop.test/viewed", True),
        ("http://SHOP.test:80/viewed/", True),
        ("https://shop.test/viewed#top", True),
        ("http://shop.test/viewed?x=1", True),
        ("http://shop.test/viewedasdf", False),
        ("http://shop.test/VIEWED", False),
        ("http://shop.test:81/viewed", False),
        ("http://shop.test.evil.test/viewed", False),
        ("http://shop.test@evil.test/viewed", False),
        ("http://evil.test/?u=http://shop.test/viewed", False),
        ("data:text/html,http://shop.test/viewed", False),
    ],
)
def test_an_address_is_compared_by_components_bl038(make_trace, url, met):
    check = {"kind": "url", "host": "shop.test", "path": "/viewed"}
    finding = only(make_trace(make_trace.page(url, "x")), check)
    assert finding.status == ("met" if met else "violated")


@pytest.mark.parametrize(
    ("query", "met"),
    [("b=2&a=1", True), ("a=1&c=3&b=2", True), ("a=1", False), ("a=1&b=2&b=3", False)],
)
def test_parameters_are_there_with_their_values_in_any_order(make_trace, query, met):
    check = {"kind": "url", "host": "shop.test", "query": {"a": "1", "b": "2"}}
    finding = only(make_trace(make_trace.page(f"{HOME}?{query}", "x")), check)
    assert finding.status == ("met" if met else "violated")


def test_final_looks_at_the_last_state_and_any_at_all(make_trace):
    page = make_trace.page
    folder = make_trace(page(HOME + "cart", "x"), page(HOME, "y"))
    assert only(folder, CHECKS["url"]).status == "violated"
    assert only(folder, CHECKS["url"] | {"when": "any"}).status == "met"


def test_the_state_of_the_last_step_is_looked_at_bl030(make_trace):
    page = make_trace.page
    folder = make_trace(page(HOME, "x"), final=page(HOME + "cart", "The price is $30"), answer="30")
    assert only(folder, CHECKS["url"]).status == "met"
    assert only(folder, CHECKS["answer"]).status == "met"


def test_a_call_that_failed_is_no_evidence_of_its_effect_bl029(make_trace):
    vanished = make_trace.call(
        "click", {"index": 12}, result="Element index 12 not found: /cart $30"
    )
    folder = make_trace(make_trace.page(HOME, "Nothing", vanished), answer="$30")
    assert only(folder, CHECKS["answer"]).status == "unsupported"
    assert only(folder, CHECKS["url"]).status == "violated"


def test_an_address_that_a_script_wrote_is_unsupported(make_trace):
    page = make_trace.page
    forged = make_trace(
        page(HOME, "x"), page(HOME + "cart", "x", evaluate="history.pushState(0,0,'/cart')")
    )
    assert only(forged, CHECKS["url"]).status == "unsupported"
    read_only = make_trace(
        page(HOME + "cart", "x"), page(HOME + "cart", "x", evaluate="document.title")
    )
    assert only(read_only, CHECKS["url"]).status == "met"


# State


def state(sql: str, equals: list, **fields) -> dict:
    return {"kind": "state", "site": "shop.test", "sql": sql, "equals": equals, **fields}


@pytest.mark.parametrize(
    ("sql", "equals", "met"),
    [
        ("select id from orders", [[8], [7]], True),
        ("select id from orders order by id", [[7], [8]], True),
        ("select id from orders order by id", [[8], [7]], False),
        ("select id from orders", [[7]], False),
        ("select id from orders where id > 100", [], True),
        ("select total from orders where id = 8", [[4.5]], True),
        ("select total from orders where id = 7", [["30"]], False),
        ("select null", [[None]], True),
        ("with o as (select id from orders) select count(*) from o", [[2]], True),
    ],
)
def test_rows_are_compared_with_their_types(right, sql, equals, met):
    assert only(right, state(sql, equals)).status == ("met" if met else "violated")


@pytest.mark.parametrize(
    "sql",
    [
        "select nothing from orders",
        "select 1 from missing",
        "selec 1",
        "delete from orders",
        "select 1; select 2",
        "pragma table_info(orders)",
        "attach database '/tmp/x.db' as x",
        "select load_extension('x')",
        "select * from pragma_table_info('orders')",
    ],
)
def test_a_query_that_cannot_be_run_is_an_error_with_rubric_and_item(right, sql):
    with pytest.raises(GraderError, match="rubric of task 'task-1': item 'A1'"):
        grade(right, rubric(state(sql, [[1]])))


def test_an_agent_that_floods_the_state_is_wrong_not_ungraded(make_trace):
    flooded = (
        "create table orders(id, item, total); insert into orders select 7, zeroblob(17000000), 1;"
    )
    folder = make_trace(states={"shop.test": flooded})
    assert only(folder, state("select item from orders", [["Kettle"]])).status == "violated"


def test_grading_leaves_the_frozen_trace_as_it_was(right):
    grade(right, rubric(CHECKS["state"]))
    again = type(right).open(right.path, right.key)
    assert again.key == right.key


def test_a_snapshot_of_another_site_is_missing_evidence(right):
    check = CHECKS["state"] | {"site": "bank.test"}
    assert only(right, check).reason == "missing_evidence"


def test_a_snapshot_that_is_no_database_is_an_error(make_trace):
    folder = make_trace(states={"shop.test": b"not a database" * 100})
    with pytest.raises(GraderError, match="not a database"):
        grade(folder, rubric(CHECKS["state"]))


# File


@pytest.mark.parametrize(
    ("content", "met"),
    [
        (b"Kettle,30", True),
        ("\ufeffkettle,30".encode(), True),
        ("a\nKettle,30\n".encode("utf-16"), True),
        (b"\xe9 Kettle,30", True),
        (b"Kettle,300", False),
        (b"Kettle,30.5", False),
        (b"", False),
    ],
)
def test_a_saved_file_holds_the_text_as_a_whole(make_trace, content, met):
    seen = make_trace.page(HOME, "Kettle\n$30", navigate=HOME)
    finding = only(make_trace(seen, files={"out/data.csv": content}), CHECKS["file"])
    assert finding.status == ("met" if met else "violated")


def test_a_right_file_that_was_written_from_memory_is_unsupported(make_trace):
    """Correct-looking data without evidence in the trace is not met, in a file as in an answer."""
    files = {"data.csv": b"Kettle,30"}
    page = make_trace.page
    finding = only(make_trace(page(HOME, "Welcome"), files=files), CHECKS["file"])
    assert finding.status == "unsupported"
    assert "Kettle: on no page" in finding.reason
    typed = page(HOME, "Results for Kettle 30", type="Kettle 30")
    assert only(make_trace(typed, files=files), CHECKS["file"]).status == "unsupported"
    form = {"id": "X", "requirement": "r", "weight": 100, "evidence": "deliverable"}
    items = [form | {"check": CHECKS["file"]}]
    made = grade(make_trace(files=files), rubric(CHECKS["file"], items=items))
    assert made.findings[0].status == "met"


@pytest.mark.parametrize("url", ["data:text/csv,Kettle", "blob:http://shop.test/1", None])
def test_a_download_that_a_script_may_have_made_is_no_better_than_a_file(make_trace, url):
    folder = make_trace(make_trace.page(HOME, "Welcome"), downloads={"a.csv": b"Kettle,30"})
    final = folder.trace.final
    made = [o.model_copy(update={"url": url}) for o in final.observations if o.kind == "download"]
    end = final.model_copy(update={"observations": tuple(made)})
    other = replace(folder, trace=folder.trace.model_copy(update={"final": end}))
    assert only(folder, CHECKS["file"]).status == "met"
    assert only(other, CHECKS["file"]).status == "unsupported"


def test_a_file_is_found_by_its_base_name_and_hash(make_trace):
    content = b"\x00\x01"
    check = {"kind": "file", "name": "a.bin", "sha256": hashlib.sha256(content).hexdigest()}
    assert only(make_trace(files={"a.bin": content}), check).status == "met"
    assert only(make_trace(files={"a.bin": b"x"}), check).status == "violated"
    assert only(make_trace(files={"aa.bin": content}), check).reason == "absent_scope"


def test_a_doubled_contradicting_deliverable_is_not_met(make_trace):
    folder = make_trace(files={"a.csv": b"Kettle,30", "b.csv": b"Kettle,31"})
    assert only(folder, CHECKS["file"]).status == "violated"


@pytest.mark.parametrize(
    ("host", "status"), [("shop.test", "met"), ("other.test", "not_assessable")]
)
def test_a_download_counts_by_the_host_that_it_came_from(make_trace, host, status):
    folder = make_trace(downloads={"a.csv": b"Kettle,30"})
    check = {"kind": "file", "name": "*.csv", "contains": "Kettle,30", "host": host}
    assert only(folder, check).status == status


def test_a_file_that_the_agent_wrote_is_no_download(make_trace):
    """The file of an agent that never visited the page earned the download's points."""
    folder = make_trace(files={"a.csv": b"Kettle,30"})
    check = {"kind": "file", "name": "*.csv", "contains": "Kettle,30", "host": "shop.test"}
    assert only(folder, check).status == "not_assessable"


@pytest.mark.parametrize("url", [None, "blob:http://shop.test/1", "data:text/csv,Kettle"])
def test_a_download_that_a_script_may_have_made_is_from_no_host(url):
    assert not _is_from(url, "shop.test")


def test_the_agents_file_comes_before_a_download(make_trace):
    folder = make_trace(files={"a.csv": b"Kettle,31"}, downloads={"b.csv": b"Kettle,30"})
    assert only(folder, CHECKS["file"]).status == "violated"


# Probe


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (False, 0, False),
        (None, None, True),
        ("1", 1, False),
        ([1, {"a": None}], [1.0, {"a": None}], True),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": True}, {"a": 1}, False),
    ],
)
def test_json_values_are_equal_by_value_and_type(one, other, equal):
    assert json_equal(one, other) is equal


def test_a_probe_of_a_page_that_a_script_changed_is_unsupported(make_trace):
    page = make_trace.page
    hacked = make_trace(
        page(HOME, "x"), page(HOME, "x", execute_js="WOB_REWARD=1"), probes={"reward": {"r": 1}}
    )
    assert only(hacked, CHECKS["probe"]).status == "unsupported"
    reloaded = make_trace(
        page(HOME, "x", execute_js="1"), page(HOME, "x", navigate=HOME), probes={"reward": {"r": 1}}
    )
    assert only(reloaded, CHECKS["probe"]).status == "met"


# Integrity and policy


@pytest.mark.parametrize(
    "leak",
    [
        {"answer": f"It is 30. {CANARY}"},
        {"answer": CANARY.lower()},
        {"answer": CANARY[:12] + "\u200b" + CANARY[12:]},
        {"files": {"notes.txt": f"key {CANARY}".encode()}},
        {"files": {f"{CANARY}.txt": b""}},
        {"call": {"text": f"say {CANARY}"}},
        {"call": {"deep": [{"x": CANARY}]}},
    ],
)
def test_a_canary_is_flagged_wherever_the_agent_has_it(make_trace, leak):
    call = leak.pop("call", None)
    steps = [make_trace.page(HOME + "cart", "x", type=call)] if call else []
    made = grade(make_trace(*steps, **leak), rubric(CHECKS["url"], canary=CANARY))
    (flag,) = made.integrity
    assert flag.flag == "canary"
    assert all(citation.holds for citation in flag.citations)


def test_an_honest_trace_has_no_flag(right):
    assert grade(right, rubric(CHECKS["url"], canary=CANARY)).integrity == ()


def test_reported_evidence_counts_only_under_its_policy_and_is_marked(make_trace):
    steps = (make_trace.page(HOME, "Price $30", _by="agent"),)
    assert only(make_trace(*steps, answer="30"), CHECKS["answer"]).status == "unsupported"
    finding = only(
        make_trace(*steps, answer="30", evidence_policy="agent_reported"), CHECKS["answer"]
    )
    assert finding.status == "met"
    assert "agent-reported" in finding.reason
