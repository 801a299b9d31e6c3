"""Memories that may be examples of a memory of type Pattern, for the edges EXEMPLIFIES."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import text

from service.language.pattern_examples import FREQUENCY_TERMS, MIN_WORDS
from service.postgres.engine import Session

PATTERNS_AT_ONCE, EXAMPLES_OF_EACH = 100, 100

# The examples of a pattern: memories of the same owner and channel that have all its terms except those that only say
# how often. Uses ix_memory_terms. Only memories that were added or changed since the last run: an edge that a person
# removed does not come back. A memory that is always valid is not an example, nor is one that begins later.
CANDIDATES = text("""
    WITH pattern AS MATERIALIZED (
        SELECT p.*, ARRAY(SELECT unnest(p.terms) EXCEPT SELECT unnest(CAST(:frequency AS integer[]))) AS core
        FROM memory p
        WHERE p.workspace_id = :workspace AND p.id > :after AND p.type = 'Pattern' AND p.dedup_key IS NOT NULL
          AND p.version_of IS NULL AND p.review_status IS NULL AND NOT p.archived
          AND (p.expires_at IS NULL OR p.expires_at > :now) AND (p.t_invalid IS NULL OR p.t_invalid > :now)
        ORDER BY p.id LIMIT :patterns
    )
    SELECT p.id AS pattern_id, p.content AS pattern, example.id AS example_id, example.content AS example
    FROM pattern p LEFT JOIN LATERAL (
        SELECT m.id, m.content FROM memory m
        WHERE m.workspace_id = p.workspace_id AND m.terms <> '{}' AND cardinality(p.core) >= :least
          AND workspace_terms(m.workspace_id, m.terms) @> workspace_terms(p.workspace_id, p.core)
          AND m.terms @> p.core AND m.id <> p.id
          AND m.user_id IS NOT DISTINCT FROM p.user_id AND m.agent_id IS NOT DISTINCT FROM p.agent_id
          AND m.run_id IS NOT DISTINCT FROM p.run_id AND m.channel = p.channel
          AND m.type NOT IN ('Pattern', 'Habit') AND m.temporal_tag IS DISTINCT FROM 'future'
          AND m.dedup_key IS NOT NULL AND m.version_of IS NULL AND m.review_status IS NULL AND NOT m.archived
          AND (m.expires_at IS NULL OR m.expires_at > :now)
          AND greatest(m.created_at, m.updated_at, p.created_at, p.updated_at) >= :since
          AND NOT EXISTS (SELECT FROM memory_edge e WHERE e.workspace_id = m.workspace_id AND e.source_id = m.id
                          AND e.rel_type = 'EXEMPLIFIES' AND e.target_id = p.id)
        ORDER BY m.created_at DESC, m.id LIMIT :examples
    ) example ON true
    ORDER BY p.id, example.id
""")

READ_UNTIL = text("""
    SELECT max((counts ->> 'examples_until')::bigint) FROM job_run
    WHERE workspace_id = :workspace AND name = 'patterns' AND state = 'done' AND counts ? 'examples_until'
""")


@dataclass(frozen=True, slots=True)
class ExampleCandidate:
    """A pattern and a memory that may be an example of it; None where there is none."""

    pattern_id: UUID
    pattern: str
    example_id: UUID | None
    example: str | None


async def candidates(session: Session, *, after: UUID, since: datetime, now: datetime) -> Sequence[ExampleCandidate]:
    """The next PATTERNS_AT_ONCE patterns after `after`, each with its candidates, by the id of the pattern."""
    values = {
        "after": after,
        "since": since,
        "now": now,
        "frequency": FREQUENCY_TERMS,
        "least": MIN_WORDS,
        "patterns": PATTERNS_AT_ONCE,
        "examples": EXAMPLES_OF_EACH,
    }
    return [ExampleCandidate(*row) for row in await session.execute(CANDIDATES, values)]


async def read_until(session: Session) -> datetime:
    """The time up to which the last run read memories; the beginning of time if there was none."""
    seconds = await session.scalar(READ_UNTIL)
    return datetime.fromtimestamp(seconds or 0, UTC)
