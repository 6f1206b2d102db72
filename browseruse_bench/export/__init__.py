"""Foreign formats: results of other programs in, ours out. One file for each format."""

from browseruse_bench.registry import Registry

IMPORTERS = Registry("importer", {"abp": "browseruse_bench.export.abp:Abp"})
"""Name -> a class that reads results of another program (`reported.Importer`)."""

EXPORTERS = Registry(
    "exporter",
    {
        "inspect": "browseruse_bench.export.inspect_log:write",
        "parquet": "browseruse_bench.export.parquet:write",
    },
)
"""Name -> a function that writes a foreign format (`outgoing.Exporter`)."""
