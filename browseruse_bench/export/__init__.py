"""Foreign formats: results of other programs in, ours out. One file for each format."""

from browseruse_bench.registry import Registry

IMPORTERS = Registry("importer", {"abp": "browseruse_bench.export.abp:Abp"})
"""Name -> a class that reads results of another program (`reported.Importer`)."""
