"""Runs the migrations as the owner role, on the connection that service/postgres/migrate.py hands over."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo
from alembic.script import Script
from sqlalchemy import Connection, text


def run(connection: Connection) -> None:
    context.configure(connection=connection, transaction_per_migration=True, on_version_apply=record)
    with context.begin_transaction():
        context.run_migrations()


def record(ctx: MigrationContext, step: MigrationInfo, heads: Collection[Any], run_args: Mapping[str, Any]) -> None:
    """Keeps the list of applied migrations, in the transaction of the migration. After the last way down it is gone."""
    assert ctx.connection is not None
    if step.is_upgrade and isinstance(applied := step.up_revision, Script):
        described = {"revision": applied.revision, "description": applied.doc.strip().splitlines()[0]}
        ctx.connection.execute(
            text("INSERT INTO migration (revision, description) VALUES (:revision, :description)"), described
        )
    elif heads:
        ctx.connection.execute(
            text("DELETE FROM migration WHERE revision = ANY(:gone)"), {"gone": list(step.up_revision_ids)}
        )


if context.is_offline_mode():
    raise SystemExit("Migrations need a database: roles and partitions depend on what is there.")
run(context.config.attributes["connection"])
