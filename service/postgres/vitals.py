"""Figures of the whole service from the database: queue and tables; no row of a tenant.

Sizes are those of the last VACUUM or ANALYZE (pg_class): counting rows would take longer the more there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Row, text

from service.postgres.engine import Session

QUEUE = text("SELECT kind, state, jobs, oldest_s FROM measure_queue()")

# Partitions count as their table; indexes and TOAST count to it. A table that was never analysed has no estimate: then
# the statistics tell how many rows came.
TABLES = text("""
    SELECT coalesce(pg_partition_root(c.oid), c.oid)::regclass::text AS name,
           sum(CASE WHEN c.relkind = 'p' THEN 0
                    WHEN c.reltuples < 0 THEN pg_stat_get_live_tuples(c.oid) ELSE c.reltuples END)::float8 AS rows,
           sum((c.relpages + coalesce(t.relpages, 0) + coalesce(i.pages, 0))::bigint
               * current_setting('block_size')::bigint)::float8 AS bytes
    FROM pg_class c
    LEFT JOIN pg_class t ON t.oid = c.reltoastrelid
    LEFT JOIN LATERAL (
        SELECT sum(x.relpages) AS pages FROM pg_index d JOIN pg_class x ON x.oid = d.indexrelid
        WHERE d.indrelid = c.oid OR d.indrelid = c.reltoastrelid
    ) i ON true
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
    GROUP BY 1
""")

UPKEEP = text("SELECT kind, what, items FROM measure_upkeep()")


async def upkeep(session: Session) -> Mapping[tuple[str, str], float | None]:
    """For each job the counts of its last run in every workspace; the lag of consolidate is None where nothing was
    read."""
    return {(row.kind, row.what): row.items for row in await session.execute(UPKEEP)}


async def queue(session: Session) -> Sequence[Row[Any]]:
    """Jobs of a kind in a state (due, running, dead), and for how long the oldest has been in it."""
    return (await session.execute(QUEUE)).all()


async def tables(session: Session) -> Sequence[Row[Any]]:
    """Estimates, as of each table's last VACUUM or ANALYZE."""
    return (await session.execute(TABLES)).all()
