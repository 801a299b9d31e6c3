"""Document frequencies of terms in large workspaces, and which terms of a query open candidates there.

In a scope of up to EXACT_ROWS rows the search itself counts terms. Above, table `term_stat` says in how many
texts, and contexts, of the workspace a term occurred when the job last counted; it knows the more frequent terms only.
Counts are smoothed with those of all workspaces, so a term that a young workspace has hardly used is not taken for rare
when everybody uses it (docs/decisions/013-bm25.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy import text

from service.postgres import direct
from service.postgres.engine import Session
from service.postgres.template import typed_text

MIN_TEXTS: Final = 5
"""A term in fewer texts is not stored: rarer terms could identify their author, and most terms are rarer."""

MIN_WORKSPACES: Final = 5
"""A term is counted over all workspaces if this many use it: rarer terms could reveal another tenant's texts."""

PRIOR_TEXTS: Final = 1_000
"""Weight of the share among all workspaces, as a number of pseudo-texts."""

MAX_SAMPLED: Final = 200_000
"""Above this many texts only a sample is counted: every second, third ... one."""

ALL_TEXTS: Final = 0
"""The row that counts texts, not a term: term ids begin at 1."""

COMMON_SHARE: Final = 0.02
"""Terms in more than this share of the texts are common: they score, but open no candidates."""

MAX_OPENED_ROWS: Final = 10_000
"""The more frequent of the other terms open none either, once the rarer ones open this many rows in total: some 20 ms
of work."""

MAX_COMPANION_TERMS: Final = 2
"""If only a common term is left, a row must also contain one of this many next rarest terms. With five, half as many
rows were read as without."""

# pk_term_stat; the policy `common` shows the rows of the nil workspace along with one's own.
READ = typed_text("""
    SELECT workspace_id = :workspace AS is_own, term, texts, contexts FROM term_stat
    WHERE workspace_id = ANY (ARRAY[:workspace, CAST('00000000-0000-0000-0000-000000000000' AS uuid)])
      AND term = ANY (CAST(:terms AS integer[]))
""")

FORGET = typed_text("DELETE FROM term_stat WHERE workspace_id = :workspace")

# Walks the workspace by pk_memory. A text without a context is its own context.
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
""")

COUNTED_WITHIN = text("""
    SELECT EXISTS (SELECT FROM term_stat WHERE workspace_id = :workspace AND term = :all_texts
                   AND created_at > now() - make_interval(secs => :seconds))
""")

COUNT_COMMON = text("SELECT count_common_terms(:least)")
FIND_LARGE = text("SELECT workspace_id FROM find_large_workspaces(:minimum)")


@dataclass(frozen=True, slots=True)
class TermStatistics:
    """The number of texts (of `texts` in all), and of contexts, in which a term occurs. `texts` 0: nothing was counted
    yet."""

    texts: int
    text_df: Mapping[int, float]
    context_df: Mapping[int, float]


async def read(session: Session, terms: Sequence[int]) -> TermStatistics:
    """The smoothed frequencies of these terms."""
    rows = await direct.fetch(session, READ, {"terms": [ALL_TEXTS, *terms]})
    own = {row.term: (row.texts, row.contexts) for row in rows if row.is_own}
    everywhere = {row.term: (row.texts, row.contexts) for row in rows if not row.is_own}
    none = (0, 0)
    texts, all_texts = own.get(ALL_TEXTS, none)[0], everywhere.get(ALL_TEXTS, none)[0]

    def smoothed(place: int) -> dict[int, float]:
        counts = ((term, own.get(term, none)[place], everywhere.get(term, none)[place]) for term in terms)
        return {term: smooth(count, texts, count_everywhere, all_texts) for term, count, count_everywhere in counts}

    return TermStatistics(texts, smoothed(0), smoothed(1))


def smooth(count: int, texts: int, count_everywhere: int, texts_everywhere: int) -> float:
    """Returns the number of the workspace's texts with a term, 0..texts, smoothed towards its share among all texts."""
    if texts_everywhere == 0 or texts == 0:
        return float(min(count, texts))
    weight = PRIOR_TEXTS / (texts + PRIOR_TEXTS)
    return min(float(texts), count * (1 - weight) + weight * texts * count_everywhere / texts_everywhere)


def selective_terms(frequency: Mapping[int, float], texts: float) -> list[int]:
    """Returns the terms that open candidates, rarest first: those in at most 2 % of the texts, as long as they occur in
    some thousand texts together; only the rarest if all are more frequent."""
    found: list[int] = []
    opened = 0.0
    for term in _rarest_first(frequency):
        opened += frequency[term]
        if found and (opened > MAX_OPENED_ROWS or frequency[term] > COMMON_SHARE * texts):
            break
        found.append(term)
    return found


def companion_terms(frequency: Mapping[int, float], texts: float) -> list[int]:
    """Returns the next two terms after the rarest: if even the rarest is too frequent, a row must also have one of
    them. Terms of equal frequency mostly occur in the same texts (a word and its parts) and narrow nothing."""
    selective = selective_terms(frequency, texts)
    if len(selective) != 1 or frequency[selective[0]] <= MAX_OPENED_ROWS:
        return []
    rarest = frequency[selective[0]]
    return [term for term in _rarest_first(frequency) if frequency[term] > rarest][:MAX_COMPANION_TERMS]


def _rarest_first(frequency: Mapping[int, float]) -> list[int]:
    return sorted(frequency, key=lambda term: (frequency[term], term))


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
