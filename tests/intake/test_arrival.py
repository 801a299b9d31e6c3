"""Ten dated statements about one thing, told over HTTP in any order and way: one current memory, one history."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from httpx2 import AsyncClient

from service.intake import deferred
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import Tables, with_llm
from tests.support.scripted_model import ConversationScript, ModelSetup, with_scripted_model
from tests.support.tasks import to_consolidate, work

CITIES: Final = ("Oslo", "Lisbon", "Porto", "Faro", "Madrid", "Paris", "Lyon", "Rome", "Milan", "Oslo")
FIRST: Final = datetime(2019, 5, 1, tzinfo=UTC)

Statement = tuple[str, str]
Way = Callable[[AsyncClient, str, list[Statement]], Awaitable[None]]


def statements() -> list[Statement]:
    return [(city, (FIRST + timedelta(days=90 * at)).isoformat()) for at, city in enumerate(CITIES)]


def shuffled(seed: int) -> list[Statement]:
    told = statements()
    if seed:
        random.Random(seed).shuffle(told)
    return told


async def post(client: AsyncClient, path: str, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    answer = await client.post(path, json=body, headers=headers)
    assert answer.status_code < 300, answer.text
    found: dict[str, Any] = answer.json()
    return found


def item(user: str, city: str, at: str) -> dict[str, Any]:
    return {"content": f"Ann lives in {city}.", "timestamp": at, "user_id": user}


def message(user: str, city: str, at: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": f"I live in {city}.", "timestamp": at}], "user_id": user}


async def by_content(client: AsyncClient, user: str, told: list[Statement]) -> None:
    for each in told:
        await post(client, "/v1/memories", item(user, *each))


async def by_content_with_retries(client: AsyncClient, user: str, told: list[Statement]) -> None:
    """Every second one is sent again, the first one last of all."""
    for each in [*told[:4], *told[::2], *told[4:], *told[1::2], told[0]]:
        await post(client, "/v1/memories", item(user, *each))


async def by_messages(client: AsyncClient, user: str, told: list[Statement]) -> None:
    for each in told:
        await post(client, "/v1/memories", message(user, *each))


async def by_batch(client: AsyncClient, user: str, told: list[Statement]) -> None:
    for part in (told[:7], told[7:]):
        answer = await post(client, "/v1/memories/batch", {"items": [item(user, *each) for each in part]})
        assert answer["failed"] == 0, answer


async def state(client: AsyncClient, user: str) -> tuple[Any, list[Any]]:
    """The current memory, and what it said when."""
    listed = (await client.get("/v1/memories", params={"user_id": user})).json()["results"]
    live = [each for each in listed if each["t_invalid"] is None]
    assert len(live) == 1, [(each["memory"], each["t_valid"]) for each in live]
    [current] = live
    told = (await client.get(f"/v1/memories/{current['id']}/history")).json()
    times = ("timestamp", "t_valid", "t_invalid")
    return (
        [current[name] for name in ("memory", *times)],
        [[each[name] for name in ("memory", *times, "is_current")] for each in told["versions"]],
    )


def check(current: Any, versions: list[Any]) -> None:
    days = [at for _, at in statements()]
    assert (current[0].split()[-1], current[1:]) == ("Oslo.", [days[-1], days[-1], None])
    assert [each[0].split()[-1].rstrip(".") for each in versions] == list(CITIES)
    assert [each[2] for each in versions] == [None, *days[1:]]
    assert [each[3] for each in versions] == [*days[1:], None]
    assert [each[4] for each in versions] == [False] * 9 + [True]


@pytest.fixture(params=["in_place", "supersede"])
async def client(request: pytest.FixtureRequest, resources: Resources, tenant: Tenant) -> AsyncIterator[AsyncClient]:
    async with with_llm(resources, tenant, None) as found:
        await found.patch("/v1/workspaces/current", json={"settings": {"contradiction_policy": request.param}})
        yield found


@pytest.mark.parametrize("way", [by_content, by_content_with_retries, by_messages, by_batch])
async def test_every_order_and_way_ends_in_the_same(client: AsyncClient, way: Way) -> None:
    for seed in range(4):
        await way(client, f"ann-{seed}", shuffled(seed))
        check(*await state(client, f"ann-{seed}"))


async def test_what_is_accepted_now_and_stored_later_ends_in_the_same(
    client: AsyncClient, resources: Resources, tables: Tables, tenant: Tenant
) -> None:
    for each in shuffled(5):
        await post(client, "/v1/memories", message("ann", *each), Prefer="respond-async")
    await work(resources, tables, tenant.workspace_id, "ingest")
    check(*await state(client, "ann"))


async def test_what_is_curated_after_an_outage_ends_in_the_same(
    resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    async with with_scripted_model(resources, tenant, ConversationScript(facts={})) as scripted:
        told = shuffled(6)
        for each in told[:6]:
            scripted.server.chat.status(400)
            await post(scripted.client, "/v1/memories", message("ann", *each))
        for each in told[6:]:
            await post(scripted.client, "/v1/memories", {**message("ann", *each), "use_llm": False})
        await _curate_waiting(scripted, tables, tenant)
        check(*await state(scripted.client, "ann"))


async def _curate_waiting(scripted: ModelSetup, tables: Tables, tenant: Tenant) -> None:
    jobs = await to_consolidate(tables, tenant)
    assert len(jobs) == 6
    for job in jobs:
        await deferred.consolidate(job, replace(scripted.resources, llm=None))


async def test_the_answer_says_what_became_of_older_news(client: AsyncClient) -> None:
    told = statements()
    await by_content(client, "ann", [told[0], told[4]])
    [late] = (await post(client, "/v1/memories", item("ann", *told[2])))["results"]
    assert (late["event"], late["memory"]) == ("NONE", "Ann lives in Madrid.")
    assert any(each.startswith("kept_as_history: ") for each in late["warnings"])
    version = (await client.get(f"/v1/memories/{late['kept_as']}")).json()
    assert (version["memory"], version["t_invalid"]) == ("Ann lives in Porto.", told[4][1])
    found = (await client.get("/v1/memories", params={"user_id": "ann", "valid_at": told[3][1]})).json()["results"]
    assert [each["memory"] for each in found] == ["Ann lives in Porto."]


async def test_older_news_that_is_a_memory_of_its_own_is_enriched(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    told = statements()
    await by_content(client, "ann", [told[4]])
    [late] = (await post(client, "/v1/memories", item("ann", *told[2])))["results"]
    jobs = await work(resources, tables, tenant.workspace_id, "enrich")
    found = (await client.get(f"/v1/memories/{late['kept_as']}")).json()
    assert (jobs, found["enriched_at"] is None) == ((2, False) if found["version_of"] is None else (1, True))


@pytest.mark.parametrize("turned", [False, True])
async def test_older_news_lose_the_sentences_that_had_ended(client: AsyncClient, turned: bool) -> None:
    later = [
        ("I no longer take metformin.", "2026-10-10T09:00:00+00:00"),
        ("I moved to Zug.", "2026-11-10T09:00:00+00:00"),
    ]
    older = ("I have asthma. I take metformin. I live in Basel.", "2026-09-10T09:00:00Z")
    for text, at in (*(reversed(later) if turned else later), older):
        said = {"role": "user", "content": text, "timestamp": at}
        await post(client, "/v1/memories", {"messages": [said], "user_id": "ann"})
    listed = (await client.get("/v1/memories", params={"user_id": "ann"})).json()["results"]
    kept = {"User: I have asthma.", "User: I no longer take metformin.", "User: I moved to Zug."}
    assert {each["memory"] for each in listed} == kept
    [asthma] = [each for each in listed if "asthma" in each["memory"]]
    told = (await client.get(f"/v1/memories/{asthma['id']}/history")).json()
    assert {each["memory"]: each["t_invalid"] for each in told["versions"]} == {
        "User: I have asthma. I take metformin. I live in Basel.": later[0][1],
        "User: I have asthma. I live in Basel.": later[1][1],
        "User: I have asthma.": None,
    }


@pytest.mark.parametrize("turned", [False, True])
async def test_only_what_a_change_speaks_of_ends_in_every_order(client: AsyncClient, turned: bool) -> None:
    told = [
        ("The backups are on S3.", "2026-09-10T09:00:00+00:00"),
        ("The backups cost 40 euros a month on S3.", "2026-09-11T09:00:00+00:00"),
        ("We moved the backups from S3 to Glacier.", "2026-11-10T09:00:00+00:00"),
    ]
    for text, at in [told[2], *told[:2]] if turned else told:
        said = {"role": "user", "content": text, "timestamp": at}
        await post(client, "/v1/memories", {"messages": [said], "user_id": "ann"})
    for moment, valid in (("2026-10-15T00:00:00Z", told[:2]), ("2026-11-20T00:00:00Z", told[1:])):
        listed = await client.get("/v1/memories", params={"user_id": "ann", "valid_at": moment})
        assert {each["memory"] for each in listed.json()["results"]} >= {f"User: {text}" for text, _ in valid}
