"""Which answers of models does the database keep? Per workspace, behind the ports of providers/ (B27)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from service.db.engine import Database
from service.db.tables import EmbeddingCache, LlmCache
from service.providers.protocols import Vector


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """Implements answer_cache.AnswerStore on `llm_cache`."""

    db: Database
    ttl_s: float

    async def get(self, owner: UUID, task: str, model: str, prompt_sha256: bytes) -> str | None:
        if self.ttl_s == 0:
            return None
        async with self.db.read(owner) as session:
            answer = await session.scalar(
                select(LlmCache.answer["text"].astext).where(
                    LlmCache.workspace_id == owner,
                    LlmCache.prompt_sha256 == prompt_sha256.hex(),
                    LlmCache.task == task,
                    LlmCache.model == model,
                    LlmCache.expires_at > func.now(),
                )
            )
        return answer if isinstance(answer, str) else None

    async def put(self, owner: UUID, task: str, model: str, prompt_sha256: bytes, answer: str) -> None:
        if self.ttl_s == 0:
            return
        row = {
            "workspace_id": owner,
            "prompt_sha256": prompt_sha256.hex(),
            "task": task,
            "model": model,
            "answer": {"text": answer},
            "expires_at": func.now() + timedelta(seconds=self.ttl_s),
        }
        fresh = insert(LlmCache).values(row)
        fresh = fresh.on_conflict_do_update(
            constraint="pk_llm_cache",
            set_={name: fresh.excluded[name] for name in ("task", "model", "answer", "expires_at")},
        )
        async with self.db.begin(owner) as session:
            await session.execute(fresh)


@dataclass(frozen=True, slots=True)
class VectorTable:
    """Implements cache.VectorStore on `embedding_cache`, for embedders behind a network: the local one is as fast."""

    db: Database

    async def get_many(self, owner: UUID, model: str, digests: Sequence[bytes]) -> Mapping[bytes, Vector]:
        wanted = [digest.hex() for digest in digests]
        async with self.db.read(owner) as session:
            rows = await session.execute(
                select(EmbeddingCache.text_sha256, EmbeddingCache.embedding).where(
                    EmbeddingCache.workspace_id == owner,
                    EmbeddingCache.model == model,
                    EmbeddingCache.text_sha256.in_(wanted),
                )
            )
        return {bytes.fromhex(row[0]): np.asarray(row[1], dtype=np.float32) for row in rows}

    async def put_many(self, owner: UUID, model: str, vectors: Mapping[bytes, Vector]) -> None:
        rows = [
            {"workspace_id": owner, "model": model, "text_sha256": digest.hex(), "embedding": vector}
            for digest, vector in vectors.items()
        ]
        async with self.db.begin(owner) as session:
            await session.execute(insert(EmbeddingCache).on_conflict_do_nothing(), rows)
