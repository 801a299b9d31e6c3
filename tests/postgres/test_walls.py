"""What a key made for one user may do with each table: every table is decided, new ones included."""

from __future__ import annotations

from typing import Any

import asyncpg  # type: ignore[import-untyped]

from service.postgres.roles import APP, WALLED, WORKER

OWN = {  # the row has the ids and the channel, or is closed behind a wall of what it has not
    "conversation",
    "conversation_log",
    "decision",
    "entity",
    "entity_alias",
    "erased_memory",
    "goal",
    "idempotency",
    "memory",
    "memory_history",
    "memory_vector",
    "operation",
    "strategy",
    "term_stat",
    "tool_invocation",
    "turn",
    "turn_vector",
    "user_profile",
    "working_item",
}
OF_ANOTHER_ROW = {  # the row it belongs to decides
    "entity_edge",
    "entity_edge_source",
    "entity_vector",
    "goal_edge",
    "goal_memory",
    "goal_vector",
    "job",
    "memory_edge",
    "memory_entity",
    "memory_source",
    "memory_stat",
    "review",
    "strategy_conversation",
    "strategy_vector",
    "withdrawn_span",
}
WRITTEN_ONLY = {"audit_log"}
OPEN = {"embedding_cache", "embedding_generation", "llm_cache"}  # nothing in them is a user's
CLOSED = {
    "alembic_version",
    "api_key",
    "model_day",
    "migration",
    "partitioned_table",
    "schema_version",
    "schedule",
    "token_secret",
    "webhook",
    "webhook_delivery",
    "workspace",
}

TABLES = """
    SELECT c.relname AS name,
           has_table_privilege('loxodon_walled', c.oid, 'SELECT') AS reads,
           has_table_privilege('loxodon_walled', c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
               OR has_any_column_privilege('loxodon_walled', c.oid, 'INSERT, UPDATE') AS writes,
           (SELECT pg_get_expr(p.polqual, p.polrelid) FROM pg_policy p
            WHERE p.polrelid = c.oid AND p.polname = 'wall' AND NOT p.polpermissive) AS wall
    FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
"""


async def test_every_table_is_decided(superuser: asyncpg.Connection[Any]) -> None:
    tables = {row["name"]: row for row in await superuser.fetch(TABLES)}
    decided = [OWN, OF_ANOTHER_ROW, WRITTEN_ONLY, OPEN, CLOSED]
    assert sorted(name for each in decided for name in each) == sorted(tables)
    for name, row in tables.items():
        walled = name in OWN | OF_ANOTHER_ROW
        assert (row["wall"] is not None) == walled, name
        assert row["reads"] == (walled or name in OPEN), name
        assert not (row["writes"] and name in CLOSED), name


async def test_the_row_it_belongs_to_decides(superuser: asyncpg.Connection[Any]) -> None:
    tables = {row["name"]: row for row in await superuser.fetch(TABLES)}
    for name in OF_ANOTHER_ROW:
        assert "is_outside(" in tables[name]["wall"], name
    for name in OWN - {"erased_memory", "operation", "idempotency", "term_stat"}:
        assert all(f"loxodon.wall_{each}" in tables[name]["wall"] for each in ("user_id", "agent_id", "run_id")), name


async def test_the_app_becomes_walled_and_inherits_nothing_of_it(superuser: asyncpg.Connection[Any]) -> None:
    for role in (APP, WORKER):
        assert await superuser.fetchval("SELECT pg_has_role($1, $2, 'SET')", role, WALLED)
        assert not await superuser.fetchval("SELECT pg_has_role($1, $2, 'USAGE')", role, WALLED)
    assert not await superuser.fetchval("SELECT pg_has_role($1, $2, 'MEMBER')", WALLED, APP)
