"""Which answers of models does the database keep? Per workspace, behind the ports of providers/ (B27).

What a request asked a model is held until the request writes, and goes with that transaction: no commit of its own for
each answer, and nothing is kept of a dry run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import DateTime, bindparam, select, text
from sqlalchemy.dialects.postgresql import JSONB, insert

from service.db import direct
from service.db.direct import NewRows
from service.db.engine import Database, Session
from service.db.tables import EmbeddingCacheRow
from service.domain.clock import Clock, system_clock
from service.providers.protocols import Vector

# pk_llm_cache
FIND = text("""
    SELECT answer ->> 'text' AS answer FROM llm_cache
    WHERE workspace_id = :workspace AND prompt_sha256 = :digest AND task = :task AND model = :model
      AND expires_at > :now
""").bindparams(bindparam("now", type_=DateTime(timezone=True)))

KEEP = text("""
    INSERT INTO llm_cache (workspace_id, prompt_sha256, task, model, answer, expires_at)
    VALUES (:workspace_id, :prompt_sha256, :task, :model, :answer, :expires_at)
    ON CONFLICT ON CONSTRAINT pk_llm_cache DO UPDATE
    SET task = excluded.task, model = excluded.model, answer = excluded.answer, expires_at = excluded.expires_at
""").bindparams(bindparam("answer", type_=JSONB()))

Held = dict[tuple[UUID, str], dict[str, Any]]
"""Rows of `llm_cache` by owner and digest of the prompt."""

HeldVectors = dict[tuple[UUID, str, str], Vector]
"""Rows of `embedding_cache` by owner, model and digest of the text."""

_held: ContextVar[Held | None] = ContextVar("held answers", default=None)
_held_vectors: ContextVar[HeldVectors | None] = ContextVar("held vectors", default=None)


@contextmanager
def holding() -> Iterator[None]:
    """Inside the block, and in tasks started inside it, new answers and vectors wait for `flush`."""
    tokens = _held.set({}), _held_vectors.set({})
    try:
        yield
    finally:
        _held.reset(tokens[0])
        _held_vectors.reset(tokens[1])


def answers(owner: UUID) -> NewRows:
    """The answers that are held for the owner, to be inserted by the last statement of a transaction that takes locks:
    it may wait for another one's row."""
    held = _held.get() or {}
    return NewRows(KEEP, [held.pop(key) for key in sorted(key for key in held if key[0] == owner)])


async def flush(session: Session, owner: UUID) -> None:
    """Writes what is held for the owner, at the end of a transaction."""
    await direct.insert(session, answers(owner))
    vectors = _held_vectors.get() or {}
    keys = sorted(key for key in vectors if key[0] == owner)
    if keys:
        await _keep_vectors(session, {key: vectors.pop(key) for key in keys})


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """Implements caches.AnswerStore on `llm_cache`."""

    db: Database
    ttl_s: float
    clock: Clock = system_clock

    async def get(self, owner: UUID, task: str, model: str, prompt_sha256: bytes) -> str | None:
        if self.ttl_s == 0:
            return None
        waiting = (_held.get() or {}).get((owner, prompt_sha256.hex()))
        if waiting is not None and (waiting["task"], waiting["model"]) == (task, model):
            return str(waiting["answer"]["text"])
        async with self.db.read(owner, generic_plans=True) as session:
            values = {"workspace": owner, "digest": prompt_sha256.hex(), "task": task, "model": model}
            values["now"] = self.clock()
            row = await direct.first(session, FIND, values)
        return row.answer if row is not None and isinstance(row.answer, str) else None

    async def put(self, owner: UUID, task: str, model: str, prompt_sha256: bytes, answer: str) -> None:
        if self.ttl_s == 0:
            return
        digest = prompt_sha256.hex()
        row: dict[str, Any] = {"workspace_id": owner, "prompt_sha256": digest, "task": task, "model": model}
        row |= {"answer": {"text": answer}, "expires_at": self.clock() + timedelta(seconds=self.ttl_s)}
        held = _held.get()
        if held is not None:
            held[owner, digest] = row
            return
        async with self.db.begin(owner) as session:
            await direct.insert(session, NewRows(KEEP, [row]))


@dataclass(frozen=True, slots=True)
class VectorTable:
    """Implements cache.VectorStore on `embedding_cache`, for embedders behind a network: the local one is as fast."""

    db: Database

    async def get_many(self, owner: UUID, model: str, digests: Sequence[bytes]) -> Mapping[bytes, Vector]:
        wanted = [digest.hex() for digest in digests]
        async with self.db.read(owner) as session:
            known = await session.execute(
                select(EmbeddingCacheRow.text_sha256, EmbeddingCacheRow.embedding).where(
                    EmbeddingCacheRow.workspace_id == owner,
                    EmbeddingCacheRow.model == model,
                    EmbeddingCacheRow.text_sha256.in_(wanted),
                )
            )
        return {bytes.fromhex(row[0]): np.asarray(row[1], dtype=np.float32) for row in known}

    async def put_many(self, owner: UUID, model: str, vectors: Mapping[bytes, Vector]) -> None:
        found = {(owner, model, digest.hex()): vector for digest, vector in vectors.items()}
        held = _held_vectors.get()
        if held is not None:
            held.update(found)
            return
        if self.db.write_refusal is not None:  # searches go on
            return
        async with self.db.begin(owner) as session:
            await _keep_vectors(session, found)


async def _keep_vectors(session: Session, vectors: HeldVectors) -> None:
    new = [
        {"workspace_id": owner, "model": model, "text_sha256": digest, "embedding": vector}
        for (owner, model, digest), vector in vectors.items()
    ]
    await session.execute(insert(EmbeddingCacheRow).on_conflict_do_nothing(), new)
