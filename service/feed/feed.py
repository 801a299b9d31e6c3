"""Reading the change feed after a cursor."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from service.domain.errors import PlaceLost
from service.feed.statements import feed
from service.feed.statements.feed import FeedSource
from service.feed.values import FEED_START, FeedCursor, FeedPage
from service.runtime.resources import Resources


async def read_on(workspace_id: UUID, after: FeedCursor | None, res: Resources, *, limit: int) -> FeedPage:
    """At most `limit` changes after `after`; None starts at the oldest one kept. Raises PlaceLost."""
    async with res.db.read(workspace_id, generic_plans=True) as session:
        source = await feed.read_source(session)
        if after is not None:
            _check(after, source, res)
        at = FEED_START if after is None else after.at
        entries, end, has_more = await feed.list_entries(session, at, limit=limit)
    return FeedPage(tuple(entries), FeedCursor(source.source, end, source.now), has_more=has_more)


async def from_now(workspace_id: UUID, res: Resources) -> FeedPage:
    """No changes, and the cursor after all existing ones."""
    async with res.db.read(workspace_id, generic_plans=True) as session:
        source = await feed.read_source(session)
        newest = await feed.find_newest(session)
    return FeedPage((), FeedCursor(source.source, newest, source.now), has_more=False)


def _check(after: FeedCursor, source: FeedSource, res: Resources) -> None:
    """Raises PlaceLost for a cursor of other tables or beyond the newest change, as after a restore, and for one after
    which changes may have been dropped."""
    if after.source != source.source or after.at.position >= source.next:
        raise PlaceLost(
            "after: is from before the database was restored. Start again with after=now, and read all memories again.",
            field="after",
        )
    if after.moment < source.now - timedelta(days=res.settings.history.retention_days):
        raise PlaceLost(
            "after: is older than the changes that are kept (LOXODON_HISTORY_RETENTION_DAYS). Start again with "
            "after=now, and read all memories again.",
            field="after",
        )
