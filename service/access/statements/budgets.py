"""Token buckets of keys and workspaces, shared by all processes.

A process takes tokens for about a second at once (service/access/budgets.py), so a request normally costs no statement.
The table is UNLOGGED: commits do not wait for the disk, and after a crash every bucket is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import text

from service.postgres import direct
from service.postgres.engine import Database

# `granted` keeps what the statement took, because RETURNING shows new values only. Uses pk_budget.
TAKE = text("""
    INSERT INTO budget AS b (workspace_id, subject, unit, tokens, granted, refilled_at)
    VALUES (:workspace, :subject, :unit,
            CAST(:burst AS float8) - least(CAST(:wanted AS float8), CAST(:burst AS float8)),
            least(CAST(:wanted AS float8), CAST(:burst AS float8)), clock_timestamp())
    ON CONFLICT ON CONSTRAINT pk_budget DO UPDATE
    SET (tokens, granted, refilled_at) = (
        SELECT bucket.tokens - least(CAST(:wanted AS float8), bucket.tokens),
               least(CAST(:wanted AS float8), bucket.tokens), bucket.at
        FROM (SELECT least(CAST(:burst AS float8), b.tokens
                           + CAST(extract(epoch FROM moment.at - b.refilled_at) AS float8) * CAST(:per_s AS float8)
                     ) AS tokens, moment.at
              FROM (SELECT greatest(clock_timestamp(), b.refilled_at) AS at) moment) bucket
    )
    RETURNING b.granted, b.tokens
""")


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """A rate in units per second, and a burst. `subject`: the key, or the workspace for all of its keys."""

    subject: UUID
    unit: str
    per_s: float
    burst: float


@dataclass(frozen=True, slots=True)
class Grant:
    """Tokens taken from a bucket, and those left in it."""

    taken: float
    left: float


async def take(database: Database, workspace_id: UUID, wanted: Sequence[tuple[TokenBucket, float]]) -> list[Grant]:
    """Takes up to the given number of tokens from each, in the order given, in one transaction."""
    granted: dict[TokenBucket, Grant] = {}
    async with database.begin(workspace_id, generic_plans=True) as session:
        for bucket, count in sorted(wanted, key=lambda pair: (pair[0].subject, pair[0].unit)):  # one order of locks
            values = {"workspace": workspace_id, "subject": bucket.subject, "unit": bucket.unit, "wanted": float(count)}
            values |= {"per_s": float(bucket.per_s), "burst": float(bucket.burst)}
            row = await direct.first(session, TAKE, values)
            assert row is not None
            granted[bucket] = Grant(row.granted, row.tokens)
    return [granted[each] for each, _ in wanted]
