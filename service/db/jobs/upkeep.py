"""What is made ahead and what is thrown away, for all workspaces at once?

These functions are SECURITY DEFINER (migrations 0004, 0008, 0010), granted to loxodon_worker: no workspace is known
here.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from service.db.engine import Session

ENSURE = text("SELECT ensure_partitions(:upto)")
DROP = text("SELECT drop_partitions(:parent, :older_than)")
CLEAN_UP = text("SELECT * FROM clean_up(:at, :job_days, :embedding_days, :batch)")
OUTLIVED = text("SELECT * FROM find_outlived(:at, CAST(:retention_days AS integer), :limit)")


# has_table_privilege does not know MAINTAIN before Postgres 17
MAY_VACUUM = text("""
    SELECT CASE WHEN current_setting('server_version_num')::integer >= 170000
                THEN has_table_privilege('loxodon_worker', 'memory', 'MAINTAIN') ELSE false END
""")
UNVACUUMED = text("""
    SELECT c.oid::regclass::text FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relforcerowsecurity
      AND CASE WHEN current_setting('server_version_num')::integer >= 170000
               THEN has_table_privilege(c.oid, 'MAINTAIN') ELSE false END
      AND coalesce(greatest(pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid)), '-infinity')
          < (SELECT j.created_at FROM job j WHERE j.workspace_id = :workspace AND j.id = :job)
    ORDER BY c.relname
""")


async def may_vacuum(session: Session) -> bool:
    """May the worker pass VACUUM over the tables?"""
    return bool(await session.scalar(MAY_VACUUM))


async def unvacuumed(session: Session, workspace_id: UUID, job_id: UUID) -> list[str]:
    """Tables, as SQL writes their names, that VACUUM may pass and has not passed since this job was made."""
    return list(await session.scalars(UNVACUUMED, {"workspace": workspace_id, "job": job_id}))


async def ensure_partitions(session: Session, upto: datetime) -> int:
    """How many partitions were made, of every partitioned table: up to `upto`, and wherever DEFAULT holds rows."""
    return int(await session.scalar(ENSURE, {"upto": upto}) or 0)


async def drop_partitions(session: Session, parent: str, older_than: datetime) -> int:
    """How many partitions of `parent` were dropped: those that end at or before `older_than`."""
    return int(await session.scalar(DROP, {"parent": parent, "older_than": older_than}) or 0)


async def outlived(
    session: Session, at: datetime, *, retention_days: int | None, limit: int
) -> list[tuple[UUID, UUID]]:
    """Workspace and id of memories that expired by `at`, or are older than their workspace keeps them."""
    values = {"at": at, "retention_days": retention_days, "limit": limit}
    return [(row.workspace_id, row.memory_id) for row in await session.execute(OUTLIVED, values)]


async def clean_up(session: Session, at: datetime, *, job_days: int, embedding_days: int, batch: int) -> dict[str, int]:
    """Rows removed by table, at most `batch` each: what expired before `at`, jobs and runs finished and vectors cached
    more than so many days before it."""
    limits = {"at": at, "job_days": job_days, "embedding_days": embedding_days, "batch": batch}
    return {row.name: row.removed for row in await session.execute(CLEAN_UP, limits)}
