"""Ways of doing a task that worked in several conversations are learned by themselves, and each counts once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient

from service.cognition import procedures
from service.cognition.jobs import patterns
from service.cognition.statements import learning
from service.cognition.statements.learning import TaskUses
from service.cognition.values import Invocation
from service.domain.job import Job
from service.domain.request import Call
from service.domain.scope import NIL_ID, Scope
from service.postgres.engine import Session
from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.support.application import Tables
from tests.support.calls import opened, said, store
from tests.support.plans import kept_plan, rows_read
from tests.support.tasks import work

Run = Callable[[], Awaitable[None]]
TRAINS = (("search_trains", True), ("book_train", True))


async def used(
    client: AsyncClient,
    name: str,
    uses: Sequence[tuple[str, bool]] = TRAINS,
    *,
    task_type: str | None = "travel",
    user_id: str = "alice",
    channel: str = "atlas",
) -> str:
    """The id of a conversation that used these tools, each successfully or not."""
    conversation = await opened(client, name, user_id=user_id, channel=channel)
    for tool, success in uses:
        await use(client, conversation, tool, success=success, task_type=task_type, user_id=user_id)
    return conversation


async def use(client: AsyncClient, conversation: str, tool: str, *, success: bool = True, **fields: Any) -> None:
    body = {"conversation_id": conversation, "tool_name": tool, "tool_input": {}, "success": success, **fields}
    answer = await client.post("/v1/tool-invocations", json={"user_id": "alice", **body})
    assert answer.status_code == 201, answer.text


@pytest.fixture
def run(client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant, clock: SetClock) -> Run:
    """Runs the job once all conversations are quiet."""

    async def once() -> None:
        clock.forward(minutes=31)
        assert (await client.post("/v1/jobs/patterns/run")).status_code == 202
        assert await work(resources, tables, tenant.workspace_id, "patterns") == 1

    return once


async def strategies(client: AsyncClient, user_id: str = "alice") -> dict[tuple[str, ...], tuple[int, int]]:
    """Successes and failures by the tools of each strategy of the channel atlas."""
    found = await client.get("/v1/strategies", params={"user_id": user_id, "channel": "atlas"})
    assert found.status_code == 200, found.text
    return {
        tuple(each["tool_sequence"]): (each["success_count"], each["failure_count"]) for each in found.json()["results"]
    }


async def marked(client: AsyncClient, conversation: str) -> bool:
    found: bool = (await client.get(f"/v1/conversations/{conversation}")).json()["patterns_extracted"]
    return found


async def test_what_worked_twice_is_a_strategy(client: AsyncClient, run: Run, tables: Tables, tenant: Tenant) -> None:
    """And what worked once is none yet: a third conversation counts the first two as well, each once."""
    first = await used(client, "one", (("search_flights", False), ("search_trains", True), ("book_train", True)))
    await run()
    assert await strategies(client) == {}
    assert await marked(client, first)
    second = await used(client, "two")
    for _ in range(2):
        await run()
        assert await strategies(client) == {("search_trains", "book_train"): (2, 0)}
    third = await used(client, "three", (("search_trains", True), ("search_trains", True), ("book_train", True)))
    await run()
    assert await strategies(client) == {("search_trains", "book_train"): (3, 0)}
    [strategy] = (await client.get("/v1/strategies", params={"user_id": "alice", "channel": "atlas"})).json()["results"]
    assert (strategy["description"], strategy["context_pattern"]) == ("search_trains, then book_train", "travel")
    assert (strategy["task_type"], strategy["channel"], strategy["user_id"]) == ("travel", "atlas", "alice")
    rows = await tables.fetch(
        "SELECT conversation_id, success FROM strategy_conversation WHERE workspace_id = $1", tenant.workspace_id
    )
    assert {(row["conversation_id"], row["success"]) for row in rows} == {
        (UUID(each), True) for each in (first, second, third)
    }


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("another user", {"user_id": "bob"}),
        ("another channel", {"channel": "borealis"}),
        ("another task", {"task_type": "office"}),
        ("no task", {"task_type": None}),
        ("another order", {"uses": TRAINS[::-1]}),
        ("it failed", {"uses": (("search_trains", True), ("book_train", False))}),
    ],
)
async def test_what_is_not_the_same_does_not_count(
    client: AsyncClient, run: Run, name: str, fields: dict[str, Any]
) -> None:
    await used(client, "one")
    await used(client, name, **fields)
    await run()
    assert await strategies(client) == await strategies(client, "bob") == {}


async def test_one_tool_is_no_sequence(client: AsyncClient, run: Run) -> None:
    for name in ("one", "two"):
        await used(client, name, (("search_trains", True), ("search_trains", True)))
    await run()
    assert await strategies(client) == {}


async def test_failures_of_a_known_sequence_count(client: AsyncClient, run: Run) -> None:
    for name, worked in (("one", True), ("two", True), ("three", False)):
        await used(client, name, (("search_trains", True), ("book_train", worked)))
    await run()
    assert await strategies(client) == {("search_trains", "book_train"): (2, 1)}


async def test_goals_say_whether_a_conversation_succeeded(client: AsyncClient, run: Run) -> None:
    await used(client, "one")
    second = await used(client, "two")
    goals = [
        (await client.post("/v1/goals", json={"user_id": "alice", "run_id": "two", "description": each})).json()["id"]
        for each in ("Be in Bergen by Friday", "Stay for the night")
    ]
    await run()
    assert (await strategies(client), await marked(client, second)) == ({}, False), "not over yet"
    assert (await client.post(f"/v1/goals/{goals[0]}/complete", json={})).status_code == 200
    given_up = await client.post(f"/v1/goals/{goals[1]}/complete", json={"status": "abandoned"})
    assert given_up.status_code == 200
    await run()
    assert (await strategies(client), await marked(client, second)) == ({}, True)
    third = await used(client, "three")
    goal = await client.post("/v1/goals", json={"user_id": "alice", "run_id": "three", "description": "Be in Oslo"})
    assert (await client.post(f"/v1/goals/{goal.json()['id']}/complete", json={})).status_code == 200
    await run()
    assert await strategies(client) == {("search_trains", "book_train"): (2, 1)}
    assert await marked(client, third)


async def test_what_comes_later_takes_the_mark_back(
    client: AsyncClient, run: Run, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    there = await used(client, "one")
    await run()
    assert await marked(client, there)
    await use(client, there, "pay", task_type="travel")
    assert not await marked(client, there)
    assert (await client.post("/v1/jobs/patterns/run")).status_code == 202
    await work(resources, tables, tenant.workspace_id, "patterns")
    assert not await marked(client, there), "it may go on"
    await run()
    assert await marked(client, there)
    await said(client, there, "Thank you")
    assert not await marked(client, there)


async def test_twice_and_by_two_workers_is_once(
    client: AsyncClient, resources: Resources, tenant: Tenant, clock: SetClock
) -> None:
    for number in range(4):
        await used(client, f"chat {number}")
    clock.forward(minutes=31)
    job = Job(tenant.workspace_id, UUID(int=1), "patterns", None, {}, 1, 1, "test")
    counts = await asyncio.gather(*(patterns.patterns(job, resources) for _ in range(3)))
    assert sum(each["learned"] for each in counts if each) == 1
    assert await patterns.patterns(job, resources) == {**counts[0], "conversations": 0, "learned": 0}
    assert await strategies(client) == {("search_trains", "book_train"): (4, 0)}


@pytest.mark.parametrize("dies_at", [1, 2, 3])
async def test_a_run_that_dies_goes_on(
    client: AsyncClient,
    resources: Resources,
    tenant: Tenant,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
    dies_at: int,
) -> None:
    for number in range(3):
        await used(client, f"chat {number}")
    clock.forward(minutes=31)
    verb, calls = procedures.learn, 0

    async def dies(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        done = await verb(*args, **kwargs)
        if calls == dies_at:
            raise ConnectionError
        return done

    monkeypatch.setattr(patterns, "learn", dies)
    job = Job(tenant.workspace_id, UUID(int=1), "patterns", None, {}, 1, 1, "test")
    with pytest.raises(ConnectionError):
        await patterns.patterns(job, resources)
    await patterns.patterns(job, resources)
    assert await strategies(client) == {("search_trains", "book_train"): (3, 0)}


async def test_a_use_that_is_being_written_is_not_marked_as_read(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant, clock: SetClock
) -> None:
    there = await used(client, "one")
    clock.forward(minutes=31)
    scope = Scope(tenant.workspace_id, "alice", channel="atlas")

    def late(now: datetime) -> Invocation:
        return Invocation(scope, "pay", {}, True, now, task_type="travel", conversation_id=UUID(there))

    for _ in range(10):
        job = Job(tenant.workspace_id, UUID(int=1), "patterns", None, {}, 1, 1, "test")
        before = await tables.value("SELECT max(id) FROM tool_invocation WHERE conversation_id = $1", UUID(there))
        await asyncio.gather(
            patterns.patterns(job, resources), procedures.record_invocation(late(clock()), resources, Call())
        )
        after = await tables.value("SELECT max(id) FROM tool_invocation WHERE conversation_id = $1", UUID(there))
        assert after > before
        assert not await marked(client, there)
        clock.forward(minutes=31)


async def test_memories_are_tied_to_the_pattern_that_they_exemplify(
    client: AsyncClient, run: Run, tables: Tables, tenant: Tenant, clock: SetClock
) -> None:
    """And what somebody took away does not come back."""
    pattern = await store(client, "Ann usually runs tests before deploying", type="Pattern")
    example = await store(client, "Ann runs the slow tests again before deploying billing", type="Context")
    for other in ({"user_id": "bob"}, {"channel": "atlas"}):
        await store(client, "Ann runs the slow tests before deploying the shop", type="Context", **other)

    async def edges() -> list[tuple[str, str, str]]:
        found = (await client.get(f"/v1/memories/{pattern}/relations")).json()["results"]
        return [(each["type"], each["source_id"], each["target_id"]) for each in found]

    for _ in range(2):
        await run()
        assert await edges() == [("EXEMPLIFIES", example, pattern)]
    gone = await client.delete(f"/v1/memories/{example}/relations", params={"target_id": pattern})
    assert gone.status_code == 200, gone.text
    await tables.fetch(
        "UPDATE job SET state = 'done', counts = jsonb_build_object('examples_until', $2::bigint) "
        "WHERE workspace_id = $1 AND kind = 'patterns'",
        tenant.workspace_id,
        int(clock().timestamp()),
    )
    clock.forward(minutes=10)
    await run()
    assert await edges() == []
    later = await store(client, "Ann runs unit tests again before deploying mail", type="Context")
    await run()
    assert await edges() == [("EXEMPLIFIES", later, pattern)]


MANY = """
    INSERT INTO memory (workspace_id, id, user_id, content, hash, dedup_key, terms, type, type_confidence,
                        classification_source, importance, importance_level, "timestamp", embedding_status, created_at,
                        updated_at)
    SELECT $1, gen_random_uuid(), 'alice', md5(n::text), md5(n::text), md5(n::text), ARRAY[n % 40, 101, 102, 103],
           CASE WHEN n < 40 THEN 'Pattern' ELSE 'Context' END, 1, 'explicit', 0.5, 5, now(), 'stored', now(), now()
    FROM generate_series(0, 399) n
"""


@pytest.mark.parametrize("is_analysed", [False, True])
async def test_memories_are_read_once_for_all_patterns(
    resources: Resources, tables: Tables, tenant: Tenant, clock: SetClock, *, is_analysed: bool
) -> None:
    await tables.fetch(MANY, tenant.workspace_id)
    if is_analysed:
        await tables.fetch("ANALYZE memory")
    where: dict[str, Any] = {"after": NIL_ID, "since": datetime.fromtimestamp(0, UTC), "now": clock()}
    async with resources.db.read(tenant.workspace_id) as session:
        assert len(await learning.list_candidates(session, **where)) == 360
        plan = await kept_plan(session, learning.list_candidates(session, **where))
    assert rows_read(plan, "memory") == 2 * 400, "once for the patterns, once for their examples"


TALKS = """
    WITH fresh AS (
        INSERT INTO conversation (workspace_id, id, user_id, channel, external_id, started_at, turn_count)
        SELECT $1, gen_random_uuid(), CASE WHEN n <= 5 THEN 'alice' ELSE 'user ' || n % 20 END, 'atlas', 'talk ' || n,
               now(), 0
        FROM generate_series(1, 400) n RETURNING *
    )
    INSERT INTO tool_invocation (workspace_id, conversation_id, user_id, channel, "timestamp", tool_name, task_type,
                                 tool_input, success)
    SELECT workspace_id, id, user_id, channel, '2020-01-01Z'::timestamptz + n * interval '1 second', 'tool ' || n,
           'travel', '{}', true
    FROM fresh, generate_series(1, 2) n
"""


@pytest.mark.parametrize("is_analysed", [False, True])
async def test_conversations_are_read_once_for_all_unread_ones_of_an_owner(
    client: AsyncClient,
    run: Run,
    resources: Resources,
    tables: Tables,
    tenant: Tenant,
    clock: SetClock,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_analysed: bool,
) -> None:
    await tables.fetch(TALKS, tenant.workspace_id)
    if is_analysed:
        await tables.fetch("ANALYZE conversation, tool_invocation")
    alice = Scope(tenant.workspace_id, "alice", channel="atlas")
    async with resources.db.read(tenant.workspace_id) as session:
        now = clock()
        assert len(await learning.list_uses(session, alice, [], quiet_since=now)) == 5
        plan = await kept_plan(session, learning.list_uses(session, alice, [], quiet_since=now))
    assert rows_read(plan, "conversation") == 5, "none of others"
    reads: list[Scope] = []

    async def count(session: Session, owner: Scope, *given: Any, **more: Any) -> Sequence[TaskUses]:
        reads.append(owner)
        return await list_uses(session, owner, *given, **more)

    list_uses = learning.list_uses
    monkeypatch.setattr(learning, "list_uses", count)
    monkeypatch.setattr(patterns, "BATCH_ROWS", 1_000)
    await run()
    assert len(reads) == len(set(reads)) == 21
    assert await strategies(client) == {("tool 1", "tool 2"): (5, 0)}
