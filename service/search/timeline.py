"""The timeline: memories, turns, strategies and goals by time, or those nearest to a text."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from service.domain.errors import EmbeddingError
from service.runtime.resources import Resources
from service.search.statements import timeline
from service.search.values import TimelineEvent, TimelineQuery


async def read_page(query: TimelineQuery, res: Resources) -> Sequence[TimelineEvent]:
    """At most `limit` events, latest first; those nearest to a text that has a vector."""
    workspace_id, nearest = query.scope.workspace_id, None
    if query.text is not None:
        with suppress(EmbeddingError):
            nearest = (await res.embedder.embed_query(workspace_id, query.text), res.generation)
    async with res.db.read(workspace_id) as session:
        return await timeline.page(session, query, now=res.clock(), nearest=nearest)
