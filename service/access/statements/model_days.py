"""The account of what a workspace spends on the language model in a day (UTC), and the reservations on it.

One row per workspace and day. Reservations are entries of `held`, so that one statement sees and locks everything:
concurrent calls take turns at the row, and each is compared with what the previous one left.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from uuid import UUID

from sqlalchemy import text

from service.domain.model_budget import DayAccount
from service.postgres import direct
from service.postgres.engine import Database, Session

# Uses pk_model_day. Removes expired entries. No row: there is not enough left.
RESERVE = text("""
    INSERT INTO model_day AS d (workspace_id, day, held)
    VALUES (:workspace, CAST(:day AS date), jsonb_build_object(CAST(:call AS text), jsonb_build_array(
            CAST(:tokens AS bigint), CAST(:ends_s AS float8))))
    ON CONFLICT ON CONSTRAINT pk_model_day DO UPDATE
    SET held = excluded.held || (open_reservations(d.held, CAST(:now_s AS float8))).held
    WHERE d.prompt_tokens + d.completion_tokens + (open_reservations(d.held, CAST(:now_s AS float8))).tokens
          + CAST(:tokens AS bigint) <= CAST(:most AS bigint)
    RETURNING 1 AS reserved
""")

# Uses pk_model_day.
SETTLE = text("""
    INSERT INTO model_day AS d (workspace_id, day, calls, prompt_tokens, completion_tokens, cost)
    VALUES (:workspace, CAST(:day AS date), CAST(:calls AS bigint), CAST(:prompt_tokens AS bigint),
            CAST(:completion_tokens AS bigint), CAST(:cost AS float8))
    ON CONFLICT ON CONSTRAINT pk_model_day DO UPDATE
    SET calls = d.calls + excluded.calls, prompt_tokens = d.prompt_tokens + excluded.prompt_tokens,
        completion_tokens = d.completion_tokens + excluded.completion_tokens, cost = d.cost + excluded.cost,
        held = d.held - CAST(:call AS text)
""")

# Uses pk_model_day.
ACCOUNT = text("""
    SELECT d.calls, d.prompt_tokens, d.completion_tokens, d.cost, open.tokens
    FROM model_day d CROSS JOIN LATERAL open_reservations(d.held, CAST(:now_s AS float8)) open
    WHERE d.workspace_id = :workspace AND d.day = CAST(:day AS date)
""")


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call of the model by a workspace, on the day on which it began (UTC)."""

    workspace_id: UUID
    day: date
    id: UUID


async def reserve(
    database: Database, call: ModelCall, limit: int, *, tokens: int, now: datetime, ends_s: float
) -> bool:
    """Reserves the estimate of a call until `ends_s` (seconds since 1970); False if too little is left."""
    if tokens > limit:
        return False
    values = {
        "workspace": call.workspace_id,
        "day": call.day,
        "call": str(call.id),
        "tokens": tokens,
        "most": limit,
        "now_s": now.timestamp(),
        "ends_s": ends_s,
    }
    async with database.begin(call.workspace_id, generic_plans=True, detached=True) as session:
        return await direct.first(session, RESERVE, values) is not None


async def settle(
    database: Database, call: ModelCall, *, calls: int, prompt_tokens: int, completion_tokens: int, cost: float
) -> None:
    """Adds what the call used, and ends its reservation if there is one."""
    values = {
        "workspace": call.workspace_id,
        "day": call.day,
        "call": str(call.id),
        "calls": calls,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "cost": cost,
    }
    async with database.begin(call.workspace_id, generic_plans=True, detached=True) as session:
        await direct.fetch(session, SETTLE, values)


async def account(session: Session, now: datetime) -> DayAccount:
    """The tokens and costs that the workspace has spent and reserved on the day of `now`."""
    day = now.astimezone(UTC).date()
    row = await direct.first(session, ACCOUNT, {"day": day, "now_s": now.timestamp()})
    if row is None:
        return DayAccount(day)
    return DayAccount(day, row.calls, row.prompt_tokens, row.completion_tokens, row.cost, row.tokens)
