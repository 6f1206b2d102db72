"""The registered benchmarks: name -> where its folder is and, optionally, its evaluator.

`data_dir` is looked up in the current directory, in the directories above it, and among the
folders that come with this package. `evaluator` is "module:Class"; without it an evaluator.py
in the folder is used. An entry that is `...` stands for the folder benchmarks/<name>.

Nobody has to edit this table: a folder ./benchmarks/<Name> is found without it, and so is an
entry point of the group `browseruse_bench.benchmarks`.
"""

BENCHMARKS = {
    "LexBench-Browser": {"data_dir": "benchmarks/LexBench-Browser"},
    "Online-Mind2Web": {"data_dir": "benchmarks/Online-Mind2Web"},
    "BrowseComp": {"data_dir": "benchmarks/BrowseComp"},
    "LocalSites": {"data_dir": "benchmarks/LocalSites"},
}
