"""How common is each word, in every workspace too large to count while searching?"""

from __future__ import annotations

from service.db import termstats
from service.domain.job import Counts, Job
from service.domain.scope import NIL_WORKSPACE
from service.resources import Resources


async def run(_job: Job, res: Resources) -> Counts:
    """Workspaces and words counted. From half the size on at which counts are used, so that they stand by then; a
    transaction per workspace, some seconds for a million memories."""
    minimum = max(1, res.settings.exact_scope_rows // 2)
    async with res.db.read(NIL_WORKSPACE) as session:
        large = await termstats.large_workspaces(session, minimum)
    terms = 0
    for workspace_id in large:
        async with res.db.begin(workspace_id) as session:
            terms += await termstats.count(session, workspace_id)
    async with res.db.begin(NIL_WORKSPACE) as session:
        common = await termstats.count_common(session)
    return {"workspaces": len(large), "terms": terms, "common": common}
