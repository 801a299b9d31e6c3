"""Which few rows of a large scope can meet the conditions of a question at all?

`narrow_ids` looks them up by their marks (domain/marks.py) past row-level security, which keeps the application from
every GIN index (A2), and gives ids of the workspace alone. When they are few, the scope is cut down to them and
answered like a small one, row by row: conditions and policy are asked of each, and neither the graph nor a scan of the
scope is needed. The function is called twice, in one snapshot, so that no ids travel.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import text

from service.db import direct, hybrid
from service.db.conditions import Condition, typed
from service.db.engine import Session
from service.db.hybrid import Ask, Candidates, Where
from service.domain.marks import Mark

MOST: Final = 2_000
"""Rows that are few. Each is read by its key from two tables; beyond, the other ways of a large scope are faster."""

# ix_memory_marks. The marks are worked out by the very function that is indexed, from what a row with them would hold.
IDS: Final = """narrow_ids(CAST(:of_user AS text), CAST(:of_agent AS text), CAST(:of_run AS text),
    CAST(:of_channels AS text[]),
    memory_marks(:workspace, CAST(:all_tags AS text[]), '{}', CAST(:all_categories AS text[]),
                 CAST(CAST(:all_metadata AS text) AS jsonb)),
    memory_marks(:workspace, CAST(:any_tags AS text[]), '{}', CAST(:any_categories AS text[]),
                 CAST(CAST(:any_metadata AS text) AS jsonb)), CAST(:of_reach AS integer))"""

FEW: Final = typed(text(f"SELECT {IDS} IS NOT NULL AS few"))


async def candidates(session: Session, where: Where, ask: Ask, *, arm: int, wanted: int) -> Candidates | None:
    """As hybrid.candidates gives them for a small scope; None where the marks leave more than `exact_rows` rows of the
    workspace, or MOST, or where the question needs none."""
    if not where.marks:
        return None
    row = await direct.first(session, FEW, values(where))
    if row is None or not row.few:
        return None
    return await hybrid.candidates(session, narrowed(where), ask, arm=arm, wanted=wanted)


def narrowed(where: Where) -> Where:
    """The scope, cut down to the rows that bear the marks, which `narrow_ids` looks for inside the scope only. They and
    their vectors are found by their ids; the scope's columns are asked of each row that was read. Where they stood
    beside the ids, a scan of the whole scope looked cheap to a planner that knew nothing of the workspace."""
    workspace = {"workspace": where.scope.values["workspace"]}
    ids = Condition(f"m.id = ANY (ARRAY(SELECT unnest({IDS})))", values(where))
    here = Condition("m.workspace_id = :workspace", workspace) & ids
    read = Condition("v.workspace_id = :workspace AND v.memory_id = ANY (ARRAY(SELECT s.id FROM scoped s))", workspace)
    return replace(where, scope=here, rows=where.scope & where.rows, vectors=read, whole=False)


def of_scope(scope: Condition) -> dict[str, Any]:
    """The ids and channels of a scope, as the functions over GIN take them."""
    given = scope.values
    channels = given.get("channels") or [given[name] for name in ("channel", "global_channel") if name in given]
    ids = {f"of_{name}": given.get(f"{name}_id") for name in ("user", "agent", "run")}
    return {**ids, "of_channels": list(channels)}


def values(where: Where) -> dict[str, Any]:
    """The parameters of IDS."""
    return {
        "workspace": where.scope.values["workspace"],
        **of_scope(where.scope),
        **_row("all", where.marks.all_of),
        **_row("any", where.marks.any_of),
        "of_reach": min(where.exact_rows, MOST),
    }


def _row(name: str, marks: Sequence[Mark]) -> dict[str, Any]:
    """What a row that bears the marks holds in the columns they are made from."""
    metadata: dict[str, list[Any]] = {}
    for mark in marks:
        if mark.kind == "metadata":
            metadata.setdefault(mark.word, []).append(mark.value)
    return {
        f"{name}_tags": [mark.word for mark in marks if mark.kind == "tag"],
        f"{name}_categories": [mark.word for mark in marks if mark.kind == "category"],
        f"{name}_metadata": json.dumps(metadata),
    }
