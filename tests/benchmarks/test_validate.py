import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.benchmarks.folder import find
from browseruse_bench.benchmarks.problems import lines
from browseruse_bench.benchmarks.rows import Reader
from browseruse_bench.benchmarks.validate import examine
from tests.benchmarks.small import TASKS, check, rubric


def found(folder):
    return list(lines(examine(find(str(folder))).problems))


def warned(folder):
    examined = examine(find(str(folder)))
    assert examined.problems == ()
    return list(lines(examined.warnings))


def test_a_sound_folder_has_no_problem(make):
    folder = make(
        rubrics={"a": rubric()},
        solutions={"a": [{"navigate": "http://shop.test/"}, {"done": "31.90"}]},
    )
    assert found(folder) == []


def test_all_problems_come_at_once_each_with_file_index_and_field(make):
    folder = make(
        [
            {"task_id": "x", "task": "One."},
            {"task_id": "x", "task": "Two."},
            {"task_id": 7, "task": ""},
            "no object",
            {"task_id": "y", "task": "Three.", "requires_login": "no", "expected_result": {}},
        ],
        info={"split": {"All": "tasks.json", "Hard": "tasks_hard.json"}},
        files={"evaluator.py": "def (", "rubrics/z.json": rubric("z")},
    )
    assert found(folder) == [
        "data_info.json.split.Hard: 'tasks_hard.json' is missing below data/",
        "tasks.json[1].task_id: duplicate of [0], 'x'; ids must be unique",
        "tasks.json[2].task_id: 7 is a number, not a text; write it in quotes, or declare "
        '"convert": "string" for it in data_info.json',
        "tasks.json[2].task: is empty",
        "tasks.json[3]: is not an object but a text",
        "tasks.json[4].expected_result: is an object, not a text, a number or a list of these",
        "tasks.json[4].requires_login: is a text, not true or false",
        "rubrics/z.json: matches no task of the default split",
        "evaluator.py: line 1: is not Python: invalid syntax (evaluator.py, line 1)",
    ]


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({"task": "T."}, "tasks.json[3].task_id: missing; every task has an id of its own"),
        ({"task_id": "d"}, "tasks.json[3].task: missing; it is what the agent is asked to do"),
        ({"task_id": "d", "task": " \n"}, "tasks.json[3].task: is empty"),
        ({"task_id": "", "task": "T."}, "tasks.json[3].task_id: is empty"),
        ({"task_id": " d", "task": "T."}, "begins or ends with a space"),
        ({"task_id": "d\u0000", "task": "T."}, "has a control character"),
        ({"task_id": "d\u202ex", "task": "T."}, "has a control character"),
        ({"task_id": True, "task": "T."}, "tasks.json[3].task_id: is true or false, not a text"),
        ({"task_id": "d", "task": 5}, "tasks.json[3].task: is a number, not a text"),
        ({"task_id": "d", "task": "T.", "website": []}, ".website: is a list, not a text"),
        ({"task_id": "d", "task": "T.", "category": 1}, ".category: is a number, not a text"),
        ({"task_id": "d", "task": "T.", "start_url": "file:///etc"}, ".start_url: "),
        ({"task_id": "d", "task": "T.", "requires_login": None}, ".requires_login: is null"),
        ({"task_id": "d", "task": "T.", "expected_result": True}, ".expected_result: "),
        ({"task_id": "d", "task": "T.", "expected_result": ["x", None]}, "[1] is null"),
        ({"task_id": "d", "task": "T.", "attachments": "x.pdf"}, "is a text, not a list"),
    ],
)
def test_a_wrong_row_is_named_by_index_and_field(make, row, line):
    (only,) = found(make([*TASKS, row]))
    assert only.startswith("tasks.json[3]")
    assert line in only


@pytest.mark.parametrize("value", ["", "  ", [], ["x", ""]])
def test_an_expected_result_that_every_answer_matches_is_refused_BL002(make, value):
    (only,) = found(make([{"task_id": "d", "task": "T.", "expected_result": value}]))
    assert "tasks.json[0].expected_result" in only
    assert "which every answer would match" in only


def test_null_stands_for_an_absent_optional_field(make):
    row = {"task_id": "d", "task": "T.", "website": None, "difficulty": None, "start_url": None}
    folder = make([{**row, "category": None, "expected_result": None, "attachments": None}])
    assert found(folder) == []


@pytest.mark.parametrize(("first", "second"), [("Task-A", "task-a"), ("caf\u00e9", "cafe\u0301")])
def test_ids_that_collide_on_some_file_systems_are_refused(make, first, second):
    folder = make([{"task_id": first, "task": "One."}, {"task_id": second, "task": "Two."}])
    (only,) = found(folder)
    assert only.startswith("tasks.json[1].task_id: ")
    assert "only in case or Unicode form" in only


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "not JSON"),
        ('"text"', "is not a list of tasks"),
        ('{"rows": []}', "is not a list of tasks"),
        ('{"task_id": "a"}\n{"task_id": "b"}', "named .jsonl"),
        (b"\xff\xfe", "not UTF-8"),
        ('[{"task_id": "a", "task": "T.", "x": NaN}]', "NaN is not a JSON number"),
        ('[{"task_id": "a", "task": "T.", "task": "U."}]', "'task' occurs twice"),
        ('[{"task_id": "a", "task": "T\\ud800"}]', "surrogate"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_task_file_that_is_none_is_one_problem(make, content, text):
    (only,) = found(make(content))
    assert only.startswith("tasks.json: ")
    assert text in only


def test_a_damaged_line_costs_only_itself(make):
    folder = make(
        info={"split": {"All": "tasks.jsonl"}},
        files={"data/tasks.jsonl": '{"task_id": "a", "task": "T."}\n{"task_id"\n{"task_id": 5}\n'},
    )
    assert [line.split(":")[0] for line in found(folder)] == [
        "tasks.jsonl",
        "tasks.jsonl[1].task_id",
        "tasks.jsonl[1].task",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Book a flight to {{city}}.",
        "Book a flight to ${city}.",
        "Log in as <USER_NAME>.",
        "TODO write this task",
        "Find it. TODO: name the site",
        "Find [INSERT PRODUCT] on the site.",
        "Lorem ipsum dolor sit amet.",
    ],
)
def test_a_leftover_placeholder_is_refused(make, text):
    (only,) = found(make([{"task_id": "a", "task": text}]))
    assert only.startswith("tasks.json[0].task: ")
    assert "left over from a template" in only


@pytest.mark.parametrize(
    "text",
    [
        "Create a repository named TODO with a README.",
        "Find <b>bold</b> text, prices < 100 > 50 and {this}.",
        "Mail yourself [the list] of TODOs.",
    ],
)
def test_a_task_that_only_looks_like_a_template_is_allowed(make, text):
    assert found(make([{"task_id": "a", "task": text}])) == []


def test_the_guides_example_texts_are_only_warned_about(make):
    folder = make([{"task_id": "a", "task": "Task description shown to the agent"}])
    assert any("example text of the guide" in line for line in warned(folder))


@pytest.mark.parametrize(
    ("info", "line"),
    [
        ({"default_split": "Some"}, "data_info.json.default_split: 'Some' is not in split: All"),
        ({"split": {"All": "../../x.json"}}, "is not a path below data/"),
        ({"split": {"All": "/etc/x.json"}}, "is not a path below data/"),
        ({"split": {"All": "tasks.json", "E": "e.json.enc"}}, "are not supported yet"),
        ({"split": {"All": "tasks.csv"}}, "neither a .json nor a .jsonl file"),
        ({"split": {}}, "data_info.json.split: "),
        ({"split": ["tasks.json"]}, "data_info.json.split: "),
        ({"fields": {"text": "query"}}, "data_info.json.fields.text: is no field of a task"),
        ({"fields": {"task": {"name": "task", "convert": "int"}}}, "fields.task"),
        ({"sites": {"shop.test": "no_colon"}}, "is not of the form module:Site"),
        ({"sites": {"Shop.test": "m:S"}}, "is not a host name in lower case"),
        ({"exclude": ["a", "zz"]}, "data_info.json.exclude[1]: 'zz' is no task"),
        ({"success_at": 0}, "data_info.json.success_at: "),
    ],
)
def test_a_wrong_data_info_is_named_by_field(make, info, line):
    assert any(line in problem for problem in found(make(info=info)))


def test_a_folder_without_data_info_says_so(tmp_path):
    (tmp_path / "Empty").mkdir()
    (only,) = found(tmp_path / "Empty")
    assert only.startswith("data_info.json: missing")


def test_a_damaged_data_info_is_named_by_line(make):
    (only,) = found(make(files={"data_info.json": '{\n"split": }'}))
    assert only.startswith("data_info.json: line 2")


def test_a_folder_without_its_data_is_not_pulled_and_says_how(make):
    folder = make(info={"pull": "get it from http://data.test/"})
    (folder / "data" / "tasks.json").unlink()
    examined = examine(find(str(folder)))
    assert examined.state == "not pulled"
    assert "http://data.test/" in lines(examined.problems)[0]


def test_a_split_must_be_a_part_of_the_default_split(make):
    split = [{**TASKS[1]}, {"task_id": "new", "task": "New."}, {**TASKS[2], "task": "Three!"}]
    folder = make(
        info={"split": {"All": "tasks.json", "Some": "some.json"}},
        files={"data/some.json": [*split, {**TASKS[0], "only_use": True}]},
    )
    assert found(folder) == [
        "some.json[1].task_id: 'new' is not in the default split 'All'",
        "some.json[2].task_id: 'c' differs from the default split's in task",
    ]


def test_a_broken_row_of_the_default_split_does_not_spread(make):
    folder = make(
        [TASKS[0], {**TASKS[1], "requires_login": 3}],
        info={"split": {"All": "tasks.json", "Some": "some.json"}, "exclude": ["b"]},
        files={"data/some.json": [TASKS[1]]},
        rubrics={"b": rubric("b")},
    )
    assert found(folder) == ["tasks.json[1].requires_login: is a number, not true or false"]


def test_an_empty_subset_is_valid(make):
    folder = make(
        info={"split": {"All": "tasks.json", "Hard": "hard.json"}}, files={"data/hard.json": []}
    )
    assert found(folder) == []


def test_two_tasks_that_agents_see_alike_are_flagged_BL002(make):
    folder = make([TASKS[0], {**TASKS[0], "task_id": "again"}])
    assert "tasks.json[1].task: the agent sees the same as in [0], 'a'" in warned(folder)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"kind": "url", "host": ""}, "items[0].check.url.host"),
        ({"kind": "url", "host": " "}, "items[0].check.host"),
        ({"kind": "url", "host": "http://shop.test/x"}, "is not a host name"),
        ({"kind": "url", "host": "shop.test", "path": "cart"}, "does not begin with /"),
        ({"kind": "url"}, "items[0].check.url.host"),
        ({"kind": "file", "name": "", "contains": "x"}, "items[0].check.file.name"),
        ({"kind": "file", "name": " ", "contains": "x"}, "items[0].check.name"),
        ({"kind": "file", "name": "a/b", "contains": "x"}, "items[0].check.name"),
        ({"kind": "file", "name": "*.csv", "contains": ""}, "items[0].check.file.contains"),
        ({"kind": "file", "name": "*.csv", "contains": " "}, "nearly every file would match"),
        ({"kind": "answer", "values": []}, "items[0].check.answer.values"),
        ({"kind": "answer", "values": [""]}, "has an empty alternative"),
        ({"kind": "answer", "values": ["a|OR|"]}, "has an empty alternative"),
        ({"kind": "answer", "values": ["a"], "seen": [" "]}, "check.seen[0]"),
        ({"kind": "answer", "values": ["dear"], "match": "number"}, "is not a number"),
        ({"kind": "state", "site": "shop.test", "sql": "DROP TABLE x", "equals": []}, ".sql: "),
        ({"kind": "regex", "pattern": "(["}, "items[0].check"),
    ],
)
def test_an_empty_or_malformed_pattern_is_refused_with_file_and_field_BL002(make, value, line):
    problems = found(make(info={"sites": {"shop.test": "m:S"}}, rubrics={"a": check(value)}))
    assert problems
    assert all(problem.startswith("rubrics/a.json.") for problem in problems)
    assert any(line in problem for problem in problems)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ({"kind": "state", "site": "stop.test", "sql": "SELECT 1", "equals": [[1]]}, "shop.test"),
        (
            {"kind": "probe", "name": "cart", "equals": 1},
            "'cart' is not in data_info.json's probes",
        ),
    ],
)
def test_a_check_of_an_undeclared_site_or_probe_is_refused_BL004(make, value, line):
    (only,) = found(make(info={"sites": {"shop.test": "m:S"}}, rubrics={"a": check(value)}))
    assert line in only


def test_a_cited_fact_that_is_not_stated_is_refused_BL004(make):
    item = {"id": "A1", "requirement": "So.", "weight": 100, "facts": ["F9"]}
    (only,) = found(make(rubrics={"a": rubric(items=[item])}))
    assert only == "rubrics/a.json: fact 'F9' is cited but not stated"


@pytest.mark.parametrize(
    "weights",
    [
        [0, 0],
        [-5, 105],
        ["40", "60"],
        [50, 49.999999],
        [True, 99],
        [50],
        ["1/0", 100],
        [None, 100],
    ],
)
def test_wrong_weights_are_refused_before_anything_is_spent_BL005(make, weights):
    items = [
        {"id": f"A{n}", "requirement": "So.", "weight": weight} for n, weight in enumerate(weights)
    ]
    problems = found(make(rubrics={"a": rubric(items=items)}))
    assert problems
    assert all(problem.startswith("rubrics/a.json") for problem in problems)


@pytest.mark.parametrize("weight", ["NaN", "Infinity", "-Infinity"])
def test_a_weight_that_is_no_finite_number_is_refused_BL005(make, weight):
    text = (
        '{"task_id": "a", "items": [{"id": "A1", "requirement": "So.", "weight": ' + weight + "}]}"
    )
    (only,) = found(make(files={"rubrics/a.json": text}))
    assert only.startswith("rubrics/a.json")


def test_exact_thirds_are_weights_BL005(make):
    items = [{"id": f"A{n}", "requirement": "So.", "weight": "100/3"} for n in range(3)]
    assert found(make(rubrics={"a": rubric(items=items)})) == []


def test_a_rubric_without_items_is_refused_BL042(make):
    (only,) = found(make(rubrics={"a": rubric(items=[])}))
    assert only.startswith("rubrics/a.json.items: ")


def test_a_task_that_asks_for_both_and_has_one_item_is_suspect_BL007(make):
    tasks = [{"task_id": "a", "task": "Return BOTH orders."}]
    (only,) = warned(make(tasks, rubrics={"a": rubric()}))
    assert "rubrics/a.json.items: the task says 'BOTH', but there is one item" in only
    two = [{"id": f"A{n}", "requirement": "So.", "weight": 50} for n in range(2)]
    assert warned(make(tasks, rubrics={"a": rubric(items=two)})) == []


def test_a_rubric_for_another_wording_is_refused_and_both_keys_are_named(make):
    (only,) = found(make(rubrics={"a": rubric(task_key="0" * 64)}))
    assert only.startswith("rubrics/a.json.task_key: is " + "0" * 64)
    assert "but the task's key is" in only


def test_a_rubric_of_another_task_is_refused(make):
    (only,) = found(make(rubrics={"a": rubric("b")}))
    assert only == "rubrics/a.json.task_id: is 'b', but the file is that of 'a'"


def test_a_canary_in_a_task_text_is_refused(make):
    canary = "BUB-CANARY-0123456789abcdef"
    folder = make(
        [{"task_id": "a", "task": f"Find it. {canary}"}], rubrics={"a": rubric(canary=canary)}
    )
    problems = found(folder)
    assert "tasks.json[0].task: holds the canary of a rubric" in problems
    assert any(line.startswith("rubrics/a.json.canary") for line in problems)


def test_solutions_must_parse_and_match_a_task(make):
    folder = make(solutions={"a": [{"navigate": "http://x.test/"}], "zz": [{"done": ""}]})
    assert found(folder) == [
        "solutions/a.json: the last action, and only the last, is done",
        "solutions/zz.json: matches no task of the default split",
    ]


IMPORT = "from browseruse_bench.eval.base_evaluator import BaseEvaluator\n"
METHOD = "    def evaluate_task(self, task_id, result):\n        return {}\n"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("class A:\n" + METHOD, "has no subclass of BaseEvaluator"),
        (IMPORT + "class A(BaseEvaluator):\n    pass\n", "with a method evaluate_task"),
        (
            IMPORT + "class A(BaseEvaluator):\n" + METHOD + "class B(BaseEvaluator):\n" + METHOD,
            "has 2 evaluators, A, B; it must have one",
        ),
        ("x = (", "is not Python"),
        ("x = '\0'", "is not Python"),
    ],
)
def test_an_evaluator_file_that_can_be_none_is_refused_unrun(make, source, text):
    (only,) = found(make(files={"evaluator.py": source}))
    assert only.startswith("evaluator.py: ")
    assert text in only


@pytest.mark.parametrize(
    "source",
    [
        IMPORT + "class A(BaseEvaluator):\n" + METHOD,
        "import browseruse_bench.eval.base_evaluator as b\nclass A(b.BaseEvaluator):\n" + METHOD,
        IMPORT.replace("import BaseEvaluator", "import BaseEvaluator as Base")
        + "class A(Base):\n"
        + METHOD,
        IMPORT + "class Ours(BaseEvaluator):\n    pass\nclass A(Ours):\n" + METHOD,
        "from official import Judge\nclass A(Judge):\n    pass\n",
        IMPORT + "raise SystemExit('run')\nclass A(BaseEvaluator):\n" + METHOD,
    ],
)
def test_an_evaluator_file_is_read_not_run(make, source):
    assert found(make(files={"evaluator.py": source})) == []


def test_what_cannot_be_graded_is_warned_about(make):
    (only,) = warned(make([{**TASKS[0], "expected_result": "x"}, TASKS[1]]))
    assert "1 of 2 tasks have neither a rubric nor an expected_result" in only


def test_an_unknown_difficulty_and_another_name_are_only_warned_about(make):
    tasks = [{"task_id": "a", "task": "T.", "difficulty": "Level 3", "expected_result": 1}]
    first, second = warned(make(tasks, info={"name": "Other"}))
    assert first.startswith("data_info.json.name: is 'Other'")
    assert second == "tasks.json.difficulty: 'Level 3' (1 tasks) is none of easy, medium, hard"


VALUE = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4)
ROW = st.dictionaries(
    st.sampled_from(["task_id", "task", "website", "expected_result", "requires_login", "x"]),
    VALUE | st.lists(VALUE, max_size=2),
)


@given(row=ROW)
def test_any_row_is_a_task_or_has_a_problem(row, tmp_path_factory):
    task, problems = Reader({}, tmp_path_factory.getbasetemp()).task(row)
    assert (task is None) == bool(problems)
    if task is not None:
        assert task.task_id == row["task_id"]
        assert task.task == row["task"]
