"""The checks of the chaos benchmark find a database that was damaged on purpose."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import asyncpg  # type: ignore[import-untyped]
import pytest

from bench import chaos_checks
from bench.chaos_writes import AnswerRecord, content_with_key

HOME = UUID(int=7)
MEMORY = """
INSERT INTO memory (workspace_id, id, user_id, content, hash, type, type_confidence, classification_source, importance,
    importance_level, "timestamp", embedding_status, created_at, updated_at)
VALUES ($1, $2, 'ann', $3, md5($3), 'Context', 0.5, 'rules', 0.5, 5, now(), 'stored', now(), now())
"""


@pytest.fixture
async def database(owner_url: str) -> AsyncIterator[str]:
    """The superuser's URL; memories that a test writes are deleted after it."""
    url = owner_url.replace("+asyncpg", "")
    yield url
    connection = await asyncpg.connect(url)
    await connection.execute("DELETE FROM memory WHERE workspace_id = $1", HOME)
    await connection.close()


async def _bare_memory(url: str, text: str) -> UUID:
    connection = await asyncpg.connect(url)
    memory_id = uuid4()
    await connection.execute(MEMORY, HOME, memory_id, text)
    await connection.close()
    return memory_id


async def test_a_memory_without_its_rows_is_found(database: str) -> None:
    await _bare_memory(database, "Only a row.")
    found = {line.partition(":")[0] for line in await chaos_checks.rows(database)}
    assert found >= {
        "memory-stat",
        "memory-vector",
        "memory-added",
        "memory without audit",
    }


async def test_what_was_acknowledged_and_is_not_there_is_found(database: str) -> None:
    record, write, lost = AnswerRecord(), content_with_key(random.Random(4)), uuid4()
    record.answered(write, 201, {"results": [{"id": str(lost), "event": "ADD"}]})
    wrong = await chaos_checks.answers(database, record)
    assert f"acknowledged memory {lost} is lost" in wrong
    assert f"sent with a key and not stored: {write.texts[0]}" in wrong


async def test_a_text_that_is_there_twice_is_found(database: str) -> None:
    record, write = AnswerRecord(), content_with_key(random.Random(5))
    kept = await _bare_memory(database, write.texts[0])
    await _bare_memory(database, write.texts[0])
    record.answered(write, 201, {"results": [{"id": str(kept), "event": "ADD"}]})
    wrong = await chaos_checks.answers(database, record)
    assert f"stored 2 times: {write.texts[0]}" in wrong
    assert f"memory {kept} has 0 adds" in wrong
