"""Near-duplicates by a peer, alone in its environment: reads texts, prints clusters as JSON.

Each peer sketches the same character 5-grams of the same canonical form; a text joins the most
alike leader among those that the peer's index finds, or leads.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

THRESHOLD = 0.5


def grams(text: str) -> list[str]:
    """Distinct character 5-grams of the canonical form."""
    plain = re.sub(r"[\W_]+", " ", re.sub(r"\d+", "0", text.lower())).strip()
    return list({plain[i : i + 5] for i in range(max(1, len(plain) - 4))})


def by_rensa(texts: list[str]) -> list[int]:
    """Leaders by rensa's R-MinHash and its index."""
    from rensa import RMinHash, RMinHashLSH

    index = RMinHashLSH(threshold=THRESHOLD, num_perm=128, num_bands=32)
    leaders: dict[int, RMinHash] = {}
    found: list[int] = []
    for i, text in enumerate(texts):
        sketch = RMinHash(num_perm=128, seed=42)
        sketch.update(grams(text))
        found.append(_joined(i, sketch, index.query(sketch), leaders))
        if found[-1] == i:
            index.insert(i, sketch)
    return found


def by_datasketch(texts: list[str]) -> list[int]:
    """Leaders by datasketch's MinHash and its index."""
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=THRESHOLD, num_perm=128, params=(32, 4))
    leaders: dict[int, MinHash] = {}
    found: list[int] = []
    for i, text in enumerate(texts):
        sketch = MinHash(num_perm=128)
        sketch.update_batch([gram.encode() for gram in grams(text)])
        found.append(_joined(i, sketch, index.query(sketch), leaders))
        if found[-1] == i:
            index.insert(i, sketch)
    return found


def _joined(i: int, sketch: object, candidates: list[int], leaders: dict) -> int:
    alike = max(((sketch.jaccard(leaders[c]), -c) for c in candidates), default=(0, 0))
    if alike[0] >= THRESHOLD:
        return -alike[1]
    leaders[i] = sketch
    return i


def main() -> None:
    """Read texts, cluster, print."""
    texts = json.loads(Path(sys.argv[2]).read_text())
    run = {"rensa": by_rensa, "datasketch": by_datasketch}[sys.argv[1]]
    wall, processor = time.perf_counter(), time.process_time()
    clusters = run(texts)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(json.dumps({"clusters": clusters, "wall": wall, "cpu": processor}))


if __name__ == "__main__":
    main()
