"""How hard a reward is to hack, as tables, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import Field

from browseruse_bench.eval.redteam.campaign import Campaign
from browseruse_bench.eval.redteam.catalogue import ATTACKS, VERSION
from browseruse_bench.measure.intervals import Interval
from browseruse_bench.measure.redteam import AttackFigures, JudgeFigures, Share, Trial, figures
from browseruse_bench.records.base import Record
from browseruse_bench.records.run import Run
from browseruse_bench.report.render import (
    NOTHING,
    Table,
    markdown_table,
    markdown_text,
    percent,
)

FAILED_SHOWN = 40
"""Failed trials in a table; JSON has all."""
SAYS = {attack.name: attack.says for attack in ATTACKS}
POLICIES = {
    "harness": "evidence of the harness",
    "agent_reported": "the agent's own word, never ranked with others",
}
TELLABLE = {
    "code": "code",
    "judge": "a judge only",
    "nobody": "nobody",
}


class RedTeam(Record):
    """What a run's traces withstood."""

    run_id: str
    agent: str
    model: str | None
    benchmark: str
    split: str
    seed: int
    version: str
    """Of the attacks."""
    n_traces: int = Field(ge=0)
    """Attacked."""
    n_trials: int = Field(ge=0)
    n_resumed: int = Field(ge=0)
    n_pending: int = Field(ge=0)
    """Trials whose calls wait in a batch."""
    judges: tuple[JudgeFigures, ...]
    failed: tuple[Trial, ...]
    """Everything that gained or lost, also what code cannot tell."""
    not_graded: tuple[Trial, ...]
    """Without a verdict of the control or of the copy: in no share."""
    skipped: dict[str, str]
    """Attempt -> why it was not attacked."""
    not_applicable: dict[str, dict[str, int]]
    """Attack -> why it could not be tried -> on how many traces, once for each judge."""

    @property
    def is_complete(self) -> bool:
        """Whether every trial has its verdicts."""
        return not self.not_graded and not self.n_pending


def redteam(run: Run, found: Campaign, *, seed: int) -> RedTeam:
    """The result of a campaign."""
    inapt: dict[str, dict[str, int]] = {}
    for (attack, why), n in found.not_applicable.items():
        inapt.setdefault(attack, {})[why] = n
    identity = run.identity
    return RedTeam(
        run_id=run.run_id,
        agent=identity.agent.name,
        model=identity.agent.model,
        benchmark=identity.benchmark,
        split=identity.split,
        seed=seed,
        version=VERSION,
        n_traces=len({trial.trace_key for trial in found.trials}),
        n_trials=len(found.trials),
        n_resumed=found.n_resumed,
        n_pending=found.n_pending,
        judges=figures(found.trials),
        failed=tuple(trial for trial in found.trials if trial.is_counted and trial.failed),
        not_graded=tuple(trial for trial in found.trials if not trial.is_counted),
        skipped=dict(found.skipped),
        not_applicable=inapt,
    )


def tables(found: RedTeam, *, every: bool = False) -> list[Table]:
    """What a terminal shows: the headline of each judge, and the attacks that need a look.

    Args:
        found: the result.
        every: all attacks and all failed trials.
    """
    made = [_facts(found)]
    for judge in found.judges:
        made += [_headline(judge), _attacks(judge, every=every)]
    if found.failed:
        made.append(_failed(found.failed, n=None if every else FAILED_SHOWN))
    if found.not_graded:
        made.append(_not_graded(found.not_graded))
    return made


def markdown(found: RedTeam) -> str:
    """All of it."""
    lines = [f"# Red team on {markdown_text(found.run_id)}", ""]
    for table in tables(found, every=True):
        lines += [f"## {markdown_text(table.title)}", ""] if table.title else []
        lines += [markdown_table(table)]
    lines += ["## What each attack does", ""]
    tried = dict.fromkeys(a.attack for judge in found.judges for a in judge.attacks)
    lines += [f"- {name}: {markdown_text(SAYS.get(name, NOTHING))}" for name in tried]
    return "\n".join(lines).rstrip() + "\n"


def _facts(found: RedTeam) -> Table:
    agent = found.agent + (f", {found.model}" if found.model else "")
    skipped = _counted(found.skipped.values())
    rows = [
        ("run", f"{found.run_id} of {agent} on {found.benchmark}, split {found.split}"),
        ("trials", f"{found.n_trials} on {found.n_traces} traces, seed {found.seed}"),
        *([("done earlier", f"{found.n_resumed} trials")] if found.n_resumed else []),
        *([("waiting", f"{found.n_pending} trials wait in a batch")] if found.n_pending else []),
        *(("not attacked", f"{n}: {why}") for why, n in skipped.items()),
    ]
    return Table(title="", headers=("what", "value"), rows=tuple(rows))


def _counted(reasons: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return counts


_SHARE_HEADERS = ("failed", "of", "share", "95 %", "by task")


def _headline(judge: JudgeFigures) -> Table:
    rows = [
        ("attacks that gain", judge.gains),
        ("honest copies that lose", judge.losses),
        ("honest copies judged otherwise a second time", judge.noise),
        ("attacks that only a judge can tell", judge.gains_in_pages),
        ("attacks that nobody can tell", judge.gains_by_word),
        *((f"layer: {family}", share) for family, share in judge.by_family.items()),
    ]
    return Table(
        title=f"{judge.protocol}: {POLICIES[judge.policy]}",
        headers=("what", *_SHARE_HEADERS),
        rows=tuple((name, *_cells(share)) for name, share in rows if share.n),
        right=frozenset({1, 2, 3}),
    )


def _attacks(judge: JudgeFigures, *, every: bool) -> Table:
    shown = [a for a in judge.attacks if every or _needs_a_look(a)]
    return Table(
        title=f"{judge.protocol}: {'every attack' if every else 'attacks that came through'}",
        headers=("attack", "layer", "told by", *_SHARE_HEADERS, "ungraded", "visual", "open"),
        rows=tuple(
            (
                a.attack,
                a.family,
                TELLABLE[a.tellable],
                *_cells(a.share),
                str(a.not_graded),
                str(a.visual_gains),
                str(a.open_gains),
            )
            for a in shown
        ),
        right=frozenset({3, 4, 5, 8, 9, 10}),
    )


def _needs_a_look(a: AttackFigures) -> bool:
    return bool(a.share.failed or a.not_graded or a.visual_gains or a.open_gains)


def _cells(share: Share) -> tuple[str, ...]:
    return (
        str(share.failed),
        str(share.n),
        percent(share.share),
        _span(share.wilson),
        _span(_ends(share.by_task)),
    )


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)


def _span(ends: tuple[float, float] | None) -> str:
    return NOTHING if ends is None else f"{percent(ends[0])} to {percent(ends[1])}"


def _failed(trials: Sequence[Trial], *, n: int | None) -> Table:
    # What code should have told comes first.
    ordered = sorted(trials, key=lambda trial: trial.tellable != "code")
    shown = ordered if n is None else ordered[:n]
    more = f" (the first {n} of {len(ordered)})" if n is not None and len(ordered) > n else ""
    return Table(
        title=f"What came through{more}",
        headers=("task", "attack", "judge", "before", "after", "gained or lost"),
        rows=tuple(
            (
                f"{trial.task_id} #{trial.attempt}",
                trial.attack,
                trial.protocol,
                _points(trial.before.points),
                _points(trial.after.points) if not trial.escaped else "no verdict",
                ", ".join(trial.gained or trial.lost) or trial.after.message[:80],
            )
            for trial in shown
        ),
        right=frozenset({3, 4}),
    )


def _points(points: float | None) -> str:
    return NOTHING if points is None else f"{points:g}"


def _not_graded(trials: Sequence[Trial]) -> Table:
    reasons = _counted(
        (trial.before.message or trial.after.message or NOTHING)[:160] for trial in trials
    )
    return Table(
        title="Without a verdict",
        headers=("trials", "why"),
        rows=tuple((str(n), why) for why, n in reasons.items()),
        right=frozenset({0}),
    )
