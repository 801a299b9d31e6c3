"""The caches of model answers and embeddings, per workspace and wall.

New entries of a write are deferred to its transaction, so that they need no commits of their own, and a dry run, or a
conversation that is erased before its facts are written, leaves none. See docs/decisions/002-row-level-security.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import DateTime, bindparam, select, text
from sqlalchemy.dialects.postgresql import JSONB, insert

from service.domain.errors import StoreUnavailable
from service.domain.moments import Clock, system_clock
from service.postgres import direct
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

ANSWERS_KEPT = timedelta(days=1)
"""How long the answer to a prompt is reused for an equal one: clients that repeat do so within the day."""

VectorKey = tuple[UUID, str, str]
"""Owner, model and digest of the text."""


@dataclass(slots=True)
class DeferredEntries:
    """New entries of a write. `answers`: rows of `llm_cache` by owner and digest of the prompt."""

    answers: dict[tuple[UUID, str], dict[str, Any]] = field(default_factory=dict)
    vectors: dict[VectorKey, Vector] = field(default_factory=dict)

    def take_answers(self, owner: UUID) -> NewRows:
        """The owner's answers. A transaction must write them last, because they may wait for the same row of another
        one."""
        keys = sorted(key for key in self.answers if key[0] == owner)
        return NewRows(STORE_ANSWER, [self.answers.pop(key) for key in keys])

    async def flush(self, session: Session, owner: UUID) -> None:
        """Writes the entries of the owner, at the end of a transaction."""
        await direct.insert(session, self.take_answers(owner))
        keys = sorted(key for key in self.vectors if key[0] == owner)
        if keys:
            await _store_vectors(session, {key: self.vectors.pop(key) for key in keys})


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """Answers of the language model in `llm_cache`, by the hash of prompt and wall. Never in the process: they repeat
    what memories say, and an erasure has to find every copy."""

    db: Database
    clock: Clock = system_clock
    deferred: DeferredEntries | None = None

    async def get(self, owner: UUID, task: str, model: str, prompt_sha256: bytes) -> str | None:
        digest = self._own(prompt_sha256)
        entry = None if self.deferred is None else self.deferred.answers.get((owner, digest))
        if entry is not None and (entry["task"], entry["model"]) == (task, model):
            return str(entry["answer"]["text"])
        async with self.db.read(owner, generic_plans=True) as session:
            values = {"workspace": owner, "digest": digest, "task": task, "model": model}
            values["now"] = self.clock()
            row = await direct.first(session, FIND_ANSWER, values)
        return row.answer if row is not None and isinstance(row.answer, str) else None

    async def put(self, owner: UUID, task: str, model: str, prompt_sha256: bytes, answer: str) -> None:
        digest = self._own(prompt_sha256)
        row: dict[str, Any] = {"workspace_id": owner, "prompt_sha256": digest, "task": task, "model": model}
        row |= {"answer": {"text": answer}, "expires_at": self.clock() + ANSWERS_KEPT}
        if self.deferred is not None:
            self.deferred.answers[owner, digest] = row
            return
        with suppress(StoreUnavailable):
            async with self.db.begin(owner, detached=True) as session:
                await direct.insert(session, NewRows(STORE_ANSWER, [row]))

    def _own(self, prompt_sha256: bytes) -> str:
        """The digest of a prompt and the wall."""
        return hashlib.sha256(self.db.wall.own_name("").encode() + prompt_sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class VectorTable:
    """Vectors of texts in `embedding_cache`; `model` is the embedder's identity, a digest has 32 bytes."""

    db: Database
    deferred: DeferredEntries | None = None

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
        rows = {(owner, model, digest.hex()): vector for digest, vector in vectors.items()}
        if self.deferred is not None:
            self.deferred.vectors |= rows
            return
        with suppress(StoreUnavailable):  # searches go on while the database takes no writes
            async with self.db.begin(owner, detached=True) as session:
                await _store_vectors(session, rows)


async def _store_vectors(session: Session, vectors: Mapping[VectorKey, Vector]) -> None:
    new = [
        {"workspace_id": owner, "model": model, "text_sha256": digest, "embedding": vector}
        for (owner, model, digest), vector in vectors.items()
    ]
    await session.execute(insert(EMBEDDING_CACHE).on_conflict_do_nothing(), new)
