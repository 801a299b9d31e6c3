"""Runs the migrations as the owner role, on the connection that service/db/migrate.py hands over."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from service.db.migrate import default_differs, is_ours
from service.db.tables import Table


def write_out() -> None:
    """The SQL of migrations, for a plan."""
    context.configure(dialect_name="postgresql", target_metadata=Table.metadata, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Table.metadata,
        include_name=is_ours,
        compare_type=True,
        compare_server_default=default_differs,
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        context.run_migrations()


if not context.is_offline_mode():
    run(context.config.attributes["connection"])
elif "settings" in context.config.attributes:
    write_out()
else:
    raise SystemExit("Migrations need a database: roles and partitions depend on what is there.")
