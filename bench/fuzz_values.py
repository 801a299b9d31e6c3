"""Values that generated requests have more often than chance would give: the ends of the calendar, and names that hold
what a path is made of."""

from __future__ import annotations

from typing import Any, Final

import schemathesis
from hypothesis import strategies as st
from schemathesis import HookContext

ENDS: Final = (
    *("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "0001-12-31T23:59:59Z", "0002-01-01T00:00:00Z"),
    *("9998-12-31T23:59:59.999999Z", "9999-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999999Z"),
    *("9999-12-31T23:59:59.999999-12:00", "2026-02-28T23:59:59+14:00", "1970-01-01T00:00:00-12:00"),
)
NAMES: Final = (
    *("a/b", "/a", "a/", "/", "a//", "../a", "a/..", "a\n", "\na", "a\r\n", "a%2Fb", "100%", "a?b", "a#b", "a\\b"),
    *("１２", "名前", "...", " a", "a+b", "a;b", "search"),
)
NAMED: Final = frozenset({"user_id", "agent_id", "run_id", "session_id", "external_id", "channel"})
IN_PATH: Final = {
    "/v1/users/": frozenset({"user_id"}),
    "/v1/working/": frozenset({"conversation_id", "key"}),
    "/v1/entities/": frozenset({"name"}),
    "/v1/conversations/": frozenset({"id"}),
    "/v1/scopes/": frozenset({"id"}),
}
"""Parameters that are names and no UUIDs, by how the path begins."""
MOMENTS = st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
MAX_CHARS = 100
"""A longer name may be one that is meant to be refused."""

ONE_IN = 4
"""How many requests have one of the names."""

schemathesis.openapi.format("date-time", MOMENTS | st.sampled_from(ENDS))


def _with_names(given: Any, wanted: frozenset[str]) -> st.SearchStrategy[Any]:
    places = sorted(wanted & given.keys()) if isinstance(given, dict) else []
    places = [name for name in places if isinstance(given[name], str) and 0 < len(given[name].strip()) < MAX_CHARS]
    if not places:
        return st.just(given)
    odd = st.tuples(st.sampled_from(places), st.sampled_from(NAMES)).map(lambda pair: {**given, pair[0]: pair[1]})
    return st.integers(1, ONE_IN).flatmap(lambda number: odd if number == 1 else st.just(given))


@schemathesis.hook
def flatmap_path_parameters(context: HookContext, path_parameters: Any) -> st.SearchStrategy[Any]:
    path = context.operation.path if context.operation is not None else ""
    named = next((names for begin, names in IN_PATH.items() if path.startswith(begin)), frozenset[str]())
    return _with_names(path_parameters, named)


@schemathesis.hook
def flatmap_query(context: HookContext, query: Any) -> st.SearchStrategy[Any]:
    return _with_names(query, NAMED)


@schemathesis.hook
def flatmap_body(context: HookContext, body: Any) -> st.SearchStrategy[Any]:
    return _with_names(body, NAMED)
