"""From raw traffic to a released benchmark, stage by stage.

STAGES names them in the order in which they work; each is made from the workspace's
configuration alone.
"""

from browseruse_bench.registry import Registry

STAGES = Registry(
    "stage",
    {
        "filter": "browseruse_bench.factory.stages.filter:Filter",
        "suitability": "browseruse_bench.factory.stages.suitability:Suitability",
        "persona": "browseruse_bench.factory.stages.persona:Persona",
        "restyle": "browseruse_bench.factory.stages.restyle:Restyle",
        "screen": "browseruse_bench.factory.stages.screen:Screening",
    },
)
"""Name -> a `Source`, `Stage` or `Fold` class, in order."""
