"""What does a search without a question give? The most important memories that the caller narrowed the scope to."""

from __future__ import annotations

from service.db import scopes
from service.db.memories import memories
from service.db.search import important, visibility
from service.domain.memory import Hit, Memory
from service.domain.query import Query, SearchDetails, SearchResult
from service.resources import Resources
from service.retrieval.fusion import Term


async def listing(query: Query, res: Resources) -> SearchResult:
    """At most `query.limit` hits, the most important first, then the latest (R6.18); the score is the importance."""
    rows = scopes.matching("m", query.scope, query.channels) & visibility.rows("m", query, res.clock())
    async with res.db.snapshot(query.scope.workspace_id) as session:
        ids = await important.ids(session, rows, limit=query.limit)
        found = await memories.get_many(session, query.scope.workspace_id, ids)
    listed = [found[each] for each in ids if each in found]
    hits = [_hit(each) for each in listed if each.importance.value >= query.min_score]
    explained = SearchDetails({"important": len(ids)}, len(ids)) if query.explain else None
    return SearchResult(tuple(hits), "none", explained=explained)


def _hit(memory: Memory) -> Hit:
    value = memory.importance.value
    return Hit(memory, value, None, {"importance": Term(value, value, 1.0)})
