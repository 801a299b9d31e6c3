"""Counts of terms in large workspaces, which a job keeps.

In a scope of up to EXACT_ROWS rows the search itself counts terms. Above, table `term_stat` says in how many texts, and
contexts, of the workspace a term occurred when the job last counted; it knows the more frequent terms only.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from sqlalchemy import text

from service.postgres.engine import Session
from service.postgres.template import typed_text

MIN_TEXTS: Final = 5
"""A term in fewer texts is not stored: rarer terms could identify their author, and most terms are rarer."""

MIN_WORKSPACES: Final = 5
"""A term is counted over all workspaces if this many use it: rarer terms could reveal another tenant's texts."""

MAX_SAMPLED: Final = 200_000
"""Above this many texts only a sample is counted: every second, third ... one."""

ALL_TEXTS: Final = 0
"""The row that counts texts, not a term: term ids begin at 1."""

FORGET = typed_text("DELETE FROM term_stat WHERE workspace_id = :workspace")

# Walks the workspace by pk_memory. A text without a context is its own context. Without ON CONFLICT, Citus would copy
# the rows into the table, which row-level security refuses.
COUNT = typed_text("""
    WITH sized AS (
        SELECT count(*) AS texts FROM memory WHERE workspace_id = :workspace
    ), every AS (
        SELECT greatest(1, ceil(texts::float8 / :sampled))::integer AS nth FROM sized
    ), sampled AS MATERIALIZED (
        SELECT m.terms, m.context_terms, m.context_bm25 IS NULL AS without_context FROM memory m, every
        WHERE m.workspace_id = :workspace AND (every.nth = 1 OR abs(hashtext(m.id::text) % every.nth) = 0)
    ), occurrence AS (
        SELECT unnest(terms) AS term, 1 AS in_text, without_context::integer AS in_context FROM sampled
        UNION ALL SELECT unnest(context_terms), 0, 1 FROM sampled WHERE NOT without_context
    )
    INSERT INTO term_stat (workspace_id, term, texts, contexts)
    SELECT :workspace, :all_texts, texts, texts FROM sized
    UNION ALL
    SELECT :workspace, term, least(sum(in_text) * nth, texts), least(sum(in_context) * nth, texts)
    FROM occurrence, every, sized
    GROUP BY term, nth, texts HAVING greatest(sum(in_text), sum(in_context)) * nth >= :min_texts
    ON CONFLICT DO NOTHING
""")

COUNTED_WITHIN = text("""
    SELECT EXISTS (SELECT FROM term_stat WHERE workspace_id = :workspace AND term = :all_texts
                   AND created_at > now() - make_interval(secs => :seconds))
""")

COUNT_COMMON = text("SELECT count_common_terms(:least)")
FIND_LARGE = text("SELECT workspace_id FROM find_large_workspaces(:minimum)")


async def counted_within(session: Session, seconds: float) -> bool:
    """Whether the workspace's terms were counted within this many seconds."""
    values = {"all_texts": ALL_TEXTS, "seconds": seconds}
    return bool(await session.scalar(COUNTED_WITHIN, values))


async def count(session: Session) -> int:
    """Recounts the workspace's terms; returns how many have a row. Until the commit, readers see the previous ones."""
    await session.execute(FORGET)
    values = {"sampled": MAX_SAMPLED, "all_texts": ALL_TEXTS, "min_texts": MIN_TEXTS}
    return int((await session.execute(COUNT, values)).rowcount)


async def count_common(session: Session) -> int:
    """Sums up the counts of all workspaces, as loxodon_worker; returns how many terms have a row."""
    return int(await session.scalar(COUNT_COMMON, {"least": MIN_WORKSPACES}) or 0)


async def large_workspaces(session: Session, minimum: int) -> list[UUID]:
    """Workspaces with at least this many memories, as loxodon_worker."""
    return list(await session.scalars(FIND_LARGE, {"minimum": minimum}))
