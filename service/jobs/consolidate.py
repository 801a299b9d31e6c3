"""Which conversation was kept without its facts, because the model was away?

Its turns stand in the database; this makes the facts of them, by the same verb that a request calls. When the model
is still away the job fails and is tried again, later each time.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from service.db import conversations
from service.db.conversations import KeptTurn
from service.domain.draft import Asked, Draft, Options, Speech
from service.domain.job import Counts, Job
from service.domain.request import Request
from service.domain.scope import Scope
from service.memory.curate import curate
from service.memory.record import Conversation
from service.resources import Resources


async def run(job: Job, res: Resources) -> Counts | None:
    """Facts of the conversation in the payload; one that was consolidated meanwhile, or is gone, is done."""
    conversation_id = UUID(str(job.payload["conversation_id"]))
    async with res.db.read(job.workspace_id) as session:
        found = await conversations.unconsolidated(session, job.workspace_id, conversation_id)
    if found is None:
        return None
    scope, turns = replace(found[0], run_id=_text(job.payload["run_id"])), found[1]
    drafts = [_draft(turn, scope, res) for turn in turns]
    stored = [turn.place for turn in turns]
    curated = await curate(Conversation(scope, drafts, None, infer=True, stored=stored), res, Request(f"job:{job.id}"))
    return {"facts": len(curated.outcomes)}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _draft(turn: KeptTurn, scope: Scope, res: Resources) -> Draft:
    spoken = Speech(turn.role, turn.speaker, turn.timestamp)
    return Draft(scope, turn.text, Asked(timezone=res.settings.timezone), Options(), res.clock(), spoken)
