"""Recall and precision of the deterministic pass on texts whose personal data is marked."""

import json
import os
import re
from pathlib import Path

from browseruse_bench.factory.persona.detect import detect

MARK = re.compile(r"\[\[(\w+)\|(.*?)\]\]")
HELD_OUT = Path(__file__).with_name("held_out.txt")


def held_out():
    for line in HELD_OUT.read_text(encoding="utf-8").splitlines():
        country, _, marked = line.partition("\t")
        text, spans, at = "", [], 0
        for match in MARK.finditer(marked):
            text += marked[at : match.start()]
            spans.append((len(text), len(text) + len(match.group(2)), match.group(1)))
            text += match.group(2)
            at = match.end()
        yield country, text + marked[at:], spans


def oracle_cases():
    path = Path(os.environ["BUBENCH_ORACLE_DATA"]) / "pii/cases.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        yield (
            case["country"],
            case["text"],
            [(s["start"], s["end"], s["type"]) for s in case["spans"]],
        )


def measure(cases):
    """(recall, precision, clean texts that are flagged, clean texts): a span counts as found if
    one candidate covers all of it, a candidate as right if it overlaps one."""
    found = n_spans = right = n_hits = flagged = n_clean = 0
    for country, text, spans in cases:
        hits = detect(text, country)
        n_spans += len(spans)
        n_hits += len(hits)
        found += sum(any(h.start <= a and h.end >= b for h in hits) for a, b, _ in spans)
        right += sum(any(h.start < b and h.end > a for a, b, _ in spans) for h in hits)
        n_clean += not spans
        flagged += not spans and bool(hits)
    return found / n_spans, right / n_hits, flagged, n_clean


def misses(cases):
    for country, text, spans in cases:
        hits = detect(text, country)
        for a, b, kind in spans:
            if not any(h.start <= a and h.end >= b for h in hits):
                yield "missed", kind, text[a:b], text[:70]
        for h in hits:
            if not any(h.start < b and h.end > a for a, b, _ in spans):
                yield "false", h.kind, text[h.start : h.end], text[:70]
