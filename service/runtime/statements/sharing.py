"""Whether memories are shared: without user, agent and run."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import text

from service.postgres.engine import Session

ANY_SHARED = text("""
    SELECT EXISTS (SELECT FROM memory m WHERE m.workspace_id = :workspace AND m.id = ANY (CAST(:ids AS uuid[]))
                   AND m.user_id IS NULL AND m.agent_id IS NULL AND m.run_id IS NULL)
""")


async def any_shared(session: Session, ids: Sequence[UUID]) -> bool:
    """Whether any of the memories with these ids is shared."""
    return bool(await session.scalar(ANY_SHARED, {"ids": list(ids)}))
