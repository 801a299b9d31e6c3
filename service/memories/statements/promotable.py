"""Memories of project channels that the scheduled job may promote to `_global`, and the figures for that.

The figures are in memory_stat, so noting them never writes a row of `memory`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from service.domain.ageing import Promoting
from service.domain.scope import NIL_ID
from service.postgres.engine import Session

MAX_SESSIONS = 16
"""Sessions that repeated a memory; more are not noted."""

MAX_ID = UUID(int=2**128 - 1)

# A conversation has the name of its session, so a session that said a memory and stored it again counts once.
SEEN_IN = """
    SELECT count(*) FROM (
        SELECT c.external_id FROM memory_source o
        JOIN turn t ON t.workspace_id = o.workspace_id AND t.id = o.turn_id
        JOIN conversation c ON c.workspace_id = t.workspace_id AND c.id = t.conversation_id
        WHERE o.workspace_id = m.workspace_id AND o.memory_id = m.id
        UNION SELECT m.session_id WHERE m.session_id IS NOT NULL
        UNION SELECT unnest(s.seen_in)
    ) seen
"""

# A valid memory may be promoted if the copy has the same owner: no turn, no past version, nothing under review. A
# memory in a channel to which a key is restricted stays there.
WORTHY = text(f"""
    SELECT m.id FROM memory_stat s JOIN memory m ON m.workspace_id = s.workspace_id AND m.id = s.memory_id
    WHERE s.workspace_id = :workspace AND s.memory_id > :after AND s.memory_id <= :upto
      AND s.access_count >= :min_access_count AND s.promoted_at IS NULL
      AND m.channel <> '_global' AND m.dedup_key IS NOT NULL AND m.version_of IS NULL AND m.review_status IS NULL
      AND NOT m.archived AND (m.expires_at IS NULL OR m.expires_at > :now)
      AND (m.t_invalid IS NULL OR m.t_invalid > :now) AND (m.valid_until IS NULL OR m.valid_until > :now)
      AND coalesce(s.confidence, m.fact_confidence, m.type_confidence) >= :min_confidence
      AND NOT EXISTS (SELECT FROM api_key k WHERE k.workspace_id = m.workspace_id AND k.revoked_at IS NULL
                      AND m.channel = ANY (k.channels))
      AND ({SEEN_IN}) >= :min_conversations
    ORDER BY s.memory_id LIMIT :batch
""")  # noqa: S608 - no user input

COUNT_SEEN = text(f"""
    SELECT ({SEEN_IN}) FROM memory m JOIN memory_stat s ON s.workspace_id = m.workspace_id AND s.memory_id = m.id
    WHERE m.workspace_id = :workspace AND m.id = :id
""")  # noqa: S608 - no user input

NOTE_SESSION = text("""
    UPDATE memory_stat s SET seen_in = array_append(coalesce(s.seen_in, '{}'), CAST(:session AS text))
    FROM memory m
    WHERE s.workspace_id = :workspace AND s.memory_id = :id AND m.workspace_id = s.workspace_id AND m.id = s.memory_id
      AND m.session_id IS DISTINCT FROM :session AND NOT coalesce(s.seen_in, '{}') @> ARRAY[CAST(:session AS text)]
      AND cardinality(coalesce(s.seen_in, '{}')) < :most
""")

# Copies that were not changed since, and whose originals have all changed or are no longer valid.
STALE_COPIES = text("""
    SELECT c.id FROM memory c
    WHERE c.workspace_id = :workspace AND c.id > :after AND c.id <= :upto
      AND c.channel = '_global' AND NOT c.archived AND c.version = 1
      AND EXISTS (SELECT FROM memory_edge e WHERE e.workspace_id = c.workspace_id AND e.source_id = c.id
                  AND e.rel_type = 'PROMOTED_FROM' AND e.properties @> '{"copied": true}')
      AND NOT EXISTS (SELECT FROM memory_edge e JOIN memory o ON o.workspace_id = e.workspace_id AND o.id = e.target_id
                      WHERE e.workspace_id = c.workspace_id AND e.source_id = c.id AND e.rel_type = 'PROMOTED_FROM'
                        AND o.hash = c.hash AND (o.t_invalid IS NULL OR o.t_invalid > :now))
    ORDER BY c.id LIMIT :batch
""")

# The present text of the original may then be promoted.
FREE_ORIGINALS = text("""
    UPDATE memory_stat s SET promoted_at = NULL FROM memory_edge e
    WHERE e.workspace_id = :workspace AND e.source_id = :id AND e.rel_type = 'PROMOTED_FROM'
      AND s.workspace_id = e.workspace_id AND s.memory_id = e.target_id
""")

IS_COPY = text("""
    SELECT EXISTS (SELECT FROM memory_edge WHERE workspace_id = :workspace AND source_id = :id
                   AND rel_type = 'PROMOTED_FROM' AND properties @> '{"copied": true}')
""")


async def list_worthy(
    session: Session, rules: Promoting, *, after: UUID = NIL_ID, now: datetime, batch: int, only: UUID | None = None
) -> Sequence[UUID]:
    """The next memories after `after` that meet all thresholds, by ascending id; with `only`, this memory if it
    does."""
    values = _range(after, only) | {"now": now, "batch": batch} | rules.model_dump()
    return list(await session.scalars(WORTHY, values))


def _range(after: UUID, only: UUID | None) -> dict[str, Any]:
    """The ids that a walk looks at, as a range in both cases: with an OR every check would read the whole workspace."""
    return {"after": after, "upto": MAX_ID} if only is None else {"after": UUID(int=only.int - 1), "upto": only}


async def count_seen(session: Session, memory_id: UUID) -> int:
    """The number of conversations in which the memory was said: those it comes from, and the sessions that stored it
    again."""
    return int(await session.scalar(COUNT_SEEN, {"id": memory_id}) or 0)


async def note_session(session: Session, memory_id: UUID, session_id: str) -> None:
    """Notes that a session repeated the memory."""
    values = {"id": memory_id, "session": session_id, "most": MAX_SESSIONS}
    await session.execute(NOTE_SESSION, values)


async def is_copy(session: Session, memory_id: UUID) -> bool:
    """Whether the memory is a copy made by promotion, and its original exists."""
    return bool(await session.scalar(IS_COPY, {"id": memory_id}))


async def list_stale_copies(
    session: Session, *, after: UUID = NIL_ID, now: datetime, batch: int, only: UUID | None = None
) -> Sequence[UUID]:
    """The next copies whose originals have changed or are no longer valid; with `only`, this copy if it is one."""
    values = _range(after, only) | {"now": now, "batch": batch}
    return list(await session.scalars(STALE_COPIES, values))


async def free_originals(session: Session, copy_id: UUID) -> None:
    """Lets the scheduled job promote the originals of a copy again."""
    await session.execute(FREE_ORIGINALS, {"id": copy_id})
