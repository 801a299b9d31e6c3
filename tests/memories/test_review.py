"""Facts that contradict what is known: curated from a conversation, then accepted or rejected by a person."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from service.domain.decision import Action
from service.domain.errors import Conflict, NotFound, PreconditionFailed
from service.domain.memory import Outcome
from service.domain.version import Expected
from service.intake.curate import curate
from service.intake.record import ConversationDraft
from service.memories.review import accept, reject
from service.runtime.resources import Resources
from tests.support.verbs import CALL, Verbs

OLD = "User lives in Lisbon"


def under(policy: str, res: Resources) -> Resources:
    settings = res.settings.changed(contradiction_policy=policy)
    return replace(res, settings=settings)


async def moved(verbs: Verbs, policy: str) -> tuple[UUID, list[Outcome]]:
    """A memory, and what became of the sentence that contradicts it."""
    old = await verbs.stored(OLD)
    message = verbs.draft("I moved to Porto.", role="user")
    message = replace(message, options=replace(message.options, record=False))
    conversation = ConversationDraft(verbs.scope(), [message], None, infer=True)
    result = await curate(conversation, under(policy, verbs.res), CALL)
    return old, list(result.outcomes)


async def flagged(verbs: Verbs) -> tuple[UUID, UUID, UUID]:
    """The memory that is contradicted, the one that waits, and the review."""
    old, [outcome] = await moved(verbs, "flag_review")
    assert outcome.memory_id is not None
    [review] = await verbs.rows("SELECT id FROM review")
    return old, outcome.memory_id, review.id


async def test_in_place_updates_the_memory(verbs: Verbs) -> None:
    old, [outcome] = await moved(verbs, "in_place")
    assert (outcome.event, outcome.memory_id, outcome.old_memory) == (Action.UPDATE, old, OLD)
    assert [each[0] for each in await verbs.history(old)] == ["ADD", "UPDATE"]


async def test_supersede_keeps_both(verbs: Verbs) -> None:
    old, [added, ended] = await moved(verbs, "supersede")
    assert (added.event, ended.event, ended.memory_id) == (Action.ADD, Action.DELETE, old)
    memory = await verbs.memory(old)
    assert memory is not None
    assert memory.t_invalid == verbs.res.clock()
    [edge] = await verbs.rows("SELECT source_id, rel_type, target_id FROM memory_edge")
    assert tuple(edge) == (added.memory_id, "SUPERSEDES", old)


async def test_prefer_old_stores_the_evidence_only(verbs: Verbs) -> None:
    old, [outcome] = await moved(verbs, "prefer_old")
    assert (outcome.event, outcome.memory_id) == (Action.NONE, None)
    assert await verbs.history(old) == [("ADD", None, OLD)]
    assert [row.event for row in await verbs.rows("SELECT event FROM decision")][-1] == "NONE"


async def test_an_accepted_fact_takes_the_place_of_the_old_one(verbs: Verbs) -> None:
    old, pending, review = await flagged(verbs)
    resolved = await accept(verbs.workspace_id, review, verbs.res, CALL)
    assert (resolved.review.state, resolved.memory) == ("accepted", None)
    memory = await verbs.memory(old)
    assert memory is not None
    assert "Porto" in memory.text
    assert (await verbs.history(old))[-1][:2] == ("UPDATE", OLD)
    assert (await verbs.history(pending))[-1][0] == "DELETE"
    assert (await verbs.audited())[-1] == "review_accepted"
    assert await accept(verbs.workspace_id, review, verbs.res, CALL) == resolved, "twice is the same as once"
    with pytest.raises(Conflict, match="accepted before"):
        await reject(verbs.workspace_id, review, verbs.res, CALL)


async def test_a_rejected_fact_is_removed(verbs: Verbs) -> None:
    old, pending, review = await flagged(verbs)
    resolved = await reject(verbs.workspace_id, review, verbs.res, CALL)
    assert (resolved.review.state, resolved.memory) == ("rejected", None)
    assert await verbs.history(old) == [("ADD", None, OLD)]
    assert (await verbs.history(pending))[-1][0] == "DELETE"
    assert (await verbs.audited())[-1] == "review_rejected"


async def test_a_review_of_another_version_or_of_nothing_is_refused(verbs: Verbs) -> None:
    old, _, review = await flagged(verbs)
    with pytest.raises(PreconditionFailed):
        await accept(verbs.workspace_id, review, verbs.res, CALL, expected=Expected(frozenset({1})))
    with pytest.raises(NotFound):
        await accept(verbs.workspace_id, uuid4(), verbs.res, CALL)
    assert await verbs.history(old) == [("ADD", None, OLD)]
