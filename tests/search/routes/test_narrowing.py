"""The options of a search narrow it as documented: tags, types, times in words, channels."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient

from service.domain.scope import Scope
from service.memories.statements import memories, visibility
from service.memories.values import TotalCount
from service.postgres import scopes
from service.postgres.engine import Database
from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.calls import body_of, pages, store

QUESTION = "what is going on"


async def ask(client: AsyncClient, **body: Any) -> dict[str, Any]:
    return await body_of(client.post("/v1/memories/search", json={"query": QUESTION, "user_id": "alice", **body}))


async def seen(client: AsyncClient, **body: Any) -> str:
    """The memories found, in the order of their texts."""
    return " ".join(sorted(hit["memory"] for hit in (await ask(client, **body))["results"]))


async def get(client: AsyncClient, **params: Any) -> dict[str, Any]:
    return await body_of(client.get("/v1/memories/search", params={"query": QUESTION, "user_id": "alice", **params}))


# -- words ----------------------------------------------------------------------------------------------------------


TAGGED: list[tuple[dict[str, Any], str]] = [
    ({"tags": ["slack"]}, "both channel person"),
    ({"tags": "Slack"}, "both channel person"),
    ({"tags": ["slack:user:U123"]}, "person"),
    ({"tags": ["slack"], "tag_match": "exact"}, ""),
    ({"tags": ["work", "slack:channel"]}, "both channel work"),
    ({"tags": "work, slack:channel", "tag_mode": "all"}, "both"),
    ({"tags": ["work", "slack:channel"], "tag_mode": "all", "tag_match": "exact"}, ""),
    ({"exclude_tags": ["slack"]}, "none work"),
    ({"exclude_tags": ["slack"], "tag_match": "exact"}, "both channel none person work"),
    ({"tags": ["slack"], "exclude_tags": ["work"]}, "channel person"),
    ({"tags": ["slac"]}, ""),
    ({"tags": ["' OR 1=1 --"]}, ""),
    ({"tags": ["%"]}, ""),
]


async def test_tags_with_every_search(client: AsyncClient) -> None:
    await store(client, "channel", tags=["slack:channel:general"])
    await store(client, "person", tags=["slack:user:U123"])
    await store(client, "work", tags=["work"])
    await store(client, "both", tags=["work", "slack:channel:random"])
    await store(client, "none")
    for asked, expected in TAGGED:
        assert await seen(client, **asked) == expected, asked
        assert await seen(client, **asked, query="") == expected, asked
        found = await get(client, **asked)
        assert " ".join(sorted(hit["memory"] for hit in found["results"])) == expected, asked


async def test_categories_types_and_confidence(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    await store(client, "habit", type="Habit")
    await store(client, "insight", type="Insight")
    await tables.fetch(
        "UPDATE memory SET categories = '{travel}', fact_confidence = 0.4 WHERE workspace_id = $1 AND type = 'Habit'",
        tenant.workspace_id,
    )
    assert await seen(client, types=["Habit", "Style"]) == "habit"
    assert await seen(client, types=[]) == "habit insight"
    assert await seen(client, categories=["Travel", "food"]) == "habit"
    assert await seen(client, categories=["food"]) == ""
    assert await seen(client, min_confidence=0.5) == "insight", "what has no confidence is no doubtful fact"
    assert await seen(client, min_confidence=0.4) == "habit insight"
    found = await get(client, categories="food,travel", types="Habit", min_confidence=0.1)
    assert [hit["memory"] for hit in found["results"]] == ["habit"]


async def test_the_confidence_that_counts_is_the_one_that_is_shown(
    client: AsyncClient, tables: Tables, tenant: Tenant
) -> None:
    await store(client, "habit", type="Habit")
    await store(client, "insight", type="Insight")
    await tables.fetch(
        "UPDATE memory_history SET recorded_at = '2026-01-01' WHERE workspace_id = $1", tenant.workspace_id
    )
    await tables.fetch("UPDATE memory SET fact_confidence = 0.7 WHERE workspace_id = $1", tenant.workspace_id)
    await tables.fetch(
        "UPDATE memory_stat s SET confidence = 0.3 FROM memory m "
        "WHERE s.workspace_id = $1 AND m.workspace_id = $1 AND m.id = s.memory_id AND m.type = 'Habit'",
        tenant.workspace_id,
    )
    assert await seen(client, min_confidence=0.6) == "insight"
    assert await seen(client, min_confidence=0.3) == "habit insight"
    shown: dict[str, Any] = {"user_id": "alice", "min_confidence": 0.6, "detail": "full"}
    listed = (await client.get("/v1/memories", params=shown)).json()["results"]
    assert [(each["memory"], each["current_confidence"]) for each in listed] == [("insight", 0.7)]
    then = (await client.get("/v1/memories", params={**shown, "as_of": "2026-02-01T00:00:00Z"})).json()["results"]
    assert [each["current_confidence"] for each in then] == [0.7, 0.7], "nobody knows what was left then"
    bundle = await body_of(client.post("/v1/recall", json={**shown, "query": "habit"}))
    assert [each["memory"] for each in bundle["facts"]] == ["insight"]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"types": "Habit,Style"}, "habit"),
        ({"types": " Habit , Insight ,"}, "habit insight"),
        ({"types": ["Habit,Style", "Insight"]}, "habit insight"),
        ({"categories": "food, Travel"}, "habit"),
        ({"exclude_tags": "a,b"}, "habit"),
        ({"channels": ["a,b", "c"]}, "here"),
    ],
)
async def test_words_between_commas_in_an_address(
    client: AsyncClient, tables: Tables, tenant: Tenant, params: dict[str, Any], expected: str
) -> None:
    """All but channels, which are named by whoever opens one."""
    await store(client, "habit", type="Habit", tags=["c"])
    await store(client, "insight", type="Insight", tags=["b"])
    await store(client, "here", type="Context", channel="a,b")
    await tables.fetch(
        "UPDATE memory SET categories = '{travel}' WHERE workspace_id = $1 AND type = 'Habit'", tenant.workspace_id
    )
    params = {**params, **({"types": "Context"} if "channels" in params else {"channel": "_global"})}
    for path, asked in (("/v1/memories", {}), ("/v1/memories/search", {"query": QUESTION})):
        answer = await client.get(path, params={"user_id": "alice", **asked, **params})
        assert answer.status_code == 200, answer.text
        assert " ".join(sorted(each["memory"] for each in answer.json()["results"])) == expected, path


async def test_preferred_tags_lift_and_leave_nothing_out(client: AsyncClient, embedder: AngleEmbedder) -> None:
    embedder.place(QUESTION, 1.0)
    for text, angle, tags in (("near", 0.9, []), ("next", 0.85, ["work:atlas"]), ("last", 0.1, [])):
        embedder.place(text, angle, side=2)
        await store(client, text, tags=tags, dedup=False)
    assert [hit["memory"] for hit in (await ask(client))["results"]] == ["near", "next", "last"]
    assert [hit["memory"] for hit in (await ask(client, prefer_tags=["work"]))["results"]] == ["next", "near", "last"]


async def test_min_score_leaves_out_the_rest(client: AsyncClient, embedder: AngleEmbedder) -> None:
    embedder.place(QUESTION, 1.0)
    for angle in (0.9, 0.5, 0.1):
        embedder.place(f"At {angle}", angle, side=2)
        await store(client, f"At {angle}", dedup=False)
    scores = [hit["score"] for hit in (await ask(client))["results"]]
    assert scores == sorted(scores, reverse=True)
    for count, score in enumerate(scores, start=1):
        assert len((await ask(client, min_score=score))["results"]) == count
        assert len((await get(client, min_score=score))["results"]) == count
    assert await seen(client, min_score=1.0) == ""


async def test_without_a_question_the_important_come_first(client: AsyncClient) -> None:
    await store(client, "minor", tags=["x"], importance=0.2, timestamp="2026-01-03")
    await store(client, "early", tags=["x"], importance=0.8, timestamp="2026-01-01")
    await store(client, "late", tags=["x"], importance=0.8, timestamp="2026-01-02")
    await store(client, "other", importance=1.0)
    for blank in ({}, {"query": None}, {"query": "  \n"}):
        body = {"user_id": "alice", "tags": ["x"], "limit": 2, "explain": True, **blank}
        found = (await client.post("/v1/memories/search", json=body)).json()
        assert [(hit["memory"], hit["score"], hit["similarity"]) for hit in found["results"]] == [
            ("late", 0.8, None),
            ("early", 0.8, None),
        ]
        assert (found["vector_path"], found["warnings"]) == ("none", [])
    assert [hit["memory"] for hit in (await ask(client, query="", tags=["x"], min_score=0.5))["results"]] == [
        "late",
        "early",
    ]


# -- channels -------------------------------------------------------------------------------------------------------


async def test_several_channels_and_the_global_one(client: AsyncClient) -> None:
    for channel in ("_global", "red", "blue", "green"):
        await store(client, channel, channel=channel)
    assert await seen(client) == "_global"
    assert await seen(client, channel="red") == "_global red"
    assert await seen(client, channels=["red"]) == "_global red"
    assert await seen(client, channels=["red", "blue"]) == "_global blue red"
    listed = (await client.get("/v1/memories", params={"user_id": "alice", "channels": ["red", "blue"]})).json()
    assert sorted(each["memory"] for each in listed["results"]) == ["_global", "blue", "red"]


# -- time -----------------------------------------------------------------------------------------------------------


DAYS = ("2023-05-14", "2026-02-20", "2026-02-24", "2026-02-28", "2026-03-01T22:59", "2026-03-01T23:01")

ASKED: list[tuple[dict[str, Any], str]] = [
    ({"time_query": "last week"}, "2026-02-24 2026-02-28 2026-03-01T22:59 2026-03-01T23:01"),
    ({"time_query": "last week", "timezone": "Europe/Berlin"}, "2026-02-24 2026-02-28 2026-03-01T22:59"),
    ({"time_query": "last week", "timestamp": "2026-02-25T12:00:00Z"}, "2026-02-20"),
    ({"time_query": "in May 2023"}, "2023-05-14"),
    ({"time_query": "May 2023"}, "2023-05-14"),
    ({"time_query": "yesterday"}, "2026-03-01T22:59 2026-03-01T23:01"),
    ({"time_query": "the 28th"}, "2026-02-28"),
    ({"time_query": "more than a week ago"}, "2023-05-14 2026-02-20"),
    ({"time_query": "less than a week ago"}, "2026-02-24 2026-02-28 2026-03-01T22:59 2026-03-01T23:01"),
    ({"time_query": "before 2024"}, "2023-05-14"),
    ({"time_query": "since 24 February"}, "2026-02-24 2026-02-28 2026-03-01T22:59 2026-03-01T23:01"),
    ({"start": "2026-02-24", "end": "2026-03-01T22:59:00Z"}, "2026-02-24 2026-02-28"),
]


@pytest.fixture
async def days(client: AsyncClient) -> None:
    for day in DAYS:
        await store(client, day, timestamp=day, dedup=False)


@pytest.mark.usefixtures("days")
async def test_a_time_in_words_narrows(client: AsyncClient) -> None:
    """Against the request's own moment and zone; the answer says what was understood."""
    for asked, expected in ASKED:
        found = await ask(client, **asked)
        assert " ".join(sorted(hit["memory"] for hit in found["results"])) == expected, asked
        assert found["warnings"] == []
        assert found["window"] is not None
        assert (await get(client, **asked))["window"] == found["window"]
        listed = (await client.get("/v1/memories", params={"user_id": "alice", **asked})).json()
        assert " ".join(sorted(each["memory"] for each in listed["results"])) == expected, asked
    berlin = (await ask(client, time_query="last week", timezone="Europe/Berlin"))["window"]
    assert berlin == {"start": "2026-02-22T23:00:00+00:00", "end": "2026-03-01T23:00:00+00:00"}
    assert (await ask(client, time_query="before 2024"))["window"] == {
        "start": None,
        "end": "2024-01-01T00:00:00+00:00",
    }


@pytest.mark.usefixtures("days")
@pytest.mark.parametrize("words", ["since my birthday", "🎂", "'; DROP TABLE memory; --", "ever", " ", "مرحبا", "時々"])
async def test_what_names_no_time_is_ignored_with_a_warning(client: AsyncClient, words: str) -> None:
    found = await ask(client, time_query=words)
    assert [warning.partition(":")[0] for warning in found["warnings"]] == ["time_query_ignored"]
    assert (found["window"], len(found["results"])) == (None, len(DAYS))
    listed = (await client.get("/v1/memories", params={"user_id": "alice", "time_query": words})).json()
    assert len(listed["warnings"]) == 1
    assert len(listed["results"]) == len(DAYS)


@pytest.mark.usefixtures("days")
async def test_where_nothing_else_was_asked_for_nothing_is_listed(client: AsyncClient) -> None:
    """A whole scope would pass for what happened since the birthday."""
    found = await ask(client, query="", time_query="since my birthday")
    assert [warning.partition(":")[0] for warning in found["warnings"]] == ["time_query_ignored", "nothing_asked"]
    assert (found["window"], found["results"]) == (None, [])
    assert len((await ask(client, query="", time_query="since my birthday", types=["Context"]))["results"]) == len(DAYS)
    assert len((await ask(client, query="", time_query="since 1999"))["results"]) == len(DAYS)


async def test_a_time_in_words_lifts_the_exclusion(client: AsyncClient) -> None:
    """What is over is found when its time is asked for, in words or by dates."""
    await store(client, "over", timestamp="2026-02-24", t_invalid="2026-02-25")
    assert await seen(client) == ""
    assert await seen(client, time_query="last week") == "over"
    assert await seen(client, start="2026-02-01") == "over"
    assert await seen(client, time_query="since my birthday") == "", "what was not understood lifts nothing"


async def test_what_was_valid_at_a_moment(client: AsyncClient, clock: SetClock) -> None:
    """At a moment of the caller's: half-open, and only then."""
    await store(client, "spring", t_valid="2026-01-01", t_invalid="2026-06-01")
    await store(client, "summer", t_valid="2026-06-01")
    await store(client, "always")
    for moment, expected in [
        (None, "always spring"),
        ("2025-12-31T23:59:59Z", "always"),
        ("2026-01-01T00:00:00Z", "always spring"),
        ("2026-05-31T23:59:59Z", "always spring"),
        ("2026-06-01", "always summer"),
    ]:
        assert await seen(client, valid_at=moment) == expected, moment
        if moment:
            assert await seen(client, valid_at=moment, start="2020-01-01") == expected, "a window lifts nothing here"
            listed = (await client.get("/v1/memories", params={"user_id": "alice", "valid_at": moment})).json()
            assert " ".join(sorted(each["memory"] for each in listed["results"])) == expected, moment


# -- what cannot be -------------------------------------------------------------------------------------------------


WRONG: list[tuple[dict[str, Any], str | None]] = [
    ({"query": ""}, "query"),
    ({"query": None}, "query"),
    ({"tags": [" "]}, "tags"),
    ({"tags": ","}, "tags"),
    ({"tags": ["x"] * 101}, "tags"),
    ({"tags": [5]}, "tags[0]"),
    ({"exclude_tags": [""]}, "exclude_tags[0]"),
    ({"tag_mode": "none"}, "tag_mode"),
    ({"tag_match": "fuzzy"}, "tag_match"),
    ({"types": ["habit"]}, "types[0]"),
    ({"categories": "food"}, "categories"),
    ({"min_confidence": 1.1}, "min_confidence"),
    ({"min_confidence": "0.5"}, "min_confidence"),
    ({"min_score": -0.1}, "min_score"),
    ({"min_score": True}, "min_score"),
    ({"channels": []}, "channels"),
    ({"channels": ["red"], "channel": "blue"}, None),
    ({"time_query": ""}, "time_query"),
    ({"time_query": "x" * 201}, "time_query"),
    ({"time_query": "last week", "start": "2026-01-01"}, None),
    ({"timezone": "Mars/Olympus"}, "timezone"),
    ({"timestamp": "soon"}, "timestamp"),
    ({"valid_at": "soon"}, "valid_at"),
    ({"valid_at": "2026-01-01", "validity": "ignore"}, None),
    ({"include_archived": 1}, "include_archived"),
]


async def test_what_cannot_be_asked(client: AsyncClient) -> None:
    for more, field in WRONG:
        answer = await client.post("/v1/memories/search", json={"query": "x", "user_id": "alice", **more})
        assert answer.status_code == 400, (more, answer.text)
        assert field is None or answer.json()["field"] == field, (more, answer.text)


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"min_confidence": "nan"}, "min_confidence"),
        ({"min_confidence": 2}, "min_confidence"),
        ({"types": "habit"}, "types[0]"),
        ({"types": "Habit,habit"}, "types[1]"),
        ({"types": ","}, "types"),
        ({"types": ""}, "types"),
        ({"tags": ","}, "tags"),
        ({"exclude_tags": ["", ","]}, "exclude_tags"),
        ({"categories": " , "}, "categories"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"channels": ["a"], "channel": "b"}, None),
        ({"time_query": "last week", "end": "2026-01-01"}, None),
        ({"tag_mode": "some"}, "tag_mode"),
    ],
)
async def test_nor_in_an_address(client: AsyncClient, params: dict[str, Any], field: str | None) -> None:
    for path, asked in (("/v1/memories", {}), ("/v1/memories/search", {"query": "x"})):
        answer = await client.get(path, params={"user_id": "alice", **asked, **params})
        assert answer.status_code == 400, (path, answer.text)
        assert field is None or answer.json()["field"] == field, (path, answer.text)


# -- pages of a list ------------------------------------------------------------------------------------------------


async def walked(client: AsyncClient, **params: Any) -> list[str]:
    """Every page of a list, one after the other."""
    asked = {"user_id": "alice", "limit": 2, **params}
    return [each["memory"] async for page in pages(client, "/v1/memories", **asked) for each in page["results"]]


async def test_a_list_in_another_order_and_how_many_there_are(client: AsyncClient, clock: SetClock) -> None:
    """The order holds over pages, with equal keys too, and under a filter."""
    rows = [("a", 0.5, "2026-01-03"), ("b", 0.9, "2026-01-01"), ("c", 0.5, "2026-01-02"), ("d", 0.1, "2026-01-04")]
    for text, importance, day in rows:
        clock.forward(seconds=1)
        await store(client, text, importance=importance, timestamp=day, dedup=False, tags=["x"] if text != "d" else [])
    assert await walked(client) == ["d", "c", "b", "a"]
    assert await walked(client, order="asc") == ["a", "b", "c", "d"]
    assert await walked(client, sort="timestamp") == ["d", "a", "c", "b"]
    assert await walked(client, sort="timestamp", order="asc") == ["b", "c", "a", "d"]
    by_weight = await walked(client, sort="importance", limit=1)
    assert (by_weight[0], set(by_weight[1:3]), by_weight[3]) == ("b", {"a", "c"}, "d")
    assert await walked(client, sort="importance", order="asc", limit=3) == by_weight[::-1]
    assert await walked(client, tags=["x"], sort="timestamp", limit=1) == ["a", "c", "b"]
    assert sorted(await walked(client, sort="updated_at")) == ["a", "b", "c", "d"]
    for params, total in ((({}), 4), ({"tags": ["x"]}, 3), ({"tags": ["y"]}, 0)):
        answer = await client.get("/v1/memories", params={"user_id": "alice", "count": True, "limit": 1, **params})
        assert answer.json()["total"] == {"value": total, "is_exact": True}
    assert (await client.get("/v1/memories", params={"user_id": "alice"})).json()["total"] is None


async def test_a_cursor_belongs_to_its_order(client: AsyncClient) -> None:
    for text in ("a", "b"):
        await store(client, text, dedup=False)
    page = (await client.get("/v1/memories", params={"user_id": "alice", "limit": 1, "sort": "importance"})).json()
    for cursor, sort in (
        (page["next_cursor"], "timestamp"),
        ("x", "importance"),
        ("bmFufDA", "importance"),
        ("é", "x"),
    ):
        params = {"user_id": "alice", "cursor": cursor, "sort": sort}
        answer = await client.get("/v1/memories", params=params)
        assert (answer.status_code, answer.json()["field"]) == (400, "sort" if sort == "x" else "cursor"), answer.text


async def test_of_very_many_the_planner_tells_about_how_many(
    client: AsyncClient, database: Database, workspace: UUID, clock: SetClock
) -> None:
    for text in ("a", "b", "c"):
        await store(client, text, dedup=False)
    rows = scopes.readable("m", Scope(workspace, "alice")) & visibility.not_expired_nor_in_review("m", clock.now)
    async with database.read(workspace) as session:
        assert await memories.count(session, rows, limit=3) == TotalCount(value=3, is_exact=True)
        about = await memories.count(session, rows, limit=1)
    assert (about.value >= 2, about.is_exact) == (True, False)
