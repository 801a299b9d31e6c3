"""How common are a question's words in a large workspace?

In a scope of up to `exact_scope_rows` rows the search itself counts words. Above, `term_stat` says in how many texts,
and contexts, of the workspace a word stood when the job last counted; it knows the more frequent words only. Counts are
smoothed with those of all workspaces (A11), so a word that a young workspace has hardly used is not taken for rare when
everybody uses it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from sqlalchemy import text

from service.db import direct
from service.db.conditions import typed
from service.db.engine import Session

LEAST_TEXTS: Final = 5
"""A word in fewer texts has no row: most words are such, and they tell who wrote them."""

LEAST_WORKSPACES: Final = 5
"""A word counts among those of all workspaces when so many use it: less would tell of a neighbour's texts."""

COMMON_TEXTS: Final = 1_000
"""How many texts the shares of all workspaces weigh beside the workspace's own."""

SAMPLED: Final = 200_000
"""Of more texts only a sample is counted: every second, third ... one."""

TEXTS: Final = 0
"""The row that counts texts, not a word: term ids begin at 1."""

COMMON_SHARE: Final = 0.02
"""Words in more than this share of the texts open no candidates (A11; dependencies 8)."""

OPENED_ROWS: Final = 10_000
"""Nor do the more frequent ones as soon as the rarer open so many together: some 20 ms of work."""

BESIDE: Final = 2
"""Of so many words one has to stand beside a frequent one. With five it was read half as much as without."""

# pk_term_stat; the policy `common` shows the rows of the nil workspace beside one's own.
READ = typed(
    text("""
    SELECT workspace_id = :workspace AS own, term, texts, contexts FROM term_stat
    WHERE workspace_id = ANY (ARRAY[:workspace, CAST('00000000-0000-0000-0000-000000000000' AS uuid)])
      AND term = ANY (CAST(:terms AS integer[]))
""")
)

FORGET = typed(text("DELETE FROM term_stat WHERE workspace_id = :workspace"))

# Walks the workspace by pk_memory. A text without a context is its own.
COUNT = typed(
    text("""
    WITH sized AS (
        SELECT count(*) AS texts FROM memory WHERE workspace_id = :workspace
    ), every AS (
        SELECT greatest(1, ceil(texts::float8 / :sampled))::integer AS nth FROM sized
    ), sampled AS MATERIALIZED (
        SELECT m.terms, m.context_terms, m.context_bm25 IS NULL AS alone FROM memory m, every
        WHERE m.workspace_id = :workspace AND (every.nth = 1 OR abs(hashtext(m.id::text) % every.nth) = 0)
    ), met AS (
        SELECT unnest(terms) AS term, 1 AS own, alone::integer AS near FROM sampled
        UNION ALL SELECT unnest(context_terms), 0, 1 FROM sampled WHERE NOT alone
    )
    INSERT INTO term_stat (workspace_id, term, texts, contexts)
    SELECT :workspace, :all_texts, texts, texts FROM sized
    UNION ALL
    SELECT :workspace, term, least(sum(own) * nth, texts), least(sum(near) * nth, texts) FROM met, every, sized
    GROUP BY term, nth, texts HAVING greatest(sum(own), sum(near)) * nth >= :least
""")
)

COUNTED_WITHIN = text("""
    SELECT EXISTS (SELECT FROM term_stat WHERE workspace_id = :workspace AND term = :all_texts
                   AND created_at > now() - make_interval(secs => :seconds))
""")

COUNT_COMMON = text("SELECT count_common_terms(:least)")
FIND_LARGE = text("SELECT workspace_id FROM find_large_workspaces(:minimum)")


@dataclass(frozen=True, slots=True)
class TermStats:
    """In how many of `texts` texts a term stands, and in how many contexts. `texts` 0: nothing was counted yet."""

    texts: int
    own: Mapping[int, float]
    near: Mapping[int, float]


async def read(session: Session, workspace_id: UUID, terms: Sequence[int]) -> TermStats:
    """The counts of these terms, smoothed."""
    values = {"workspace": workspace_id, "terms": [TEXTS, *terms]}
    rows = await direct.fetch(session, READ, values)
    found = {(row.own, row.term): (row.texts, row.contexts) for row in rows}
    texts, common = found.get((True, TEXTS), (0, 0))[0], found.get((False, TEXTS), (0, 0))[0]

    def counts(place: int) -> dict[int, float]:
        nothing = (0, 0)
        return {
            term: smooth(
                found.get((True, term), nothing)[place], texts, found.get((False, term), nothing)[place], common
            )
            for term in terms
        }

    return TermStats(texts, counts(0), counts(1))


def smooth(count: int, texts: int, common_count: int, common_texts: int) -> float:
    """Returns in how many of the workspace's texts a word stands, 0..texts, drawn towards its share among all texts."""
    if common_texts == 0 or texts == 0:
        return float(min(count, texts))
    weight = COMMON_TEXTS / (texts + COMMON_TEXTS)
    return min(float(texts), count * (1 - weight) + weight * texts * common_count / common_texts)


def opening(counts: Mapping[int, float], texts: int) -> list[int]:
    """Returns the terms that open candidates, the rarest first: those in at most 2 % of the texts, as long as they
    stand in some thousand texts together; the rarest alone where all are more frequent."""
    ordered = sorted(counts, key=lambda term: (counts[term], term))
    found: list[int] = []
    opened = 0.0
    for term in ordered:
        opened += counts[term]
        if found and (opened > OPENED_ROWS or counts[term] > COMMON_SHARE * texts):
            break
        found.append(term)
    return found


def beside(counts: Mapping[int, float], texts: int) -> list[int]:
    """Returns the terms of which a row has to have one as well where `opening` has but a frequent one: the two next to
    the rarest. Terms that stand in just as many texts stand in the same ones mostly (a word and what is made of it) and
    narrow nothing."""
    opened = opening(counts, texts)
    if len(opened) != 1 or counts[opened[0]] <= OPENED_ROWS:
        return []
    least = counts[opened[0]]
    return [term for term in sorted(counts, key=lambda term: (counts[term], term)) if counts[term] > least][:BESIDE]


def idf(texts: float, with_term: float) -> float:
    """Returns a term's weight in a question, > 0 (Lucene's BM25; the same as in the statement for small scopes)."""
    return math.log1p((max(texts, with_term) - with_term + 0.5) / (with_term + 0.5))


async def counted_within(session: Session, workspace_id: UUID, seconds: float) -> bool:
    """Were the workspace's words counted so lately?"""
    values = {"workspace": workspace_id, "all_texts": TEXTS, "seconds": seconds}
    return bool(await session.scalar(COUNTED_WITHIN, values))


async def count(session: Session, workspace_id: UUID) -> int:
    """Counts the workspace's words anew; returns how many have a row. Until the commit readers see the former ones."""
    await session.execute(FORGET, {"workspace": workspace_id})
    values = {"workspace": workspace_id, "sampled": SAMPLED, "all_texts": TEXTS, "least": LEAST_TEXTS}
    return int((await session.execute(COUNT, values)).rowcount)


async def count_common(session: Session) -> int:
    """Sums up the counts of all workspaces, as loxodon_worker; returns how many words have a row."""
    return int(await session.scalar(COUNT_COMMON, {"least": LEAST_WORKSPACES}) or 0)


async def large_workspaces(session: Session, minimum: int) -> list[UUID]:
    """Workspaces of at least so many memories, as loxodon_worker."""
    return list(await session.scalars(FIND_LARGE, {"minimum": minimum}))
