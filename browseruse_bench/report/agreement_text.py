"""Agreement as tables and Markdown."""

from __future__ import annotations

from browseruse_bench.measure.agreement import Agreement, Coefficient
from browseruse_bench.measure.ratios import Share
from browseruse_bench.report.agreement import AgreementReport, Compared, Topic
from browseruse_bench.report.render import (
    NOTHING,
    Table,
    counts,
    markdown_table,
    markdown_text,
    number,
)


def tables(found: AgreementReport) -> list[Table]:
    """The figures, and the tables of counts that they are made from."""
    rows = [
        ("what", found.what),
        *(("judge", judge) for judge in found.judges),
        *(("note", note) for note in found.notes),
    ]
    made = [Table(title="", headers=("what", "value"), rows=tuple(rows))]
    for topic in found.topics:
        made += [_facts(topic), _figures(topic), _confusion(topic)]
        made += [_classes(topic)] if len(_known_classes(topic)) > 2 else []
    return made


def markdown(found: AgreementReport) -> str:
    """The same as Markdown."""
    lines = ["# Agreement", ""]
    for table in tables(found):
        if table.title:
            lines += [f"## {markdown_text(table.title)}", ""]
        lines.append(markdown_table(table))
    return "\n".join(lines).rstrip() + "\n"


def _facts(topic: Topic) -> Table:
    rows = [
        ("labels", str(topic.n_labels)),
        ("no label", _codes(topic.missing)),
        ("no verdict", counts(topic.ungraded)),
        ("adjudicated", _adjudicated(topic)),
        ("positive class", topic.positive),
    ]
    if topic.among is not None:
        rows.append(("alpha of all labellers", _coefficient(topic.among)))
    return Table(title=f"Labels of {topic.about}", headers=("what", "value"), rows=tuple(rows))


def _codes(codes: dict[str, int]) -> str:
    return counts({repr(code): n for code, n in codes.items()})


def _adjudicated(topic: Topic) -> str:
    if not topic.n_adjudicated:
        return "0"
    return f"{topic.n_adjudicated}, by people who saw the judge's finding first"


def _figures(topic: Topic) -> Table:
    return Table(
        title=f"Agreement on {topic.about}, in parentheses 95 %",
        headers=(
            "truth",
            "verdict",
            "group",
            "n",
            "clusters",
            "left out",
            "agree %",
            "precision %",
            "recall %",
            "F1 %",
            "kappa",
            "alpha",
        ),
        rows=tuple(_figure_row(each, topic.positive) for each in topic.compared),
        right=frozenset(range(3, 12)),
    )


def _figure_row(each: Compared, positive: str) -> tuple[str, ...]:
    found = each.agreement
    figures = found.of(positive)
    return (
        each.one,
        each.other,
        each.group if each.group is not None else "all",
        str(found.n),
        str(found.n_clusters),
        str(found.missing.total),
        _share(found.accuracy),
        _share(figures.precision),
        _share(figures.recall),
        _share(figures.f1),
        _coefficient(found.kappa),
        _coefficient(found.alpha),
    )


def _share(share: Share) -> str:
    if share.rate is None or share.low is None or share.high is None:
        return NOTHING
    return f"{number(100 * share.rate)} ({number(100 * share.low)} to {number(100 * share.high)})"


def _coefficient(found: Coefficient) -> str:
    if found.value is None:
        return NOTHING
    if found.low is None or found.high is None:
        return number(found.value, 3)
    return f"{number(found.value, 3)} ({number(found.low, 2)} to {number(found.high, 2)})"


def _known_classes(topic: Topic) -> tuple[str, ...]:
    return topic.compared[0].agreement.classes if topic.compared else ()


def _confusion(topic: Topic) -> Table:
    """One line for each cell of each table, and one for each way of being in none."""
    rows: list[tuple[str, ...]] = []
    for each in topic.compared:
        where = (each.one, each.other, each.group if each.group is not None else "all")
        found = each.agreement
        for truth, line in zip(found.classes, found.confusion, strict=True):
            rows.append((*where, truth, *map(str, line), *_unpaired(found)))
    classes = _known_classes(topic)
    return Table(
        title=f"Counts of {topic.about}: truth down, verdict across",
        headers=(
            "truth",
            "verdict",
            "group",
            "class",
            *classes,
            "no label",
            "no verdict",
            "neither",
        ),
        rows=tuple(rows),
        right=frozenset(range(4, 7 + len(classes))),
    )


def _unpaired(found: Agreement) -> tuple[str, str, str]:
    missing = found.missing
    return str(missing.truth), str(missing.verdict), str(missing.both)


def _classes(topic: Topic) -> Table:
    """Where there are more than two, each against all others."""
    rows = [
        (
            each.one,
            each.other,
            each.group if each.group is not None else "all",
            figures.label,
            _share(figures.truth_rate),
            _share(figures.verdict_rate),
            _share(figures.precision),
            _share(figures.recall),
            _share(figures.f1),
        )
        for each in topic.compared
        for figures in each.agreement.by_class
    ]
    return Table(
        title=f"Each class of {topic.about} against all others",
        headers=(
            "truth",
            "verdict",
            "group",
            "class",
            "truth is %",
            "verdict is %",
            "precision %",
            "recall %",
            "F1 %",
        ),
        rows=tuple(rows),
        right=frozenset(range(4, 9)),
    )
