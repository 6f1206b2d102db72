"""Takes a planted corpus from traffic to clean tasks by the command, and checks what came of it.

    python benches/factory.py [N] [DIR]     N rows (default 1,000,000), in DIR (default: a new one)

Personal data, texts of public benchmarks and rows that no tag permits are planted; labeller,
finder of personal data and restyler are scripted and make mistakes. It fails if a row without a
permitted tag is anywhere in the workspace, a planted value outside restricted/, or clean/ empty.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import factory_text

PART_ROWS = 50_000
RATIO = 600.0
"""Rows to a task: the models are asked five times a task, and are not what is measured."""


def make(folder: Path, n: int, seed: int) -> None:
    """Write the corpus, by two processes."""
    folder.mkdir(parents=True)
    with multiprocessing.Pool(2) as pool:
        jobs = [(folder, start, n, seed) for start in range(0, n, PART_ROWS)]
        for _ in pool.imap_unordered(_write, jobs):
            pass


def _write(job: tuple[Path, int, int, int]) -> None:
    import polars as pl

    folder, start, n, seed = job
    rows = factory_text.rows(
        start, min(n, start + PART_ROWS), n=n, seed=seed, ratio=RATIO, planted=0.003, forbidden=0.02
    )
    frame = pl.DataFrame(list(rows), schema_overrides={"values": pl.List(pl.String)})
    frame.drop("values").write_parquet(folder / f"part-{start:09}.parquet")
    (folder / f"values-{start:09}.txt").write_text(
        "\n".join(frame["values"].explode().drop_nulls())
    )


def check(root: Path, corpus: Path) -> None:
    """Print what was searched; fail on anything that is where it must not be."""
    from browseruse_bench.factory.persona.leak import decoded, leaks

    forbidden = factory_text.FORBIDDEN.encode()
    n_files = n_bytes = 0
    for path in sorted(root.rglob("*")):
        if not path.is_file():
            continue
        n_files += 1
        outside = path.relative_to(root).parts[0] not in ("restricted", "public")
        for content in decoded(path.read_bytes(), path.suffix):
            n_bytes += len(content)
            assert forbidden not in content.lower(), f"{path}: a row without a permitted tag"
            if outside:
                mark = factory_text.MARKS.search(content.decode(errors="replace"))
                assert mark is None, f"{path}: {mark}"
    values = sorted({v for f in corpus.glob("*.txt") for v in f.read_text().splitlines()})
    found = leaks(root / "clean", values[:: max(1, len(values) // 200)])
    assert not found, found[:3]
    kept = (root / "clean" / "restyle" / "kept.jsonl").read_text().splitlines()
    assert kept, "clean/ holds no task"
    print(
        f"searched {n_files} files, {n_bytes / 2**20:,.0f} MB decoded: no row without a permitted "
        f"tag; outside restricted/ none of the shapes of planted values, and none of a sample of 200 "
        f"of the {len(values)} in clean/, which holds {len(kept)} tasks"
    )


def main() -> None:
    """Make, run, check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", type=int, nargs="?", default=1_000_000)
    parser.add_argument("folder", type=Path, nargs="?")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=a.folder) as name:
        place = Path(name)
        make(place / "corpus", a.n, seed=11)
        root = factory_text.workspace(place / "w", place / "corpus")
        wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "browseruse_bench", "factory", "run", "--until", "restyle"]
        done = subprocess.run(
            [*command, "--workspace", str(root)], check=True, stdout=subprocess.PIPE, text=True
        )
        print(done.stdout)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(
            f"{a.n:,} rows: {time.perf_counter() - wall:.0f} s wall, {processor:.0f} s CPU, peak "
            f"{after.ru_maxrss / 1024:.0f} MB, load {os.getloadavg()[0]:.1f}"
        )
        status = subprocess.run(
            [*command[:4], "status", "--json", "--workspace", str(root)],
            check=True, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        for row in json.loads(status.stdout)[:4]:
            print(row["stage"], json.dumps(row["flow"]), f"{row['seconds']:.0f} unit seconds")
        check(root, place / "corpus")


if __name__ == "__main__":
    main()
