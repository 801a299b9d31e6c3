"""How common is each word, in every workspace too large to count while searching?"""

from __future__ import annotations

from service.db.search import term_statistics
from service.domain.job import Counts, Job
from service.domain.scope import NIL_WORKSPACE
from service.resources import Resources

GOOD_FOR_S = 3_540.0
"""An hour, less a minute for a look that comes a little early."""


async def run(_job: Job, res: Resources) -> Counts | None:
    """Workspaces and words counted: of those that have grown large since the last look, and of every one whose counts
    are an hour old. From half the size on at which counts are used, so that they stand by then: without them all words
    weigh the same. A transaction per workspace, some seconds for a million memories."""
    minimum = max(1, res.settings.exact_scope_rows // 2)
    async with res.db.read(NIL_WORKSPACE) as session:
        large = await term_statistics.large_workspaces(session, minimum)
    counted = terms = 0
    for workspace_id in large:
        async with res.db.begin(workspace_id) as session:
            if not await term_statistics.counted_within(session, workspace_id, GOOD_FOR_S):
                counted, terms = counted + 1, terms + await term_statistics.count(session, workspace_id)
    if large and not counted:
        return None
    async with res.db.begin(NIL_WORKSPACE) as session:
        common = await term_statistics.count_common(session)
    return {"workspaces": counted, "terms": terms, "common": common}
