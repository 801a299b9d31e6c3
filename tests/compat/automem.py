"""AutoMem's contract over HTTP, call by call, from outside: what its clients send, and what they read.

Run by tests/compat/test_automem.py in process, and by `make compat` against a started service.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from httpx2 import AsyncClient, Response

AUTHORABLE = (
    *("CONTRADICTS", "DERIVED_FROM", "EVOLVED_INTO", "EXEMPLIFIES", "INVALIDATED_BY", "LEADS_TO"),
    *("OCCURRED_BEFORE", "PART_OF", "PREFERS_OVER", "REINFORCES", "RELATES_TO"),
)


@dataclass(frozen=True, slots=True)
class AutomemCaller:
    """A client of AutoMem: `client` sends the key. `ranks`: its embedder knows words, so an order can be told."""

    client: AsyncClient
    base: str = "/v1/compat/automem"
    ranks: bool = False

    async def answer(self, method: str, path: str, **sent: Any) -> Response:
        return await self.client.request(method, self.base + path, **sent)

    async def __call__(self, method: str, path: str, expected: int = 200, **sent: Any) -> dict[str, Any]:
        answer = await self.answer(method, path, **sent)
        assert answer.status_code == expected, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def refused(self, method: str, path: str, expected: int, words: str, **sent: Any) -> None:
        """The envelope of every error."""
        found = await self(method, path, expected, **sent)
        assert found["status"] == "error" and found["code"] == expected and words in found["message"], found

    async def stored(self, content: str, **fields: Any) -> str:
        found = await self("POST", "/memory", 201, json={"content": content, **fields})
        assert found["status"] == "success" and UUID(found["memory_id"]), found
        memory_id: str = found["memory_id"]
        return memory_id

    async def recalled(self, **asked: Any) -> list[str]:
        return [each["id"] for each in (await self("GET", "/recall", params=asked))["results"]]


def word() -> str:
    return f"itest-{uuid4().hex[:10]}"


async def health(ask: AutomemCaller) -> None:
    found = await ask("GET", "/health", headers={"Authorization": ""})
    assert found["status"] == "healthy" and found["falkordb"] == found["qdrant"] == "connected", found
    assert found["sync_status"] == "synced" and datetime.fromisoformat(found["timestamp"])
    assert found["vector_dimensions"]["effective"] > 0 and found["enrichment"]["status"] == "running"


async def storing(ask: AutomemCaller) -> None:
    tag, text = word(), f"Prefers the window seat {uuid4()}"
    sent = {
        **{"content": text, "tags": [tag, "Travel"], "importance": 0.8, "type": "preference", "confidence": 0.7},
        **{"metadata": {"source": "walk"}, "timestamp": "2024-05-01T10:00:00Z"},
        **{"t_valid": "2024-05-01T00:00:00Z", "t_invalid": "2999-01-01T00:00:00Z"},
    }
    found = await ask("POST", "/memory", 201, json=sent)
    assert (found["type"], found["confidence"], found["importance"]) == ("Preference", 0.7, 0.8), found
    assert found["stored_at"].startswith("2024-05-01T10:00:00") and found["metadata"] == {"source": "walk"}, found
    assert found["updated_at"] == found["last_accessed"] == found["timestamp"] == found["stored_at"], found
    assert found["qdrant"] in ("stored", "queued") and found["enrichment"] == "queued" and found["query_time_ms"] >= 0
    memory = (await ask("GET", f"/memory/{found['memory_id']}"))["memory"]
    assert memory["content"] == text and sorted(memory["tags"]) == sorted([tag, "travel"]), memory
    assert memory["importance"] == 0.8 and 0 <= memory["relevance_score"] <= 1 and memory["archived"] is False, memory
    assert memory["t_valid"].startswith("2024-05-01T00") and memory["t_invalid"].startswith("2999-01-01"), memory
    again = await ask("POST", "/memory", 201, json=sent)
    assert again["memory_id"] == found["memory_id"], "a POST is repeated when its answer was lost"
    near = await ask.stored(text + ".", tags=[tag])
    assert near != found["memory_id"], "what says nearly the same is kept beside it"
    await ask("DELETE", f"/memory/{found['memory_id']}")
    assert (await ask("POST", "/memory", 201, json=sent))["memory_id"] != found["memory_id"], "that one is gone"
    vector = await ask("POST", "/memory", 201, json={"content": f"Has a vector {uuid4()}", "embedding": [0.1] * 3})
    assert "exactly" in vector["warnings"][0], "a vector of another model is left out"
    for wrong, words in (
        ({"importance": 0.5}, "content"),
        ({"content": "  "}, "content"),
        ({"content": "x", "importance": 1.5}, "importance: must be a number between 0 and 1"),
        ({"content": "x", "importance": "high"}, "importance"),
        ({"content": "x", "type": "Poem"}, "type: must be one of Decision"),
        ({"content": "x", "metadata": "text"}, "metadata"),
        ({"content": "x", "timestamp": "yesterday"}, "timestamp"),
    ):
        await ask.refused("POST", "/memory", 400, words, json=wrong)
    await ask.refused("POST", "/memory", 400, "JSON object", json=[])


async def batches(ask: AutomemCaller) -> None:
    tag = word()
    items = [{"content": f"Item {number} of {tag}", "tags": [tag], "importance": 0.5} for number in range(5)]
    found = await ask("POST", "/memory/batch", 201, json={"memories": items})
    assert found["stored"] == 5 == len(set(found["memory_ids"])) and found["query_time_ms"] >= 0, found
    again = await ask("POST", "/memory/batch", 201, json={"memories": items})
    assert again["memory_ids"] == found["memory_ids"]
    await ask.refused("POST", "/memory/batch", 400, "memories[1].content", json={"memories": [items[0], {"tags": []}]})
    await ask.refused("POST", "/memory/batch", 400, "memories", json={"memories": []})
    await ask.refused("POST", "/memory/batch", 400, "at most 500", json={"memories": [{"content": "x"}] * 501})
    listed = await ask("GET", "/memory/by-tag", params={"tags": tag, "limit": 2, "offset": 1})
    assert (listed["count"], listed["limit"], listed["offset"], listed["has_more"]) == (2, 2, 1, True), listed
    assert listed["tags"] == [tag] and all(tag in each["tags"] for each in listed["memories"])
    whole = await ask("GET", "/memory/by-tag", params={"tags": [tag, "nothing-has-this"], "limit": 50})
    assert whole["count"] == 5 and whole["has_more"] is False
    await ask.refused("GET", "/memory/by-tag", 400, "tags")
    await ask.refused("DELETE", "/memory/by-tag", 400, "is not a parameter", params={"tag": tag})
    gone = await ask("DELETE", "/memory/by-tag", params={"tags": tag})
    assert gone["deleted_count"] == 5 and gone["tags"] == [tag], gone
    assert (await ask("GET", "/memory/by-tag", params={"tags": tag}))["count"] == 0
    anew = await ask("POST", "/memory/batch", 201, json={"memories": items})
    assert not set(anew["memory_ids"]) & set(found["memory_ids"]), "those are gone"
    assert (await ask("GET", "/memory/by-tag", params={"tags": tag}))["count"] == 5


async def changing(ask: AutomemCaller) -> None:
    tag = word()
    metadata = {"key1": "val1", "old": 1}
    changed = await ask.stored(f"Lives in Berlin {tag}", tags=[tag], importance=0.4, metadata=metadata)
    body = {"content": f"Lives in Porto {tag}", "importance": 0.9, "metadata": {"key2": "val2", "old": None}}
    found = await ask("PATCH", f"/memory/{changed}", json=body)
    assert found["status"] == "success" and found["memory_id"] == changed and found["message"]
    memory = (await ask("GET", f"/memory/{changed}"))["memory"]
    assert memory["content"] == f"Lives in Porto {tag}" and memory["importance"] == 0.9 and tag in memory["tags"]
    assert memory["metadata"] == {"key1": "val1", "key2": "val2"}, memory
    (hit,) = (await ask("GET", "/recall", params={"query": f"Lives in Porto {tag}", "tags": tag}))["results"]
    assert hit["id"] == changed and hit["memory"]["importance"] == 0.9
    await ask.refused("PATCH", f"/memory/{changed}", 400, "importance", json={"importance": 7})
    for method in ("GET", "PATCH", "DELETE"):
        await ask.refused(method, f"/memory/{uuid4()}", 404, "no memory", **({"json": {}} if method == "PATCH" else {}))
        await ask.refused(method, "/memory/not-a-uuid", 400, "UUID", **({"json": {}} if method == "PATCH" else {}))
    gone = await ask("DELETE", f"/memory/{changed}")
    assert gone["status"] == "success" and gone["memory_id"] == changed
    await ask.refused("DELETE", f"/memory/{changed}", 404, "no memory")
    assert changed not in await ask.recalled(query=f"Lives in Porto {tag}", limit=5)


async def relations(ask: AutomemCaller) -> None:
    tag = word()
    one, two, three = [await ask.stored(f"Memory {name} {tag}", tags=[tag]) for name in ("one", "two", "three")]
    for kind in AUTHORABLE:
        sent = {"memory1_id": one, "memory2_id": two, "type": kind, "strength": 0.8, "reason": "walk"}
        found = await ask("POST", "/associate", 201, json=sent)
        assert (found["relation_type"], found["strength"], found["reason"]) == (kind, 0.8, "walk"), found
        assert found["message"] and found["status"] == "success"
    sent = {"memory1_id": one, "memory2_id": two, "type": "RELATES_TO"}
    for change, words in (
        ({"memory2_id": one}, "itself"),
        ({"type": "SIMILAR_TO"}, "type: must be one of"),
        ({"strength": 2}, "strength"),
        ({"memory1_id": ""}, "memory1_id: is missing"),
    ):
        await ask.refused("POST", "/associate", 400, words, json={**sent, **change})
    await ask.refused("POST", "/associate", 404, "no memory", json={**sent, "memory2_id": str(uuid4())})
    several = [
        {"memory1_id": two, "memory2_id": three, "type": "LEADS_TO", "strength": 0.9},
        {"memory1_id": two, "memory2_id": two},
    ]
    part = await ask("POST", "/associate", 207, json={"associations": several})
    assert (part["created_count"], part["failed_count"], part["status"]) == (1, 1, "partial_success"), part
    assert part["succeeded"][0]["type"] == "LEADS_TO" and "itself" in part["failed"][0]["error"] and part["summary"]
    await ask("POST", "/associate", 201, json={"associations": several[:1]})
    near = await ask("GET", f"/memories/{one}/related", params={"relationship_types": "RELATES_TO", "max_depth": 1})
    assert [each["id"] for each in near["related_memories"]] == [two] and near["count"] == 1, near
    far = await ask("GET", f"/memories/{one}/related", params={"max_depth": 2, "limit": 10})
    assert {two, three} <= {each["id"] for each in far["related_memories"]} and far["max_depth"] == 2
    asked = {"query": f"Memory two {tag}", "tags": tag, "limit": 1, "expand_relations": "true"}
    found = await ask("GET", "/recall", params=asked)
    assert found["results"][0]["id"] == two and found["results"][0]["relations"], found
    expanded = [each for each in found["results"] if each["match_type"] == "relation"]
    assert {each["id"] for each in expanded} == {one, three}, expanded
    assert found["expansion"]["seed_count"] == 1 and found["expansion"]["expanded_count"] == 2
    assert len((await ask("GET", "/recall", params={**asked, "expand_min_strength": 0.95}))["results"]) == 1


async def recalling(ask: AutomemCaller) -> None:
    now = datetime.fromisoformat((await ask("GET", "/health"))["timestamp"])
    root = word()
    red = await ask.stored(f"The red boat is in bay 12 {root}", tags=[f"{root}:boat:red", "boat"], importance=0.9)
    blue = await ask.stored(f"The blue boat is in bay 30 {root}", tags=[f"{root}:boat:blue", "boat"], importance=0.5)
    before = (now - timedelta(days=400)).isoformat()
    old = await ask.stored(f"The boat had another mooring {root}", tags=[root], timestamp=before, importance=0.3)
    found = await ask("GET", "/recall", params={"query": f"red boat bay 12 {root}", "tags": root, "limit": 5})
    first = found["results"][0]
    assert found["status"] == "success" and found["count"] == len(found["results"]) == 3, found
    assert first["id"] == first["memory"]["id"] and "boat" in first["memory"]["content"], first
    assert not ask.ranks or first["id"] == red, first
    assert (
        0 <= first["score"] <= 1
        and first["final_score"] == first["score"]
        and first["match_type"] in ("vector", "keyword")
    )
    assert {"vector", "keyword", "tag", "importance"} <= first["score_components"].keys() and first["relations"] == []
    assert {
        "content",
        "summary",
        "tags",
        "importance",
        "timestamp",
        "updated_at",
        "metadata",
        "type",
        "confidence",
    } <= (first["memory"].keys())
    assert (found["sort"], found["state_mode"], found["tag_mode"], found["tag_match"]) == (
        "score",
        "current",
        "any",
        "prefix",
    )
    assert found["tags"] == [root] and found["vector_search"]["enabled"] and found["query"].startswith("red boat")

    recalled = ask.recalled
    assert set(await recalled(query="boat", tags=f"{root}:boat")) == {red, blue}, "a tag finds what lies below it"
    assert await recalled(query="boat", tags=f"{root}:boat", tag_match="exact") == []
    assert await recalled(query="boat", tags=[f"{root}:boat:red", "boat"], tag_mode="all") == [red]
    assert await recalled(query="boat", tags=f"{root}:boat:red,{root}:boat:blue", exclude_tags=f"{root}:boat:red") == [
        blue
    ]
    assert (await recalled(tags=root, limit=10))[0] == red, "without a query the most important come first"
    assert len(await recalled(query="boat", tags=root, limit=1)) == 1
    assert len(await recalled(limit=0)) <= 1 and await recalled(), "a limit is cut to its range"
    pages = [(await recalled(query="boat", tags=root, limit=1, offset=at))[0] for at in range(3)]
    assert set(pages) == {red, blue, old}
    several = await ask("GET", "/recall", params={"queries": ["red boat", "blue boat"], "tags": root, "limit": 3})
    assert {red, blue} <= {each["id"] for each in several["results"]} and several["queries"] == [
        "red boat",
        "blue boat",
    ]
    assert several["dedup_removed"] == 3, several

    recent = {"start": (now - timedelta(hours=1)).isoformat(), "end": (now + timedelta(hours=1)).isoformat()}
    timed = await ask("GET", "/recall", params={**recent, "tags": root, "limit": 10})
    assert {each["id"] for each in timed["results"]} == {red, blue} and timed["sort"] == "time_desc", timed
    assert timed["time_window"]["start"] and timed["time_window"]["end"]
    assert await recalled(tags=root, time_query="today", sort="time_asc") == [red, blue]
    assert (await recalled(query="boat", tags=root, sort="time_asc", limit=3))[0] == old
    assert (await recalled(query="boat", tags=root, sort="time_desc", limit=3))[-1] == old
    assert len(await recalled(query="boat", tags=root, time_query="when pigs fly", limit=5)) == 3
    await ask.refused("GET", "/recall", 400, "start", params={"start": "noon"})
    await ask.refused("GET", "/recall", 400, "state_mode", params={"state_mode": "never"})
    above = await ask("GET", "/recall", params={"query": "boat", "tags": root, "min_score": 1})
    assert not ask.ranks or (all(each["score"] == 1 for each in above["results"]) and above["count"] < 3), above

    ended = {"t_invalid": (now - timedelta(hours=2)).isoformat(), "metadata": {"deprecated": True}}
    await ask("PATCH", f"/memory/{blue}", json=ended)
    assert set(await recalled(query="boat", tags=root)) == {red, old}, "what has ended is not current"
    assert blue in await recalled(tags=root, start=before, limit=9), "a time is asked for what held then"
    assert blue in await recalled(query="boat", time_query="today", limit=9)
    assert blue not in await recalled(tags=root, start=before, limit=9, state_mode="current")
    assert set(await recalled(query="boat", tags=root, state_mode="history")) == {red, blue, old}
    assert set(await recalled(query="boat", tags=root, current_only="false")) == {red, blue, old}
    await ask("PATCH", f"/memory/{blue}", json={"t_invalid": None})
    assert set(await recalled(query="boat", tags=root)) == {red, blue, old}
    await ask(
        "GET", "/recall", params={"query": "boat", "language": "python", "context_tags": "boat", "format": "text"}
    )


async def superseding(ask: AutomemCaller) -> None:
    """As its MCP server replaces a memory: read, store, end the old one, and tie the two."""
    tag = word()
    old = await ask.stored(f"Works at Acme {tag}", tags=[tag], metadata={"kept": 1})
    was = (await ask("GET", f"/memory/{old}"))["memory"]
    new = await ask.stored(f"Works at Globex {tag}", tags=[tag])
    now = (await ask("GET", "/health"))["timestamp"]
    metadata = {**was["metadata"], "deprecated": True, "superseded_by": new, "supersede_relation": "INVALIDATED_BY"}
    await ask("PATCH", f"/memory/{old}", json={"t_invalid": now, "metadata": metadata})
    tie = {"memory1_id": old, "memory2_id": new, "type": "INVALIDATED_BY", "strength": 0.9}
    await ask("POST", "/associate", 201, json=tie)
    assert await ask.recalled(query=f"Works at {tag}", tags=tag) == [new]
    assert (await ask("GET", f"/memory/{old}"))["memory"]["metadata"]["superseded_by"] == new


async def sessions(ask: AutomemCaller) -> None:
    lesson = await ask.stored(f"Never deploy on a Friday {uuid4()}", tags=["critical", "lesson"], importance=0.95)
    rule = await ask.stored(f"Recall before you answer {uuid4()}", tags=["memory-recall"])
    found = await ask("GET", "/startup-recall")
    assert found["has_critical"] and lesson in {each["id"] for each in found["critical_lessons"]}, found
    assert rule in {each["id"] for each in found["system_rules"]} and found["lesson_count"] and found["summary"]
    analytics = (await ask("GET", "/analyze"))["analytics"]
    assert analytics["memory_types"] and analytics["temporal_insights"] and analytics["confidence_distribution"]


async def upkeep(ask: AutomemCaller) -> None:
    planned = (await ask("POST", "/consolidate", json={"mode": "full", "dry_run": True}))["consolidation"]
    assert planned["dry_run"] and {each["status"] for each in planned["steps"].values()} == {"dry_run"}, planned
    done = (await ask("POST", "/consolidate", json={"mode": "decay", "dry_run": False}))["consolidation"]
    assert done["success"] and done["steps"]["decay"]["job_id"], done
    await ask.refused("POST", "/consolidate", 400, "mode: must be one of", json={"mode": "dream"})
    assert "decay" in (await ask("GET", "/consolidate/status"))["next_runs"]
    enrichment = await ask("GET", "/enrichment/status")
    assert enrichment["status"] == "running" and enrichment["queue_size"] >= 0 and enrichment["inflight"] >= 0
    assert (await ask("POST", "/admin/reembed", json={"limit": 1}))["status"] == "complete"
    assert (await ask("POST", "/admin/sync"))["status"] == "complete"


async def absent(ask: AutomemCaller) -> None:
    for method, path in (
        *(("GET", "/graph/snapshot"), ("GET", f"/graph/neighbors/{uuid4()}"), ("GET", "/viewer/"), ("GET", "/stream")),
        *(("POST", "/documents"), ("GET", "/documents"), ("POST", "/enrichment/reprocess")),
    ):
        found = await ask(method, path, 501)
        assert found["status"] == "error" and found["message"].endswith("."), found
    await ask.refused("GET", "/does-not-exist", 404, "no such route")
    for headers in ({"Authorization": ""}, {"Authorization": "Bearer wrong"}):
        await ask.refused("GET", "/recall", 401, "key", headers=headers)


CALLS: tuple[Callable[[AutomemCaller], Awaitable[None]], ...] = (
    health,
    storing,
    batches,
    changing,
    relations,
    recalling,
    superseding,
    sessions,
    upkeep,
    absent,
)
