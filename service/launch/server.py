"""The running service that a command speaks to, and the key for it."""

from __future__ import annotations

from pydantic import SecretStr

from service.launch import data_dir, listener
from service.settings import Settings


def url(settings: Settings) -> str:
    """LOXODON_URL, else the service on this machine; without a slash at its end."""
    return settings.url.rstrip("/") if settings.url else listener.reachable_url(settings.host, settings.port)


def key(settings: Settings) -> str | None:
    """LOXODON_API_KEY; on this machine else the first key, which opens everything and so goes nowhere else. Raises
    LaunchError where it cannot be read."""
    if settings.api_key is not None or settings.url:
        return revealed(settings.api_key)
    given = revealed(settings.bootstrap_api_key)
    return given or data_dir.kept_first_key(settings.data_dir, revealed(settings.database_url))


def revealed(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None
