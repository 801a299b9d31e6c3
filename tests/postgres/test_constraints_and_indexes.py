"""Tables, limits and indexes that the requirements ask of the database itself."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import asyncpg  # type: ignore[import-untyped]
import pytest

Superuser = Any  # an asyncpg connection

AUDITED = ("user_id", "session_id", "operation", "memory_type", "source_channel")
SEARCHED = ("memory_vector", "turn_vector", "entity_vector", "strategy_vector")
OF_A_CHANNEL = ("memory", "turn", "conversation", "entity", "strategy", "goal")
OF_USER_AND_CHANNEL = ("memory", "conversation", "entity")
BY_TIME = ("memory_history", "audit_log", "conversation_log", "tool_invocation")


async def indexes(superuser: Superuser, table: str) -> list[str]:
    sql = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename = $1"
    return [row[0].split(" USING ")[1] for row in await superuser.fetch(sql, table)]


async def columns(superuser: Superuser, table: str) -> set[str]:
    sql = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = $1"
    return {row[0] for row in await superuser.fetch(sql, table)}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("content", "''"),
        ("type", "'decision'"),
        ("type_confidence", "1.01"),
        ("fact_confidence", "-0.1"),
        ("importance", "1.5"),
        ("importance_level", "11"),
        ("enrichment_attempts", "4"),
        ("temporal_tag", "'soon'"),
        ("t_invalid", "timestamptz '2020-01-01'"),
    ],
)
async def test_the_database_refuses_values_out_of_range(superuser: Superuser, column: str, value: str) -> None:
    given = {
        "workspace_id": f"'{uuid4()}'",
        "id": f"'{uuid4()}'",
        "user_id": "'alice'",
        "content": "'x'",
        "hash": "md5('x')",
        "type": "'Context'",
        "type_confidence": "0.5",
        "classification_source": "'default'",
        "importance": "0.5",
        "importance_level": "5",
        "embedding_status": "'queued'",
        "t_valid": "timestamptz '2021-01-01'",
        **dict.fromkeys(("timestamp", "created_at", "updated_at"), "now()"),
        column: value,
    }
    names = ", ".join(f'"{name}"' for name in given)
    with pytest.raises(asyncpg.CheckViolationError):
        await superuser.execute(f"INSERT INTO memory ({names}) VALUES ({', '.join(given.values())})")


async def test_importance_time_and_tags_have_indexes(superuser: Superuser) -> None:
    found = await indexes(superuser, "memory")
    assert 'btree (workspace_id, "timestamp" DESC)' in found
    assert 'btree (workspace_id, importance DESC, "timestamp" DESC)' in found
    assert any(each.startswith("gin") and "tag_prefixes" in each for each in found)


@pytest.mark.parametrize("table", SEARCHED)
async def test_every_searched_vector_has_an_hnsw_index_by_cosine(superuser: Superuser, table: str) -> None:
    graphs = [each for each in await indexes(superuser, table) if each.startswith("hnsw")]
    assert len(graphs) == 1
    assert "halfvec_cosine_ops" in graphs[0]
    assert "generation = 1" in graphs[0]


@pytest.mark.parametrize("table", OF_A_CHANNEL)
async def test_a_channel_has_an_index(superuser: Superuser, table: str) -> None:
    assert any(each.startswith("btree (workspace_id, channel") for each in await indexes(superuser, table))


@pytest.mark.parametrize("table", OF_USER_AND_CHANNEL)
async def test_a_users_channel_has_an_index(superuser: Superuser, table: str) -> None:
    assert any(each.startswith("btree (workspace_id, user_id, channel") for each in await indexes(superuser, table))


@pytest.mark.parametrize("table", BY_TIME)
async def test_the_time_of_recording_has_a_block_range_index(superuser: Superuser, table: str) -> None:
    assert "brin (recorded_at)" in await indexes(superuser, table)


async def test_columns_of_history(superuser: Superuser) -> None:
    wanted = {"id", "memory_id", "event", "old_memory", "new_memory", "recorded_at", "is_deleted"}
    assert wanted | {"user_id", "agent_id", "run_id"} <= await columns(superuser, "memory_history")
    assert "btree (workspace_id, memory_id, recorded_at)" in await indexes(superuser, "memory_history")


async def test_columns_of_the_audit(superuser: Superuser) -> None:
    wanted = {"id", "recorded_at", "operation", "memory_type", "user_id", "session_id", "conversation_id"}
    wanted |= {"source_channel", "target_channels", "query_text", "result_count", "latency_ms", "success"}
    wanted |= {"error_message", "promoted_from_channel", "promotion_confidence", "promotion_access_count"}
    wanted |= {"promotion_conversation_count", "config_snapshot", "metadata"}
    assert wanted <= await columns(superuser, "audit_log")
    found = await indexes(superuser, "audit_log")
    assert [f"btree (workspace_id, {name}, recorded_at)" in found for name in AUDITED] == [True] * len(AUDITED)
