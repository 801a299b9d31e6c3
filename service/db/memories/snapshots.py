"""What was a memory before it changes? The row with all that goes with it, for history and undo (B7).

`before` is the row as JSON, and in it `sources`, `entity_ids`, `edges` (both directions), `told` (relations of
entities that it is evidence of) and `stat`. Lexical columns
are left out: they are made from the text. The vector stands beside it, with its generation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import text
from sqlalchemy.dialects.postgresql import JSONB

from service.db.engine import Session
from service.db.vectors import Half

# An edge, a source or an entity link needs a share lock on the memory's key, so behind this lock nothing is added or
# taken away. A statement of its own: the snapshot of the statement that waits is older than what it waited for.
LOCK = text("SELECT true FROM memory WHERE workspace_id = :workspace AND id = :id FOR UPDATE")

BEFORE = """
    to_jsonb(m) - '{terms,bm25,context_terms,context_bm25}'::text[]
        || jsonb_build_object(
            'sources', (SELECT coalesce(jsonb_agg(to_jsonb(s) ORDER BY s.turn_id), '[]') FROM memory_source s
                        WHERE s.workspace_id = m.workspace_id AND s.memory_id = m.id),
            'entity_ids', (SELECT coalesce(jsonb_agg(e.entity_id ORDER BY e.entity_id), '[]') FROM memory_entity e
                           WHERE e.workspace_id = m.workspace_id AND e.memory_id = m.id),
            'edges', (SELECT coalesce(jsonb_agg(to_jsonb(g) ORDER BY g.source_id, g.rel_type, g.target_id), '[]')
                      FROM (SELECT * FROM memory_edge WHERE workspace_id = m.workspace_id AND source_id = m.id
                            UNION ALL
                            SELECT * FROM memory_edge WHERE workspace_id = m.workspace_id AND target_id = m.id) g),
            'told', (SELECT coalesce(jsonb_agg(jsonb_build_object('edge', to_jsonb(r), 'extracted_by', x.extracted_by)
                                               ORDER BY r.id), '[]')
                     FROM entity_edge_source x JOIN entity_edge r
                         ON r.workspace_id = x.workspace_id AND r.id = x.edge_id
                     WHERE x.workspace_id = m.workspace_id AND x.memory_id = m.id),
            'stat', (SELECT to_jsonb(t) FROM memory_stat t
                     WHERE t.workspace_id = m.workspace_id AND t.memory_id = m.id))
"""
"""The memory `m` as JSON, for any statement that has it in its FROM."""

OWN_VECTOR = """
    LEFT JOIN memory_vector v
        ON v.workspace_id = m.workspace_id AND v.memory_id = m.id AND v.kind = 'text' AND v.generation = :generation
"""

READ = text(
    f"""
    SELECT {BEFORE} AS before, v.embedding, v.generation
    FROM memory m {OWN_VECTOR}
    WHERE m.workspace_id = :workspace AND m.id = :id
    """  # noqa: S608 - both parts stand above
).columns(before=JSONB(), embedding=Half())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A memory as it was; the vector is absent when it had none yet."""

    before: Mapping[str, Any]
    vector: NDArray[np.float32] | None
    generation: int | None


async def take(session: Session, workspace_id: UUID, memory_id: UUID, *, generation: int) -> Snapshot | None:
    """Locks the row until the transaction ends and returns it as it is; None when there is none."""
    if await session.scalar(LOCK, {"workspace": workspace_id, "id": memory_id}) is None:
        return None
    row = (await session.execute(READ, {"workspace": workspace_id, "id": memory_id, "generation": generation})).one()
    vector = None if row.embedding is None else np.asarray(row.embedding, dtype=np.float32)
    return Snapshot(row.before, vector, row.generation)
