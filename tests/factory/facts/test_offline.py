import pytest

from browseruse_bench.benchmarks.fact_checks import FactFolder, facts_beside
from browseruse_bench.benchmarks.load import content_sha256
from browseruse_bench.errors import DataError
from browseruse_bench.factory.facts.live import _before, _Subject
from browseruse_bench.factory.facts.offline import extract, text_of_mhtml
from browseruse_bench.factory.facts.sources import Source, Surroundings
from browseruse_bench.records.fact_check import FactCheck, fact_key
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.store.archive.pages import write_page
from browseruse_bench.store.archive.warc import WarcWriter
from tests.records.made_rubrics import released
from tests.store.archive.made_archive import ABOUT, AT, archived, mhtml, page_of


def source(tmp_path, **fact):
    """A rubric of one fact, whose facts/ folder is below tmp_path."""
    made = released()
    made["facts"][0].update(fact)
    rubric = Rubric.model_validate(made)
    return Source(
        rubric=rubric,
        folder=FactFolder(tmp_path / "facts"),
        surroundings=Surroundings(),
        facts=rubric.facts[:1],
    )


def archives(tmp_path):
    folder = tmp_path / "facts" / "archives"
    folder.mkdir(parents=True)
    return folder


def only(found):
    (one,) = found
    return one


def test_a_quote_is_found_in_the_archived_text(tmp_path):
    _, page = archived(archives(tmp_path), "Our kettle\nKettle, 31.90")
    found = only(extract(source(tmp_path, archived=[page.key])))
    assert (found.found, found.reason) == ("confirmed", "in the text of http://shop.test/kettle")


def test_a_quote_that_is_only_in_the_rendered_document_is_found_there(tmp_path):
    _, page = archived(
        archives(tmp_path), "Our kettle", html="<p>Kettle, <b>31</b>.90<script>no</script>"
    )
    found = only(extract(source(tmp_path, archived=[page.key])))
    assert (found.found, found.reason) == ("confirmed", "in the MHTML of http://shop.test/kettle")


def test_an_archive_without_the_quote_is_no_evidence(tmp_path):
    _, page = archived(archives(tmp_path), "Kettle, 32.90")
    found = only(extract(source(tmp_path, archived=[page.key])))
    assert found.found == "not in archive"
    assert "Kettle, 31.90" in found.reason


def test_a_missing_archive_a_torn_one_and_none_at_all_are_told_apart(tmp_path):
    path, page = archived(archives(tmp_path), "Kettle, 31.90")
    given = source(tmp_path, archived=[page.key])
    path.write_bytes(path.read_bytes()[:-50])
    torn = only(extract(given))
    assert (torn.found, "torn" in torn.reason) == ("damaged", True)
    path.unlink()
    missing = only(extract(source(tmp_path, archived=[page.key])))
    assert (missing.found, "in no archive" in missing.reason) == ("no archive", True)
    assert only(extract(source(tmp_path, archived=None))).found == "no archive"
    assert only(extract(source(tmp_path, archived=None, how="site"))).found == "own site"


def test_a_page_is_found_in_an_archive_of_another_name_and_a_bare_warc(tmp_path):
    folder = archives(tmp_path)
    path, page = archived(folder, "Kettle, 31.90")
    path.rename(folder / "session.wacz")
    bare, parts = page_of("Kettle, 31.90 again")
    with WarcWriter(folder / "b.warc.gz", ABOUT) as writer:
        write_page(writer, bare, parts, AT)
    for key in (page.key, bare.key):
        assert only(extract(source(tmp_path, archived=[key]))).found == "confirmed"


def test_a_package_that_does_not_hold_the_page_that_it_is_named_after_is_damaged(tmp_path):
    path, page = archived(archives(tmp_path), "Kettle, 31.90")
    path.rename(path.with_name(f"{'0' * 64}.wacz"))
    found = only(extract(source(tmp_path, archived=["0" * 64])))
    assert (found.found, "named after" in found.reason) == ("damaged", True)


def check_of(given, outcome, page):
    return FactCheck(
        task_id="kettle", fact="F1", fact_key=fact_key(given.facts[0]), at="2026-09-01T10:00:00Z",
        outcome=outcome, quote="Kettle, 31.90", pages=(page.key,),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "outcome", "found"),
    [
        ("Kettle, 31.90", "confirmed", "confirmed"),
        ("Kettle, 32.90", "changed", "confirmed"),
        ("Kettle, 32.90", "confirmed", "not in archive"),
        ("Kettle, 31.90", "changed", "not in archive"),
    ],
)
def test_a_later_check_is_held_to_its_archive_too(tmp_path, text, outcome, found):
    _, page = archived(archives(tmp_path), text)
    given = source(tmp_path, archived=None)
    given.folder.append(check_of(given, outcome, page))
    _fact, check = extract(given)
    assert (check.checked, check.found) == ("2026-09-01T10:00:00Z", found)


@pytest.mark.parametrize(
    ("text", "by_address", "known"),
    [("Kettle, 31.90", True, True), ("Kettle, 31.90", False, False), ("Kettle", True, False)],
)
def test_only_a_page_that_was_opened_by_its_address_says_what_opening_it_showed(
    tmp_path, text, by_address, known
):
    path, page = archived(archives(tmp_path), text, by_address=by_address)
    given = source(tmp_path, archived=[page.key])
    subject = _Subject(task_id="kettle", fact=given.facts[0], pages=())
    assert _before(given.folder, subject) == (text, known)
    path.write_bytes(b"torn")
    assert _before(given.folder, subject) == (None, False)


def test_checks_are_only_appended_and_a_torn_last_one_was_never_made(tmp_path):
    _, page = archived(archives(tmp_path), "Kettle, 31.90")
    given = source(tmp_path)
    path = tmp_path / "facts" / "kettle" / "F1" / "checks.jsonl"
    given.folder.append(check_of(given, "confirmed", page))
    first = path.read_bytes()
    given.folder.append(check_of(given, "changed", page))
    assert path.read_bytes().startswith(first)
    path.write_bytes(path.read_bytes()[:-5])
    assert [c.outcome for c in given.folder.checks("kettle", "F1")] == ["confirmed"]
    path.write_bytes(b'{"outcome":"confirmed"}\n')
    with pytest.raises(DataError, match="checks.jsonl: line 1: task_id: Field required"):
        given.folder.checks("kettle", "F1")


def test_a_check_makes_no_other_benchmark(tmp_path):
    _, page = archived(archives(tmp_path), "Kettle, 31.90")
    (tmp_path / "data.json").write_text("{}")
    given = source(tmp_path)
    before, key = content_sha256(tmp_path), given.rubric.key
    given.folder.append(check_of(given, "confirmed", page))
    assert (content_sha256(tmp_path), given.rubric.key) == (before, key)
    (tmp_path / "data.json").write_text("{ }")
    assert content_sha256(tmp_path) != before


def test_the_facts_of_a_rubric_are_beside_it(tmp_path):
    for rubric, facts in (
        ("bench/rubrics/kettle.json", "bench/facts"),
        ("clean/rubrics/kettle/r2.json", "clean/facts"),
        ("kettle.json", "facts"),
    ):
        assert facts_beside(tmp_path / rubric) == tmp_path / facts


def test_the_text_of_frames_is_part_of_the_rendered_document():
    assert "one" in text_of_mhtml(mhtml("<p>one<style>.two{}</style>"))
    assert "two" not in text_of_mhtml(mhtml("<p>one<style>.two{}</style>"))
