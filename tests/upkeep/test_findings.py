"""The walks of a report read what they look for by an index, and no more than they may."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import text

from service.postgres.engine import Database
from service.upkeep.statements import findings
from service.upkeep.values import START, Section

BY_INDEX: dict[Section, str] = {
    "duplicates": "ix_memory_edge_finding",
    "contradictions": "ix_memory_edge_finding",
    "stale": "pk_memory_stat",
    "low_value": "pk_memory_stat",
    "orphan_entities": "pk_entity",
    "missing_vectors": "ix_memory_unembedded",
}


@pytest.mark.parametrize("section", BY_INDEX)
async def test_a_walk_is_served_by_an_index(section: Section, database: Database, workspace: UUID) -> None:
    statement = findings.statement(section, among=False)
    known = {
        "workspace": workspace,
        "now": datetime.now(UTC),
        "nil": START.second,
        "first": START.first,
        "second": START.second,
        "limit": 20,
        "most": 1_000,
        "decaying_below": 0.25,
    }
    values = {name: known[name] for name in statement.compile().params}
    async with database.snapshot(workspace) as session:  # without sequential scans, which small tables invite
        plan = await session.execute(text(f"EXPLAIN {statement.text}").bindparams(**values))
        assert BY_INDEX[section] in "\n".join(row[0] for row in plan)
