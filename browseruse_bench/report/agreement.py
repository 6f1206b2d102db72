"""How far a judge agrees with people: labels joined with the verdicts of a run, or two columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, get_args

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.errors import ConfigError
from browseruse_bench.eval.disagreements import judge_name
from browseruse_bench.eval.evaluate import references
from browseruse_bench.eval.labels import (
    MISSING,
    NO,
    YES,
    Label,
    Labels,
    refuse,
    undeclared,
)
from browseruse_bench.measure.agreement import Agreement, Coefficient, Labelled, agreement, alpha
from browseruse_bench.measure.tally import Placed, is_mixed, judges
from browseruse_bench.records.base import Record
from browseruse_bench.records.judgement import Judgement, Status
from browseruse_bench.records.run import Run
from browseruse_bench.report.summary import placed_of
from browseruse_bench.store.run_folder import RunFolder

JUDGE = "judge"
EVERYONE = "all labellers"
By = Literal["category", "difficulty"]


class Compared(Record):
    """One labeller against another, or against the judge."""

    one: str
    """Whose labels are the truth."""
    other: str
    group: str | None
    """None: all."""
    agreement: Agreement


class Topic(Record):
    """What was labelled, and by whom."""

    about: Literal["attempts", "items", "rows"]
    positive: str
    """The class that precision and recall are of."""
    n_labels: int
    missing: dict[str, int]
    """Code of a label that is none -> how often."""
    ungraded: dict[str, int]
    """Why the judge has no verdict on a thing that was labelled -> things."""
    n_adjudicated: int
    """Labels of people who saw the judge's finding first, which draws them towards it."""
    compared: tuple[Compared, ...]
    among: Coefficient | None
    """Krippendorff's alpha of all labellers, without the judge; None: there is one."""


class AgreementReport(Record):
    """What `bubench agreement` says."""

    schema_version: Literal[1] = 1
    what: str
    """Which run and which labels."""
    judges: tuple[str, ...]
    """Whose verdicts stand beside the labels; empty for a table of others."""
    topics: tuple[Topic, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What the user says of codes."""

    missing: frozenset[str] = MISSING
    classes: tuple[str, ...] = ()
    """Codes that are classes of their own, such as one for "not executable"."""
    statuses: bool = False
    """Whether labels of items are compared as statuses instead of credit."""

    @classmethod
    def of(
        cls, *, missing: Iterable[str] = (), classes: Iterable[str] = (), statuses: bool = False
    ) -> Declared:
        """The codes as labels have them.

        Raises:
            ConfigError: a code is declared twice, or has a meaning already.
        """
        absent = frozenset(_plain(code) for code in missing) | MISSING
        own = tuple(_plain(code) for code in classes)
        problems = [f"'{c}' is missing and a class" for c in own if c in absent]
        problems += [f"'{c}' has a meaning already" for c in (*own, *absent) if c in YES | NO]
        if problems:
            raise ConfigError("; ".join(problems))
        return cls(missing=absent, classes=own, statuses=statuses)


def _plain(code: str) -> str:
    return " ".join(code.split()).casefold()


def run_agreement(
    folder: RunFolder,
    run: Run,
    benchmark: Benchmark,
    labels: Labels,
    *,
    declared: Declared | None = None,
    by: By | None = None,
) -> AgreementReport:
    """How far the verdicts of a run that count agree with people.

    Args:
        folder: the run.
        run: its run.json.
        benchmark: its benchmark and split.
        labels: what people say.
        declared: what codes mean.
        by: also per category or difficulty of the tasks.

    Raises:
        DataError: a label is of a task, attempt, item or judgement that is not there, or its code
            means nothing that was declared; all such are named.
    """
    declared = declared or Declared()
    placed = {
        (p.task_id, p.attempt): p for p in placed_of(folder, run, benchmark, references(benchmark))
    }
    ids = {label.judgement for label in labels.labels if label.judgement is not None}
    judgements = {j.id: j for j in folder.judgements()} if ids else {}
    refuse(_unknown(labels.labels, placed, benchmark, judgements))
    problems: list[str] = []
    topics: list[_Sheet] = []
    for about in ("attempts", "items"):
        chosen = [x for x in labels.labels if (x.item is None) is (about == "attempts")]
        if chosen:
            reader = _Reader(about, placed, judgements, declared)
            topics.append(reader.read(chosen))
            problems += reader.problems
    refuse(problems)
    groups = {task.task_id: getattr(task, by) or "none" for task in benchmark.tasks} if by else {}
    identity = run.identity
    beside = [placed[x.task_id, x.attempt] for x in labels.labels]
    return AgreementReport(
        what=f"run {run.run_id} of {identity.agent.name} on {identity.benchmark}, split "
        f"{identity.split}, and {len(labels.labels)} labels",
        judges=tuple(
            sorted({judge_name(p.judgement) for p in beside if p.judgement and p.where == "graded"})
        ),
        topics=tuple(sheet.topic(groups) for sheet in topics),
        notes=tuple(_notes(beside, labels)),
    )


def _notes(beside: Sequence[Placed], labels: Labels) -> Iterator[str]:
    if labels.ignored:
        yield f"columns that were not read: {', '.join(labels.ignored)}"
    if is_mixed(judges(beside)):
        yield "the verdicts come from unlike judges; `bubench eval` mends it"
    policies = {
        str(p.judgement.details.get("evidence_policy", "harness")) for p in beside if p.judgement
    }
    for policy in sorted(policies - {"harness"}):
        yield f"evidence: {policy}: verdicts rest on what the agent says that it saw"


def _unknown(
    labels: Iterable[Label],
    placed: Mapping[tuple[str, int], Placed],
    benchmark: Benchmark,
    judgements: Mapping[str, Judgement],
) -> list[str]:
    """One line for each label of something that is not there."""
    tasks = {task_id for task_id, _ in placed}
    problems: list[str] = []
    for label in labels:
        rubric = benchmark.rubric(label.task_id)
        if label.task_id not in tasks:
            problems.append(f"{label.where}: the run has no such task")
        elif (label.task_id, label.attempt) not in placed:
            problems.append(f"{label.where}: the run has no such attempt")
        elif label.item is not None and (
            rubric is None or label.item not in {item.id for item in rubric.items}
        ):
            problems.append(f"{label.where}: the task's rubric has no such item")
        elif label.judgement is not None:
            found = judgements.get(label.judgement)
            if found is None or (found.task_id, found.attempt) != (label.task_id, label.attempt):
                problems.append(f"{label.where}: the run has no judgement {label.judgement[:12]}")
    return problems


Thing = tuple[str, int, str | None]
"""(task, attempt, item)."""


@dataclass
class _Sheet:
    """Labels and verdicts about attempts, or about items."""

    about: Literal["attempts", "items"]
    classes: tuple[str, ...]
    said: dict[str, dict[Thing, str | None]] = field(
        default_factory=dict[str, dict[Thing, str | None]]
    )
    """Labeller -> thing -> class; None: missing."""
    verdicts: dict[Thing, str | None] = field(default_factory=dict[Thing, str | None])
    missing: Counter[str] = field(default_factory=Counter[str])
    ungraded: dict[Thing, str] = field(default_factory=dict[Thing, str])
    n_adjudicated: int = 0

    def topic(self, groups: Mapping[str, str]) -> Topic:
        """Everyone against the judge, each against the judge, each against each."""
        everyone = list(self.said)
        against = [(name, self.against_judge([name])) for name in everyone]
        if len(everyone) > 1:
            against.insert(0, (EVERYONE, self.against_judge(everyone)))
        compared = [self.compare(name, JUDGE, things) for name, things in against]
        for group in sorted(set(groups.values())):
            things = [t for t in against[0][1] if groups[t.cluster] == group]
            if things:
                compared.append(self.compare(against[0][0], JUDGE, things, group))
        for one, other in combinations(everyone, 2):
            compared.append(self.compare(one, other, self.apart(one, other)))
        units = {thing for said in self.said.values() for thing in said}
        return Topic(
            about=self.about,
            positive=self.classes[0],
            n_labels=sum(map(len, self.said.values())),
            missing=dict(sorted(self.missing.items())),
            ungraded=dict(sorted(Counter(self.ungraded.values()).items())),
            n_adjudicated=self.n_adjudicated,
            compared=tuple(compared),
            among=alpha(
                (t[0], [said.get(t) for said in self.said.values()])
                for t in sorted(units, key=repr)
            )
            if len(everyone) > 1
            else None,
        )

    def compare(
        self, one: str, other: str, things: Sequence[Labelled], group: str | None = None
    ) -> Compared:
        return Compared(
            one=one, other=other, group=group, agreement=agreement(things, self.classes)
        )

    def against_judge(self, names: Iterable[str]) -> list[Labelled]:
        return [
            Labelled(truth=label, verdict=self.verdicts[thing], cluster=thing[0])
            for name in names
            for thing, label in self.said[name].items()
        ]

    def apart(self, one: str, other: str) -> list[Labelled]:
        """All that one of them labelled."""
        ours, theirs = self.said[one], self.said[other]
        return [
            Labelled(truth=ours.get(thing), verdict=theirs.get(thing), cluster=thing[0])
            for thing in dict.fromkeys((*ours, *theirs))
        ]


class _Reader:
    """Reads labels as classes, beside the verdicts on the same things."""

    def __init__(
        self,
        about: Literal["attempts", "items"],
        placed: Mapping[tuple[str, int], Placed],
        judgements: Mapping[str, Judgement],
        declared: Declared,
    ) -> None:
        self._about: Literal["attempts", "items"] = about
        self._placed = placed
        self._judgements = judgements
        self._declared = declared
        self._statuses = declared.statuses and about == "items"
        yes, no = ("success", "failure") if about == "attempts" else ("met", "not met")
        base = get_args(Status) if self._statuses else (yes, no)
        self._yes, self._no = yes, no
        self._classes: tuple[str, ...] = (*base, *declared.classes)
        self.problems: list[str] = []

    def read(self, labels: Sequence[Label]) -> _Sheet:
        """All labels; what cannot be read is among the problems."""
        sheet = _Sheet(about=self._about, classes=self._classes)
        strange: list[tuple[str, str]] = []
        for label in labels:
            thing = (label.task_id, label.attempt, label.item)
            placed = self._placed[label.task_id, label.attempt]
            sheet.verdicts[thing] = self._verdict(placed, placed.judgement, label.item)
            if sheet.verdicts[thing] is None:
                sheet.ungraded[thing] = str(placed.reason or placed.where)
            said = sheet.said.setdefault(label.labeller, {})
            if label.said in self._declared.missing:
                sheet.missing[label.said] += 1
                said[thing] = None
            elif label.is_adjudication:
                sheet.n_adjudicated += 1
                said[thing] = self._adjudicated(label, placed)
            else:
                found = self._class(label.said)
                if found is None:
                    strange.append((label.said, label.where))
                said[thing] = found
        self.problems += undeclared(strange, (), missing=self._declared.missing)
        return sheet

    def _class(self, said: str) -> str | None:
        if said in self._declared.classes:
            return said
        if self._statuses:
            return said.replace(" ", "_") if said.replace(" ", "_") in self._classes else None
        return self._yes if said in YES else self._no if said in NO else None

    def _verdict(self, placed: Placed, judgement: Judgement | None, item: str | None) -> str | None:
        """What the judge says; None: it has no verdict on this."""
        if judgement is None or placed.where != "graded":
            return None
        if item is None:
            return None if placed.score is None else self._credit(placed.score.success)
        return self._of_item(judgement, item)

    def _of_item(self, judgement: Judgement, item: str) -> str | None:
        status = next((f.status for f in judgement.findings or () if f.item == item), None)
        if status is None or self._statuses:
            return status
        return self._credit(status == "met")

    def _credit(self, credit: bool) -> str:
        return self._yes if credit else self._no

    def _adjudicated(self, label: Label, placed: Placed) -> str | None:
        """What a person means who agrees or disagrees with a finding that was shown."""
        if self._statuses and label.said == "disagree":
            self.problems.append(f"{label.where}: 'disagree' names no status; leave out --statuses")
            return None
        shown = placed.judgement if label.judgement is None else self._judgements[label.judgement]
        if label.item is not None and shown is not None:
            found = self._of_item(shown, label.item)
        elif shown is placed.judgement:
            found = self._verdict(placed, shown, None)
        else:
            found = None
        if found is None:
            self.problems.append(
                f"{label.where}: '{label.said}' with what? there is no verdict that counts now"
            )
            return None
        if label.said == "agree":
            return found
        return self._no if found == self._yes else self._yes
