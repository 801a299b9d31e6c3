"""Stored answers of requests that came with an Idempotency-Key.

The row is the first insert of the write transaction: a second request with the same key waits there, and gets the
stored answer when the first has committed. A rollback stores nothing, and a transaction that has claimed a key without
storing an answer does not commit (service/runtime/functions/refuse_unanswered.sql). See
docs/decisions/007-idempotency.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from sqlalchemy import delete, func, select, text, update

from service.domain.errors import IdempotencyMismatch
from service.domain.request import IdempotencyKey, Replay, StoredAnswer
from service.domain.scope import Scope
from service.postgres.engine import Session
from service.postgres.tables import IDEMPOTENCY

# An expired row is replaced; a valid one stays, and nothing is returned.
CLAIM = text(
    """
    INSERT INTO idempotency (workspace_id, key, fingerprint, expires_at, user_id, agent_id, run_id, channel)
    VALUES (:workspace, :key, :fingerprint, now() + :ttl, :user_id, :agent_id, :run_id, :channel)
    ON CONFLICT (workspace_id, key) DO UPDATE
        SET fingerprint = excluded.fingerprint, status = NULL, body = NULL, created_at = excluded.created_at,
            expires_at = excluded.expires_at, user_id = excluded.user_id, agent_id = excluded.agent_id,
            run_id = excluded.run_id, channel = excluded.channel
        WHERE idempotency.expires_at <= excluded.created_at
    RETURNING key
    """
)


async def find(session: Session, key: IdempotencyKey) -> StoredAnswer | None:
    """The stored answer; raises IdempotencyMismatch when the key came with another request."""
    row = (
        await session.execute(
            select(IDEMPOTENCY.c.fingerprint, IDEMPOTENCY.c.status, IDEMPOTENCY.c.body).where(
                IDEMPOTENCY.c.workspace_id == session.workspace_id,
                IDEMPOTENCY.c.key == key.key,
                IDEMPOTENCY.c.expires_at > func.now(),
            )
        )
    ).one_or_none()
    if row is None:
        return None
    if row.fingerprint != key.fingerprint:
        raise IdempotencyMismatch("This Idempotency-Key was used with another request.", field="Idempotency-Key")
    return StoredAnswer(row.status, row.body)


async def claim(session: Session, key: IdempotencyKey, scope: Scope | None = None) -> None:
    """Claims the key inside the write transaction; raises Replay or IdempotencyMismatch if it was used. `scope`: the
    owner of the data, if the request itself does not say."""
    owner = (scope.user_id, scope.agent_id, scope.run_id, scope.channel) if scope else key.owner
    values = {
        **dict(zip(("user_id", "agent_id", "run_id", "channel"), owner, strict=True)),
        "key": key.key,
        "fingerprint": key.fingerprint,
        "ttl": timedelta(seconds=key.ttl_s),
    }
    if (await session.execute(CLAIM, values)).first() is None:
        answer = await find(session, key)
        assert answer is not None, "the row of the same key is visible after its commit"
        raise Replay(answer)


async def store_answer(
    session: Session, key: IdempotencyKey, answer: StoredAnswer, *, of_user: str | None = None
) -> None:
    """Stores the answer, in the transaction of its data. `of_user`: its owner, if the request named none."""
    owner = {"user_id": of_user} if of_user is not None and not any(key.owner[:3]) else {}
    await session.execute(
        update(IDEMPOTENCY)
        .where(IDEMPOTENCY.c.workspace_id == session.workspace_id, IDEMPOTENCY.c.key == key.key)
        .values(status=answer.status, body=dict(answer.body), **owner)
    )


async def forget_answers_about(session: Session, ids: Sequence[UUID]) -> None:
    """Deletes stored answers about objects with these ids: they contain their texts, and may be stored
    without their scope."""
    if ids:
        about = IDEMPOTENCY.c.body["id"].astext.in_([str(key) for key in ids])
        conditions = IDEMPOTENCY.c.workspace_id == session.workspace_id, IDEMPOTENCY.c.status.is_not(None), about
        await session.execute(delete(IDEMPOTENCY).where(*conditions))
