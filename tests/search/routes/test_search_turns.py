"""What was said and no memory says is found by a search of memories, too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import AsyncClient

from service.postgres import direct
from service.runtime.resources import Resources
from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.mcp.test_mcp import agent, said
from tests.search.scores import explained_score
from tests.support.application import Tables, client_of, serving
from tests.support.calls import body_of
from tests.support.conversing import answer, known

Hits = list[dict[str, Any]]

REPORT = "Root cause: the cache key of the nightly import lacked the tenant, so I added it."
COMPLAINT = "The nightly import into the warehouse has failed again."
ASKED = "What was the root cause of the failed import?"
DIALOGUE = [
    {"role": "user", "content": COMPLAINT, "name": "Ada"},
    {"role": "assistant", "content": REPORT, "name": "Nova"},
]


async def found(client: AsyncClient, query: str = ASKED, user: str = "bob", **more: Any) -> dict[str, Any]:
    return await body_of(client.post("/v1/memories/search", json={"query": query, "user_id": user, **more}))


async def hits(client: AsyncClient, query: str = ASKED, user: str = "bob", **more: Any) -> dict[str, str]:
    """Source by text."""
    return {each["memory"]: each["source"] for each in (await found(client, query, user, **more))["results"]}


async def test_what_an_assistant_reported_is_found_as_its_turn(client: AsyncClient) -> None:
    await answer(client, DIALOGUE, run_id="ops")
    results = (await found(client, detail="full"))["results"]
    [turn] = [each for each in results if each["source"] == "turn"]
    assert turn["memory"] == REPORT
    [conversation] = (await client.get("/v1/conversations", params={"user_id": "bob"})).json()["results"]
    place = {name: turn[name] for name in ("role", "speaker", "conversation_id", "turn_index", "user_id", "run_id")}
    assert place == {
        "role": "assistant",
        "speaker": "Nova",
        "conversation_id": conversation["id"],
        "turn_index": 1,
        "user_id": "bob",
        "run_id": "ops",
    }
    assert [turn[name] for name in ("fact_confidence", "summary", "t_valid", "t_invalid", "expires_at")] == [None] * 5
    assert (turn["tags"], turn["categories"], turn["later"], turn["shared"]) == ([], [], [], False)
    said_there = (await client.get(f"/v1/conversations/{conversation['id']}")).json()["turns"]
    assert turn["id"] == said_there[1]["id"]
    lean = {each["source"]: each.get("turn_index") for each in (await found(client))["results"]}
    assert lean == {"turn": 1, "memory": None}


async def test_a_turn_names_what_was_said_later(client: AsyncClient, embedder: AngleEmbedder) -> None:
    """An assistant's answer repeats the old value, and the user gives another one a day later."""
    booked = "Noted: the invoice for the boat engine is due on 14 March."
    moved = "The invoice for the boat engine is due on 28 March."
    for text in (booked, moved, f"User: {moved}"):
        embedder.place(text, 0.9)
    await answer(client, [{"role": "assistant", "content": booked, "timestamp": "2026-03-01T09:00:00Z"}])
    await answer(client, [{"role": "user", "content": moved, "timestamp": "2026-03-02T09:00:00Z"}])
    [memory, turn] = sorted((await found(client, "When is the invoice due?"))["results"], key=lambda hit: hit["source"])
    assert (memory["source"], memory["later"]) == ("memory", [])
    assert (turn["memory"], [each["id"] for each in turn["later"]]) == (booked, [memory["id"]])


@pytest.mark.parametrize(
    ("as_messages", "query", "first"),
    [(True, "Where is the desk?", 2), (True, "Where was the desk?", 1), (False, "Where is the desk?", 1)],
)
async def test_the_latest_of_what_was_said_leads_unless_the_past_is_asked_for(
    client: AsyncClient, embedder: AngleEmbedder, *, as_messages: bool, query: str, first: int
) -> None:
    texts = (
        "Herons nest here.",
        "The desk is by the window on the third floor.",
        "The desk is in the yard behind the second house.",
    )
    embedder.place(query, 1.0)
    for day, (text, similarity) in enumerate(zip(texts, (0.0, 0.9, 0.85), strict=True), 1):
        embedder.place(text, similarity)
        embedder.place(f"User: {text}", similarity)
        when = {"timestamp": f"2026-03-0{day}T09:00:00Z"}
        if as_messages:
            await answer(client, [{"role": "user", "content": text, **when}])
        else:
            await body_of(client.post("/v1/memories", json={"content": text, "user_id": "bob", **when}), 201)
    results = (await found(client, query))["results"]
    assert results[0]["memory"].removeprefix("User: ") == texts[first], [(r["score"], r["later"]) for r in results]


async def test_a_message_that_is_a_memory_is_shown_once(client: AsyncClient) -> None:
    await answer(client, DIALOGUE)
    assert list((await hits(client)).values()) == ["memory", "turn"]
    word_for_word = {"messages": [{"role": "user", "content": "Ada lives in Oslo."}], "infer": False, "user_id": "carl"}
    assert (await client.post("/v1/memories", json=word_for_word)).status_code == 201
    assert await hits(client, "Where does Ada live?", "carl") == {"Ada lives in Oslo.": "memory"}


async def test_one_ranking_for_both(client: AsyncClient) -> None:
    """Scores are comparable: a turn with the words of the query leads memories without them."""
    await answer(client, [*DIALOGUE, {"role": "user", "content": "My sister grows tomatoes."}])
    results = (await found(client, REPORT))["results"]
    assert results[0]["memory"] == REPORT, results
    scores = [each["score"] for each in results]
    assert scores == sorted(scores, reverse=True)
    assert (await found(client, REPORT, limit=1))["results"] == results[:1]
    assert [each["memory"] for each in (await found(client, REPORT, min_score=scores[0]))["results"]] == [REPORT]


async def test_memories_alone(client: AsyncClient) -> None:
    await answer(client, DIALOGUE)
    assert set((await hits(client, turns=False)).values()) == {"memory"}
    sent = {"query": ASKED, "user_id": "bob"}
    simple = await client.get("/v1/memories/search", params={**sent, "turns": "false"})
    assert {each["source"] for each in simple.json()["results"]} == {"memory"}
    simple = await client.get("/v1/memories/search", params=sent)
    assert {each["source"] for each in simple.json()["results"]} == {"memory", "turn"}


NARROWED: list[dict[str, Any]] = [
    {"tags": ["ops"]},
    {"exclude_tags": ["draft"]},
    {"categories": ["work"]},
    {"types": ["Context"]},
    {"min_confidence": 0.1},
    {"filters": {"field": "role", "operator": "ne", "value": "nobody"}},
    {"valid_at": "2030-01-01"},
    {"validity": "ignore"},
    {"validity": "demote"},
    {"scope_mode": "exact"},
]


@pytest.mark.parametrize("narrowed", NARROWED)
async def test_what_only_memories_meet_leaves_turns_out(client: AsyncClient, narrowed: dict[str, Any]) -> None:
    await answer(client, DIALOGUE)
    assert "turn" not in (await hits(client, **narrowed)).values()


async def test_the_past_has_no_turns(client: AsyncClient, clock: SetClock) -> None:
    await answer(client, DIALOGUE)
    clock.forward(hours=1)
    assert "turn" not in (await hits(client, as_of=clock.now.isoformat())).values()


async def test_scope_channel_and_time_hold_for_turns(client: AsyncClient) -> None:
    at = {"timestamp": "2026-01-10T12:00:00Z"}
    await answer(client, [{**each, **at} for each in DIALOGUE], channel="ops", run_id="chat")
    assert REPORT not in await hits(client)
    assert REPORT in await hits(client, channel="ops")
    assert REPORT in await hits(client, channels=["ops", "dev"])
    assert REPORT not in await hits(client, user="carl", channel="ops")
    assert REPORT in await hits(client, channel="ops", run_id="chat")
    assert REPORT not in await hits(client, channel="ops", run_id="another")
    assert REPORT in await hits(client, channel="ops", start="2026-01-10", end="2026-01-11")
    assert REPORT not in await hits(client, channel="ops", start="2026-01-11")
    assert REPORT not in await hits(client, channel="ops", end="2026-01-10")


async def test_a_key_for_one_user_finds_no_turns_of_another(app: FastAPI, client: AsyncClient) -> None:
    await answer(client, DIALOGUE)
    made = await client.post("/v1/api-keys", json={"name": "carl", "rights": ["memory:read"], "user_id": "carl"})
    async with client_of(app, made.json()["api_key"]) as his:
        assert await hits(his, user="carl") == {}


async def test_what_was_deleted_is_in_no_turn(client: AsyncClient) -> None:
    await answer(client, [{"role": "user", "content": COMPLAINT}, DIALOGUE[1]], run_id="ops")
    [memory] = (await client.get("/v1/memories", params={"user_id": "bob"})).json()["results"]
    assert (await client.delete(f"/v1/memories/{memory['id']}")).status_code in (200, 204)
    assert await hits(client) == {REPORT: "turn"}
    [turn] = (await found(client))["results"]
    gone = await client.delete(f"/v1/turns/{turn['id']}", params={"user_id": "bob"})
    assert gone.status_code == 200, gone.text
    assert await hits(client) == {}


async def test_an_archived_memory_has_no_turn_either(client: AsyncClient, tables: Tables) -> None:
    await answer(client, [{"role": "user", "content": COMPLAINT}])
    await tables.fetch("UPDATE memory SET archived = true")
    assert await hits(client) == {}


async def test_a_turn_that_only_asks_answers_nothing(client: AsyncClient) -> None:
    await answer(client, [{"role": "user", "content": ASKED}, DIALOGUE[1]])
    assert list((await hits(client)).values()) == ["turn"]
    assert ASKED not in await hits(client)


async def test_the_first_turn_of_a_scope_is_found_at_once(client: AsyncClient) -> None:
    """The size of a scope is remembered; what was said since then in this process is not missed."""
    assert await hits(client) == {}
    await answer(client, [DIALOGUE[1]])
    assert await known(client) == []
    assert await hits(client) == {REPORT: "turn"}


async def test_turns_are_not_counted_as_used(resources: Resources, tenant: Tenant) -> None:
    counting = replace(resources, settings=resources.settings.changed(reinforce=True))
    async with serving(counting) as app, client_of(app, tenant.key) as client:
        await answer(client, DIALOGUE)
        results = (await found(client))["results"]
        await app.state.uses.flush()
        [memory] = (await client.get("/v1/memories", params={"user_id": "bob", "detail": "full"})).json()["results"]
    assert len(results) == 2
    assert memory["access_count"] >= 1


async def test_explanations_know_turns(client: AsyncClient) -> None:
    stored = await answer(client, DIALOGUE)
    wanted = stored["results"][0]["id"]
    body = await found(client, explain=True, explain_id=wanted, limit=1)
    assert body["candidates"]["turns"] == 1
    assert body["why"]["place"] in (1, 2)
    for each in (await found(client, explain=True, connected=True))["results"]:
        assert each["score"] == pytest.approx(explained_score(each["explain"]), abs=1e-6)
        assert each["connected"] == []


async def test_every_technique_and_factor_works_with_turns(client: AsyncClient) -> None:
    await answer(client, DIALOGUE)
    tuning: list[dict[str, Any]] = [
        {"fusion": "rrf"},
        {"diversity": 0.5},
        {"factors": {"importance": 0.5, "salience": 0.5, "recency": 0.5}},
        {"techniques": {"query_expansion": True, "hyde": True}},
        {"rerank": True},
    ]
    for each in tuning:
        assert set((await hits(client, tuning=each, prefer_tags=["ops"])).values()) == {"memory", "turn"}, each
    for query in ("When did the import fail?", "What did Nova say yesterday?", "Plan a dinner with Ada", "E-4417?"):
        await found(client, query)


async def test_long_turns_and_many(client: AsyncClient) -> None:
    lines = [f"Step {number} of the import is to load the table number {number}." for number in range(60)]
    messages = [{"role": "assistant", "content": each} for each in [*lines, "All about the import. " * 300]]
    await answer(client, messages)
    assert len((await found(client, "import", limit=20))["results"]) == 20
    assert len((await found(client, "import", limit=100))["results"]) == 61


async def test_apis_of_others_find_memories_alone(client: AsyncClient) -> None:
    await answer(client, DIALOGUE)
    body = {"query": ASKED, "filters": {"user_id": "bob"}}
    theirs = (await client.post("/v1/compat/mem0/v2/memories/search/", json=body)).json()["results"]
    assert [each["memory"] for each in theirs] == await known(client)


async def test_an_agent_reads_who_said_it(app: FastAPI, tenant: Tenant, client: AsyncClient) -> None:
    await answer(client, [DIALOGUE[0], {"role": "assistant", "content": REPORT}])
    async with agent(app, tenant.key, X_User_Id="bob") as agents:
        results = (await said(agents, "search", query=ASKED))["results"]
    assert [each.get("source") for each in results if each["memory"] == REPORT] == ["turn, said by Assistant"]
    assert [each.get("source") for each in results if each["memory"] != REPORT] == [None]


@contextmanager
def statements() -> Iterator[list[str]]:
    """The statements that are sent meanwhile."""
    sent: list[str] = []
    records = direct._records

    async def noted(session: Any, statement: Any, values: Any) -> Any:
        sent.append(statement.text)
        return await records(session, statement, values)

    direct._records = noted
    try:
        yield sent
    finally:
        direct._records = records


async def test_a_scope_without_conversations_costs_nothing_more(client: AsyncClient) -> None:
    await client.post("/v1/memories", json={"content": COMPLAINT, "user_id": "bob"})
    await found(client)
    counts = []
    for turns in (False, True):
        with statements() as sent:
            await found(client, turns=turns)
        counts.append(len(sent))
    assert counts[0] == counts[1] > 0


async def test_a_turn_that_says_more_than_its_memories_is_found(client: AsyncClient, tables: Tables) -> None:
    """Two memories of the same words hold them once; a link without an end holds the rest of the turn."""
    await answer(client, [{"role": "user", "content": COMPLAINT}], run_id="ops")
    half, whole = len(COMPLAINT) // 2, {COMPLAINT: "turn"}
    await tables.fetch('UPDATE memory_source SET start = 0, "end" = $1', half)
    assert whole.items() <= (await hits(client)).items()
    await tables.fetch("""
        INSERT INTO memory_source (workspace_id, memory_id, turn_id, start, "end")
        SELECT s.workspace_id, m.id, s.turn_id, s.start, s."end" FROM memory_source s, LATERAL (
            SELECT * FROM memory WHERE workspace_id = s.workspace_id AND id <> s.memory_id LIMIT 1) m
        ON CONFLICT DO NOTHING
    """)
    assert whole.items() <= (await hits(client)).items()
    await tables.fetch('UPDATE memory_source SET start = 2, "end" = NULL')
    assert whole.keys().isdisjoint((await hits(client)).keys())
    await tables.fetch("UPDATE memory_source SET start = 10000")
    assert whole.items() <= (await hits(client)).items()
