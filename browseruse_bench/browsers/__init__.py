"""Browsers: one fresh session per attempt, whoever runs it."""

from browseruse_bench.registry import Registry

BROWSERS = Registry(
    "browser",
    {
        "local": "browseruse_bench.browsers.local:LocalChromium",
        "cdp": "browseruse_bench.browsers.endpoint:CdpEndpoint",
        "none": "browseruse_bench.browsers.none:NoBrowser",
    },
)
"""Backends by name; each is made from BrowserOptions."""
