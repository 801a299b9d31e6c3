"""What a statement does in Postgres, read from its plan."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from sqlalchemy import event

from service.postgres.engine import Session, driver


async def kept_plan(session: Session, reading: Awaitable[Any]) -> Mapping[str, Any]:
    """The plan that is kept of the last statement of `reading`, as it ran for the same values."""
    raw, sent = await driver(session), list[tuple[str, Sequence[Any]]]()

    def note(_connection: Any, _cursor: Any, sql: str, values: Sequence[Any], *_: Any) -> None:
        sent.append((sql, values))

    event.listen(session.engine.sync_engine, "before_cursor_execute", note)
    with raw.query_logger(lambda query: sent.append((query.query, query.args))):  # of what is sent past SQLAlchemy
        await reading
        await asyncio.sleep(0)  # the driver calls it back later
    event.remove(session.engine.sync_engine, "before_cursor_execute", note)
    sql, values = sent[-1]
    types = ", ".join(each.name for each in (await raw.prepare(sql)).get_parameters())
    await raw.execute(f"SET LOCAL plan_cache_mode = force_generic_plan; PREPARE kept({types}) AS {sql}")
    given = ", ".join(map(_literal, values))
    plan = await raw.fetchval(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE kept({given})")
    await raw.execute("DEALLOCATE kept")
    found: Mapping[str, Any] = plan[0]["Plan"]
    return found


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return f"'{{{', '.join(map(str, value))}}}'" if isinstance(value, list) else f"'{value}'"


def rows_read(plan: Mapping[str, Any], table: str | None = None) -> int:
    """The rows that all steps of a plan have read, or only its scans of a table; also those that were not kept."""
    removed = sum(value for name, value in plan.items() if name.startswith("Rows Removed by"))
    counts = table in (None, plan.get("Relation Name"))
    own = int((plan["Actual Rows"] + removed) * plan["Actual Loops"]) if counts else 0
    return own + sum(rows_read(part, table) for part in plan.get("Plans", ()))
