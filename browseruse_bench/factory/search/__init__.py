"""The search for one prompt with which a small model labels tasks as people labelled them.

    examples  labels of people, by part: search, selection, validation
    bench     scores a version of the prompt on the selection part, each call paid once
    own       proposes versions from what people wrote and from mistakes on the search part
    with_gepa the same with gepa's loop
    decision  which version is the best, and whether that is shown

SEARCHES names the loops; each is a `bench.PromptSearch` without arguments.
"""

from browseruse_bench.registry import Registry

SEARCHES = Registry(
    "search",
    {
        "own": "browseruse_bench.factory.search.own:OwnSearch",
        "gepa": "browseruse_bench.factory.search.with_gepa:GepaSearch",
    },
)
"""Name -> a class of `PromptSearch`."""
