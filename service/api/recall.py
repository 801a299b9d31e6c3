"""Everything that helps to answer a question, in one bundle."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

from fastapi import APIRouter, Request

from service.api import bundle_models as wire
from service.api import errors
from service.api.auth import Reader
from service.api.deps import ResourcesOf, in_time, scope_of
from service.api.limits import LIMITED
from service.api.reads import NoteOf, ReinforceOf
from service.domain.bundle import Recall, Shares
from service.domain.ranking import over
from service.pipeline.pii import clean_words
from service.retrieval.recall import recall

router = APIRouter(prefix="/v1/recall", tags=["recall"])


@router.post(
    "",
    operation_id="recall",
    summary="Recall what helps to answer",
    response_model=wire.BundleOut,
    responses=errors.documented(400, 401, 403, 413, 422, 429, 503),
    dependencies=LIMITED,
)
async def recall_bundle(
    request: Request, body: wire.RecallIn, who: Reader, res: ResourcesOf, note: NoteOf, used: ReinforceOf
) -> wire.BundleOut:
    """Turns and facts that answer the question, what it names and how that hangs together, active goals, and who is
    spoken to: all of one moment, cut to `max_tokens`. With `format=markdown` also as a block for a prompt."""
    began = time.perf_counter()
    scope = scope_of(who, user_id=body.user_id, agent_id=body.agent_id, run_id=body.run_id, channel=body.channel)
    text = await clean_words(body.query or body.q or "", "query", res)
    hours, base, weights = body.time_window_hours, res.settings.ranking, body.weights
    include = body.parts
    asked = Recall(
        scope,
        text,
        channels=tuple(body.channels or ()),
        include=include,
        top_k=body.top_k,
        max_tokens=body.max_tokens,
        per_conversation=body.per_conversation,
        around=body.around,
        since=None if hours is None else res.clock() - timedelta(hours=hours),
        min_confidence=body.min_confidence,
        shares=Shares(weights.turns, weights.facts, weights.entities, weights.strategies, weights.recency),
        ranking=replace(
            base,
            techniques=over(base.techniques, body.techniques),
            diversity=base.diversity if body.diversity is None else body.diversity,
        ),
    )
    async with in_time(res, request):
        found = await recall(asked, res)
    channels = asked.channels
    facts = [each.memory for each in found.facts]
    if body.reinforce:
        used(facts, [each.entity.id for each in found.entities])
    techniques = {name: {"ms": each.ms, "count": each.count} for name, each in found.techniques.items()} or None
    asked_for = {"max_tokens": body.max_tokens, "techniques": techniques}
    note("recall", scope, facts, query=text, channels=channels, **asked_for)
    if found.turns:
        turns = [each.turn for each in found.turns]
        note("recall", scope, turns, query=text, kind="episodic", channels=channels, top_k=body.top_k)
    if found.strategies:
        ways = [each.strategy for each in found.strategies]
        note("recall", scope, ways, query=text, kind="procedural", channels=channels, top_k=body.top_k)
    took_ms = round((time.perf_counter() - began) * 1000, 3)
    return wire.shown(found, body, ms=took_ms, include=include, now=res.clock())
