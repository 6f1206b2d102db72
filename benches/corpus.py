"""Measures the filter on generated corpora with known truth, beside its peers.

    python benches/corpus.py                    one seed of quality, and a million rows end to end
    python benches/corpus.py quality            five seeds of 50,000 distinct texts: P, R, B3 F
    python benches/corpus.py peers PYTHON       the near-duplicate step and exact grouping beside
                                                rensa, datasketch and polars, run by PYTHON
    python benches/corpus.py exact DIR          exact grouping beside polars, over files in DIR
    python benches/corpus.py scale N DIR        N rows end to end: rows/s, processor time, peak

`scale` makes each part of the corpus in front of the job that reads it: DIR, which must not exist,
never holds more than the parts that are read. With `--files` it writes the corpus to DIR first,
where it is not there (N of 0: takes what is there): only then the rows/s are the filter's own.
With `--limit GB` each process of the filter has that limit on its address space, and all are ended
once they have more than that in memory together. Give one figure at a time to a calm machine; both wall and processor
time are said. Beside each figure stands its bar, and whether it is met.
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
ROWS_PER_S, PEAK_MB = 150_000, 2048
PAIRS_MEAN, PAIRS_LEAST = 0.985, 0.98
FASTER_THAN = {"rensa": 8, "datasketch": 30}


def bar(what: str, value: float, least: float, *, most: bool = False) -> None:
    """Print a figure beside its bar, and whether it is met."""
    met = value <= least if most else value >= least
    print(
        f"bar: {what} {value:,.4g}, {'at most' if most else 'at least'} {least:,.4g}: "
        f"{'met' if met else 'MISSED'}",
        flush=True,
    )


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
    for k in ("P", "R"):
        bar(f"mean pair {k} of {seeds} seeds", sum(s[k] for s in found) / seeds, PAIRS_MEAN)
        bar(f"least pair {k}", min(s[k] for s in found), PAIRS_LEAST)
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
    own, speed = pair_scores(truth, clusters)["B3F"], n / processor
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
            bar(f"CPU times as fast as {peer}", speed * result["cpu"] / n, FASTER_THAN[peer])
            bar(f"B3F beside {peer}", own, pair_scores(truth, result["clusters"])["B3F"])


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
    ours_s = processor
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
    bar("times as many rows per CPU-second as polars", processor / ours_s, 1)
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


def streamed(n: int, folder: Path, seed: int, limit_gb: float | None) -> None:
    """Filter a corpus that is made while it is read, by the processes that large ones have."""
    import _corpus_stream

    from browseruse_bench.factory.corpus import drops, engines

    _corpus_stream.plan(folder, n, seed)
    drops.Read = _corpus_stream.Made
    engines.APART_BYTES = 0
    # As many as files of these rows would ask for, 50 bytes a row, 16 MB a partition.
    partitions = min(1024, 1 << max(2, (n * 50 >> 24).bit_length()))
    scale(folder, limit_gb, made=True, partitions=partitions)
    made = [float(line) for line in (folder / _corpus_stream.NOTES).read_text().split()]
    print(
        f"the rows were made meanwhile, in {sum(made):.0f} s of wall time of their own by "
        f"{len(made)} processes: rows/s and processor time are of both"
    )


class Memory:
    """The most that this process and its workers had in memory at once, sampled."""

    def __init__(self, limit_gb: float | None) -> None:
        self._limit_mb = None if limit_gb is None else limit_gb * 1024
        self.peak_mb = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self.peak_mb = max(self.peak_mb, sum(map(_resident_mb, ["self", *_workers()])))
            if self._limit_mb is not None and self.peak_mb > self._limit_mb:
                print(f"{self.peak_mb:.0f} MB: over the limit; ended", flush=True)
                os._exit(1)

    def end(self) -> None:
        self._over.set()
        self._thread.join()


def _workers() -> list[str]:
    """Processes that this one started; what they start themselves is not the filter's."""
    found: list[str] = []
    for path in Path("/proc/self/task").glob("*/children"):
        try:
            found += path.read_text().split()
        except OSError:
            continue
    return found


def _resident_mb(process: str) -> float:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096 / 2**20
    except (OSError, IndexError):
        return 0.0


def _cpu() -> float:
    """Seconds of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def scale(
    folder: Path, limit_gb: float | None, *, made: bool = False, partitions: int | None = None
) -> None:
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
                partitions=partitions,
            ),
        )
        context = Context(
            workspace=root, folder=root / "filter", open_model=_no_model, clock=lambda: ""
        )
        context.folder.mkdir()
        memory = Memory(limit_gb)
        wall = last = time.perf_counter()
        processor = _cpu()

        def tell(text: str) -> None:
            nonlocal last
            now = time.perf_counter()
            if "band" not in text:
                print(f"  +{now - last:.1f} s, peak {memory.peak_mb:.0f} MB: {text}", flush=True)
            last = now

        stage = Filter(config)
        flow = asyncio.run(stage.run(context, tell, threading.Event()))
        wall, processor = time.perf_counter() - wall, _cpu() - processor
        memory.end()
        print(flow.sentence)
        print(json.dumps(flow.dropped))
        print(
            f"{flow.n_in:,} rows: {wall:.1f} s wall ({flow.n_in / wall:,.0f} rows/s), "
            f"{processor:.1f} s CPU ({flow.n_in / processor:,.0f} rows/CPU-s), peak "
            f"{memory.peak_mb:.0f} MB of all processes, load {os.getloadavg()[0]:.1f}"
        )
        bar("peak MB", memory.peak_mb, PEAK_MB, most=True)
        if not made:
            bar("rows/s end to end", flow.n_in / wall, ROWS_PER_S)


def _no_model(role: str) -> Any:
    raise KeyError(role)


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
    one.add_argument("--files", action="store_true")
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
        if a.n and not a.files:
            streamed(a.n, a.folder, a.seed, a.limit)
            return
        if a.n:
            make(a.folder, a.n, a.seed)
        scale(a.folder, a.limit)


if __name__ == "__main__":
    main()
