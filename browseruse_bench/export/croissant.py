"""Croissant 1.0 metadata of a data set of Parquet files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from browseruse_bench.benchmarks.load import Benchmark
from browseruse_bench.export.outgoing import licence
from browseruse_bench.store.files import sha256_file

_TERMS = {
    name: f"cr:{name}"
    for name in [
        "citeAs",
        "equivalentProperty",
        "samplingRate",
        "column",
        "extract",
        "field",
        "fileProperty",
        "fileObject",
        "fileSet",
        "format",
        "includes",
        "isLiveDataset",
        "jsonPath",
        "key",
        "md5",
        "parentField",
        "path",
        "recordSet",
        "references",
        "regex",
        "repeated",
        "replace",
        "separator",
        "source",
        "subField",
        "transform",
    ]
}
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **_TERMS,
}
_TYPES = {"string": "sc:Text", "bool": "sc:Boolean"}


def metadata(
    benchmark: Benchmark,
    folder: Path,
    names: Sequence[str],
    columns: Mapping[str, tuple[str, str]],
    canaries: Sequence[str],
) -> dict[str, Any]:
    """The JSON-LD of the data set in `folder`, whose files data/<names> are written.

    Args:
        benchmark: what it is made of.
        folder: where it is.
        names: the Parquet files, each one split.
        columns: column -> (type, what it is).
        canaries: tokens of the answer key; kept in the description where they leave.
    """
    described = benchmark.info.description or "A benchmark for browser agents."
    if "canary" in columns and canaries:
        described += f" Canaries of its answer key: {', '.join(canaries)}."
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": benchmark.name,
        "description": described,
        "license": licence(benchmark) or "not stated",
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": name,
                "name": name,
                "contentUrl": f"data/{name}",
                "encodingFormat": "application/x-parquet",
                "sha256": sha256_file(folder / "data" / name),
            }
            for name in names
        ],
        "recordSet": [_records(name, columns) for name in names],
    }


def _records(name: str, columns: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    set_ = name.removesuffix(".parquet")
    return {
        "@type": "cr:RecordSet",
        "@id": set_,
        "name": set_,
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"{set_}/{column}",
                "name": column,
                "description": what,
                "dataType": _TYPES[kind],
                "source": {"fileObject": {"@id": name}, "extract": {"column": column}},
            }
            for column, (kind, what) in columns.items()
        ],
    }
