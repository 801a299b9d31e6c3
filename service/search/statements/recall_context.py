"""The rows that recall reads in addition to its hits: turns around them, and relations of entities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import and_, or_, select, tuple_

from service.conversations.statements import turns
from service.domain.conversation import Turn
from service.postgres.engine import Session
from service.postgres.scopes import is_valid
from service.postgres.tables import TURN
from service.postgres.template import typed_text
from service.search.values import RecallRelationItem

MAX_RELATIONS = 5

# ix_entity_edge_source, ix_entity_edge_target: of each entity the strongest relations in either direction.
RELATIONS = typed_text(f"""
    SELECT x.id, s.name AS source, edge.label, t.name AS target, edge.strength
    FROM unnest(CAST(:ids AS uuid[])) AS x (id) CROSS JOIN LATERAL (
        (SELECT * FROM entity_edge f WHERE f.workspace_id = :workspace AND f.source_id = x.id
           AND {is_valid("f")}
         ORDER BY f.strength DESC, f.target_id, f.id LIMIT :each)
        UNION ALL
        (SELECT * FROM entity_edge f WHERE f.workspace_id = :workspace AND f.target_id = x.id
           AND {is_valid("f")}
         ORDER BY f.strength DESC, f.source_id, f.id LIMIT :each)
    ) edge
    JOIN entity s ON s.workspace_id = :workspace AND s.id = edge.source_id
    JOIN entity t ON t.workspace_id = :workspace AND t.id = edge.target_id
    ORDER BY x.id, edge.strength DESC, edge.id
""")  # noqa: S608 - no user input


async def turn_windows(
    session: Session, places: Iterable[tuple[UUID, int]], window: int, *, now: datetime
) -> dict[tuple[UUID, int], Turn]:
    """Returns by place the turns at these places (conversation, index) and up to `window` before and after each."""
    wanted: dict[UUID, set[int]] = {}
    for conversation_id, index in places:
        wanted.setdefault(conversation_id, set()).update(range(max(0, index - window), index + window + 1))
    if not wanted:
        return {}
    conditions = [
        and_(TURN.c.conversation_id == conversation_id, TURN.c.turn_index.in_(sorted(indexes)))
        for conversation_id, indexes in sorted(wanted.items())
    ]
    near = await turns.matching(session, or_(*conditions), now=now)
    return {(turn.conversation_id, turn.index): turn for turn in near}


async def hidden_turns(session: Session, places: Sequence[tuple[UUID, int]]) -> set[tuple[UUID, int]]:
    """Returns the places of the turns that are hidden because their whole text is withdrawn."""
    if not places:
        return set()
    wanted = tuple_(TURN.c.conversation_id, TURN.c.turn_index).in_(sorted(places))
    query = select(TURN.c.conversation_id, TURN.c.turn_index).where(
        TURN.c.workspace_id == session.workspace_id, TURN.c.shown == "", wanted
    )
    return {(row.conversation_id, row.turn_index) for row in await session.execute(query)}


async def relations(session: Session, ids: Sequence[UUID], *, now: datetime) -> dict[UUID, list[RecallRelationItem]]:
    """Returns for each entity its strongest relations that are valid now, in both directions."""
    values = {"ids": list(ids), "now": now, "each": MAX_RELATIONS}
    by_entity: dict[UUID, list[RecallRelationItem]] = {}
    for row in await session.execute(RELATIONS, values):
        relation = RecallRelationItem(source=row.source, relation=row.label, target=row.target, strength=row.strength)
        by_entity.setdefault(row.id, []).append(relation)
    return by_entity
