"""Small rubrics, cases and replies for tests of the findings judge."""

from __future__ import annotations

import asyncio

from browseruse_bench.eval.findings.judge import FindingsJudge
from browseruse_bench.eval.judges import Case
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.records.rubric import Fact, Item, Rubric
from browseruse_bench.records.task import Task

HOME = "http://shop.test/"
CANARY = "BUB-CANARY-0123456789abcdef"


def item(name, evidence="page", *values, weight=None, **more):
    """An item and the fact that carries its values."""
    fact = Fact(id=f"F_{name}", claim=f"{name} is so.", values=values)
    return fact, Item(
        id=name, requirement=f"Does {name}", facts=(fact.id,), weight=weight or 1,
        evidence=evidence, **more,
    )  # fmt: skip


def rubric(*items, **more):
    """A rubric of such items, of equal weight if none is given."""
    facts, made = zip(*items, strict=True)
    plain = [one.as_json() for one in made]
    if all(one.weight == 1 for one in made):
        plain = [{**one, "weight": f"100/{len(made)}"} for one in plain]
    return Rubric.model_validate(
        {"task_id": "task-1", "facts": [f.as_json() for f in facts], "items": plain, **more}
    )


def case(folder, made, *, task="Find out what the kettle costs.", sample=0):
    """One attempt that waits for its verdict."""
    return Case(
        task=Task(task_id="task-1", task=task),
        rubric=made,
        trace=folder,
        cost_usd=None,
        sample=sample,
    )


def cite(step, quote=None, source="page", ref=None):
    """A citation as a judge writes it."""
    return {"step": str(step), "source": source, "ref": ref, "quote": quote}


def finding(name, status="met", *citations, because=None, claim="It is so."):
    """A finding as a judge writes it."""
    return {
        "item": name,
        "claim": claim,
        "citations": list(citations),
        "reason": "for this reason",
        "because": because,
        "status": status,
    }


def reply(*findings, integrity=(), attribution=(), reading="What the kettle costs."):
    """A whole reply."""
    return {
        "reading": reading,
        "findings": list(findings),
        "integrity": list(integrity),
        "attribution": list(attribution),
    }


def flag(name, *citations):
    """A breach of honesty as a judge writes it."""
    return {"flag": name, "claim": "It did.", "citations": list(citations)}


def cause(name, *citations, follows_from=None):
    """A cause as a judge writes it."""
    return {
        "cause": name, "claim": "So it was.", "citations": list(citations),
        "follows_from": follows_from,
    }  # fmt: skip


def judged(answers, folder, made, *, sample=0, **options):
    """The verdict, and the model with all that it was asked."""
    model = ScriptedModel(answers)
    judge = FindingsJudge(model, **options)
    return asyncio.run(judge.judge(case(folder, made, sample=sample))), model


def statuses(verdict):
    """Item -> status."""
    return {finding.item: finding.status for finding in verdict.findings}
