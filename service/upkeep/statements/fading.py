"""Ageing of memories and entities, one batch per statement.

Each number is computed from its stored base, never from the result of an earlier run, and written only if it changed by
more than MOVED, so most hourly runs write nothing. Locked rows are left to the next run, so others wait at most for the
batch being written. The numbers are in memory_stat, whose updates stay HOT; rows of `memory` are never written.
Statements walk the primary keys from `after` on.
"""

from __future__ import annotations

import math
from datetime import datetime
from uuid import UUID

from sqlalchemy import TextClause, text

from service.domain.ageing import INFERRED_AT_MOST, Ageing
from service.domain.scope import Scope
from service.postgres import scopes
from service.postgres.engine import Session
from service.postgres.template import Template
from service.upkeep.statements.findings import UNNAMED

BATCH = 5_000
MOVED = 0.002
LOSS = -math.log(0.95)  # 5 % of relevance a day without use, half in 13.5 days; 5 % of inferred confidence a week
USE_BOOST = 0.1  # salience grows by this share times ln(1 + uses)
RECENCY_BOOST = 0.1  # added to the salience of what was used today; exp(-days) of it later
FORGET_BELOW = 0.05  # relevance after 58 days without use
ENTITY_MIN_SALIENCE, ENTITY_IDLE_DAYS = 0.1, 30  # an entity below, unused for this many days, is removed
MOST = 100.0  # exp(-100) is nothing; further out Postgres reports an underflow

SINCE = "greatest(s.last_accessed, s.confirmed_at)"
"""When a memory starts to age: at its last use, or when it was last said again."""


# The numbers of a batch of rows: `old` is what a row has, `fresh` what it ought to have. Rows are found again by ctid:
# looking each up by its key twice more took a fifth of the time, and a minute in a freshly filled table without
# statistics. A row that was just changed is no longer found, as if it were locked.
WRITE = """
    WITH part AS MATERIALIZED (
        SELECT s.{key} AS id, s.ctid AS at, {old} AS old, {fresh} AS fresh FROM {table} s {joined}
        WHERE s.workspace_id = :workspace AND s.{key} > :after AND {only} ORDER BY s.{key} LIMIT :batch
    ), unlocked AS MATERIALIZED (
        SELECT s.ctid AS at FROM {table} s WHERE s.workspace_id = :workspace
            AND s.ctid = ANY (ARRAY(SELECT at FROM part WHERE abs(fresh - old) > {moved})) FOR NO KEY UPDATE SKIP LOCKED
    ), written AS (
        UPDATE {table} s SET {assignment} FROM unlocked JOIN part USING (at)
        WHERE s.workspace_id = :workspace AND s.ctid = at RETURNING s.ctid
    )
    SELECT count(*) AS seen, (SELECT id FROM part ORDER BY id DESC LIMIT 1) AS last,
           (SELECT count(*) FROM written) AS changed FROM part
"""
OF_MEMORIES = Template(WRITE, table="memory_stat", key="memory_id", moved=MOVED)
OF_ENTITIES = Template(WRITE, table="entity", key="id", moved=MOVED)

PASSED = "CROSS JOIN LATERAL (SELECT {age} AS age) passed"
MEMORY = "JOIN memory m ON m.workspace_id = s.workspace_id AND m.id = s.memory_id"
SECONDS = """
    greatest(0, date_part('epoch', CAST(:now AS timestamptz)) - date_part('epoch', {since} AT TIME ZONE 'UTC'))
"""

# base * exp(-loss * age), the age in days
RELEVANCE = OF_MEMORIES.fill(
    assignment="relevance = fresh",
    old="s.relevance",
    fresh=f"s.base_relevance * exp(-least({MOST}, {LOSS} * age))",
    joined=PASSED.format(age=f"{SECONDS.format(since=SINCE)} / 86400"),
    only="true",
)

# In whole days in UTC, so that all runs of a day give the same result; without a use there is no boost.
SALIENCE = f"""
    least(1, base_salience * exp(-least({MOST}, {LOSS} * age))
             * (1 + {USE_BOOST} * ln(1 + access_count))
             + CASE WHEN access_count > 0 THEN {RECENCY_BOOST} * exp(-least({MOST}, age)) ELSE 0 END)
"""
DAYS = """
    greatest(0, (CAST(:now AS timestamptz) AT TIME ZONE 'UTC')::date
                - (greatest({since}, '0001-01-01Z') AT TIME ZONE 'UTC')::date)::float8
"""
BY_DAYS = {"assignment": "salience = fresh", "old": "s.salience", "fresh": SALIENCE, "only": "true"}
MEMORY_SALIENCE = OF_MEMORIES.fill(**BY_DAYS, joined=PASSED.format(age=DAYS.format(since=SINCE)))
ENTITY_SALIENCE = OF_ENTITIES.fill(
    **BY_DAYS, joined=PASSED.format(age=DAYS.format(since="coalesce(s.last_accessed, s.first_seen)"))
)

# In whole weeks since it was stored or last said again, because use makes nothing truer. Only inferred facts; a
# confidence set by a caller has no base.
CONFIDENCE = OF_MEMORIES.fill(
    assignment="confidence = fresh",
    old="coalesce(s.confidence, s.base_confidence)",
    fresh=f"s.base_confidence * exp(-least({MOST}, {LOSS} * age))",
    joined=f"{MEMORY} "
    + PASSED.format(age=f"floor({SECONDS.format(since='greatest(m.created_at, s.confirmed_at)')} / 604800)"),
    only="s.base_confidence <= :inferred_at_most",
)

# A fact with an end is stale after it, any other after long without use. A use makes it fresh again.
STALE = OF_MEMORIES.fill(
    assignment="stale_at = CASE WHEN fresh = 1 THEN CAST(:now AS timestamptz) END",
    old="CAST(s.stale_at IS NOT NULL AS integer)",
    fresh=f"""
        CAST(CASE WHEN m.valid_until IS NOT NULL THEN m.valid_until <= :now
             ELSE {SINCE} < CAST(:now AS timestamptz) - make_interval(secs => 86400 * :stale_days)
             END AS integer)""",
    joined=MEMORY,
    only="true",
)

FADED = text(f"""
    SELECT m.id, m.workspace_id, m.user_id, m.agent_id, m.run_id, m.channel
    FROM memory_stat s CROSS JOIN LATERAL ({scopes.by_key("memory", "s.memory_id")}) m
    WHERE s.workspace_id = :workspace AND s.memory_id > :after AND s.relevance < :forget_below
      AND NOT m.archived AND m.version_of IS NULL AND m.review_status IS NULL
    ORDER BY s.memory_id LIMIT :batch
""")  # noqa: S608 - no user input

# Entities that a caller wrote stay, and so do those named by a memory or a relation.
REMOVE_FORGOTTEN = text(f"""
    DELETE FROM entity WHERE workspace_id = :workspace AND id = ANY (ARRAY(
        SELECT e.id FROM entity e
        WHERE e.workspace_id = :workspace AND e.id > :after AND e.extracted_by <> 'caller'
          AND e.salience < :min_salience AND {UNNAMED}
          AND coalesce(e.last_accessed, e.first_seen) < CAST(:now AS timestamptz) - make_interval(secs => 86400 * :idle)
        ORDER BY e.id LIMIT :batch FOR UPDATE SKIP LOCKED))
    RETURNING id
""")  # noqa: S608 - no user input

COUNT = Template("SELECT count(*) FROM {table} WHERE workspace_id = :workspace")


async def age(
    session: Session, statement: TextClause, rules: Ageing, *, now: datetime, after: UUID
) -> tuple[int, int, UUID | None]:
    """Runs RELEVANCE, MEMORY_SALIENCE, CONFIDENCE, ENTITY_SALIENCE or STALE over the batch after `after`; returns the
    numbers of rows read and written, and the id to continue after, None at the end."""
    values = {
        "now": now,
        "after": after,
        "batch": BATCH,
        "stale_days": rules.stale_after_days,
        "inferred_at_most": INFERRED_AT_MOST,
    }
    row = (await session.execute(statement, values)).one()
    return row.seen, row.changed, row.last if row.seen == BATCH else None


async def list_faded(session: Session, *, after: UUID, batch: int) -> dict[UUID, Scope]:
    """Live memories whose relevance is below the threshold, in the order of their ids, with their scopes."""
    values = {"forget_below": FORGET_BELOW, "after": after, "batch": batch}
    return {row.id: scopes.of_row(row) for row in await session.execute(FADED, values)}


async def remove_forgotten(session: Session, *, after: UUID, now: datetime, batch: int) -> list[UUID]:
    """Removes the next entities that were found by rules or a model, have faded, are unused and named by nothing;
    returns their ids."""
    values = {"after": after, "now": now, "min_salience": ENTITY_MIN_SALIENCE, "idle": ENTITY_IDLE_DAYS, "batch": batch}
    return list(await session.scalars(REMOVE_FORGOTTEN, values))


async def count(session: Session, *, entities: bool = False) -> int:
    """The number of memories, or entities, of the workspace."""
    return int(await session.scalar(COUNT.fill(table="entity" if entities else "memory_stat")) or 0)
