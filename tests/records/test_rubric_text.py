import json
import re
from html import unescape

from hypothesis import given, settings
from markdown_it import MarkdownIt

from browseruse_bench.records.markdown import block, inline, quotation, verbatim
from browseruse_bench.records.rubric import Rubric
from browseruse_bench.records.rubric_text import markdown, notes
from tests.records.made_rubrics import released, rubrics, words


def plain(text):
    """What a reader sees of a text: CommonMark shows no NUL and runs of space as one."""
    return " ".join(text.replace("\0", "\ufffd").split())


def shown(document):
    """What a reader sees of a Markdown document."""
    html = MarkdownIt().render(document)
    return plain(unescape(re.sub(r"<[^>]*>", " ", html)))


def headings(document):
    tokens = MarkdownIt().parse(document)
    return [
        (token.tag, plain(following.content))
        for token, following in zip(tokens, tokens[1:], strict=False)
        if token.type == "heading_open"
    ]


def loose(text):
    """Without white space: inline marks of the renderer leave spaces of their own."""
    return re.sub(r"\s", "", plain(text))


@settings(max_examples=40)
@given(rubrics())
def test_every_id_weight_quote_and_text_is_shown_as_it_is(rubric):
    seen = loose(shown(markdown(rubric)))
    wanted = [rubric.task_id, rubric.canary or "", rubric.task_key or "", rubric.text or ""]
    for item in rubric.items:
        wanted += [f"{item.id} ({item.weight} point", item.requirement, item.verification or ""]
    for fact in rubric.facts:
        wanted += [fact.id, fact.claim, fact.quote or "", fact.url or "", *fact.pages_searched]
        wanted += [str(value) for value in fact.values]
    for statement in (*rubric.answers, *rubric.paths, *rubric.false_claims, *rubric.rulings):
        wanted.append(statement.text)
    for failure in rubric.failures:
        wanted += [failure.text, failure.looks_like]
    for text in wanted:
        assert loose(text) in seen


@settings(max_examples=40)
@given(rubrics())
def test_no_text_of_a_rubric_makes_a_heading(rubric):
    levels = [tag for tag, _ in headings(markdown(rubric))]
    assert levels.count("h1") == 1
    assert levels.count("h3") == len(rubric.items) + len(rubric.facts) + len(rubric.rulings)


@given(words)
def test_a_text_is_one_paragraph_whatever_is_in_it(text):
    tokens = MarkdownIt().parse(block(text))
    assert {token.type for token in tokens} <= {"paragraph_open", "inline", "paragraph_close"}
    assert loose(text) == loose(shown(block(text)))
    assert {t.type for t in MarkdownIt().parse(quotation(text))} <= {
        "blockquote_open", "paragraph_open", "inline", "paragraph_close", "blockquote_close",
    }  # fmt: skip
    assert "\n" not in inline(text)


@given(words)
def test_a_verbatim_text_is_one_fence_that_holds_every_character(text):
    (fence,) = MarkdownIt().parse(verbatim(text))
    # CommonMark reads every kind of line end as one.
    ended = f"{text}\n".replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
    assert fence.content == ended


def test_a_document_reads_like_one():
    document = markdown(Rubric.model_validate(released()))
    assert document.startswith("# Rubric of kettle, revision 1\n\n- Task key: ")
    assert "### A1_price (60 points)\n\nStates the price of the kettle.\n\n" in document
    assert "> Kettle, 31.90\n\nSeen on 2026-08-20, on the live page: http://shop.test/" in document
    assert (
        "Unfalsified as of 2026-08-20, on the live page.\n\nPages searched:\n\n- http" in document
    )
    assert markdown(Rubric.model_validate(json.loads(json.dumps(released())))) == document


def test_one_point_is_no_points():
    items = [{"id": "A1", "requirement": "So.", "weight": 1},
             {"id": "A2", "requirement": "So.", "weight": 99}]  # fmt: skip
    document = markdown(Rubric.model_validate({"task_id": "t", "items": items}))
    assert "A1 (1 point)" in document
    assert "A2 (99 points)" in document


def test_a_publishers_own_record_is_no_note_for_a_judge():
    record = json.dumps({"items": [{"name": "Price", "score": 77}]})
    for text, noted in ((record, ()), ("SALE: no.", ("SALE: no.",)), ("77", ("77",)), (None, ())):
        assert notes(Rubric.model_validate(released(text=text))) == noted
