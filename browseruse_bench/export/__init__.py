"""Foreign formats: results of other programs in, ours out. One file for each format."""

from browseruse_bench.registry import Registry

IMPORTERS = Registry("importer", {"abp": "browseruse_bench.export.abp:Abp"})
"""Name -> a class that reads results of another program (`reported.Importer`)."""

EXPORTERS = Registry(
    "exporter",
    {
        "harbor": "browseruse_bench.export.harbor:write",
        "inspect": "browseruse_bench.export.inspect_log:write",
        "openenv": "browseruse_bench.export.rewarded:write_openenv",
        "parquet": "browseruse_bench.export.parquet:write",
        "verifiers": "browseruse_bench.export.rewarded:write_verifiers",
    },
)
"""Name -> a function that writes a foreign format (`outgoing.Exporter`)."""
