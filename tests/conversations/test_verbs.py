"""Verbs of conversations, turns, profiles and entities: outcome, refusal, and what they leave."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any
from uuid import uuid4

import pytest

from service.cognition import profile
from service.cognition.values import Traits
from service.conversations.conversations import change, open_conversation
from service.domain.conversation import Conversation, ConversationChanges
from service.domain.entity import EntityOwner, EntityRelation, EntityUpsert
from service.domain.errors import Conflict, InvalidInput, NotFound, PreconditionFailed
from service.domain.version import Expected
from service.episodes import turns
from service.episodes.lookup import find
from service.episodes.turns import IncomingTurn
from service.graph import entity
from tests.support.verbs import CALL, Verbs

NEVER = Expected(versions=frozenset({7}))
"""A version that no record of these tests has."""


async def opened(verbs: Verbs, name: str = "chat-1") -> Conversation:
    scope = replace(verbs.scope(), run_id=name)
    found = await open_conversation(scope, title=None, started_at=None, metadata={}, res=verbs.res, request=CALL)
    return found.conversation


async def test_a_conversation_is_opened_once_and_found_by_id_or_name(verbs: Verbs) -> None:
    first = await opened(verbs)
    assert (await opened(verbs)).id == first.id
    assert await verbs.audited() == ["open"]
    async with verbs.res.db.read(verbs.workspace_id) as session:
        for wanted in (str(first.id), "chat-1"):
            assert (await find(session, verbs.scope(), wanted)).id == first.id
        with pytest.raises(NotFound):
            await find(session, verbs.scope("bob"), "chat-1")


async def test_a_changed_conversation_merges_its_metadata(verbs: Verbs) -> None:
    there = await opened(verbs)
    await change(there, ConversationChanges(metadata={"a": 1, "b": 2}), verbs.res, CALL)
    found = await change(
        there, ConversationChanges(title="Trip", title_given=True, metadata={"a": None}), verbs.res, CALL
    )
    assert (found.title, found.metadata) == ("Trip", {"b": 2})
    with pytest.raises(PreconditionFailed):
        await change(there, ConversationChanges(archived=True), verbs.res, CALL, expected=NEVER)


async def test_a_turn_is_stored_once_with_its_copy_in_working_memory(verbs: Verbs) -> None:
    there = await opened(verbs)
    first = await turns.store(there, IncomingTurn("user", "Hello", index=0), verbs.res, CALL)
    again = await turns.store(there, IncomingTurn("user", "Hello", index=0), verbs.res, CALL)
    assert (first.is_new, again.is_new, again.turn.id) == (True, False, first.turn.id)
    assert [row.turn_id for row in await verbs.rows("SELECT turn_id FROM working_item")] == [first.turn.id]
    assert await verbs.audited() == ["open", "store_turn"]
    with pytest.raises(Conflict):
        await turns.store(there, IncomingTurn("user", "Something else", index=0), verbs.res, CALL)


async def test_a_new_turn_brings_an_archived_conversation_back(verbs: Verbs) -> None:
    there = await opened(verbs)
    archived = await change(there, ConversationChanges(archived=True), verbs.res, CALL)
    stored = await turns.store(archived, IncomingTurn("user", "Hello"), verbs.res, CALL)
    assert (archived.archived, stored.is_new) == (True, True)
    async with verbs.res.db.read(verbs.workspace_id) as session:
        found = await find(session, verbs.scope(), str(there.id))
    assert found.archived is False


async def test_a_profile_is_replaced_or_merged(verbs: Verbs) -> None:
    with pytest.raises(NotFound):
        await profile.write(verbs.workspace_id, "ann", {"preferences": {"tea": True}}, verbs.res, CALL, merge=True)
    whole = asdict(Traits({"tea": True}, ["chess"]))
    made = await profile.write(verbs.workspace_id, "ann", whole, verbs.res, CALL, merge=False)
    assert made.is_new
    given: dict[str, Any] = {"preferences": {"tea": None, "milk": 1}}
    merged = await profile.write(verbs.workspace_id, "ann", given, verbs.res, CALL, merge=True)
    assert (merged.profile.traits.preferences, merged.profile.traits.expertise_areas) == ({"milk": 1}, ["chess"])
    with pytest.raises(PreconditionFailed):
        await profile.write(verbs.workspace_id, "ann", {}, verbs.res, CALL, merge=False, expected=NEVER)


async def test_an_upsert_creates_an_entity_and_then_adds_to_it(verbs: Verbs) -> None:
    owner = EntityOwner(verbs.workspace_id, "ann", "_global")
    first, is_new = await entity.upsert(owner, EntityUpsert("Acme", aliases=("ACME Corp",)), None, verbs.res, CALL)
    again, is_known = await entity.upsert(owner, EntityUpsert("acme corp", properties={"x": 1}), None, verbs.res, CALL)
    assert (is_new, is_known, again.id, again.properties) == (True, False, first.id, {"x": 1})
    with pytest.raises(Conflict):
        await entity.upsert(owner, EntityUpsert("Globex", aliases=("Acme",)), None, verbs.res, CALL)
    assert await verbs.audited() == ["upsert_entity", "upsert_entity"]


async def test_entities_are_related_merged_and_separated(verbs: Verbs) -> None:
    owner = EntityOwner(verbs.workspace_id, "ann", "_global")
    one, _ = await entity.upsert(owner, EntityUpsert("Acme"), None, verbs.res, CALL)
    two, _ = await entity.upsert(owner, EntityUpsert("Acme Ltd"), None, verbs.res, CALL)
    ann, _ = await entity.upsert(owner, EntityUpsert("Ann"), None, verbs.res, CALL)
    new = EntityRelation(uuid4(), ann.id, "works_at", "works_at", two.id)
    relation, is_new = await entity.relate(verbs.workspace_id, new, verbs.res, CALL)
    assert (relation.type, is_new) == ("WORKS_FOR", True)
    merged = await entity.merge(verbs.workspace_id, two.id, one.id, verbs.res, CALL)
    assert [each.id for each in merged.entities] == [one.id]
    assert await entity.unrelate(verbs.workspace_id, ann.id, one.id, "works_at", verbs.res, CALL) == 1
    apart = await entity.unmerge(verbs.workspace_id, merged.merge.id, verbs.res, CALL)
    assert {each.id for each in apart.entities} == {one.id, two.id}
    with pytest.raises(InvalidInput):
        await entity.merge(verbs.workspace_id, one.id, one.id, verbs.res, CALL)
    await entity.remove(verbs.workspace_id, one.id, verbs.res, CALL)
    with pytest.raises(NotFound):
        await entity.remove(verbs.workspace_id, one.id, verbs.res, CALL)
