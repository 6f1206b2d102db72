import json
import time
from pathlib import Path

import pytest

from browseruse_bench.benchmarks.load import content_sha256, load_benchmark
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.store.files import escaped
from tests.benchmarks.small import TASKS, put, rubric

SOLUTION = [{"navigate": "http://shop.test/"}, {"done": "31.90"}]


def jsonl(*rows, end="\n"):
    return "".join(json.dumps(row) + end for row in rows)


def test_a_benchmark_has_its_tasks_in_file_order(make, tmp_path):
    folder = make()
    benchmark = load_benchmark("Small", cwd=tmp_path)
    assert (benchmark.name, benchmark.path, benchmark.split) == ("Small", folder, "All")
    assert [t.task_id for t in benchmark.tasks] == ["a", "b", "c"]
    assert benchmark.task("b").difficulty == "easy"
    assert benchmark.evaluator is None
    with pytest.raises(ConfigError, match="unknown task 'B'"):
        benchmark.task("B")


def test_fields_that_are_not_ours_are_kept_and_never_seen_by_an_agent_BL085(make, tmp_path):
    secret = {"expected_result": "S1", "difficulty": "S2", "category": "S3", "steps": ["S4"]}
    make([{"task_id": "a", "task": "T.", "answer_key": {"x": "S5"}, **secret}])
    task = load_benchmark("Small", cwd=tmp_path).task("a")
    assert task.row["answer_key"] == {"x": "S5"}
    seen = task.view.as_line()
    assert not any(f"S{n}" in seen for n in range(1, 6))
    assert set(task.view.as_json()) <= {"task_id", "text", "website", "start_url", "attachments"}


def test_a_row_without_an_id_is_an_error_and_never_gets_its_position_BL001(make, tmp_path):
    make([{"task": f"Task {n}."} for n in range(6)])
    with pytest.raises(DataError) as caught:
        load_benchmark("Small", cwd=tmp_path)
    (problem,) = caught.value.problems
    assert "tasks.json.task_id: missing in all 6 rows" in problem


def test_an_id_stays_with_its_row_whatever_the_order_BL001(make, tmp_path):
    folder = make()
    before = load_benchmark("Small", cwd=tmp_path)
    put(folder / "data" / "tasks.json", TASKS[::-1])
    after = load_benchmark("Small", cwd=tmp_path)
    assert {t.task_id: t.task for t in before.tasks} == {t.task_id: t.task for t in after.tasks}
    assert before.revision == after.revision
    assert before.content_sha256 != after.content_sha256


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"tasks": TASKS, "version": 3}),
        "\ufeff" + json.dumps(TASKS),
        json.dumps(TASKS, indent=2).replace("\n", "\r\n"),
    ],
)
def test_forms_of_a_json_file_load_alike(make, tmp_path, content):
    make(content)
    assert [t.task_id for t in load_benchmark("Small", cwd=tmp_path).tasks] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "content",
    [
        jsonl(*TASKS),
        jsonl(*TASKS).rstrip("\n"),
        "\ufeff" + jsonl(*TASKS, end="\r\n"),
        "\n" + jsonl(*TASKS, end="\n\n") + "  \n",
        jsonl({"canary": "BENCHMARK-CANARY"}, *TASKS),
        "\ufeff" + jsonl({"canary": "BENCHMARK-CANARY"}, *TASKS, end="\r\n") + "\r\n",
    ],
)
def test_canary_line_bom_crlf_and_blank_lines_change_no_count_BL087(make, tmp_path, content):
    make(info={"split": {"All": "t.jsonl"}}, files={"data/t.jsonl": content})
    benchmark = load_benchmark("Small", cwd=tmp_path)
    assert [t.task_id for t in benchmark.tasks] == ["a", "b", "c"]
    expected = {"canary": "BENCHMARK-CANARY"} if "canary" in content else {}
    assert benchmark.metadata == expected


def test_a_line_separator_inside_a_text_does_not_end_a_row(make, tmp_path):
    row = json.dumps({"task_id": "a", "task": "One\u2028two\u0085three."}, ensure_ascii=False)
    make(info={"split": {"All": "t.jsonl"}}, files={"data/t.jsonl": row})
    assert load_benchmark("Small", cwd=tmp_path).task("a").task == "One\u2028two\u0085three."


def test_a_declared_mapping_reads_foreign_rows(make, tmp_path):
    row = {"id": 5, "query": "Q?", "target_website": None, "login_required": "yes", "level": "Hard"}
    fields = {
        "task_id": {"name": "id", "convert": "string"},
        "task": "query",
        "website": "target_website",
        "requires_login": {"name": "login_required", "convert": "boolean"},
        "difficulty": "level",
    }
    make([row], info={"fields": fields})
    (task,) = load_benchmark("Small", cwd=tmp_path).tasks
    assert (task.task_id, task.task, task.website) == ("5", "Q?", None)
    assert (task.requires_login, task.difficulty) == (True, "Hard")
    assert "query" not in task.row


def test_a_foreign_row_without_a_mapping_says_which_mapping_to_write(make, tmp_path):
    make([{"id": 5, "query": "Q?"}, {"id": 6, "query": "R?"}])
    with pytest.raises(DataError) as caught:
        load_benchmark("Small", cwd=tmp_path)
    first, second = caught.value.problems
    assert '"fields": {"task_id": {"name": "id", "convert": "string"}}' in first
    assert '"fields": {"task": "query"}' in second


def test_a_mapped_field_is_never_taken_from_another_one(make, tmp_path):
    rows = [{"id": "1", "task": "Ours.", "query": "Q?"}, {"id": "2", "task": "Ours."}]
    make(rows, info={"fields": {"task_id": "id", "task": "query"}})
    with pytest.raises(DataError) as caught:
        load_benchmark("Small", cwd=tmp_path)
    (problem,) = caught.value.problems
    assert "tasks.json[1].query: missing" in problem


def test_encrypted_rows_and_files_are_said_to_be_unsupported(make, tmp_path):
    make([{"task_id": "a", "encrypted_question": "x"}])
    with pytest.raises(DataError, match="not supported yet"):
        load_benchmark("Small", cwd=tmp_path)
    make(info={"split": {"All": "t.enc"}})
    with pytest.raises(DataError, match="not supported yet"):
        load_benchmark("Small", cwd=tmp_path)


@pytest.mark.parametrize(
    "task_id",
    ["../../x", "/etc/x", "a/b", "..", "CON", "x" * 300, "a\u2215b", "https://x.test/?q=1", "."],
)
def test_a_strange_id_loads_and_never_leaves_its_folder_BL098(make, tmp_path, task_id):
    folder = make(
        [{"task_id": task_id, "task": "T."}],
        rubrics={task_id: rubric(task_id)},
        solutions={task_id: SOLUTION},
    )
    benchmark = load_benchmark("Small", cwd=tmp_path)
    assert benchmark.task(task_id).task_id == task_id
    assert benchmark.rubric(task_id).task_id == task_id
    assert benchmark.solution(task_id).n_steps == 1
    name = escaped(task_id)
    assert Path(name).name == name
    assert (folder / "rubrics" / f"{name}.json").is_file()


@pytest.mark.parametrize("task_id", ["a\u0000b", "a\nb", ""])
def test_an_id_that_is_no_name_is_refused_BL098(make, tmp_path, task_id):
    make([{"task_id": task_id, "task": "T."}])
    with pytest.raises(DataError, match=r"tasks\.json\[0\]\.task_id"):
        load_benchmark("Small", cwd=tmp_path)


def test_a_missing_subset_file_is_a_problem_of_its_split_only(make, tmp_path):
    split = {"All": "tasks.json", "Hard": "hard.json", "Easy": "easy.json"}
    make(info={"split": split}, files={"data/easy.json": [TASKS[1]]})
    assert len(load_benchmark("Small", cwd=tmp_path).tasks) == 3
    assert [t.task_id for t in load_benchmark("Small", "Easy", cwd=tmp_path).tasks] == ["b"]
    with pytest.raises(DataError, match=r"split\.Hard: 'hard\.json' is missing"):
        load_benchmark("Small", "Hard", cwd=tmp_path)


def test_an_unknown_split_names_the_known_ones(make, tmp_path):
    make()
    with pytest.raises(ConfigError, match="unknown split 'all'; did you mean 'All'"):
        load_benchmark("Small", "all", cwd=tmp_path)


def test_data_that_is_not_pulled_says_how_to_get_it(tmp_path):
    with pytest.raises(DataError, match="Lexmount/LexBench-Browser"):
        load_benchmark("LexBench-Browser", cwd=tmp_path)


def test_all_problems_reach_the_error(make, tmp_path):
    make([{"task_id": "a"}, {"task": "T."}])
    with pytest.raises(DataError) as caught:
        load_benchmark("Small", cwd=tmp_path)
    assert len(caught.value.problems) == 2
    assert all(str(tmp_path) in problem for problem in caught.value.problems)


def test_rubrics_and_solutions_come_by_task_id(make, tmp_path):
    make(rubrics={"a": rubric()}, solutions={"a": SOLUTION})
    benchmark = load_benchmark("Small", cwd=tmp_path)
    assert benchmark.rubric("a").items[0].weight == 100
    assert benchmark.rubric("b") is None
    assert benchmark.solution("a").n_steps == 1
    with pytest.raises(ConfigError, match=r"task 'b' has no reference solution .*b\.json"):
        benchmark.solution("b")


def test_a_changed_solution_changes_their_key(make, tmp_path):
    folder = make(solutions={"a": SOLUTION})
    before = load_benchmark("Small", cwd=tmp_path).solutions_key()
    assert before == load_benchmark("Small", cwd=tmp_path).solutions_key()
    put(folder / "solutions" / "a.json", [{"navigate": "http://shop.test/"}, {"done": "32"}])
    assert load_benchmark("Small", cwd=tmp_path).solutions_key() != before


def test_the_revision_is_what_agents_see_unless_it_is_declared(make, tmp_path):
    make()
    base = load_benchmark("Small", cwd=tmp_path)
    make([{**TASKS[0], "expected_result": "31.90"}, *TASKS[1:]])
    assert load_benchmark("Small", cwd=tmp_path).revision == base.revision
    make([{**TASKS[0], "task": "Find the price of the chair."}, *TASKS[1:]])
    assert load_benchmark("Small", cwd=tmp_path).revision != base.revision
    make(info={"revision": "2026-08"})
    assert load_benchmark("Small", cwd=tmp_path).revision == "2026-08"


def test_the_revision_is_that_of_the_default_split_for_every_split(make, tmp_path):
    split = {"All": "tasks.json", "Easy": "easy.json"}
    make(info={"split": split}, files={"data/easy.json": [TASKS[1]]})
    whole, easy = (load_benchmark("Small", s, cwd=tmp_path) for s in ("All", "Easy"))
    assert whole.revision == easy.revision


def test_the_content_hash_sees_every_file_but_caches_and_hidden_ones(make):
    folder = make()
    before = content_sha256(folder)
    put(folder / "__pycache__" / "evaluator.pyc", b"x")
    put(folder / ".git" / "HEAD", "x")
    put(folder / "data" / ".DS_Store", "x")
    assert content_sha256(folder) == before
    put(folder / "README.md", "x")
    with_readme = content_sha256(folder)
    assert with_readme != before
    (folder / "README.md").rename(folder / "LIESMICH.md")
    assert content_sha256(folder) != with_readme


def test_attachments_are_hashed_files_below_data(make, tmp_path):
    make(
        [{"task_id": "a", "task": "T.", "attachments": ["files/report.txt"]}],
        files={"data/files/report.txt": b"hello"},
    )
    (attachment,) = load_benchmark("Small", cwd=tmp_path).task("a").attachments
    assert attachment.name == "files/report.txt"
    assert attachment.sha256.startswith("2cf24dba5fb0a30e")


@pytest.mark.parametrize(
    "name",
    ["../data_info.json", "/etc/hostname", "files/../../README.md", "missing.txt", "", 7, "a\\b"],
)
def test_an_attachment_outside_data_or_missing_is_refused_BL098(make, tmp_path, name):
    make([{"task_id": "a", "task": "T.", "attachments": [name]}])
    with pytest.raises(DataError, match=r"tasks\.json\[0\]\.attachments: \[0\]"):
        load_benchmark("Small", cwd=tmp_path)


def test_an_attachment_link_out_of_data_is_refused(make, tmp_path):
    folder = make([{"task_id": "a", "task": "T.", "attachments": ["link.txt"]}])
    put(folder / "rubrics" / "README.md", "secret")
    (folder / "data" / "link.txt").symlink_to(folder / "rubrics" / "README.md")
    with pytest.raises(DataError, match="leads out of data/"):
        load_benchmark("Small", cwd=tmp_path)


def test_the_task_file_itself_is_no_attachment_BL085(make, tmp_path):
    make([{"task_id": "a", "task": "T.", "attachments": ["tasks.json"]}])
    with pytest.raises(DataError, match="not for agents"):
        load_benchmark("Small", cwd=tmp_path)


def test_three_thousand_tasks_load_within_two_seconds(make, tmp_path):
    make([{"task_id": f"t{n}", "task": f"Task {n}.", "website": "x.test"} for n in range(3000)])
    started = time.process_time()
    assert len(load_benchmark("Small", cwd=tmp_path).tasks) == 3000
    assert time.process_time() - started < 2
