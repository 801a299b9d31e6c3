"""The turns that a memory comes from, and the characters in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from uuid import UUID

from sqlalchemy import text

from service.domain.conversation import SourcePassage
from service.domain.memory import MemorySourceItem
from service.domain.scope import Scope
from service.postgres import direct
from service.postgres.direct import NewRows
from service.postgres.engine import Session
from service.postgres.scopes import by_key
from service.postgres.template import typed_text

QUOTED_CHARS = 2_000
"""Characters quoted of a turn without a span."""

INSERT = text("""
    INSERT INTO memory_source (workspace_id, memory_id, turn_id, start, "end")
    VALUES (:workspace_id, :memory_id, :turn_id, :start, :end)
""")

# A memory that merely says the same may be deleted by a concurrent bulk delete, which takes no scope lock.
LINK = typed_text("""
    INSERT INTO memory_source (workspace_id, memory_id, turn_id, start, "end")
    SELECT m.workspace_id, s.memory_id, s.turn_id, s.start, s."end"
    FROM unnest(CAST(:memories AS uuid[]), CAST(:turns AS uuid[]), CAST(:starts AS integer[]), CAST(:ends AS integer[]))
        AS s (memory_id, turn_id, start, "end")
    JOIN memory m ON m.workspace_id = :workspace AND m.id = s.memory_id
    ORDER BY s.memory_id, s.turn_id FOR KEY SHARE OF m
    ON CONFLICT DO NOTHING
""")

COPY = text("""
    INSERT INTO memory_source (workspace_id, memory_id, turn_id, start, "end")
    SELECT workspace_id, :new_id, turn_id, start, "end" FROM memory_source
    WHERE workspace_id = :workspace AND memory_id = :id
    ON CONFLICT DO NOTHING
""")

# Uses pk_memory_source and ix_memory_source_turn.
STATED_MESSAGES = text("""
    SELECT DISTINCT said.memory_id AS id FROM memory_source fact
    JOIN memory_source said ON said.workspace_id = fact.workspace_id AND said.turn_id = fact.turn_id
    WHERE fact.workspace_id = :workspace AND fact.memory_id = ANY (:facts) AND said.memory_id = ANY (:messages)
""")

# Uses pk_memory_source and pk_turn.
PASSAGES = text(f"""
    SELECT s.memory_id, t.conversation_id, t.turn_index, t.speaker, t.role, coalesce(s.start, 0) AS start,
           substr(t.content, coalesce(s.start, 0) + 1,
                  coalesce(s."end", length(t.content)) - coalesce(s.start, 0)) AS said
    FROM unnest(CAST(:ids AS uuid[])) AS x (id) CROSS JOIN LATERAL (
        SELECT * FROM memory_source o WHERE o.workspace_id = :workspace AND o.memory_id >= x.id AND o.memory_id <= x.id
        ORDER BY o.memory_id
    ) s CROSS JOIN LATERAL ({by_key("turn", "s.turn_id")}) t
    ORDER BY s.memory_id, t."timestamp", t.turn_index, s.turn_id
""")  # noqa: S608 - no user input

# For a deleted memory the last sources are read from its history.
QUOTES = text("""
    WITH present AS (
        SELECT s.turn_id, s.start, s."end" FROM memory_source s
        WHERE s.workspace_id = :workspace AND s.memory_id = :id
    ), last AS (
        SELECT h.before FROM memory_history h
        WHERE h.workspace_id = :workspace AND h.memory_id = :id AND h.event = 'DELETE' AND h.is_deleted
          AND NOT EXISTS (SELECT FROM memory m WHERE m.workspace_id = :workspace AND m.id = :id)
        ORDER BY h.recorded_at DESC LIMIT 1
    ), source AS (
        SELECT * FROM present
        UNION ALL
        SELECT (s ->> 'turn_id')::uuid, (s ->> 'start')::integer, (s ->> 'end')::integer
        FROM last CROSS JOIN LATERAL jsonb_array_elements(coalesce(last.before -> 'sources', '[]')) s
    )
    SELECT t.conversation_id, c.external_id, t.id, t.turn_index, t.role, t.speaker, t."timestamp", source.start,
           source."end", substr(t.content, coalesce(source.start, 0) + 1,
                                coalesce(source."end", CAST(:chars AS integer)) - coalesce(source.start, 0)) AS quote
    FROM source JOIN turn t ON t.workspace_id = :workspace AND t.id = source.turn_id
    JOIN conversation c ON c.workspace_id = t.workspace_id AND c.id = t.conversation_id
    ORDER BY t."timestamp", t.turn_index, t.id OFFSET :skip LIMIT :limit
""")


@dataclass(frozen=True, slots=True)
class SourceLink:
    """A turn that a memory came from, and the half-open span of characters in it, if known."""

    memory_id: UUID
    turn_id: UUID
    start: int | None = None
    end: int | None = None


async def find_stated(session: Session, facts: Sequence[UUID], messages: Sequence[UUID]) -> set[UUID]:
    """The messages from which any of the facts was read."""
    values = {"facts": list(facts), "messages": list(messages)}
    return {row.id for row in await direct.fetch(session, STATED_MESSAGES, values)}


async def passages(session: Session, ids: Sequence[UUID]) -> list[SourcePassage]:
    """The passages of turns that these memories were read from."""
    rows = await direct.fetch(session, PASSAGES, {"ids": list(ids)}) if ids else []
    return [
        SourcePassage(
            row.memory_id, (row.conversation_id, row.turn_index), row.speaker or row.role, row.start, row.said
        )
        for row in rows
    ]


async def link(session: Session, links: Sequence[SourceLink]) -> None:
    """Stores the turns that memories came from, each pair once, with the first of several spans."""
    if not links:
        return
    ordered = _once(links)
    values = {
        "memories": [source.memory_id for source in ordered],
        "turns": [source.turn_id for source in ordered],
        "starts": [source.start for source in ordered],
        "ends": [source.end for source in ordered],
    }
    await direct.fetch(session, LINK, values)


def new_rows(scope: Scope, links: Sequence[SourceLink]) -> NewRows:
    """The rows that `link` would write, to insert in a batch. Only for new turns, to which nothing is linked, and
    memories that are locked until the end of the transaction."""
    return NewRows(INSERT, [{"workspace_id": scope.workspace_id, **asdict(each)} for each in _once(links)])


def _once(links: Sequence[SourceLink]) -> list[SourceLink]:
    """The links, each pair of memory and turn once, in the order of the ids."""
    pairs = {(each.memory_id, each.turn_id): each for each in reversed(links)}
    return [pairs[pair] for pair in sorted(pairs)]


async def copy(session: Session, memory_id: UUID, new_id: UUID) -> None:
    """Adds the turns of a memory to those of another one."""
    await session.execute(COPY, {"id": memory_id, "new_id": new_id})


async def quotes(session: Session, memory_id: UUID, *, skip: int = 0, limit: int) -> list[MemorySourceItem]:
    """The existing turns after the first `skip`, oldest first."""
    values = {"id": memory_id, "chars": QUOTED_CHARS, "skip": skip, "limit": limit}
    return await direct.page(session, QUOTES, values, lambda row: MemorySourceItem(*row))
