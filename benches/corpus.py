"""Measures the filter on generated corpora with known truth, beside its peers.

    python benches/corpus.py                    one seed of quality, and a million rows end to end
    python benches/corpus.py quality            five seeds of 50,000 distinct texts: P, R, B3 F
    python benches/corpus.py peers PYTHON       the near-duplicate step and exact grouping beside
                                                rensa, datasketch and polars, run by PYTHON
    python benches/corpus.py scale N [DIR]      N rows end to end: rows/s, processor time, peak

`scale` makes the corpus in DIR first, where it is not there (N of 0: takes what is there); with
`--limit GB` the filter works under that limit on its address space. Give one figure at a time to a calm machine; both wall and
processor time are said.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import corpus_text

PART_ROWS = 250_000
RATIO = 30.0


def pair_scores(truth: list[int], found: list[int]) -> dict[str, float]:
    """Precision and recall of pairs, and B3."""
    both, true, made = Counter(zip(truth, found, strict=True)), Counter(truth), Counter(found)

    def pairs(counts: Any) -> int:
        return sum(c * (c - 1) // 2 for c in counts)

    hit = pairs(both.values())
    precision, recall = hit / max(1, pairs(made.values())), hit / max(1, pairs(true.values()))
    b3p = sum(c * c / made[f] for (_, f), c in both.items()) / len(truth)
    b3r = sum(c * c / true[t] for (t, _), c in both.items()) / len(truth)
    return {
        "P": precision,
        "R": recall,
        "B3P": b3p,
        "B3R": b3r,
        "B3F": 2 * b3p * b3r / (b3p + b3r),
    }


def distinct(n: int, seed: int) -> tuple[list[str], list[int]]:
    """`n` texts with different keys, and which task each is."""
    import numpy as np

    from browseruse_bench.factory.corpus import kernels
    from browseruse_bench.factory.corpus.texts import of_strings

    texts: list[str] = []
    truth: list[int] = []
    seen: set[int] = set()
    rows = corpus_text.corpus(40 * n, seed=seed, ratio=RATIO * 8)
    while len(texts) < n:
        block = [made for _, made in zip(range(20_000), rows, strict=False) if made.flag == "ok"]
        keys = kernels.keys(*of_strings([made.text for made in block]), True)[0][0]
        for key, made in zip(np.asarray(keys).tolist(), block, strict=True):
            if key not in seen and len(texts) < n:
                seen.add(key)
                texts.append(made.text)
                truth.append(made.cluster)
    return texts, truth


def ours(texts: list[str], similarity: float = 0.5) -> tuple[list[int], float, float]:
    """(leader of each text, wall seconds, processor seconds) of sketches and linking."""
    import numpy as np

    from browseruse_bench.factory.corpus import kernels
    from browseruse_bench.factory.corpus.engines import Embedded
    from browseruse_bench.factory.corpus.grouping import record_type
    from browseruse_bench.factory.corpus.linking import link_all
    from browseruse_bench.factory.corpus.overlap import need
    from browseruse_bench.factory.corpus.texts import of_strings

    column = of_strings(texts)
    keys = kernels.keys(*column, True)[0][0]
    with tempfile.TemporaryDirectory() as folder:
        wall, processor = time.perf_counter(), time.process_time()
        records = np.zeros(len(texts), record_type(kernels.SKETCH))
        records["key"], records["sketch"] = keys, kernels.sketches(*column, True)
        path = Path(folder) / "records.npy"
        np.save(path, records[np.argsort(records["key"])])
        links = link_all(
            Path(folder) / "link", new=[path], old=[], need=need(similarity), engine=Embedded(1)
        )
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    leader = dict(zip(links.child.tolist(), links.leader.tolist(), strict=True))
    return [leader.get(key, key) for key in keys.tolist()], wall, processor


def quality(seeds: int, n: int, similarity: float) -> None:
    """Print scores at `n` distinct texts for each seed, and their mean."""
    ours(distinct(500, 0)[0])
    found: list[dict[str, float]] = []
    for seed in range(1, seeds + 1):
        texts, truth = distinct(n, seed)
        clusters, wall, processor = ours(texts, similarity)
        scores = pair_scores(truth, clusters)
        found.append(scores)
        print(
            f"seed {seed}: {len(texts)} texts, {len(set(truth))} tasks, {len(set(clusters))} clusters, "
            + ", ".join(f"{k} {v:.4f}" for k, v in scores.items())
            + f"; {len(texts) / wall:,.0f} rows/s wall, {len(texts) / processor:,.0f} rows/CPU-s",
            flush=True,
        )
    for k in found[0]:
        print(
            f"mean {k} {sum(s[k] for s in found) / len(found):.4f}, least {min(s[k] for s in found):.4f}"
        )


def peers(python: str, n: int, seed: int) -> None:
    """Measure ours and the peers on the same texts."""
    texts, truth = distinct(n, seed)
    ours(texts[:500])
    clusters, wall, processor = ours(texts)
    _say("ours", truth, clusters, wall, processor)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "texts.json"
        path.write_text(json.dumps(texts))
        for peer in ("rensa", "datasketch"):
            script = str(Path(__file__).with_name("_corpus_peers.py"))
            out = subprocess.run(
                [python, script, peer, str(path)], check=True, capture_output=True, text=True
            )
            result = json.loads(out.stdout)
            _say(peer, truth, result["clusters"], result["wall"], result["cpu"])


def _say(name: str, truth: list[int], clusters: list[int], wall: float, processor: float) -> None:
    scores = pair_scores(truth, clusters)
    n = len(truth)
    print(
        f"{name}: {n / wall:,.0f} rows/s wall, {n / processor:,.0f} rows/CPU-s, "
        + ", ".join(f"{k} {v:.4f}" for k, v in scores.items()),
        flush=True,
    )


def exact(folder: Path) -> None:
    """Print rows/s of exact grouping after normalising, ours and polars, over Parquet files."""
    import polars as pl
    import pyarrow.parquet as pq

    from browseruse_bench.factory.corpus import kernels
    from browseruse_bench.factory.corpus.texts import of_arrow

    files = sorted(folder.glob("*.parquet"))
    kernels.keys(*of_arrow(pl.Series(["a"]).to_arrow()), True)
    wall, processor = time.perf_counter(), time.process_time()
    found = []
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(65_536, columns=["text"]):
            found.append(pl.Series(kernels.keys(*of_arrow(batch.column(0)), True)[0][0]))
    n_ours = pl.concat(found).n_unique()
    n = sum(map(len, found))
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(
        f"exact, ours (1 thread): {n / wall:,.0f} rows/s wall, {n / processor:,.0f} rows/CPU-s, {n_ours} keys"
    )
    wall, processor = time.perf_counter(), time.process_time()
    n_peer = (
        pl.scan_parquet(files)
        .select(
            pl.col("text")
            .str.to_lowercase()
            .str.replace_all(r"\d+", "0")
            .str.replace_all(r"[^a-z0-9\x{80}-\x{10FFFF}]+", " ")
            .str.strip_chars()
            .hash()
        )
        .collect()["text"]
        .n_unique()
    )
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(
        f"exact, polars: {n / wall:,.0f} rows/s wall, {n / processor:,.0f} rows/CPU-s, {n_peer} keys"
    )


def make(folder: Path, n: int, seed: int) -> None:
    """Write a corpus of `n` rows, by two processes."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [
        (folder / f"part-{i:04}.parquet", start, min(n, start + PART_ROWS), n, seed)
        for i, start in enumerate(range(0, n, PART_ROWS))
    ]
    jobs = [job for job in jobs if not job[0].exists()]
    with multiprocessing.Pool(2) as pool:
        for _ in pool.imap_unordered(_write, jobs):
            pass


def _write(job: tuple[Path, int, int, int, int]) -> None:
    path, start, stop, n, seed = job
    corpus_text.write(path, start, stop, n=n, seed=seed, ratio=RATIO)


def scale(folder: Path, limit_gb: float | None) -> None:
    """Filter a corpus end to end, and print what it took and how right it was."""
    from browseruse_bench.factory.context import Context
    from browseruse_bench.factory.stages.filter import Filter
    from browseruse_bench.factory.workspace import Corpus, WorkspaceConfig

    if limit_gb is not None:
        size = int(limit_gb * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        root = Path(name)
        (root / "public").mkdir()
        (root / "public" / "tasks.json").write_text(
            json.dumps([{"id": i, "task": t} for i, t in enumerate(corpus_text.benchmark_texts())])
        )
        config = WorkspaceConfig(
            name="bench",
            corpus=Corpus(
                paths=(str(folder),),
                permitted_tags=("research",),
                columns={"text": "text", "time": "time", "tag": "data_use"},
                benchmarks=("public",),
            ),
        )
        context = Context(
            workspace=root, folder=root / "filter", open_model=_no_model, clock=lambda: ""
        )
        context.folder.mkdir()
        base = _peak_mb()
        wall = last = time.perf_counter()
        processor = time.process_time()

        def tell(text: str) -> None:
            nonlocal last
            now = time.perf_counter()
            if "band" not in text:
                print(f"  +{now - last:.1f} s, peak {_peak_mb():.0f} MB: {text}", flush=True)
            last = now

        stage = Filter(config)
        flow = asyncio.run(stage.run(context, tell, threading.Event()))
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        print(flow.sentence)
        print(json.dumps(flow.dropped))
        print(
            f"{flow.n_in:,} rows: {wall:.1f} s wall ({flow.n_in / wall:,.0f} rows/s), "
            f"{processor:.1f} s CPU ({flow.n_in / processor:,.0f} rows/CPU-s), peak "
            f"{_peak_mb():.0f} MB (before: {base:.0f} MB), load {os.getloadavg()[0]:.1f}"
        )


def _no_model(role: str) -> Any:
    raise KeyError(role)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command")
    one = commands.add_parser("quality")
    one.add_argument("--seeds", type=int, default=5)
    one.add_argument("--n", type=int, default=50_000)
    one.add_argument("--similarity", type=float, default=0.5)
    one = commands.add_parser("peers")
    one.add_argument("python")
    one.add_argument("--n", type=int, default=50_000)
    one.add_argument("--seed", type=int, default=1)
    one = commands.add_parser("exact")
    one.add_argument("folder", type=Path)
    one = commands.add_parser("scale")
    one.add_argument("n", type=int)
    one.add_argument("folder", type=Path)
    one.add_argument("--seed", type=int, default=7)
    one.add_argument("--limit", type=float, default=None)
    a = parser.parse_args()
    if a.command is None:
        quality(1, 50_000, 0.5)
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            make(Path(name), 1_000_000, 7)
            scale(Path(name), None)
    elif a.command == "quality":
        quality(a.seeds, a.n, a.similarity)
    elif a.command == "peers":
        peers(a.python, a.n, a.seed)
    elif a.command == "exact":
        exact(a.folder)
    else:
        if a.n:
            make(a.folder, a.n, a.seed)
        scale(a.folder, a.limit)


if __name__ == "__main__":
    main()
