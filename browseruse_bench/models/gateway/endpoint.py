"""Where an agent asks its model instead of at the provider."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Endpoint:
    """An address of this machine, and the token that opens it for one attempt."""

    url: str
    """http://127.0.0.1:PORT"""
    token: str = field(repr=False)
    provider: str
    """Whose wire it speaks."""

    @property
    def base_url(self) -> str:
        """What a client library of the provider takes for its base URL."""
        return self.url if self.provider in ("anthropic", "google") else f"{self.url}/v1"

    @property
    def variables(self) -> dict[str, str]:
        """What the provider's own client library reads from the environment."""
        if self.provider == "anthropic":
            return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_API_KEY": self.token}
        if self.provider == "google":
            return {"GOOGLE_GEMINI_BASE_URL": self.base_url, "GOOGLE_API_KEY": self.token}
        return {"OPENAI_BASE_URL": self.base_url, "OPENAI_API_KEY": self.token}
