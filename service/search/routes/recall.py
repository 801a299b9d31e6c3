"""Route for recall: everything that helps to answer a query, in one bundle."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

from fastapi import APIRouter, Response

from service.domain.moments import elapsed_ms
from service.domain.query import Narrow, Window
from service.domain.ranking import RecallWeights, over
from service.domain.scope import Scope
from service.domain.text import CleanText
from service.http import narrowing
from service.http.deps import Reader, ResourcesOf, read_scope
from service.http.json_body import JsonRoute
from service.http.reads import AuditReadOf, CountUseOf, in_time, send_json
from service.runtime.pii import clean_words
from service.runtime.resources import Resources
from service.search.recall import recall
from service.search.routes.recall_models import RecallRequest, RecallResponse, recall_answer
from service.search.values import RecallQuery

INJECTED_FROM = 0.3
"""Minimum probability of an answer for turns, facts and entities to enter a prompt. Of questions about chats that have
an answer 41 of 45 are above, of those that have none 18 of 45 are below."""

router = APIRouter(prefix="/v1/recall", tags=["recall"], route_class=JsonRoute)


@router.post("", operation_id="recall", summary="Recall what helps to answer", response_model=RecallResponse)
async def recall_bundle(
    body: RecallRequest,
    caller: Reader,
    res: ResourcesOf,
    audit_read: AuditReadOf,
    count_use: CountUseOf,
) -> Response:
    """Turns and facts that answer the query, the entities it names with their relations, active goals, and the user's
    profile, read at one moment and cut to `max_tokens`. With `format=markdown` also as a block for a prompt."""
    began = time.perf_counter()
    scope = read_scope(caller, res, body, body.channel)
    text = await clean_words(body.query, "query", res)
    narrowing.refuse_future(body.as_of, res.clock())
    query = _query(body, scope, text, res)
    async with in_time(res) as timed:
        bundle = await recall(query, timed)
    facts = [item.memory for item in bundle.facts]
    if body.reinforce and body.as_of is None:
        count_use(facts, [entity_item.entity.id for entity_item in bundle.entities])
    channels = query.channels
    techniques = {name: {"ms": use.ms, "count": use.count} for name, use in bundle.techniques.items()} or None
    audit_read("recall", scope, facts, query=text, channels=channels, max_tokens=body.max_tokens, techniques=techniques)
    if bundle.turns:
        turns = [turn_item.turn for turn_item in bundle.turns]
        audit_read("recall", scope, turns, query=text, subject="episodic", channels=channels, top_k=body.limit)
    if bundle.strategies:
        strategies = [match.strategy for match in bundle.strategies]
        audit_read("recall", scope, strategies, query=text, subject="procedural", channels=channels, top_k=body.limit)
    return send_json(recall_answer(bundle, body, ms=elapsed_ms(began), now=res.clock()))


def _query(body: RecallRequest, scope: Scope, text: CleanText, res: Resources) -> RecallQuery:
    hours, defaults = body.time_window_hours, res.settings.ranking
    return RecallQuery(
        scope,
        text,
        channels=tuple(body.channels or ()),
        include=body.parts,
        limit=body.limit,
        max_tokens=body.max_tokens,
        per_conversation=body.per_conversation,
        context_window=body.around,
        window=Window(None if hours is None else res.clock() - timedelta(hours=hours)),
        narrow=Narrow(min_confidence=body.min_confidence, valid_at=body.valid_at),
        min_probability=body.min_probability,
        min_answer=INJECTED_FROM if body.is_injected else 0.0,
        as_of=body.as_of,
        timezone=body.timezone or res.settings.memories.timezone,
        detail=body.detail,
        shares=over(RecallWeights(), body.weights),
        ranking=replace(
            defaults,
            techniques=over(defaults.techniques, body.techniques),
            diversity=defaults.diversity if body.diversity is None else body.diversity,
            rerank=False,  # the hits are read in the snapshot of the other parts
        ),
    )
