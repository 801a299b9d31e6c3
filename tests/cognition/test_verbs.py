"""Verbs of goals, strategies, tools and working memory: outcome, refusal, and what they leave."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from service.cognition import procedures
from service.cognition.goals import NewGoal, add_goal, close_goal, remove_goal, revise_goal, tie_memories, untie_memory
from service.cognition.procedures import NewStrategy
from service.cognition.values import GoalEvent, GoalStatus, Invocation
from service.domain.errors import Conflict, InvalidInput, NotFound, PreconditionFailed, TooLarge
from service.domain.version import Expected
from service.working import working
from service.working.values import WorkingKind, WorkingScope
from tests.support.verbs import CALL, Verbs

NEVER = Expected(versions=frozenset({7}))
"""A version that no record of these tests has."""


async def goal(verbs: Verbs, description: str = "Move to Oslo", **given: Any) -> Any:
    scope = given.pop("scope", verbs.scope())
    return await add_goal(NewGoal(scope, description, **given), verbs.res, CALL)


async def goal_events(verbs: Verbs) -> list[str]:
    return [row.event for row in await verbs.rows("SELECT event FROM goal_history ORDER BY recorded_at, version")]


async def test_a_goal_is_added_with_its_edges_memories_and_history(verbs: Verbs) -> None:
    memory_id = await verbs.stored("Ann likes fjords")
    whole = (await goal(verbs)).goal
    part = await goal(verbs, "Find a flat", parent_id=whole.id, blocked_by=(whole.id,), memory_ids=(memory_id,))
    assert part.parent == whole
    assert (part.blockers, part.memory_ids) == ((whole,), (memory_id,))
    assert await verbs.audited() == ["store", "goal_add", "goal_add"]
    assert len(await verbs.rows("SELECT 1 FROM goal_vector")) == 2


async def test_a_goal_cannot_refer_to_what_does_not_exist_or_is_anothers(verbs: Verbs) -> None:
    foreign = (await goal(verbs, scope=verbs.scope("bob"))).goal
    for parent_id in (uuid4(), foreign.id):
        with pytest.raises(NotFound) as refused:
            await goal(verbs, parent_id=parent_id)
        assert refused.value.field == "parent_id"


async def test_a_change_of_a_goal_is_recorded_and_an_empty_one_is_not(verbs: Verbs) -> None:
    first = (await goal(verbs)).goal
    changed = await revise_goal(verbs.workspace_id, first.id, {"priority": 3}, verbs.res, CALL)
    assert (changed.goal.priority, changed.goal.version) == (3, 2)
    again = await revise_goal(verbs.workspace_id, first.id, {"priority": 3}, verbs.res, CALL)
    assert again.goal.version == 2
    assert await goal_events(verbs) == [GoalEvent.ADD, GoalEvent.UPDATE]
    with pytest.raises(PreconditionFailed):
        await revise_goal(verbs.workspace_id, first.id, {"priority": 4}, verbs.res, CALL, expected=NEVER)


async def test_goals_form_no_cycle(verbs: Verbs) -> None:
    whole = (await goal(verbs)).goal
    part = (await goal(verbs, "Find a flat", parent_id=whole.id)).goal
    with pytest.raises(Conflict):
        await revise_goal(verbs.workspace_id, whole.id, {"parent_id": part.id}, verbs.res, CALL)
    with pytest.raises(InvalidInput):
        await revise_goal(verbs.workspace_id, whole.id, {"parent_id": whole.id}, verbs.res, CALL)


async def test_a_goal_is_closed_once(verbs: Verbs) -> None:
    goal_id, done = (await goal(verbs)).goal.id, GoalStatus.COMPLETED
    closed = (await close_goal(verbs.workspace_id, goal_id, done, verbs.res, CALL, result="Signed.")).goal
    assert (closed.status, closed.result, closed.completed_at is not None) == (done, "Signed.", True)
    await close_goal(verbs.workspace_id, goal_id, done, verbs.res, CALL)
    assert await verbs.audited() == ["goal_add", "goal_complete"]
    with pytest.raises(Conflict):
        await close_goal(verbs.workspace_id, goal_id, GoalStatus.ABANDONED, verbs.res, CALL)


async def test_memories_are_tied_to_a_goal_and_untied(verbs: Verbs) -> None:
    memory_id, goal_id = await verbs.stored("Ann likes fjords"), (await goal(verbs)).goal.id
    tied = await tie_memories(verbs.workspace_id, goal_id, [memory_id], verbs.res, CALL)
    assert tied.memory_ids == (memory_id,)
    for count in (1, 0):
        assert await untie_memory(verbs.workspace_id, goal_id, memory_id, verbs.res, CALL) == count
    with pytest.raises(NotFound):
        await tie_memories(verbs.workspace_id, goal_id, [uuid4()], verbs.res, CALL)


async def test_a_removed_goal_leaves_its_subgoals(verbs: Verbs) -> None:
    whole = (await goal(verbs)).goal
    await goal(verbs, "Find a flat", parent_id=whole.id)
    assert await remove_goal(verbs.workspace_id, whole.id, verbs.res, CALL) == 1
    assert [row.description for row in await verbs.rows("SELECT description FROM goal")] == ["Find a flat"]
    with pytest.raises(NotFound):
        await remove_goal(verbs.workspace_id, whole.id, verbs.res, CALL)


async def test_a_known_strategy_is_reinforced_instead_of_learned_twice(verbs: Verbs) -> None:
    new = NewStrategy(verbs.scope(), "Look for night trains", tool_sequence=("search_trains",))
    first = await procedures.learn(new, verbs.res, CALL)
    again = await procedures.learn(replace(new, success=False), verbs.res, CALL)
    assert (first.is_new, again.is_new) == (True, False)
    assert (again.strategy.success_count, again.strategy.failure_count) == (1, 1)
    other = await procedures.learn(replace(new, tool_sequence=("search_flights",)), verbs.res, CALL)
    assert other.is_new
    assert await verbs.audited() == ["strategy_add", "strategy_reinforce", "strategy_add"]


async def test_a_strategy_is_reinforced_and_removed(verbs: Verbs) -> None:
    strategy = (await procedures.learn(NewStrategy(verbs.scope(), "Ask first"), verbs.res, CALL)).strategy
    used = await procedures.reinforce(verbs.workspace_id, strategy.id, verbs.res, CALL, success=True)
    assert (used.success_count, used.version) == (2, 2)
    with pytest.raises(PreconditionFailed):
        await procedures.remove(verbs.workspace_id, strategy.id, verbs.res, CALL, expected=NEVER)
    assert await procedures.remove(verbs.workspace_id, strategy.id, verbs.res, CALL) == 1
    with pytest.raises(NotFound):
        await procedures.reinforce(verbs.workspace_id, strategy.id, verbs.res, CALL, success=True)


async def test_an_invocation_counts_for_its_tool_and_is_redacted(verbs: Verbs) -> None:
    new = Invocation(verbs.scope(), "send_mail", {"to": "ann@example.com"}, True, verbs.res.clock())
    recorded = await procedures.record(new, verbs.res, CALL)
    assert recorded.id > 0
    assert "ann@example.com" not in str(recorded.tool_input)
    [tool] = await verbs.rows("SELECT usage_count, success_count FROM tool WHERE name = 'send_mail'")
    assert (tool.usage_count, tool.success_count) == (1, 1)
    with pytest.raises(NotFound):
        await procedures.record(replace(new, conversation_id=uuid4(), turn_id=uuid4()), verbs.res, CALL)


async def test_working_memory_stores_replaces_and_forgets(verbs: Verbs) -> None:
    scope = WorkingScope(verbs.workspace_id, "chat-1", "ann")
    entry, is_new = await working.put(scope, WorkingKind.ITEM, "cart", {"step": 1}, verbs.res)
    assert is_new
    entry, is_new = await working.put(scope, WorkingKind.ITEM, "cart", {"step": 2}, verbs.res)
    assert (is_new, entry.value) == (False, {"step": 2})
    assert (await working.read(scope, WorkingKind.ITEM, "cart", verbs.res)).version == entry.version
    with pytest.raises(PreconditionFailed):
        await working.remove(scope, WorkingKind.ITEM, "cart", verbs.res, expected=NEVER)
    await working.remove(scope, WorkingKind.ITEM, "cart", verbs.res)
    with pytest.raises(NotFound):
        await working.read(scope, WorkingKind.ITEM, "cart", verbs.res)
    with pytest.raises(TooLarge):
        await working.push_thought(scope, "x" * working.MAX_VALUE_BYTES, verbs.res)


async def test_the_goal_of_a_session_must_be_of_its_user(verbs: Verbs) -> None:
    scope = WorkingScope(verbs.workspace_id, "chat-1", "ann")
    own, foreign = (await goal(verbs)).goal, (await goal(verbs, scope=verbs.scope("bob"))).goal
    entry, _ = await working.put_goal(scope, own.id, None, verbs.res)
    assert entry.value == {"goal_id": str(own.id), "description": "Move to Oslo"}
    with pytest.raises(NotFound):
        await working.put_goal(scope, foreign.id, None, verbs.res)
