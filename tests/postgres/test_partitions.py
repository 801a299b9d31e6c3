"""Partitions of logs: rows that arrive before their partition wait in DEFAULT; retention drops whole partitions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg  # type: ignore[import-untyped]

from service.domain.scope import NIL_WORKSPACE
from service.postgres.engine import Database
from service.upkeep.statements import maintenance

INSERT = "INSERT INTO audit_log (workspace_id, id, operation, recorded_at) VALUES ($1, $2, 'store', $3)"


async def test_a_new_partition_has_policies_and_the_indexes_of_its_parent(
    superuser: asyncpg.Connection[Any], worker_database: Database
) -> None:
    day = datetime.now(UTC) + timedelta(days=9)
    async with worker_database.begin(NIL_WORKSPACE) as session:
        await maintenance.ensure_partitions(session, day)
    name = f"audit_log_{day:%Y%m%d}"
    protected = "SELECT relrowsecurity AND relforcerowsecurity FROM pg_class WHERE oid = $1::regclass"
    assert await superuser.fetchval(protected, name)
    count = "SELECT count(*) FROM pg_indexes WHERE tablename = $1"
    assert await superuser.fetchval(count, name) == await superuser.fetchval(count, "audit_log")


async def test_a_partition_of_history_is_a_calendar_month(superuser: asyncpg.Connection[Any]) -> None:
    bounds = await superuser.fetch("""
        SELECT c.relname, pg_get_expr(c.relpartbound, c.oid) AS bound FROM pg_class c
        WHERE c.relispartition AND c.relname ~ '^memory_history_[0-9]{6}$'
    """)
    assert bounds
    for row in bounds:
        first = f"{row['relname'][-6:-2]}-{row['relname'][-2:]}-01 00:00:00+00"
        assert first in row["bound"], row


async def test_only_partitions_wholly_beyond_retention_are_dropped(
    superuser: asyncpg.Connection[Any], worker_database: Database, workspace: UUID
) -> None:
    day = datetime(2024, 5, 10, 12, tzinfo=UTC)
    for moment in (day, day + timedelta(days=1)):
        await superuser.execute(INSERT, workspace, uuid4(), moment)
    async with worker_database.begin(NIL_WORKSPACE) as session:
        await maintenance.ensure_partitions(session, datetime.now(UTC))
    async with worker_database.begin(NIL_WORKSPACE) as session:
        dropped = await maintenance.drop_partitions(session, "audit_log", datetime(2024, 5, 11, 6, tzinfo=UTC))
    assert dropped >= 1
    left = await superuser.fetch(
        "SELECT relname FROM pg_class WHERE relname LIKE 'audit\\_log\\_202405%' AND relkind = 'r'"
    )
    assert [row[0] for row in left] == ["audit_log_20240511"]
    async with worker_database.begin(NIL_WORKSPACE) as session:
        assert await maintenance.drop_partitions(session, "audit_log", datetime(2024, 5, 13, tzinfo=UTC)) == 1
