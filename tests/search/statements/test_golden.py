"""The whole statement of each kind of search, as a file that a person can read, run and EXPLAIN.

golden/*.sql begin with sample values as psql variables, so `psql -f exact.sql` runs them as the role of the connection;
put EXPLAIN before the statement to see its plan. `make golden` writes the files again after a change.

Four variants that repeat most of another statement are only explained.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from pgvector import HalfVector, SparseVector
from sqlalchemy import TextClause

from service.domain import filters
from service.domain.query import Narrow, Query
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.kit.settings import Settings
from service.memories.statements import near_memories, visibility
from service.postgres import scopes
from service.postgres.engine import Database, driver
from service.search import indexed_conditions
from service.search.statements import approximate, candidates, exact, features, search_plan
from service.search.statements.features import OPTIONAL, TermIdf
from service.search.statements.search_plan import Candidates, SearchPlan

GOLDEN = Path(__file__).with_name("golden")
NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
WORKSPACE, MEMORY = UUID(int=1), UUID(int=2)
DIMENSION = 384
VECTOR = np.full(DIMENSION, 0.05, dtype=np.float32)
SCOPE = Scope(WORKSPACE, user_id="alice")
NARROW = Narrow(filters.read({"field": "project", "operator": "eq", "value": "atlas"}), tags=("travel",))

Statement = tuple[TextClause, Mapping[str, Any]]


def plan_of(narrow: Narrow | None = None, **more: Any) -> SearchPlan:
    scope = SCOPE
    query = Query(scope, CleanText("?"), 10, narrow=narrow or Narrow())
    given = {
        "terms": [11, 12],
        "vector": VECTOR,
        "asked_at": NOW,
        "tags": ("boat",),
        "goal_scope": scopes.readable("g", SCOPE),
        **more,
    }
    return SearchPlan(
        scopes.readable("m", scope),
        scopes.readable("v", scope),
        visibility.conditions("m", query, NOW),
        1,
        20_000,
        indexed_conditions.find_keys(query.narrow),
        indexed_conditions.find_column_ranges(query.narrow, query.window),
        **given,
    )


def statements() -> dict[str, Statement]:
    plan, narrowed = plan_of(), plan_of(NARROW)
    few = search_plan.restrict_to_few(narrowed)
    statistics = Candidates(100_000, {11: 40.0, 12: 3_000.0}, {11: 50.0, 12: 3_500.0})
    idf = TermIdf({11: 7.8, 12: 3.5}, {11: 7.6, 12: 3.3})
    summary = {**plan.scope.values, "most": 150_000, "speakers": candidates.MAX_SPEAKERS}
    scope, live = (
        Scope(WORKSPACE, user_id="alice"),
        visibility.not_archived("m") & visibility.not_expired_nor_in_review("m", NOW),
    )
    vectors = scopes.exact("v", scope)
    near, near_values = near_memories.nearest_statement(vectors, live, VECTOR, generation=1, limit=5)
    here = scopes.exact("m", scope) & visibility.not_archived("m")
    comparison = near_memories.compare(vectors, here, live, NOW, generation=1)
    compared = {**here.values, **near_values, "hash": "0123", **near_memories.close_limits(5)}
    return {
        "scope_summary": (
            candidates.SUMMARY.fill(scope=plan.scope.sql, turns=scopes.readable("t", SCOPE).sql),
            summary,
        ),
        "exact": (exact.statement(plan), exact.values(plan)),
        "prefilter_probe": (search_plan.probe(narrowed), search_plan.index_values(narrowed)),
        "exact_prefiltered": (exact.statement(few), exact.values(few)),
        "binary": (approximate.statement(plan, "binary"), approximate.values(plan, "binary", statistics)),
        "hnsw": (approximate.statement(narrowed, "hnsw"), approximate.values(narrowed, "hnsw", statistics)),
        "without_vector": _without_vector(statistics),
        "features": features.statement(plan, [MEMORY], idf, frozenset(OPTIONAL)),
        "entities": (candidates.entity_statement(plan), candidates.entity_values(plan, ["zenobia"], NOW)),
        "neighbours": (comparison, compared),
        "nearest": (near, near_values),
    }


def _without_vector(statistics: Candidates) -> Statement:
    plan = plan_of(vector=None)
    return approximate.statement(plan, "hnsw"), approximate.values(plan, "hnsw", statistics)


def rendered(statement: TextClause, values: Mapping[str, Any]) -> str:
    """Sample values as psql variables, then the statement as it is sent, with its parameters by name."""
    sql = "\n".join(line.rstrip() for line in statement.text.strip().splitlines())
    used = sorted(each for each in values if re.search(rf"(?<![:\w]):{each}\b", sql))
    sets = "\n".join(f"\\set {each} {_quoted(_literal(values[each]))}" for each in used)
    sql = "\n".join(_broken(line) for line in sql.splitlines())
    return f"SELECT set_config('loxodon.workspace', '{WORKSPACE}', false);\n{sets}\n\n{sql};\n"


def _broken(line: str) -> str:
    """A long line with each condition on a line of its own."""
    margin = " " * (len(line) - len(line.lstrip()) + 4)
    return line.replace(" AND ", f"\n{margin}AND ") if len(line) > 120 else line


ABOUT = {
    "scope_summary": "How large a scope is and who speaks in it (candidates.py).",
    "exact": "Small scope: every row is read (exact.py).",
    "hnsw": "Large scope: the graph, here with a condition that has filter keys (approximate.py).",
    "features": "What is measured of the candidates, with all optional features (features.py).",
    "entities": "Memories that name the entities of a query (candidates.py).",
    "neighbours": "Deduplication in a small scope (near_memories.py).",
    "nearest": "The nearest vectors in a scope of any size (near_memories.py).",
}


def _literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case HalfVector() | np.ndarray():
            return f"array_fill(0.05::real, ARRAY[{DIMENSION}])::halfvec"
        case SparseVector():
            return f"'{value.to_text()}'::sparsevec"
        case list():
            return "'{" + ",".join(map(str, value)) + "}'"
        case UUID():
            return f"'{value}'::uuid"
        case datetime():
            return f"'{value.isoformat()}'::timestamptz"
    return "'" + str(value).replace("'", "''") + "'"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@pytest.mark.parametrize("name", sorted(ABOUT))
def test_the_files_show_the_statements_of_the_code(name: str) -> None:
    head = f"-- {ABOUT[name]}\n-- Rendered by tests/search/statements/test_golden.py; `make golden` writes it again."
    file, shown = GOLDEN / f"{name}.sql", f"{head}\n\n{rendered(*statements()[name])}"
    if os.environ.get("WRITE_GOLDEN"):
        file.write_text(shown)
    assert file.read_text() == shown, "run `make golden` and read the difference"


def test_there_is_no_other_file() -> None:
    assert {file.stem for file in GOLDEN.glob("*.sql")} == set(ABOUT) < set(statements())


@pytest.mark.parametrize("name", sorted(statements()))
async def test_every_statement_can_be_explained(database: Database, settings: Settings, name: str) -> None:
    """With the variables filled in as psql does."""
    text = rendered(*statements()[name]).replace(f"ARRAY[{DIMENSION}]", f"ARRAY[{settings.embedder.dim}]")
    text = text.replace(f"halfvec({DIMENSION})", f"halfvec({settings.embedder.dim})")
    variables = {each[0]: each[1].replace("''", "'") for each in re.findall(r"^\\set (\w+) '(.*)'$", text, re.M)}
    sql = text.partition("\n\n")[2]
    filled = re.sub(r"(?<![:\w]):(\w+)\b", lambda found: variables[found[1]], sql)
    async with database.snapshot(WORKSPACE) as session:
        plan = await (await driver(session)).fetch(f"EXPLAIN {filled}")
    assert plan
