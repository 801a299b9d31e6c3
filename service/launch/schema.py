"""Brings the configured database up to date: schema, first embedding generation, first key; or waits until it is."""

from __future__ import annotations

import asyncio
import time

from service.access.statements import bootstrap
from service.access.statements.bootstrap import FirstKey
from service.domain.errors import ServiceError
from service.kit.settings import Settings
from service.launch.postgres import EmbeddedPostgres
from service.postgres import migrate
from service.postgres.roles import MIGRATE_LOGIN
from service.providers.choose import embedder_model
from service.runtime.opening import preflight
from service.runtime.statements import generations

PAUSE_S = 2.0
REVOKED = (
    "The first key (LOXODON_BOOTSTRAP_API_KEY, or the file first-key in the data folder) was revoked and stays so. "
    "Use another key; for a new first key set another value, or remove the file."
)


def migrate_database(settings: Settings) -> None:
    """Runs the migrations as the owner, then makes sure that the key of LOXODON_BOOTSTRAP_API_KEY, if set, exists.

    Without DATABASE_URL it starts the embedded server, which must not be running: a running one is migrated already.
    Raises StoreUnavailable when the database cannot be used.
    """
    named = settings.database.owner_url or settings.database.url
    if named is not None:
        _bring_up_to_date(named.get_secret_value(), settings)
        return
    with EmbeddedPostgres(settings.server.data_dir) as server:
        _bring_up_to_date(server.url(MIGRATE_LOGIN), settings)


def wait_for_schema(settings: Settings, *, role: str, timeout_s: float) -> None:
    """Returns when a process of the role could start: the database answers, and has a schema that this version can
    serve. Prints what it waits for whenever that changes. After `timeout_s` it raises the error that the start would.
    """
    until, said = time.monotonic() + timeout_s, ""
    while True:
        try:
            asyncio.run(preflight(settings, role=role))
            return
        except ServiceError as exc:
            if time.monotonic() + PAUSE_S > until:
                raise
            if exc.detail != said:
                print(f"waiting: {exc.detail}", flush=True)
                said = exc.detail
        time.sleep(PAUSE_S)


def _bring_up_to_date(url: str, settings: Settings) -> None:
    migrate.upgrade(url, settings)
    asyncio.run(generations.record_first(url, embedder_model(settings), settings.embedder.dim))
    if settings.server.bootstrap_api_key is not None:
        first_key = asyncio.run(bootstrap.ensure_admin_key(url, settings.server.bootstrap_api_key.get_secret_value()))
        if first_key is FirstKey.REVOKED:
            print(REVOKED, flush=True)
