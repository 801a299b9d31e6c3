"""The configured database, for commands that a person runs alongside the service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from service.kit.settings import Settings
from service.launch.postgres import EmbeddedPostgres, running_server
from service.launch.problems import LaunchError
from service.postgres.roles import LOGINS, OWNER, WORKER


@contextmanager
def login_url(settings: Settings, role: str) -> Iterator[str]:
    """The URL for OWNER, or for WORKER, which row-level security keeps in one workspace: from its variable, else
    DATABASE_URL, else the embedded server, which is started for the block if it does not run. Raises LaunchError."""
    own = {OWNER: settings.database.owner_url, WORKER: settings.database.worker_url}[role]
    named, data_dir = own or settings.database.url, settings.server.data_dir
    if named is not None:
        yield named.get_secret_value()
        return
    if not (data_dir / "postgres" / "PG_VERSION").exists():
        raise LaunchError(
            f"There is no database in {data_dir}: LOXODON_DATA_DIR names the folder of an embedded one, DATABASE_URL "
            "a Postgres of your own. `loxodon run` or `loxodon migrate` makes one."
        )
    if (server := running_server(data_dir)) is not None:
        yield server.url(LOGINS[role])
    else:
        with EmbeddedPostgres(data_dir) as started:
            yield started.url(LOGINS[role])
