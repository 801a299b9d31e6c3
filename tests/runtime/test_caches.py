from __future__ import annotations

import hashlib
from uuid import UUID

import numpy as np

from service.domain.moments import system_clock
from service.postgres.engine import Database
from service.runtime.statements.caches import ANSWERS_KEPT, AnswerTable, VectorTable
from tests.conftest import DIMENSION


async def test_a_vector_comes_back_as_it_went_in_and_to_its_workspace_only(
    database: Database, workspace: UUID, stranger: object
) -> None:
    table = VectorTable(database)
    digest = hashlib.sha256(b"tea").digest()
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[3] = 1.0
    await table.put_many(workspace, "test:model", {digest: vector})
    await table.put_many(workspace, "test:model", {digest: vector})
    found = await table.get_many(workspace, "test:model", [digest, hashlib.sha256(b"coffee").digest()])
    assert list(found) == [digest]
    assert np.array_equal(found[digest], vector)
    assert await table.get_many(workspace, "test:other", [digest]) == {}
    other: UUID = stranger.workspace_id  # type: ignore[attr-defined]
    assert await table.get_many(other, "test:model", [digest]) == {}


async def test_an_answer_is_kept_until_it_expires(database: Database, workspace: UUID) -> None:
    prompt = hashlib.sha256(b"question").digest()
    await AnswerTable(database).put(workspace, "extract", "test:model", prompt, "answer")
    assert await AnswerTable(database).get(workspace, "extract", "test:model", prompt) == "answer"
    assert await AnswerTable(database).get(workspace, "decide", "test:model", prompt) is None
    later = AnswerTable(database, lambda: system_clock() + ANSWERS_KEPT)
    assert await later.get(workspace, "extract", "test:model", prompt) is None
