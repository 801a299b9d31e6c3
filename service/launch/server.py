"""The running service that a command speaks to, and the key for it."""

from __future__ import annotations

from service.launch import data_dir
from service.settings import Settings


def url(settings: Settings) -> str:
    """LOXODON_URL, else the service on this machine; without a slash at its end."""
    return settings.url.rstrip("/") if settings.url else f"http://{_shown(settings.host)}:{settings.port}"


def key(settings: Settings) -> str | None:
    """LOXODON_API_KEY; on this machine else the first key, which opens everything and so goes nowhere else. Raises
    LaunchError where it cannot be read."""
    if settings.api_key is not None:
        return settings.api_key.get_secret_value()
    if settings.url:
        return None
    if settings.bootstrap_api_key is not None:
        return settings.bootstrap_api_key.get_secret_value()
    own = settings.database_url
    return data_dir.kept_first_key(settings.data_dir, own.get_secret_value() if own else None)


def _shown(host: str) -> str:
    """Where a client reaches a server that listens on `host`."""
    anywhere = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104
    return anywhere.get(host, f"[{host}]" if ":" in host else host)
