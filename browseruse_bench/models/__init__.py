"""Language models behind one small interface: what is asked, what it cost, and what came back.

`MODELS` names what stands before the colon of `provider:name`. Each is a callable
`(spec, *, limiter=None) -> Model`: see `models.spec.ModelSpec` and `models.base.Model`. An
entry point of the group `browseruse_bench.models` adds one.
"""

from browseruse_bench.registry import Registry

_PROVIDER = "browseruse_bench.models.provider:ProviderModel"

MODELS = Registry(
    "model",
    {
        "openai": _PROVIDER,
        "anthropic": _PROVIDER,
        "google": _PROVIDER,
        "openrouter": _PROVIDER,
        "openai-compatible": _PROVIDER,
        "scripted": "browseruse_bench.models.doubles:scripted_model",
    },
)
