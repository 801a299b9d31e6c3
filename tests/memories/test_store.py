"""Storing one text, and a conversation word for word."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from service.domain.decision import Action
from service.domain.draft import DedupAction
from service.domain.errors import Conflict, PiiRejected
from service.domain.request import IdempotencyKey, Replay, StoredAnswer, WriteContext
from service.domain.scope import Scope
from service.intake.record import ConversationDraft, record
from service.memories.store import store_text
from service.postgres.scopes import ScopeLocks
from tests.fakes.embedder import AngleEmbedder
from tests.support.verbs import CALL, Verbs


async def test_a_new_text_is_a_memory_with_history_audit_and_job(verbs: Verbs) -> None:
    outcome = await store_text(verbs.draft("Ann plays chess", tags=("games",)), verbs.res, CALL)
    assert outcome.event is Action.ADD
    assert outcome.memory_id is not None
    memory = await verbs.memory(outcome.memory_id)
    assert memory is not None
    assert (memory.text, memory.tags, memory.scope) == ("Ann plays chess", ("games",), verbs.scope())
    assert await verbs.history(memory.id) == [("ADD", None, "Ann plays chess")]
    assert await verbs.audited() == ["store"]
    assert await verbs.jobs(memory.id) == ["enrich"]


async def test_the_same_text_again_changes_nothing_but_the_audit(verbs: Verbs) -> None:
    known = await verbs.stored("Ann plays chess")
    outcome = await store_text(verbs.draft("Ann plays chess", tags=("games",)), verbs.res, CALL)
    assert (outcome.event, outcome.memory_id) == (Action.NONE, known)
    assert outcome.dedup.action is DedupAction.DUPLICATE_EXACT
    assert "tags of this request were not used" in outcome.draft.warnings[-1]
    assert len(await verbs.history(known)) == 1
    assert await verbs.audited() == ["store", "store"]


async def test_a_text_that_ends_another_takes_its_place_and_keeps_the_evidence(
    verbs: Verbs, embedder: AngleEmbedder
) -> None:
    embedder.place("Prefers morning calls", 1.0)
    embedder.place("No longer prefers morning calls", 0.85)
    known = await verbs.stored("Prefers morning calls")
    outcome = await store_text(verbs.draft("No longer prefers morning calls"), verbs.res, CALL)
    assert (outcome.event, outcome.memory_id) == (Action.UPDATE, known)
    assert outcome.old_memory == "Prefers morning calls"
    assert [each[0] for each in await verbs.history(known)] == ["ADD", "UPDATE"]
    [decision] = await verbs.rows("SELECT source, event, history_id FROM decision WHERE memory_id = :id", id=known)
    assert (decision.source, decision.event) == ("rules", "UPDATE")
    assert decision.history_id is not None


async def test_a_dry_run_leaves_nothing(verbs: Verbs) -> None:
    draft = verbs.draft("Ann plays chess")
    outcome = await store_text(replace(draft, options=replace(draft.options, dry_run=True)), verbs.res, CALL)
    assert (outcome.event, outcome.memory_id) == (Action.ADD, None)
    assert await verbs.audited() == []
    assert await verbs.rows("SELECT id FROM memory") == []


async def test_an_announced_secret_is_refused(verbs: Verbs) -> None:
    with pytest.raises(PiiRejected):
        await store_text(verbs.draft("My password is"), verbs.res, CALL)
    assert await verbs.rows("SELECT id FROM memory") == []


async def test_a_chosen_id_of_another_scope_is_a_conflict(verbs: Verbs) -> None:
    other = await verbs.stored("Bob bakes bread", scope=verbs.scope("bob"))
    with pytest.raises(Conflict, match="another scope"):
        await store_text(verbs.draft("Ann plays chess", id=other), verbs.res, CALL)


async def test_a_repeated_request_gets_the_answer_that_was_kept(verbs: Verbs) -> None:
    key = IdempotencyKey("key", "fingerprint", 60.0)
    call = WriteContext("r", idempotency=key, serialize=lambda _: StoredAnswer(201, {"kept": True}))
    await store_text(verbs.draft("Ann plays chess"), verbs.res, call)
    with pytest.raises(Replay) as replay:
        await store_text(verbs.draft("Ann plays chess"), verbs.res, call)
    assert replay.value.answer == StoredAnswer(201, {"kept": True})
    assert await verbs.audited() == ["store"]


async def test_messages_are_turns_and_memories_in_their_order(verbs: Verbs) -> None:
    drafts = [verbs.draft("Where do you live?", role="assistant"), verbs.draft("In Lisbon.", role="user")]
    outcomes = (await record(ConversationDraft(verbs.scope(), drafts, "chat-1"), verbs.res, CALL)).outcomes
    assert [(each.event, each.turn_index) for each in outcomes] == [(Action.ADD, 0), (Action.ADD, 1)]
    turns = await verbs.rows("SELECT role, content FROM turn ORDER BY turn_index")
    assert [tuple(row) for row in turns] == [("assistant", "Where do you live?"), ("user", "In Lisbon.")]
    assert outcomes[1].memory_id is not None
    assert await verbs.history(outcomes[1].memory_id) == [("ADD", None, "In Lisbon.")]
    kinds = await verbs.rows("SELECT operation, memory_type FROM audit_log")
    assert [tuple(row) for row in kinds] == [("store", "episodic")] * 2


async def test_an_equal_message_is_a_turn_of_the_memory_there(verbs: Verbs) -> None:
    drafts = [verbs.draft("Yes.", role="user"), verbs.draft("Yes.", role="user")]
    first, second = (await record(ConversationDraft(verbs.scope(), drafts, None), verbs.res, CALL)).outcomes
    assert (first.event, second.event) == (Action.ADD, Action.NONE)
    assert second.memory_id == first.memory_id
    assert len(await verbs.rows("SELECT id FROM turn")) == 2


async def test_a_message_that_announces_a_secret_refuses_the_conversation(verbs: Verbs) -> None:
    drafts = [verbs.draft("Hello.", role="user"), verbs.draft("My password is", role="user")]
    with pytest.raises(PiiRejected):
        await record(ConversationDraft(verbs.scope(), drafts, None), verbs.res, CALL)
    assert await verbs.rows("SELECT id FROM turn") == []


class CountedLocks(ScopeLocks):
    """Tells when so many writers have come to a scope."""

    def __init__(self) -> None:
        super().__init__()
        self.came = 0
        self.reached: defaultdict[int, asyncio.Event] = defaultdict(asyncio.Event)

    @asynccontextmanager
    async def hold(self, scope: Scope) -> AsyncIterator[None]:
        self.came += 1
        self.reached[self.came].set()
        async with super().hold(scope):
            yield


async def test_a_decision_does_not_hold_when_its_target_was_said_again_meanwhile(verbs: Verbs) -> None:
    """Both are decided while Oslo is of 2019; then Oslo of 2021 is written, so Lisbon of 2020 is older news."""
    known = await verbs.stored("Ann lives in Oslo.", timestamp=datetime(2019, 5, 1, tzinfo=UTC))
    locks = CountedLocks()
    res = replace(verbs.res, locks=locks)
    async with locks.hold(verbs.scope()):
        again = verbs.draft("Ann lives in Oslo.", timestamp=datetime(2021, 5, 1, tzinfo=UTC))
        first = asyncio.create_task(store_text(again, res, CALL))
        await locks.reached[2].wait()
        older = verbs.draft("Ann lives in Lisbon.", timestamp=datetime(2020, 5, 1, tzinfo=UTC))
        second = asyncio.create_task(store_text(older, res, CALL))
        await locks.reached[3].wait()
    assert (await first).event is Action.NONE
    assert (await second).kept_as is not None
    memory = await verbs.memory(known)
    assert memory is not None
    assert memory.text == "Ann lives in Oslo."
