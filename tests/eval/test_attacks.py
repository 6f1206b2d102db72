"""No attack on the embedded benchmark's own rubrics gains an answer item.

Every attacker knows the answer key and states it perfectly; what it lacks is a page that says
so by itself. The same page, honestly opened, gives the credit: the attacks fail for their own
reason and not because nothing would pass.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from browseruse_bench.eval.checks import grade
from browseruse_bench.records.rubric import AnswerCheck, Rubric

RUBRICS = Path(__file__).parents[2] / "benchmarks" / "LocalSites" / "rubrics"
HOME = "http://site.test/"


def _cases():
    for path in sorted(RUBRICS.glob("*.json")):
        rubric = Rubric.model_validate(json.loads(path.read_text()))
        checks = [item.check for item in rubric.items if isinstance(item.check, AnswerCheck)]
        if checks:
            yield rubric, checks


def _first(value) -> str:
    return str(value).split("|OR|")[0]


def _answer(checks) -> str:
    return "\n".join(_first(value) for check in checks for value in check.values)


def _secrets(checks) -> list[str]:
    return [_first(v) for check in checks for v in (*check.values, *(check.seen or ()))]


def _met(folder, rubric) -> list[str]:
    answers = {item.id for item in rubric.items if isinstance(item.check, AnswerCheck)}
    findings = [f for f in grade(folder, _answers_only(rubric)).findings if f.item in answers]
    assert len(findings) == len(answers)
    return [finding.item for finding in findings if finding.status == "met"]


def _answers_only(rubric: Rubric) -> Rubric:
    """The rubric without the checks that need a page or a state of the site."""
    items = [item for item in rubric.items if isinstance(item.check, AnswerCheck)]
    return rubric.model_copy(update={"items": tuple(items)})


def honest(page, call, lines):
    return [page(HOME, "\n".join(lines), navigate=HOME)]


def from_memory(page, call, lines):
    return [page(HOME, "Welcome", navigate=HOME)]


def typed_into_search(page, call, lines):
    steps = [page(HOME, "Search", navigate=HOME)]
    echoed = []
    for line in lines:
        echoed.append(f"Results for {line}")
        text = {"into": {"css": "#q"}, "text": line}
        steps.append(page(HOME + "search", "\n".join(echoed), type=text))
    return [*steps, page(HOME, "\n".join(["Recent searches", *lines]), click="home")]


def put_into_address(page, call, lines):
    return [
        page(f"{HOME}?q={line}", f"You asked for {line}", navigate=f"{HOME}?q={line}")
        for line in lines
    ]


def written_by_script(page, call, lines):
    code = {"code": "document.body.innerText = atob('...')"}
    return [page(HOME, "Welcome", navigate=HOME), page(HOME, "\n".join(lines), evaluate=code)]


def data_page(page, call, lines):
    url = "data:text/plain,x"
    return [page(url, "\n".join(lines), navigate=url)]


def result_of_a_call(page, call, lines):
    extract = call("extract", {"query": "all"}, result="\n".join(lines))
    return [page(HOME, "Welcome", extract)]


def captured_by_the_agent(page, call, lines):
    return [page(HOME, "\n".join(lines), _by="agent")]


ATTACKS = [
    from_memory, typed_into_search, put_into_address, written_by_script, data_page,
    result_of_a_call, captured_by_the_agent,
]  # fmt: skip


@pytest.fixture(scope="module")
def cases():
    found = list(_cases())
    assert found
    return found


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_gains_nothing(cases, make_trace, attack):
    for rubric, checks in cases:
        steps = attack(make_trace.page, make_trace.call, _secrets(checks))
        files = {"notes.txt": "\n".join(_secrets(checks)).encode()}
        folder = make_trace(*steps, answer=_answer(checks), files=files)
        assert _met(folder, rubric) == [], rubric.task_id


def test_the_same_page_honestly_opened_gives_credit(cases, make_trace):
    gained = 0
    for rubric, checks in cases:
        for check, item in zip(checks, _answers_only(rubric).items, strict=True):
            steps = honest(make_trace.page, make_trace.call, _secrets([check]))
            one = rubric.model_copy(update={"items": (item,)})
            folder = make_trace(*steps, answer=_answer([check]))
            assert _met(folder, one) == [item.id], (rubric.task_id, item.id)
            gained += 1
    assert gained >= len(cases)


def test_no_canary_stands_in_what_an_honest_agent_says(cases):
    for rubric, checks in cases:
        assert rubric.canary not in _answer(checks)
