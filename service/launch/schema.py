"""How do schema and first key get into whatever database the settings name?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy.engine import make_url

from service.db import generations
from service.db import migrate as migrations
from service.db.tenants import bootstrap
from service.launch.postgres import EmbeddedPostgres
from service.launch.problems import LaunchError
from service.providers.choose import embedder_model
from service.settings import Settings


def migrate(settings: Settings, revision: str = "head") -> None:
    """Runs the migrations as the owner, then ensures the key of LOXODON_BOOTSTRAP_API_KEY, if any.

    Without DATABASE_URL it is the embedded server, which must not be running: a running one is migrated already.
    """
    named = settings.owner_database_url or settings.database_url
    if named is not None:
        with _told_plainly(named.get_secret_value()):
            _bring_up_to_date(named.get_secret_value(), settings, revision)
        return
    with EmbeddedPostgres(settings.data_dir) as server:
        _bring_up_to_date(server.url(), settings, revision)


def _bring_up_to_date(url: str, settings: Settings, revision: str) -> None:
    migrations.upgrade(url, settings, revision)
    if revision == "head":
        asyncio.run(generations.record_first(url, embedder_model(settings), settings.embedding_dim))
    if settings.bootstrap_api_key is not None:
        asyncio.run(bootstrap.ensure_admin_key(url, settings.bootstrap_api_key.get_secret_value()))


@contextmanager
def _told_plainly(url: str) -> Iterator[None]:
    """Within the block a database that is away, or refuses us, is named without its password."""
    try:
        yield
    except (OSError, asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError) as exc:
        where = make_url(url).render_as_string(hide_password=True)
        raise LaunchError(f"Cannot use the database {where}: {exc}. See DATABASE_URL.") from exc
