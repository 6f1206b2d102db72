"""How the rules compare with labels: rubric_labels.json holds ids and labels only, no text.

The labels were made by reading items that a seed had drawn, before the rules were run on them.
"""

import functools
import json
from pathlib import Path

from browseruse_bench.benchmarks.compound import cues
from browseruse_bench.benchmarks.overlap import overlaps
from browseruse_bench.benchmarks.publishers import PUBLISHERS
from tests.benchmarks.publishers import oracle

LABELS = json.loads((Path(__file__).parent / "rubric_labels.json").read_text())


@functools.cache
def rubrics():
    odysseys = json.loads((oracle.PUBLIC / "odysseys" / "odysseys.json").read_text())
    lexbench = oracle.json_lines("lexbench2/task.jsonl")
    sets = (("odysseys", odysseys), ("lexbench2", lexbench))
    read = [PUBLISHERS.get(name)(row) for name, rows in sets for row in rows]
    return {rubric.task_id: rubric for rubric in read}


def _figures(pairs):
    counts = {(found, true): 0 for found in (True, False) for true in (True, False)}
    for found, true in pairs:
        counts[bool(found), bool(true)] += 1
    return counts[True, True], counts[True, False], counts[False, True], counts[False, False]


def compound_figures(part):
    def pairs():
        for name, label in LABELS["compound"][part].items():
            task_id, _, item_id = name.rpartition("/")
            items = {item.id: item.requirement for item in rubrics()[task_id].items}
            yield cues(items[item_id]), label

    return _figures(pairs())


def overlap_figures(part):
    def pairs():
        for task_id, labelled in LABELS["overlap"][part].items():
            ids = [item.id for item in rubrics()[task_id].items]
            true = {tuple(pair) for pair in labelled}
            found = {overlap.items for overlap in overlaps(rubrics()[task_id])}
            for n, one in enumerate(ids):
                for other in ids[n + 1 :]:
                    yield (one, other) in found, (one, other) in true

    return _figures(pairs())
