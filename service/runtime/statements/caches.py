"""The caches of model answers and embeddings, per workspace and wall.

New entries of a request are deferred until it writes and go with that transaction: no commit for each entry, and
nothing is kept of a dry run. See docs/decisions/002-row-level-security.md.
"""

from __future__ import annotations

import hashlib
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

from service.domain.moments import Clock, system_clock
from service.postgres import direct, walls
from service.postgres.direct import NewRows
from service.postgres.engine import Database, Session
from service.postgres.tables import EMBEDDING_CACHE
from service.providers.protocols import Vector

# Uses pk_llm_cache.
FIND_ANSWER = text("""
    SELECT answer ->> 'text' AS answer FROM llm_cache
    WHERE workspace_id = :workspace AND prompt_sha256 = :digest AND task = :task AND model = :model
      AND expires_at > :now
""").bindparams(bindparam("now", type_=DateTime(timezone=True)))

STORE_ANSWER = text("""
    INSERT INTO llm_cache (workspace_id, prompt_sha256, task, model, answer, expires_at)
    VALUES (:workspace_id, :prompt_sha256, :task, :model, :answer, :expires_at)
    ON CONFLICT ON CONSTRAINT pk_llm_cache DO UPDATE
    SET task = excluded.task, model = excluded.model, answer = excluded.answer, expires_at = excluded.expires_at
""").bindparams(bindparam("answer", type_=JSONB()))

DeferredAnswers = dict[tuple[UUID, str], dict[str, Any]]
"""Rows of `llm_cache` by owner and digest of the prompt."""

DeferredVectors = dict[tuple[UUID, str, str], Vector]
"""Rows of `embedding_cache` by owner, model and digest of the text."""

_deferred_answers: ContextVar[DeferredAnswers | None] = ContextVar("deferred answers", default=None)
_deferred_vectors: ContextVar[DeferredVectors | None] = ContextVar("deferred vectors", default=None)


@contextmanager
def deferred() -> Iterator[None]:
    """Inside the block, and in tasks started inside it, new entries wait for `flush`."""
    tokens = _deferred_answers.set({}), _deferred_vectors.set({})
    try:
        yield
    finally:
        _deferred_answers.reset(tokens[0])
        _deferred_vectors.reset(tokens[1])


def deferred_answers(owner: UUID) -> NewRows:
    """The deferred answers of the owner. They are to be the last rows that a transaction writes, because they may wait
    for the same row of another one."""
    entries = _deferred_answers.get() or {}
    return NewRows(STORE_ANSWER, [entries.pop(key) for key in sorted(key for key in entries if key[0] == owner)])


async def flush(session: Session, owner: UUID) -> None:
    """Writes the deferred entries of the owner, at the end of a transaction."""
    await direct.insert(session, deferred_answers(owner))
    vectors = _deferred_vectors.get() or {}
    keys = sorted(key for key in vectors if key[0] == owner)
    if keys:
        await _store_vectors(session, {key: vectors.pop(key) for key in keys})


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """Implements providers.caches.AnswerStore on `llm_cache`."""

    db: Database
    ttl_s: float
    clock: Clock = system_clock

    async def get(self, owner: UUID, task: str, model: str, prompt_sha256: bytes) -> str | None:
        if self.ttl_s == 0:
            return None
        digest = _own(prompt_sha256)
        entry = (_deferred_answers.get() or {}).get((owner, digest))
        if entry is not None and (entry["task"], entry["model"]) == (task, model):
            return str(entry["answer"]["text"])
        async with self.db.read(owner, generic_plans=True) as session:
            values = {"workspace": owner, "digest": digest, "task": task, "model": model}
            values["now"] = self.clock()
            row = await direct.first(session, FIND_ANSWER, values)
        return row.answer if row is not None and isinstance(row.answer, str) else None

    async def put(self, owner: UUID, task: str, model: str, prompt_sha256: bytes, answer: str) -> None:
        if self.ttl_s == 0:
            return
        digest = _own(prompt_sha256)
        row: dict[str, Any] = {"workspace_id": owner, "prompt_sha256": digest, "task": task, "model": model}
        row |= {"answer": {"text": answer}, "expires_at": self.clock() + timedelta(seconds=self.ttl_s)}
        entries = _deferred_answers.get()
        if entries is not None:
            entries[owner, digest] = row
            return
        async with self.db.begin(owner, aside=True) as session:
            await direct.insert(session, NewRows(STORE_ANSWER, [row]))


def _own(prompt_sha256: bytes) -> str:
    """The digest of a prompt and the wall."""
    return hashlib.sha256(walls.own_name("").encode() + prompt_sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class VectorTable:
    """Implements providers.caches.VectorStore on `embedding_cache`. Not for the local embedder, which is as fast."""

    db: Database

    async def get_many(self, owner: UUID, model: str, digests: Sequence[bytes]) -> Mapping[bytes, Vector]:
        wanted = [digest.hex() for digest in digests]
        async with self.db.read(owner) as session:
            known = await session.execute(
                select(EMBEDDING_CACHE.c.text_sha256, EMBEDDING_CACHE.c.embedding).where(
                    EMBEDDING_CACHE.c.workspace_id == owner,
                    EMBEDDING_CACHE.c.model == model,
                    EMBEDDING_CACHE.c.text_sha256.in_(wanted),
                )
            )
        return {bytes.fromhex(row[0]): np.asarray(row[1], dtype=np.float32) for row in known}

    async def put_many(self, owner: UUID, model: str, vectors: Mapping[bytes, Vector]) -> None:
        found = {(owner, model, digest.hex()): vector for digest, vector in vectors.items()}
        entries = _deferred_vectors.get()
        if entries is not None:
            entries.update(found)
            return
        if self.db.write_refusal is not None:  # searches go on
            return
        async with self.db.begin(owner, aside=True) as session:
            await _store_vectors(session, found)


async def _store_vectors(session: Session, vectors: DeferredVectors) -> None:
    new = [
        {"workspace_id": owner, "model": model, "text_sha256": digest, "embedding": vector}
        for (owner, model, digest), vector in vectors.items()
    ]
    await session.execute(insert(EMBEDDING_CACHE).on_conflict_do_nothing(), new)
