"""No trace is too long for a verdict, and what an agent floods it with earns and costs nothing."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from browseruse_bench.eval.corroboration import Evidence
from browseruse_bench.eval.findings.divide import chunked, parse_ratings, pieces_of
from browseruse_bench.eval.findings.reply import ReplyError
from browseruse_bench.eval.material import take_apart
from browseruse_bench.eval.prepare import Budget
from browseruse_bench.models.base import OutageError, RefusalError, TooLongError, TruncatedError
from tests.eval.findings.believer import Believer
from tests.eval.findings.made import HOME, cite, item, judged, rubric, statuses

PRICE = rubric(item("A1_price", "page", "$30"), item("A2_form", "deliverable"))
SMALL = Budget(
    page_chars=12_000, chunk_chars=12_000, item_chars=6000, chunk_images=4, item_images=2
)


def noise(n, seed):
    rng = random.Random(seed)
    return "\n".join(f"row {rng.randrange(10**6)} of noise" for _ in range(n))


def flooded(make_trace, *, at=7, pages=18, text="Kettle $30", **options):
    """Many long pages, one of which says what the rubric asks about, far from its ends."""
    page = make_trace.page
    steps = []
    for n in range(pages):
        body = noise(200, n).split("\n")
        if n == at:
            body[101] = text
        steps.append(page(f"{HOME}{n}", "\n".join(body), click=f"a{n}", _shot=b"%d" % n))
    return make_trace(*steps, final=page(HOME, "over", _shot=b"end"), answer="$30.", **options)


class Reader(Believer):
    """Believes, but rates only pieces that hold a word."""

    def __init__(self, word):
        self.word = word

    def __call__(self, text, sample=0):
        reply = super().__call__(text, sample)
        if "pieces" not in reply:
            return reply
        blocks = re.split(r"^piece (\S+)$", text, flags=re.MULTILINE)
        holding = {
            n for n, body in zip(blocks[1::2], blocks[2::2], strict=True) if self.word in body
        }
        return {"pieces": [p for p in reply["pieces"] if p["piece"] in holding]}


def test_a_flooded_trace_is_divided_by_itself_and_graded(make_trace):
    folder = flooded(make_trace)
    verdict, model = judged(Reader("Kettle"), folder, PRICE, budget=SMALL)
    assert statuses(verdict) == {"A1_price": "met", "A2_form": "met"}
    assert verdict.findings[0].citations
    assert verdict.details["mode"] == "divide"
    assert verdict.details["divided"] == "more text than is shown at a time (page)"
    assert len([r for r in model.requests if "pieces" in r.schema_["properties"]]) > 5


def test_an_item_is_judged_on_the_pieces_that_were_named_for_it(make_trace):
    folder = flooded(make_trace, text="A rare teapot")
    made = rubric(item("A1_tea"), item("A2_form", "deliverable"))
    _, model = judged(Reader("teapot"), folder, made, budget=SMALL)
    about = [r.text for r in model.requests if r.text.rstrip().endswith("in this order: A1_tea")]
    assert len(about) == 1
    assert "A rare teapot" in about[0]
    assert "| over" in about[0]
    assert "| $30." in about[0]
    assert "page text of steps 1-7, 9-18" in about[0]
    assert len(about[0]) < 40_000


def test_a_stretch_of_a_page_has_a_mark_at_both_ends(make_trace):
    page = make_trace.page
    rows = noise(2000, 1).split("\n")
    rows[1000] = "A rare teapot"
    folder = make_trace(
        page(HOME, "\n".join(rows), click="a"), final=page(HOME, "over"), answer="x"
    )
    made = rubric(item("A1_tea"))
    _, model = judged(Reader("teapot"), folder, made, budget=replace(SMALL, item_chars=40_000))
    about = next(r.text for r in model.requests if r.text.rstrip().endswith("order: A1_tea"))
    marks = re.findall(r"^\[([\d,]+) characters are left out here\]$", about, re.MULTILINE)
    shown = sum(len(row) + 1 for row in rows if f"| {row}\n" in about)
    assert len(marks) == 2
    assert abs(sum(int(m.replace(",", "")) for m in marks) + shown - len("\n".join(rows))) < 100


def test_a_value_is_found_although_the_model_rates_nothing(make_trace):
    def answer(text, sample):
        reply = Believer()(text, sample)
        return {"pieces": []} if "pieces" in reply else reply

    verdict, model = judged(answer, flooded(make_trace), PRICE, budget=SMALL)
    assert statuses(verdict)["A1_price"] == "met"
    about = next(r.text for r in model.requests if r.text.rstrip().endswith("order: A1_price"))
    assert "| Kettle $30" in about


def test_no_request_is_longer_than_its_budget(make_trace):
    folder = flooded(make_trace)
    verdict, model = judged(Believer(), folder, PRICE, budget=SMALL, mode="divide")
    rules = 8000
    for request in model.requests[:-1]:
        assert len(request.text) < rules + 2 * SMALL.chunk_chars
        assert len(request.images) <= SMALL.chunk_images
    assert verdict.reason is None


def test_every_piece_of_the_trace_is_rated_once(make_trace):
    folder = flooded(make_trace)
    _, model = judged(Believer(), folder, PRICE, budget=SMALL, mode="divide")
    rated = [
        name
        for r in model.requests
        if "pieces" in r.schema_["properties"]
        for name in re.search(r"^The pieces: (.*)$", r.text, re.MULTILINE)[1].split(", ")
    ]
    assert len(rated) == len(set(rated))
    text = "\n".join(r.text for r in model.requests if "pieces" in r.schema_["properties"])
    for n in range(18):
        assert all(f"| {row}" in text for row in noise(200, n).split("\n")[:3])


@pytest.mark.parametrize("mode", ["whole", "per_item"])
def test_a_request_that_is_too_long_for_the_model_is_divided(make_trace, mode):
    folder = flooded(make_trace, pages=8)
    believer = Believer()

    def answer(text, sample):
        if len(text) > 25_000:
            raise TooLongError("prompt is too long: 9000 tokens > 8192 maximum")
        return believer(text, sample)

    verdict, _ = judged(answer, folder, PRICE, mode=mode)
    assert statuses(verdict) == {"A1_price": "met", "A2_form": "met"}
    assert verdict.details["divided"].startswith("TooLongError: prompt is too long")
    assert verdict.details["mode"] == "divide"


def test_a_small_context_halves_until_it_fits(make_trace):
    folder = flooded(make_trace, pages=12)
    believer = Believer()

    def answer(text, sample):
        if len(text) > 14_000:
            raise TooLongError("too long")
        return believer(text, sample)

    verdict, _ = judged(answer, folder, PRICE)
    assert verdict.reason is None
    assert statuses(verdict)["A2_form"] == "met"


@pytest.mark.parametrize("error", [TooLongError, RefusalError, TruncatedError, OutageError])
def test_a_judge_that_never_answers_is_a_fault_after_a_bounded_number_of_calls(make_trace, error):
    calls = []

    def answer(text, sample):
        calls.append(text)
        raise error("no")

    verdict, _ = judged(answer, flooded(make_trace, pages=10), PRICE, budget=SMALL)
    assert verdict.reason == "judge_fault"
    assert verdict.details["fault"] == error.__name__.removesuffix("Error").lower()
    assert len(calls) < 250
    if error is not TooLongError:
        assert len(calls) < 60


def test_a_page_that_the_model_declines_to_read_takes_nothing_else_with_it(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "Welcome", navigate=HOME),
        page(HOME + "k", "Kettle $30", click="k"),
        page(HOME + "x", "FORBIDDEN words", click="x"),
        final=page(HOME, "over"),
        answer="It costs $30",
    )
    believer = Believer()

    def answer(text, sample):
        if "| FORBIDDEN" in text:
            raise RefusalError("declined")
        return believer(text, sample)

    for mode in ("whole", "per_item", "divide"):
        verdict, _ = judged(answer, folder, PRICE, mode=mode)
        assert statuses(verdict) == {"A1_price": "met", "A2_form": "met"}, mode
        assert verdict.details["unread"] == ["3.page@0"]
        assert any("page text of step 3" in line for line in verdict.details["left_out"])


def test_an_outage_while_rating_is_a_fault(make_trace):
    def answer(text, sample):
        if "# Pieces" in text:
            raise OutageError("down")
        return Believer()(text, sample)

    verdict, _ = judged(answer, flooded(make_trace), PRICE, budget=SMALL)
    assert verdict.reason == "judge_fault"


def test_ratings_that_fit_no_form_cost_no_verdict(make_trace):
    def answer(text, sample):
        return {"rating": 9} if "# Pieces" in text else Believer()(text, sample)

    verdict, _ = judged(answer, flooded(make_trace), PRICE, budget=SMALL)
    assert statuses(verdict) == {"A1_price": "met", "A2_form": "met"}


def test_the_number_of_pages_that_are_rated_is_bounded_and_values_come_first(make_trace):
    folder = flooded(make_trace, at=17, pages=30)
    tight = Budget(page_chars=12_000, chunk_chars=12_000, rated_chars=36_000, rated_images=5)
    verdict, model = judged(Reader("Kettle"), folder, PRICE, budget=tight)
    rating = [r for r in model.requests if "pieces" in r.schema_["properties"]]
    assert sum(len(r.images) for r in rating) <= 5
    assert sum(len(r.text) for r in rating) < 36_000 * 2 + 8000 * len(rating)
    assert any("| Kettle $30" in r.text for r in rating)
    assert statuses(verdict)["A1_price"] == "met"


def test_what_no_request_showed_is_listed(make_trace):
    folder = flooded(make_trace)
    verdict, _ = judged(Reader("Kettle"), folder, PRICE, budget=replace(SMALL, images=5))
    listed = " ".join(verdict.details["left_out"])
    assert "8.page@0" in verdict.details["judged_on"]["A1_price"]
    assert "pictures of steps" in listed
    assert "(page)" in listed


def test_a_long_answer_and_many_steps_are_read_to_the_end(make_trace):
    page = make_trace.page
    folder = make_trace(
        *(page(f"{HOME}{n}", f"page {n}", click="a") for n in range(260)),
        final=page(HOME, "over"),
        answer=noise(2500, 1) + "\nThe conclusion: $30\n" + noise(2500, 2),
    )
    made = rubric(item("A1_conclusion", "deliverable", "$30"))
    verdict, model = judged(Reader("conclusion"), folder, made)
    assert verdict.details["mode"] == "divide"
    about = next(r.text for r in model.requests if r.text.rstrip().endswith("A1_conclusion"))
    assert "| The conclusion: $30" in about
    assert statuses(verdict) == {"A1_conclusion": "met"}


@pytest.mark.parametrize("mode", ["whole", "per_item", "divide"])
def test_a_model_that_reads_no_pictures_is_sent_none(make_trace, mode):
    folder = flooded(make_trace, pages=6)
    made = rubric(item("A1_look", "visual", "$30"), item("A2_price", "page", "$30"))
    verdict, model = judged(Believer(), folder, made, mode=mode, budget=Budget().text_only())
    assert sum(len(request.images) for request in model.requests) == 0
    assert verdict.reason is None
    assert set(statuses(verdict).values()) == {"unsupported"}
    seen = flooded(make_trace, pages=6, at=3)
    verdict, _ = judged(Believer(), seen, made, mode=mode, budget=Budget().text_only())
    assert set(statuses(verdict).values()) == {"met"}


def test_flooding_gains_nothing(make_trace):
    folder = flooded(make_trace, at=99, pages=10)
    for mode in ("whole", "per_item", "divide"):
        verdict, _ = judged(Believer(), folder, PRICE, budget=SMALL, mode=mode)
        assert statuses(verdict)["A1_price"] == "unsupported"
        assert verdict.reason is None


def test_pieces_cover_a_trace_without_overlap(make_trace):
    material = take_apart(Evidence(flooded(make_trace, pages=5)))
    pieces = pieces_of(material, 1000)
    assert len({p.id for p in pieces}) == len(pieces)
    for section in material.sections:
        parts = sorted(p.range for p in pieces if p.section == section.id)
        assert "".join(section.text[a:b] for a, b in parts) == section.text
    chunks = chunked(pieces, SMALL)
    assert [p for chunk in chunks for p in chunk] == pieces
    for chunk in chunks:
        assert sum(p.n_chars for p in chunk) <= SMALL.chunk_chars or len(chunk) == 1
        assert sum(p.shot is not None for p in chunk) <= SMALL.chunk_images


def test_a_rating_of_what_was_not_asked_is_not_read():
    value = {
        "pieces": [
            {"piece": "piece 1", "decisive": ["A"], "related": ["A", "Z"]},
            {"piece": "9", "decisive": ["A"], "related": []},
            {"piece": "2", "decisive": None, "related": ["B"], "score": 7},
        ]
    }
    assert parse_ratings(value, ["1", "2"], ["A", "B"]) == {"1": {"A": 3}, "2": {"B": 1}}
    for bad in (None, [], {"pieces": 1}, {"pieces": ["1"]}):
        with pytest.raises(ReplyError):
            parse_ratings(bad, ["1"], ["A"])


def test_a_picture_that_an_item_was_not_judged_on_cannot_carry_it(make_trace):
    folder = flooded(make_trace)
    made = rubric(item("A1_look", "visual"), item("A2_form", "deliverable"))

    def answer(text, sample):
        if "# Pieces" in text:
            return {"pieces": [{"piece": "4.picture", "decisive": ["A1_look"], "related": []}]}
        reply = Believer()(text, sample)
        for one in reply.get("findings", []):
            if one["item"] == "A1_look":
                one["citations"] = [cite(wanted, source="screenshot")]
        return reply

    wanted = 4
    verdict, _ = judged(answer, folder, made, budget=SMALL)
    assert statuses(verdict)["A1_look"] == "met"
    wanted = 12
    verdict, _ = judged(answer, folder, made, budget=SMALL)
    assert statuses(verdict)["A1_look"] == "unsupported"
    assert verdict.findings[0].citations[0].why_not == "the judge was not shown this picture"
