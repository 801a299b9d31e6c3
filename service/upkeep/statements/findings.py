"""Finds what could be cleaned up, with one bounded walk per section over an index or a primary key, from a place on.

Each walk reads at most LOOKED_AT rows, or PAIRS_LOOKED_AT for pairs; its findings are counted, and the first of them
returned. Two memories are compared only if an edge or a review already connects them. The same statements check chosen
ids again before changes are applied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import TextClause

from service.domain.ageing import DECAYING_BELOW
from service.postgres.engine import Session
from service.postgres.template import Template
from service.upkeep.values import PAIRS, OptimizationChangeItem, Section, WalkCursor

LOOKED_AT: Final = 100_000
PAIRS_LOOKED_AT: Final = 20_000
"""The most rows of a walk over pairs, each of which reads two memories."""

LOW_IMPORTANCE: Final = 3
"""`importance_level` up to which an unused memory is of little value: the bands Minor and Low."""

MIN_SIMILARITY: Final = 0.9
"""Strength of SIMILAR_TO from which two memories are duplicates; the condition of ix_memory_edge_finding."""


def _live(m: str) -> str:
    """SQL: the memory with this alias is not archived, past, in review or expired."""
    shown = f"NOT {m}.archived AND {m}.version_of IS NULL AND {m}.review_status IS NULL"
    return f"{shown} AND ({m}.expires_at IS NULL OR {m}.expires_at > :now)"


def _valid(m: str) -> str:
    return f"{_live(m)} AND ({m}.t_invalid IS NULL OR {m}.t_invalid > :now)"


# ix_memory_edge_finding. Two memories connected in both directions are one pair. Messages that are kept verbatim are
# never joined.
DUPLICATES = f"""
    SELECT e.source_id AS first, e.target_id AS second, a.id AS id, a.version, b.id AS kept_id,
           b.version AS kept_version, jsonb_build_object('similarity', e.strength) AS detail
    FROM part e JOIN memory a ON a.workspace_id = :workspace AND a.id = e.source_id
    JOIN memory b ON b.workspace_id = :workspace AND b.id = e.target_id
    WHERE {_valid("a")} AND {_valid("b")} AND a.turn_index IS NULL AND b.turn_index IS NULL
      AND (a.user_id, a.agent_id, a.run_id) IS NOT DISTINCT FROM (b.user_id, b.agent_id, b.run_id)
      AND a.channel = b.channel
      AND NOT (e.source_id < e.target_id AND EXISTS (
            SELECT FROM memory_edge r WHERE r.workspace_id = :workspace AND r.source_id = e.target_id
              AND r.rel_type = 'SIMILAR_TO' AND r.target_id = e.source_id AND r.strength >= {MIN_SIMILARITY}))
"""  # noqa: S608 - no user input
DUPLICATES_PART = f"""
    SELECT e.source_id AS first, e.target_id AS second, e.source_id, e.target_id, e.strength FROM memory_edge e
    WHERE e.workspace_id = :workspace AND e.rel_type = 'SIMILAR_TO' AND e.strength >= {MIN_SIMILARITY} AND {{which}}
    ORDER BY e.source_id, e.target_id LIMIT :most
"""  # noqa: S608 - no user input

# The newer one is kept: for MAY_OUTDATE the source, for CONTRADICTS the one that began later.
CONTRADICTIONS = f"""
    SELECT e.source_id AS first, e.target_id AS second, o.id, o.version, n.id AS kept_id, n.version AS kept_version,
           jsonb_build_object('type', e.rel_type, 'review_id', e.review_id) AS detail
    FROM part e JOIN memory s ON s.workspace_id = :workspace AND s.id = e.source_id
    JOIN memory t ON t.workspace_id = :workspace AND t.id = e.target_id
    CROSS JOIN LATERAL (
        SELECT e.rel_type = 'CONTRADICTS' AND coalesce(s.t_valid, s."timestamp") < coalesce(t.t_valid, t."timestamp")
               AS source_is_older) w
    JOIN memory n ON n.workspace_id = :workspace
        AND n.id = CASE WHEN w.source_is_older THEN t.id ELSE s.id END
    JOIN memory o ON o.workspace_id = :workspace
        AND o.id = CASE WHEN w.source_is_older THEN s.id ELSE t.id END
    WHERE {_valid("t")}
      AND CASE WHEN e.review_id IS NULL THEN {_valid("s")} ELSE s.review_status IS NOT NULL END
"""  # noqa: S608 - no user input
CONTRADICTIONS_PART = """
    SELECT * FROM (
        (SELECT e.source_id AS first, e.target_id AS second, e.source_id, e.target_id, e.rel_type,
                CAST(NULL AS uuid) AS review_id FROM memory_edge e
         WHERE e.workspace_id = :workspace AND e.rel_type = 'MAY_OUTDATE' AND {which}
         ORDER BY e.source_id, e.target_id LIMIT :most)
        UNION ALL
        (SELECT e.source_id, e.target_id, e.source_id, e.target_id, e.rel_type, NULL FROM memory_edge e
         WHERE e.workspace_id = :workspace AND e.rel_type = 'CONTRADICTS' AND {which}
         ORDER BY e.source_id, e.target_id LIMIT :most)
        UNION ALL
        (SELECT e.source_id, e.target_id, e.source_id, e.target_id, 'REVIEW', e.review_id
         FROM (SELECT r.memory_id AS source_id, unnest(r.contradicts) AS target_id, r.id AS review_id FROM review r
               WHERE r.workspace_id = :workspace AND r.state = 'pending') e
         WHERE {which} ORDER BY e.source_id, e.target_id LIMIT :most)
    ) every ORDER BY first, second LIMIT :most
"""

STAT_PART = """
    SELECT e.memory_id AS first, CAST(:nil AS uuid) AS second, e.* FROM memory_stat e
    WHERE e.workspace_id = :workspace AND {which} ORDER BY e.memory_id LIMIT :most
"""
# A memory that was used after it was flagged is not stale any more, unless its end has passed.
STALE = f"""
    SELECT e.first, e.second, m.id, m.version, CAST(NULL AS uuid) AS kept_id, CAST(NULL AS bigint) AS kept_version,
           jsonb_build_object('valid_until', m.valid_until, 'last_accessed', e.last_accessed) AS detail
    FROM part e JOIN memory m ON m.workspace_id = :workspace AND m.id = e.memory_id
    WHERE e.stale_at IS NOT NULL AND (m.valid_until <= :now OR e.last_accessed < e.stale_at) AND {_live("m")}
"""  # noqa: S608 - no user input
LOW_VALUE = f"""
    SELECT e.first, e.second, m.id, m.version, CAST(NULL AS uuid) AS kept_id, CAST(NULL AS bigint) AS kept_version,
           jsonb_build_object('importance_level', m.importance_level, 'relevance', e.relevance) AS detail
    FROM part e JOIN memory m ON m.workspace_id = :workspace AND m.id = e.memory_id
    WHERE e.relevance < :decaying_below AND m.importance_level <= {LOW_IMPORTANCE} AND {_live("m")}
"""  # noqa: S608 - no user input

ENTITIES_PART = """
    SELECT e.id AS first, CAST(:nil AS uuid) AS second, e.id, e.version, e.name, e.extracted_by FROM entity e
    WHERE e.workspace_id = :workspace AND {which} ORDER BY e.id LIMIT :most
"""
# OFFSET 0: else a plan for a batch may read all mentions of the workspace.
UNNAMED = """
    NOT EXISTS (SELECT FROM memory_entity me WHERE me.workspace_id = :workspace AND me.entity_id = e.id OFFSET 0)
    AND NOT EXISTS (SELECT FROM entity_edge g WHERE g.workspace_id = :workspace AND g.source_id = e.id OFFSET 0)
    AND NOT EXISTS (SELECT FROM entity_edge g WHERE g.workspace_id = :workspace AND g.target_id = e.id OFFSET 0)
"""
# Entities that a caller wrote stay, as in ageing (fading.py), which also waits until they have faded.
ORPHAN_ENTITIES = f"""
    SELECT e.first, e.second, e.id, e.version, CAST(NULL AS uuid) AS kept_id, CAST(NULL AS bigint) AS kept_version,
           jsonb_build_object('about', e.name, 'bytes', (SELECT pg_column_size(x.*) FROM entity x
                WHERE x.workspace_id = :workspace AND x.id = e.id) + coalesce((
                    SELECT sum(pg_column_size(v.*)) FROM entity_vector v
                    WHERE v.workspace_id = :workspace AND v.entity_id = e.id), 0)) AS detail
    FROM part e
    WHERE e.extracted_by <> 'caller' AND {UNNAMED}
"""  # noqa: S608 - no user input

# ix_memory_unembedded, ix_job_memory
MEMORIES_PART = """
    SELECT e.id AS first, CAST(:nil AS uuid) AS second, e.id, e.version, e.expires_at FROM memory e
    WHERE e.workspace_id = :workspace AND e.embedding_status <> 'stored' AND {which} ORDER BY e.id LIMIT :most
"""
MISSING_VECTORS = """
    SELECT e.first, e.second, e.id, e.version, CAST(NULL AS uuid) AS kept_id, CAST(NULL AS bigint) AS kept_version,
           jsonb_build_object('deaths', tried.deaths, 'last_error', tried.last_error) AS detail
    FROM part e CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE j.state IN ('ready', 'running')) AS pending,
               count(*) FILTER (WHERE j.state = 'dead') AS deaths,
               (array_agg(j.last_error ORDER BY j.finished_at DESC) FILTER (WHERE j.state = 'dead'))[1] AS last_error
        FROM job j WHERE j.workspace_id = :workspace AND j.memory_id = e.id AND j.kind = 'embed') tried
    WHERE tried.pending = 0 AND (e.expires_at IS NULL OR e.expires_at > :now)
"""

WALK = Template("""
    WITH part AS MATERIALIZED ({part}), found AS MATERIALIZED ({findings}), shown AS (
        SELECT * FROM found ORDER BY first, second LIMIT :limit
    )
    SELECT (SELECT count(*) FROM found) AS total, (SELECT count(*) FROM part) AS seen,
           (SELECT first FROM part ORDER BY first DESC, second DESC LIMIT 1) AS last_first,
           (SELECT second FROM part ORDER BY first DESC, second DESC LIMIT 1) AS last_second, shown.*
    FROM (SELECT true) always LEFT JOIN shown ON true ORDER BY shown.first, shown.second
""")


class SectionSql(NamedTuple):
    """The rows of a section's walk (`part`), those of them that are findings, and the column of the id, or the columns
    of a pair."""

    part: str
    findings: str
    key: tuple[str, ...]


PAIR: Final = ("e.source_id", "e.target_id")

STATEMENTS: Final[Mapping[Section, SectionSql]] = {
    "duplicates": SectionSql(DUPLICATES_PART, DUPLICATES, PAIR),
    "contradictions": SectionSql(CONTRADICTIONS_PART, CONTRADICTIONS, PAIR),
    "stale": SectionSql(STAT_PART, STALE, ("e.memory_id",)),
    "low_value": SectionSql(STAT_PART, LOW_VALUE, ("e.memory_id",)),
    "orphan_entities": SectionSql(ENTITIES_PART, ORPHAN_ENTITIES, ("e.id",)),
    "missing_vectors": SectionSql(MEMORIES_PART, MISSING_VECTORS, ("e.id",)),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A finding as read. `cursor`: from where a walk continues after it. `detail`: the data for its reason."""

    cursor: WalkCursor
    change: OptimizationChangeItem
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Walked:
    """The first findings of a walk, and their number. `last`: where it ended; None if nothing was left."""

    candidates: tuple[Candidate, ...]
    total: int
    last: WalkCursor | None


async def walk(session: Session, section: Section, *, after: WalkCursor, limit: int, now: datetime) -> Walked:
    """The findings of a section after a place."""
    most = PAIRS_LOOKED_AT if section in PAIRS else LOOKED_AT
    values = {"first": after.first, "second": after.second, "limit": limit, "most": most}
    rows = await _rows(session, section, values, now=now, among=False)
    last = WalkCursor(rows[0].last_first, rows[0].last_second) if rows[0].seen >= most else None
    return Walked(_candidates(section, rows), rows[0].total, last)


async def among(session: Session, section: Section, ids: Sequence[UUID], *, now: datetime) -> tuple[Candidate, ...]:
    """The findings among these ids; for pairs, those with both memories among them."""
    values = {"ids": list(ids), "limit": LOOKED_AT, "most": LOOKED_AT}
    return _candidates(section, await _rows(session, section, values, now=now, among=True))


async def _rows(
    session: Session, section: Section, values: Mapping[str, Any], *, now: datetime, among: bool
) -> Sequence[Any]:
    known = {**values, "now": now, "nil": UUID(int=0), "decaying_below": DECAYING_BELOW}
    query = statement(section, among=among)
    return (await session.execute(query, known)).all()


def statement(section: Section, *, among: bool) -> TextClause:
    """The complete statement of a walk, or with `among` of a check of chosen ids."""
    part, findings, key = STATEMENTS[section]
    if among:
        which = " AND ".join(f"{column} = ANY (CAST(:ids AS uuid[]))" for column in key)
    else:
        which = f"({', '.join(key)}) > ({', '.join((':first', ':second')[: len(key)])})"
    return WALK.fill(part=part.format(which=which), findings=findings)


def _candidates(section: Section, rows: Sequence[Any]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(WalkCursor(row.first, row.second), OptimizationChangeItem.of(row, section=section), row.detail)
        for row in rows
        if row.id is not None
    )
