"""The rows of memories: writes them, and reads them by id and page by page.

A page starts after a key, the sort value and id of the last row, so rows added or deleted in the meantime shift
nothing. The order newest first reads ix_memory_user, _agent or _run; other orders sort the rows of the scope's btree
that meet the filters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import SparseVector
from pydantic import TypeAdapter
from sqlalchemy import TextClause, text

from service.domain.bm25 import AVERAGE_CONTEXT_LENGTH
from service.domain.draft import CallerFields, EmbeddingStatus, NewMemory
from service.domain.kinds import Classification, ClassificationSource, Importance, MemoryType
from service.domain.memory import LeanMemory, Memory
from service.domain.moments import STORED
from service.domain.query import Detail, PageKey, SortField, SortOrder
from service.domain.temporal import TemporalDetails, TemporalTag, TemporalType, TimeMention
from service.domain.text import CleanText
from service.language import lexemes
from service.memories.statements import visibility
from service.memories.values import TotalCount
from service.postgres import direct, scopes
from service.postgres.direct import NewRows
from service.postgres.engine import Session
from service.postgres.scopes import Condition, by_key
from service.postgres.tables import MEMORY, insert_into
from service.postgres.template import Template, typed_text
from service.postgres.vectors import TERM_DIMENSIONS, term_columns

NOT_READ = frozenset({"dedup_key", "terms", "bm25", "context_terms", "context_bm25", "review_status", "said_at"})
COLUMNS = ", ".join(f'm."{column.name}"' for column in MEMORY.c if column.name not in NOT_READ)
LEAN_COLUMNS = """m.id, m.workspace_id, m.user_id, m.agent_id, m.run_id, m.channel, m.content, m.hash, m.type,
    m.type_confidence, m.classification_source, m.importance, m.importance_level, m.tags, m.categories, m.metadata,
    m."timestamp", m.t_valid, m.t_invalid, m.role, m.speaker, m.conversation_id, m.turn_index, m.archived"""

# ix_memory_edge_target
NEWER = f"""
           ARRAY(SELECT n.id FROM memory_edge g CROSS JOIN LATERAL ({by_key("memory", "g.source_id")}) n
                 WHERE g.workspace_id = :workspace AND g.target_id = x.id AND g.rel_type = 'MAY_OUTDATE'
                   AND NOT n.archived ORDER BY n."timestamp" DESC, n.id) AS may_be_outdated_by,
           CASE WHEN m.t_invalid IS NOT NULL THEN ARRAY(
                SELECT g.source_id FROM memory_edge g
                WHERE g.workspace_id = :workspace AND g.target_id = x.id AND g.rel_type = 'SUPERSEDES'
           ) END AS superseded_by
"""  # noqa: S608 - no user input

# pk_memory
LEAN_BY_IDS = Template(f"""
    SELECT {LEAN_COLUMNS}, {NEWER}
    FROM unnest(CAST(:ids AS uuid[])) AS x (id)
    CROSS JOIN LATERAL ({by_key("memory", "x.id")}) m
    WHERE {{alive}}
""")  # noqa: S608 - no user input

# pk_memory, pk_memory_stat, pk_memory_entity. `entities`: pairs of type and name.
BY_IDS = Template(f"""
    SELECT {COLUMNS}, s.relevance, s.salience, s.access_count, s.last_accessed, s.stale_at,
           coalesce(s.confidence, m.fact_confidence) AS current_confidence,
           ARRAY(SELECT ARRAY[e.type, e.name]
                 FROM memory_entity l CROSS JOIN LATERAL ({by_key("entity", "l.entity_id")}) e
                 WHERE l.workspace_id = :workspace AND l.memory_id = x.id ORDER BY e.type, e.name) AS entities,
           {NEWER}
    FROM unnest(CAST(:ids AS uuid[])) AS x (id)
    CROSS JOIN LATERAL ({by_key("memory", "x.id")}) m
    CROSS JOIN LATERAL ({by_key("memory_stat", "x.id", key="memory_id")}) s
    WHERE {{alive}}
""")  # noqa: S608 - no user input


async def get(session: Session, memory_id: UUID, *, alive_at: datetime | None = None) -> Memory | None:
    """One memory with its entities, archived or not; with `alive_at` only if it has not expired by then."""
    return (await get_many(session, [memory_id], alive_at=alive_at)).get(memory_id)


async def get_many(session: Session, ids: Sequence[UUID], *, alive_at: datetime | None = None) -> dict[UUID, Memory]:
    """The memories among `ids` that exist; with `alive_at` only those that have not expired by then."""
    return {row.id: of_row(row) for row in await _rows(session, BY_IDS, ids, alive_at)}


async def get_lean(
    session: Session, ids: Sequence[UUID], *, alive_at: datetime | None = None
) -> dict[UUID, LeanMemory]:
    """The memories with these ids, with fewer fields than `get_many` reads."""
    rows = await _rows(session, LEAN_BY_IDS, ids, alive_at)
    return {row.id: lean_of_row(row) for row in rows}


async def get_items(
    session: Session, ids: Sequence[UUID], detail: Detail, *, alive_at: datetime | None = None
) -> tuple[Mapping[UUID, LeanMemory], int]:
    """The first of these memories that fit a page of a response, with the fields of this detail, and how many ids were
    read."""
    read = get_many if detail == "full" else get_lean
    return await direct.page_of_ids(ids, partial(read, session, alive_at=alive_at))


async def _rows(
    session: Session, template: Template, ids: Sequence[UUID], alive_at: datetime | None
) -> Sequence[direct.DriverRow]:
    if not ids:
        return []
    alive = Condition("true") if alive_at is None else visibility.not_expired_nor_in_review("m", alive_at)
    values = {**alive.values, "ids": list(ids)}
    return await direct.fetch(session, template.fill(alive=alive.sql), values)


def _by_type(entities: Sequence[tuple[str, str]]) -> Mapping[str, tuple[str, ...]]:
    by_type: dict[str, tuple[str, ...]] = {}
    for kind, name in entities:
        by_type[kind] = (*by_type.get(kind, ()), name)
    return by_type


def _temporal(row: direct.DriverRow) -> TemporalDetails:
    tag = TemporalTag(row.temporal_tag) if row.temporal_tag else None
    mentions = MENTIONS.validate_python(row.mentions, context=STORED)
    return TemporalDetails(TemporalType(row.temporal_type or "persistent"), row.valid_until, tag, mentions)


MENTIONS = TypeAdapter(tuple[TimeMention, ...])
"""Their stored form."""

LEAN: Mapping[str, Callable[[Any], Any]] = {
    "scope": scopes.of_row,
    "text": lambda row: CleanText(row.content),
    "kind": lambda row: Classification(
        MemoryType(row.type), row.type_confidence, ClassificationSource(row.classification_source)
    ),
    "importance": lambda row: Importance(row.importance, row.importance_level),
    "tags": lambda row: tuple(row.tags),
    "categories": lambda row: tuple(row.categories),
    "may_be_outdated_by": lambda row: tuple(row.may_be_outdated_by),
    "superseded_by": lambda row: tuple(row.superseded_by or ()),
    "source": lambda row: "memory",
}
lean_of_row = direct.reader(LeanMemory, **LEAN)
of_row = direct.reader(
    Memory,
    **LEAN,
    tag_prefixes=lambda row: tuple(row.tag_prefixes),
    temporal=_temporal,
    embedding_status=lambda row: EmbeddingStatus(row.embedding_status),
    entities=lambda row: _by_type(row.entities),
    deleted_at=lambda row: getattr(row, "deleted_at", None),
)


# -- new memories ---------------------------------------------------------------------------------------------------

SET_LATER = frozenset(
    {"summary", "enriched_at", "enrichment_attempts", "archived", "version", "review_status", "version_of", "said_at"}
)
INSERT_MEMORY = insert_into("memory", by_default=SET_LATER)

INSERT_STAT = text("""
    INSERT INTO memory_stat (workspace_id, memory_id, salience, base_confidence, base_salience, last_accessed)
    VALUES (:workspace_id, :id, :importance, :fact_confidence, :importance, :last_accessed)
""")

# `kind`: text, placeholder (while the embedder is unavailable), or context (a turn with the turns before it)
INSERT_VECTOR = insert_into("memory_vector", by_default=("created_at",), memory_id="id")

# The ADD of a new id has no earlier entry to close; every other change is written by history.append.
INSERT_ADDED = text("""
    INSERT INTO memory_history (workspace_id, id, memory_id, event, new_memory, user_id, agent_id, run_id)
    VALUES (:workspace_id, :history_id, :id, 'ADD', :content, :user_id, :agent_id, :run_id)
""")

# A row that has expired stays in uq_memory_dedup until the upkeep deletes it. Uses ix_memory_hash.
RELEASE_EXPIRED = typed_text("""
    UPDATE memory SET dedup_key = NULL
    WHERE workspace_id = :workspace AND hash = ANY (CAST(:hashes AS text[])) AND dedup_key IS NOT NULL
      AND expires_at <= :now
""")


async def release_expired(session: Session, hashes: Sequence[str], *, now: datetime) -> None:
    """Takes expired rows with these texts out of the unique index on texts."""
    values = {"hashes": list(hashes), "now": now}
    await direct.fetch(session, RELEASE_EXPIRED, values)


def new_rows(new_memories: Sequence[NewMemory], *, generation: int, now: datetime) -> tuple[NewRows, ...]:
    """The rows of new memories. Writing them raises Conflict for an id that another scope has taken (scopes do not
    wait for each other), or for an equal live row, which the scope lock makes rare."""
    memories = [(memory, _values(memory, now)) for memory in new_memories]
    vectors = [
        {**values, "generation": generation, "kind": kind, "embedding": vector}
        for memory, values in memories
        for kind, vector in vectors_of(memory).items()
    ]
    history = [
        {**values, "history_id": memory.history_id} for memory, values in memories if memory.draft.given.id is None
    ]
    rows = [values for _, values in memories]
    return (
        NewRows(INSERT_MEMORY, rows),
        NewRows(INSERT_STAT, rows),
        NewRows(INSERT_VECTOR, vectors),
        NewRows(INSERT_ADDED, history),
    )


def vectors_of(new: NewMemory) -> dict[str, NDArray[np.float32]]:
    """The existing vectors by `kind`: of the text, and of the context if it is a turn."""
    kind, context = "placeholder" if new.embedding_status is EmbeddingStatus.PLACEHOLDER else "text", new.draft.context
    vectors = {kind: new.vector, "context": context.vector if context else None}
    return {kind: vector for kind, vector in vectors.items() if vector is not None}


def _values(new: NewMemory, now: datetime) -> dict[str, Any]:
    """The values of INSERT_MEMORY and INSERT_STAT: the caller's, and those that the service determines."""
    draft = new.draft
    given, speech = draft.given, draft.speech
    return {
        **{name: getattr(given, name) for name in GIVEN},
        **draft.scope.columns,
        "id": new.id,
        **text_values(new),
        "tags": list(draft.tags),
        "tag_prefixes": list(draft.tag_prefixes),
        "categories": list(draft.categories),
        "metadata": dict(draft.metadata),
        "timestamp": draft.timestamp,
        "role": speech.role if speech else None,
        "speaker": speech.speaker if speech else None,
        "conversation_id": new.conversation_id,
        "turn_index": new.turn_index,
        "last_accessed": given.last_accessed or now,
        "created_at": now,
        "updated_at": given.updated_at or now,
    }


GIVEN = [field.name for field in fields(CallerFields) if field.name in MEMORY.c]
"""Fields of the caller that are columns."""


def text_values(new: NewMemory) -> dict[str, Any]:
    """The values derived from the text, and its annotation."""
    draft = new.draft
    context = lexemes.weights(draft.context.text, average_length=AVERAGE_CONTEXT_LENGTH) if draft.context else {}
    return {
        "content": new.text,
        "hash": new.hash,
        "dedup_key": new.hash if draft.options.dedup else None,
        **term_columns(new.term_weights),
        "context_terms": sorted(context),
        "context_bm25": SparseVector(context, TERM_DIMENSIONS) if context else None,
        **kind_and_times(new.kind, new.temporal),
        "fact_confidence": new.fact_confidence,
        "importance": new.importance.value,
        "importance_level": new.importance.level,
        "embedding_status": str(new.embedding_status),
    }


def kind_and_times(kind: Classification, temporal: TemporalDetails) -> dict[str, Any]:
    """The columns of a type, and of the times that a text names."""
    return {
        "type": str(kind.type),
        "type_confidence": kind.confidence,
        "classification_source": str(kind.source),
        "temporal_type": str(temporal.type),
        "valid_until": temporal.valid_until,
        "temporal_tag": temporal.tag and str(temporal.tag),
        "mentions": MENTIONS.dump_python(temporal.mentions, mode="json"),
    }


# -- pages ----------------------------------------------------------------------------------------------------------

SOURCE: Final = "memory m"

COUNTED: Final = 10_000
"""Rows that are counted one by one; above that the planner's estimate is used."""

SORT_TYPES: Final[Mapping[SortField, str]] = {
    "created_at": "timestamptz",
    "updated_at": "timestamptz",
    "timestamp": "timestamptz",
    "importance": "float8",
}


PAGE = Template("""
    SELECT m.id, m."{sort}" AS key FROM {source}
    {top}
""")
TOP = 'ORDER BY m."{sort}" {direction}, m.id {direction} LIMIT :limit'
COUNT = Template("SELECT count(*) FROM (SELECT FROM {source} LIMIT :limit) counted")
ESTIMATE = Template("EXPLAIN (FORMAT JSON) SELECT FROM {source}")


async def page(
    session: Session, rows: Condition, order: SortOrder, *, after: PageKey | None, limit: int, source: str = SOURCE
) -> Sequence[PageKey]:
    """At most `limit` of the rows after `after`, in order. `rows`: a condition on `source`, which is a FROM item
    named `m`."""
    values = {**rows.values, "limit": limit}
    if after is not None:
        last_key = f"CAST(:last_key AS {SORT_TYPES[order.sort]})"
        place = f'(m."{order.sort}", m.id) {">" if order.ascending else "<"} ({last_key}, :last_id)'
        rows, values = rows & Condition(place), values | {"last_key": after.key, "last_id": after.id}
    rows_read = await direct.fetch(session, page_statement(rows, order, source), values)
    return [PageKey(row.key, row.id) for row in rows_read]


async def count(session: Session, rows: Condition, *, limit: int = COUNTED, source: str = SOURCE) -> TotalCount:
    """The number of rows: counted up to `limit`, else the planner's estimate."""
    counted = int(
        await session.scalar(COUNT.fill(source=rows.source(source)), {**rows.values, "limit": limit + 1}) or 0
    )
    if counted <= limit:
        return TotalCount(value=counted, is_exact=True)
    plan: Any = await session.scalar(ESTIMATE.fill(source=rows.source(source)), rows.values)
    return TotalCount(value=max(counted, int(plan[0]["Plan"]["Plan Rows"])), is_exact=False)


def page_statement(rows: Condition, order: SortOrder, source: str = SOURCE) -> TextClause:
    """The whole statement."""
    top = TOP.format(sort=order.sort, direction="ASC" if order.ascending else "DESC")
    return PAGE.fill(source=rows.source(source, top), sort=order.sort, top=top)
