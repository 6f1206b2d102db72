from tests.browsers.real import chromium, site

__all__ = ["chromium", "site"]
