"""Changes of a memory by hand: revise, restore, promote, associate, and undo of a decision."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from service.domain.decision import Action
from service.domain.errors import Conflict, InvalidInput, NotFound, PreconditionFailed
from service.domain.relation import Relation, RelationType
from service.domain.version import Expected, Revision
from service.memories.associate import associate, dissociate
from service.memories.promote import promote
from service.memories.revise import restore, revise
from service.memories.store import store_text
from service.memories.undo import take_back
from tests.fakes.embedder import AngleEmbedder
from tests.support.verbs import CALL, Verbs

ARCHIVE = "UPDATE memory SET archived = true WHERE id = :id"


async def test_a_revised_text_is_worked_out_anew(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann plays chess", tags=("games",))
    memory = await revise(verbs.workspace_id, memory_id, Revision(text="Ann plays go"), verbs.res, CALL)
    assert (memory.text, memory.tags) == ("Ann plays go", ("games",))
    assert (await verbs.history(memory_id))[-1] == ("UPDATE", "Ann plays chess", "Ann plays go")
    assert await verbs.audited() == ["store", "update"]
    assert await verbs.jobs(memory_id) == ["enrich", "enrich", "embed"]  # the vector of a PATCH is made by a job


async def test_a_revision_that_changes_nothing_leaves_nothing(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann plays chess", tags=("games",))
    await revise(verbs.workspace_id, memory_id, Revision(tags=("games",)), verbs.res, CALL)
    assert len(await verbs.history(memory_id)) == 1
    assert await verbs.audited() == ["store"]


async def test_a_revision_of_another_version_is_refused(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann plays chess")
    expected = Expected(versions=frozenset({7}))
    with pytest.raises(PreconditionFailed):
        await revise(verbs.workspace_id, memory_id, Revision(tags=("x",)), verbs.res, CALL, expected=expected)
    with pytest.raises(NotFound):
        await revise(verbs.workspace_id, uuid4(), Revision(tags=("x",)), verbs.res, CALL)


async def test_a_revision_to_the_text_of_another_memory_is_a_conflict(verbs: Verbs) -> None:
    await verbs.stored("Ann plays go")
    memory_id = await verbs.stored("Ann plays chess")
    with pytest.raises(Conflict):
        await revise(verbs.workspace_id, memory_id, Revision(text="Ann plays go"), verbs.res, CALL)
    assert len(await verbs.history(memory_id)) == 1


async def test_restore_brings_an_archived_memory_back(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann plays chess")
    await verbs.change(ARCHIVE, id=memory_id)
    memory = await restore(verbs.workspace_id, memory_id, verbs.res, CALL)
    assert not memory.archived
    assert (await verbs.history(memory_id))[-1] == ("UPDATE", "Ann plays chess", "Ann plays chess")
    assert await verbs.audited() == ["store", "restore"]


async def test_restore_of_an_active_memory_changes_nothing(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann plays chess")
    await restore(verbs.workspace_id, memory_id, verbs.res, CALL)
    assert await verbs.audited() == ["store"]
    with pytest.raises(NotFound):
        await restore(verbs.workspace_id, uuid4(), verbs.res, CALL)


async def test_promote_copies_to_the_global_channel_once(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann plays chess", scope=verbs.scope(channel="club"))
    first = await promote(verbs.workspace_id, memory_id, "useful", verbs.res, CALL)
    again = await promote(verbs.workspace_id, memory_id, None, verbs.res, CALL)
    assert (first.is_new, again.is_new) == (True, False)
    assert again.memory.id == first.memory.id
    assert (first.memory.scope.channel, first.memory.text) == ("_global", "Ann plays chess")
    [edge] = await verbs.rows("SELECT source_id, rel_type, target_id FROM memory_edge")
    assert tuple(edge) == (first.memory.id, "PROMOTED_FROM", memory_id)
    assert await verbs.history(first.memory.id) == [("ADD", None, "Ann plays chess")]
    assert await verbs.audited() == ["store", "promote"]
    assert await verbs.jobs(first.memory.id) == ["enrich"]


async def test_promote_refuses_what_is_global_already(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann plays chess")
    with pytest.raises(Conflict, match="_global"):
        await promote(verbs.workspace_id, memory_id, None, verbs.res, CALL)
    with pytest.raises(NotFound):
        await promote(verbs.workspace_id, uuid4(), None, verbs.res, CALL)


async def test_an_edge_is_made_replaced_and_removed(verbs: Verbs) -> None:
    source, target = await verbs.stored("Ann plays chess"), await verbs.stored("Ann won a cup")
    edge = Relation(source, RelationType.LEADS_TO, target, 0.5)
    assert (await associate(verbs.workspace_id, edge, verbs.res, CALL))[1] is True
    stronger = Relation(source, RelationType.LEADS_TO, target, 0.9)
    found, is_new = await associate(verbs.workspace_id, stronger, verbs.res, CALL)
    assert (found.strength, is_new) == (0.9, False)
    assert await dissociate(verbs.workspace_id, source, target, None, verbs.res, CALL) == 1
    assert await dissociate(verbs.workspace_id, source, target, None, verbs.res, CALL) == 0
    assert await verbs.audited() == ["store", "store", "associate", "associate", "dissociate"]
    assert len(await verbs.history(source)) == 1


async def test_no_edge_leads_to_another_user_or_to_nowhere(verbs: Verbs) -> None:
    source = await verbs.stored("Ann plays chess")
    other = await verbs.stored("Bob bakes bread", scope=verbs.scope("bob"))
    for target, error in ((other, InvalidInput), (source, InvalidInput), (uuid4(), NotFound)):
        with pytest.raises(error, match="target_id"):
            await associate(verbs.workspace_id, Relation(source, RelationType.PART_OF, target), verbs.res, CALL)
    assert await verbs.rows("SELECT * FROM memory_edge") == []


async def _updated(verbs: Verbs, embedder: AngleEmbedder) -> tuple[UUID, UUID]:
    """A memory that a near text has updated, and the decision."""
    embedder.place("Prefers morning calls", 1.0)
    embedder.place("No longer prefers morning calls", 0.85)
    await verbs.stored("Prefers morning calls")
    outcome = await store_text(verbs.draft("No longer prefers morning calls"), verbs.res, CALL)
    assert outcome.event is Action.UPDATE
    assert outcome.memory_id is not None
    [row] = await verbs.rows("SELECT id FROM decision WHERE event = 'UPDATE'")
    return outcome.memory_id, row.id


async def test_undo_brings_the_memory_of_before_back(verbs: Verbs, embedder: AngleEmbedder) -> None:
    memory_id, decision_id = await _updated(verbs, embedder)
    undone = await take_back(verbs.workspace_id, decision_id, verbs.res, CALL)
    assert [each.text for each in undone.memories] == ["Prefers morning calls"]
    assert undone.removed == ()
    assert [each[0] for each in await verbs.history(memory_id)] == ["ADD", "UPDATE", "UPDATE"]
    assert await verbs.audited() == ["store", "update", "undo"]
    await take_back(verbs.workspace_id, decision_id, verbs.res, CALL)
    assert await verbs.audited() == ["store", "update", "undo"], "twice is the same as once"


async def test_undo_of_what_has_changed_since_is_a_conflict(verbs: Verbs, embedder: AngleEmbedder) -> None:
    memory_id, decision_id = await _updated(verbs, embedder)
    await revise(verbs.workspace_id, memory_id, Revision(text="Prefers no calls"), verbs.res, CALL)
    with pytest.raises(Conflict, match="changed since"):
        await take_back(verbs.workspace_id, decision_id, verbs.res, CALL)
    with pytest.raises(NotFound):
        await take_back(verbs.workspace_id, uuid4(), verbs.res, CALL)
