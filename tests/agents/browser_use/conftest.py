from tests.agents.browser_use.installed import installed

__all__ = ["installed"]
