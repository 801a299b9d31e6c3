"""The timeline: memories, turns, strategies and goals by time, or those nearest to a text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from service.domain.errors import EmbeddingError
from service.domain.query import Window
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.runtime.resources import Resources
from service.search.statements import timeline
from service.search.values import EventKind, TimelineEvent


async def read_page(
    scope: Scope,
    kinds: Collection[EventKind],
    window: Window,
    res: Resources,
    *,
    text: CleanText | None,
    include_archived: bool,
    after: tuple[datetime, UUID] | None,
    limit: int,
) -> Sequence[TimelineEvent]:
    """At most `limit` events of these kinds after `after`, latest first; those nearest to a text that has a vector."""
    nearest = None
    if text is not None:
        with suppress(EmbeddingError):
            nearest = (await res.embedder.embed_query(scope.workspace_id, text), res.generation)
    async with res.db.read(scope.workspace_id) as session:
        return await timeline.page(
            session,
            scope,
            kinds,
            window,
            include_archived=include_archived,
            after=after,
            limit=limit,
            now=res.clock(),
            nearest=nearest,
        )
