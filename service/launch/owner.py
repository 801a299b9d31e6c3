"""The configured database as its owner, for commands that a person runs beside the service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from service.db.roles import MIGRATE_LOGIN
from service.launch.postgres import EmbeddedPostgres, running_server
from service.settings import Settings


@contextmanager
def owner_url(settings: Settings) -> Iterator[str]:
    """The URL of LOXODON_OWNER_DATABASE_URL or DATABASE_URL; without them of the embedded server, the one that runs or
    one that is started for the block. Raises LaunchError."""
    named = settings.owner_database_url or settings.database_url
    if named is not None:
        yield named.get_secret_value()
    elif (server := running_server(settings.data_dir)) is not None:
        yield server.url(MIGRATE_LOGIN)
    else:
        with EmbeddedPostgres(settings.data_dir) as started:
            yield started.url(MIGRATE_LOGIN)
