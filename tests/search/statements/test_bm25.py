"""Terms are counted and ranked as BM25 says, compared with the same sums in Python.

Texts with and without context, some of them hidden by the caller's conditions, and a term that most of them have.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
import pytest
from pgvector import SparseVector
from sqlalchemy import text

from service.domain import bm25
from service.domain.scope import Scope
from service.postgres import scopes
from service.postgres.engine import Database, driver
from service.postgres.scopes import Condition
from service.postgres.vectors import TERM_DIMENSIONS
from service.search.statements import exact
from service.search.statements.search_plan import SearchPlan
from tests.conftest import new_tenant

ROWS, ARM = 150, 400
COMMON, SECOND, UNKNOWN = 1, 2, 999

MEMORIES = """
    INSERT INTO memory (workspace_id, id, user_id, content, hash, terms, bm25, context_terms, context_bm25, type,
        type_confidence, classification_source, importance, importance_level, metadata, "timestamp", embedding_status,
        created_at, updated_at)
    VALUES ($1, $2, 'ana', 'text', 'x', $3, $4, $5, $6, 'Context', 1, 'default', 0.5, 5,
        jsonb_build_object('n', $7::int), now(), 'queued', now(), now())
"""

Weights = Mapping[int, float]


@dataclass(frozen=True)
class WeightedText:
    id: UUID
    text_weights: Weights
    context_weights: Weights | None
    hidden: bool


@dataclass(frozen=True)
class TermRows:
    plan: SearchPlan
    texts: Sequence[WeightedText]


@pytest.fixture(scope="module", params=[True, False], ids=["contexts", "without_contexts"])
async def store(request: pytest.FixtureRequest, database: Database) -> AsyncIterator[TermRows]:
    chance = np.random.default_rng(11)

    def weights(most: int) -> Weights:
        """Word n in about every (n / 2)th text, the commonest in four of five, each with a weight of its own."""
        has = [COMMON] * (chance.random() < 0.8) + [SECOND] * (chance.random() < 0.6)
        has += [n for n in range(3, most) if chance.random() < 2 / n]
        return {n: float(np.float32(chance.uniform(0.01, 2.5))) for n in has}

    texts = [
        WeightedText(
            UUID(int=(11 << 124) + at),
            weights(60),
            weights(80) if request.param and at % 3 else None,
            hidden=at % 7 == 3,
        )
        for at in range(ROWS)
    ]
    tenant = await new_tenant(database)
    async with database.begin(tenant.workspace_id) as session:
        raw = await driver(session)
        for at, each in enumerate(texts):
            context = each.context_weights or {}
            await raw.execute(
                MEMORIES,
                tenant.workspace_id,
                each.id,
                sorted(each.text_weights),
                _sparse(each.text_weights),
                sorted(context),
                _sparse(context) if each.context_weights is not None else None,
                at,
            )
    scope = Scope(tenant.workspace_id, user_id="ana")
    shown = Condition("(m.metadata->>'n')::int % 7 <> 3")
    matching, vectors = scopes.readable("m", scope), scopes.readable("v", scope)
    yield TermRows(SearchPlan(matching, vectors, shown, 1, 10 * ROWS, arm_limit=ARM, limit=1), texts)
    async with database.begin(tenant.workspace_id) as session:
        await (await driver(session)).execute("DELETE FROM memory WHERE workspace_id = $1", tenant.workspace_id)


def _sparse(weights: Weights) -> str:
    return str(SparseVector(dict(weights), TERM_DIMENSIONS).to_text())


def _ranked(texts: Mapping[UUID, Weights], idf: Weights) -> list[tuple[UUID, float]]:
    """Those with a term of the query, best first."""
    scores = {each: sum(idf[n] * w for n, w in has.items() if n in idf) for each, has in texts.items()}
    return sorted(((each, score) for each, score in scores.items() if score), key=lambda one: -one[1])


QUESTIONS = [
    [COMMON],
    [COMMON, SECOND],
    [COMMON, 7, 33],
    [COMMON, SECOND, 5, UNKNOWN],
    [COMMON, UNKNOWN],
    [UNKNOWN],
    [4, 30, 70],
    [COMMON, *range(10, 21)],
    [*range(3, 20)],
    [COMMON, *range(2, 40), UNKNOWN],
    [COMMON, *range(2, 60), UNKNOWN],
    [*range(1, 4_000)],
]


@pytest.mark.parametrize("terms", QUESTIONS, ids=lambda terms: f"{terms[0]}+{len(terms) - 1}")
async def test_terms_are_counted_and_ranked_as_bm25_says(database: Database, store: TermRows, terms: list[int]) -> None:
    async with database.snapshot(store.plan.scope.values["workspace"]) as session:
        found = await exact.find(session, replace(store.plan, terms=terms))
    assert found is not None
    seen = [each for each in store.texts if not each.hidden]
    of_texts = {each.id: each.text_weights for each in seen}
    of_contexts = {
        each.id: each.context_weights if each.context_weights is not None else each.text_weights for each in seen
    }
    assert found.text_count == len(seen)
    contexts = any(each.context_weights is not None for each in seen)
    for arm, texts, counts in (
        ("text_lexical", of_texts, found.text_df),
        ("context_lexical", of_contexts, found.context_df),
    ):
        held = {n: sum(n in has for has in texts.values()) for n in terms}
        assert {n: counts.get(n, 0) for n in terms} == held, arm
        if arm == "context_lexical" and not contexts:
            assert arm not in found.arms, "it would only repeat that of the texts"
            continue
        wanted = _ranked(texts, {n: bm25.idf(len(seen), held[n]) for n in terms})
        scores = dict(wanted)
        got = found.arms.get(arm, [])
        assert set(got) == set(scores)
        assert [scores[each] for each in got] == pytest.approx([score for _, score in wanted], rel=1e-4), arm


@pytest.mark.parametrize(
    ("texts", "frequency"), [(0, 0), (1, 1), (10, 3), (20_000, 1), (20_000, 19_999), (1_000_000, 7)]
)
async def test_the_idf_in_sql_is_that_in_python(database: Database, texts: int, frequency: int) -> None:
    given = {"texts": f"CAST({texts} AS float8)", "frequency": f"CAST({frequency} AS float8)"}
    async with database.read() as session:
        found = await session.scalar(text(f"SELECT {bm25.IDF_SQL.format(**given)}"))
    assert found == pytest.approx(bm25.idf(texts, frequency))
