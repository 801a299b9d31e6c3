"""Upkeep of the tables of all workspaces: partitions, rows that are kept for a time only, VACUUM."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import text

from service.postgres.engine import Session

# These functions are SECURITY DEFINER and granted to loxodon_worker: no workspace is known here.
ENSURE_PARTITIONS = text("SELECT ensure_partitions(:upto)")
DROP_PARTITIONS = text("SELECT drop_partitions(:parent, :older_than)")
CLEAN_UP = text("SELECT * FROM clean_up(:at, :job_days, :embedding_days, :history_days, :batch)")

UNVACUUMED = text("""
    SELECT c.oid::regclass::text FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relforcerowsecurity
      AND CASE WHEN current_setting('server_version_num')::integer >= 170000
               THEN has_table_privilege(c.oid, 'MAINTAIN') ELSE false END
      AND coalesce(greatest(pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid)), '-infinity')
          < (SELECT j.created_at FROM job j WHERE j.workspace_id = :workspace AND j.id = :job)
    ORDER BY c.relname
""")


async def find_unvacuumed(session: Session, job_id: UUID) -> list[str]:
    """Quoted names of tables that may be vacuumed and have not been since this job was created."""
    return list(await session.scalars(UNVACUUMED, {"job": job_id}))


async def ensure_partitions(session: Session, upto: datetime) -> int:
    """Creates partitions of every partitioned table up to `upto`, and wherever DEFAULT has rows; returns how many."""
    return int(await session.scalar(ENSURE_PARTITIONS, {"upto": upto}) or 0)


async def drop_partitions(session: Session, parent: str, older_than: datetime) -> int:
    """Drops the partitions of `parent` that end at or before `older_than`; returns how many."""
    return int(await session.scalar(DROP_PARTITIONS, {"parent": parent, "older_than": older_than}) or 0)


async def clean_up(
    session: Session, at: datetime, *, job_days: int, embedding_days: int, history_days: int, batch: int
) -> dict[str, int]:
    """Removes at most `batch` rows per table: expired before `at`, jobs and runs finished more than `job_days` before
    it, vectors cached more than `embedding_days` before it, erasures in the change feed more than `history_days` before
    it. Returns the rows by table."""
    limits = {"at": at, "job_days": job_days, "embedding_days": embedding_days, "history_days": history_days}
    limits |= {"batch": batch}
    return {row.name: row.removed for row in await session.execute(CLEAN_UP, limits)}
