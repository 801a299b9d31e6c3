"""The running service that a command speaks to, and the key for it."""

from __future__ import annotations

from service.kit.settings import Settings
from service.launch import data_dir, listener
from service.providers.endpoints import secret


def url(settings: Settings) -> str:
    """LOXODON_URL, else the service on this machine; without a slash at its end."""
    return settings.url.rstrip("/") if settings.url else listener.reachable_url(settings.host, settings.port)


def key(settings: Settings) -> str | None:
    """LOXODON_API_KEY; on this machine else the first key, which opens everything and so goes nowhere else. Raises
    LaunchError where it cannot be read."""
    if settings.api_key is not None or settings.url:
        return secret(settings.api_key)
    given = secret(settings.bootstrap_api_key)
    return given or data_dir.kept_first_key(settings.data_dir, secret(settings.database_url))
