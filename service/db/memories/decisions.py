"""What was decided, by whom, on which evidence, and what did it change?

A decision names the entry of history that it caused: there stands the memory as it was. The operations of one ruling
share a `ruling_id`, because they are undone together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.dialects.postgresql import JSONB
from uuid_utils.compat import uuid7

from service.db.engine import Session
from service.db.memories import rows
from service.db.memories.rows import Rows
from service.db.tables import Decision
from service.domain.decision import Action, Evidence
from service.domain.scope import Scope

TAKEN_OVER = "taken_over"
"""The verdict by which a memory that waited for a person's word gave its text to another one and went."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A verdict and what came of it: `history_id` is the entry it caused, None when it changed nothing."""

    memory_id: UUID | None
    evidence: Evidence
    scope: Scope
    event: Action
    history_id: UUID | None = None
    ruling_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision read back; `before` and `after` are the memory's text."""

    id: UUID
    memory_id: UUID | None
    source: str
    model: str
    prompt_sha256: str | None
    candidates: Sequence[str]
    reply: str | None
    verdict: Mapping[str, Any]
    state: Literal["applied", "rejected", "undone"]
    created_at: datetime
    scope: Scope
    event: str | None
    ruling_id: UUID | None
    history_id: UUID | None
    undone_at: datetime | None
    before: str | None
    after: str | None


def new_rows(workspace_id: UUID, decided: Sequence[Cause]) -> Rows:
    """Verdicts to keep, each with the memory that it was about."""
    return Rows(Decision, [_row(workspace_id, cause) for cause in decided])


async def append(session: Session, workspace_id: UUID, decided: Sequence[Cause]) -> None:
    """Keeps verdicts."""
    await rows.insert(session, new_rows(workspace_id, decided))


def _row(workspace_id: UUID, cause: Cause) -> dict[str, Any]:
    judged = cause.evidence
    return {
        "workspace_id": workspace_id,
        "id": uuid7(),
        "memory_id": cause.memory_id,
        "source": judged.source,
        "model": judged.model,
        "prompt_sha256": judged.prompt_sha256,
        "candidates": [str(each) for each in judged.shown],
        "reply": judged.reply,
        "verdict": {"action": judged.verdict, "reason": judged.reason, "rejected": judged.rejected},
        "state": "rejected" if judged.rejected else "applied",
        "user_id": cause.scope.user_id,
        "agent_id": cause.scope.agent_id,
        "run_id": cause.scope.run_id,
        "event": str(cause.event),
        "history_id": cause.history_id,
        "ruling_id": cause.ruling_id,
    }


# Entries of history are found by their memory (ix_memory_history_memory): their key begins with a time.
SHOWN = """
    SELECT d.id, d.memory_id, d.source, d.model, d.prompt_sha256, d.candidates, d.reply, d.verdict, d.state,
           d.created_at, d.user_id, d.agent_id, d.run_id, d.event, d.ruling_id, d.history_id, d.undone_at,
           h.old_memory AS before, h.new_memory AS after
    FROM decision d LEFT JOIN memory_history h
        ON h.workspace_id = d.workspace_id AND h.memory_id = d.memory_id AND h.id = d.history_id
"""

JSON = {"candidates": JSONB(), "verdict": JSONB()}
ONE = text(f"{SHOWN} WHERE d.workspace_id = :workspace AND d.id = :id").columns(**JSON)
OF_MEMORY = text(
    f"{SHOWN} WHERE d.workspace_id = :workspace AND d.memory_id = :id ORDER BY d.created_at, d.id LIMIT :limit"
).columns(**JSON)
# ix_decision_ruling
OF_RULING = text(
    f"{SHOWN} WHERE d.workspace_id = :workspace AND d.ruling_id = :id ORDER BY d.created_at, d.id"
).columns(**JSON)


async def get(session: Session, workspace_id: UUID, decision_id: UUID) -> Decided | None:
    row = (await session.execute(ONE, {"workspace": workspace_id, "id": decision_id})).one_or_none()
    return None if row is None else _decided(workspace_id, row)


async def of_memory(session: Session, workspace_id: UUID, memory_id: UUID, *, limit: int) -> list[Decided]:
    """The decisions about a memory, oldest first; also after it is gone."""
    rows = await session.execute(OF_MEMORY, {"workspace": workspace_id, "id": memory_id, "limit": limit})
    return [_decided(workspace_id, row) for row in rows]


async def together(session: Session, workspace_id: UUID, decided: Decided) -> list[Decided]:
    """The decision with the others of its ruling, in their order, as they are now; nothing when they are purged."""
    if decided.ruling_id is None:
        now = await get(session, workspace_id, decided.id)
        return [] if now is None else [now]
    rows = await session.execute(OF_RULING, {"workspace": workspace_id, "id": decided.ruling_id})
    return [_decided(workspace_id, row) for row in rows]


def _decided(workspace_id: UUID, row: Any) -> Decided:
    return Decided(
        id=row.id,
        memory_id=row.memory_id,
        source=row.source,
        model=row.model,
        prompt_sha256=row.prompt_sha256,
        candidates=row.candidates,
        reply=row.reply,
        verdict=row.verdict,
        state=row.state,
        created_at=row.created_at,
        scope=Scope(workspace_id, row.user_id, row.agent_id, row.run_id),
        event=row.event,
        ruling_id=row.ruling_id,
        history_id=row.history_id,
        undone_at=row.undone_at,
        before=row.before,
        after=row.after,
    )
