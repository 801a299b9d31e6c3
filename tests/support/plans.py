"""What a statement does in Postgres, read from its plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import TextClause, text


def explained(statement: TextClause) -> TextClause:
    """The statement that runs another one and returns its plan."""
    return text(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement.text}").bindparams(
        *(statement._bindparams.values())
    )


def rows_read(plan: Mapping[str, Any], table: str | None = None) -> int:
    """The rows that all steps of a plan have read, or only its scans of a table; also those that were not kept."""
    removed = sum(value for name, value in plan.items() if name.startswith("Rows Removed by"))
    counts = table in (None, plan.get("Relation Name"))
    own = int((plan["Actual Rows"] + removed) * plan["Actual Loops"]) if counts else 0
    return own + sum(rows_read(part, table) for part in plan.get("Plans", ()))
