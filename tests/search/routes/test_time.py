"""What held on a day (`valid_at`), and what was believed on a day (`as_of`), on every read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from httpx2 import AsyncClient

from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.calls import body_of, results_of, store

BERLIN, PARIS = "Ann lives in Berlin.", "Ann lives in Paris."
THEN, LATER = "2025-03-01T00:00:00+00:00", "2025-09-01T00:00:00+00:00"


@pytest.fixture(autouse=True)
def _placed(embedder: AngleEmbedder, clock: SetClock) -> None:
    """The two are near, and the clock is that of the database."""
    embedder.place(BERLIN, 1.0)
    embedder.place(PARIS, 0.85)
    clock.now = datetime.now(UTC) + timedelta(minutes=5)


async def told(client: AsyncClient, text: str, **fields: Any) -> str:
    """Stores a text, new or not; the id of the memory that has it."""
    answer = await client.post("/v1/memories", json={"content": text, "user_id": "alice", **fields})
    assert answer.status_code in (200, 201), answer.text
    found: str = answer.json()["results"][0]["id"]
    return found


async def changed(client: AsyncClient) -> str:
    """A memory that said something else in March than since September."""
    known = await store(client, BERLIN, timestamp=THEN)
    assert await told(client, PARIS, timestamp=LATER) == known
    return known


async def search(client: AsyncClient, **body: Any) -> list[dict[str, Any]]:
    return await results_of(client.post("/v1/memories/search", json={"query": "home", "user_id": "alice", **body}))


async def listed(client: AsyncClient, **params: Any) -> list[dict[str, Any]]:
    return await results_of(client.get("/v1/memories", params={"user_id": "alice", **params}))


async def recalled(client: AsyncClient, **body: Any) -> dict[str, Any]:
    return await body_of(client.post("/v1/recall", json={"query": "home", "user_id": "alice", **body}))


async def get(client: AsyncClient, memory_id: str, **params: Any) -> dict[str, Any]:
    return await body_of(client.get(f"/v1/memories/{memory_id}", params=params))


def texts(found: list[dict[str, Any]]) -> list[str]:
    return [each["memory"] for each in found]


# -- what held when ---------------------------------------------------------------------------------------------------


async def test_an_update_takes_the_times_of_the_new_statement(client: AsyncClient) -> None:
    known = await store(client, BERLIN, timestamp=THEN, t_invalid="2030-01-01T00:00:00Z")
    await told(client, PARIS, timestamp=LATER, t_valid="2025-08-01T00:00:00Z", t_invalid="2031-01-01T00:00:00Z")
    now = await get(client, known)
    times = now["timestamp"], now["t_valid"], now["t_invalid"]
    assert times == (LATER, "2025-08-01T00:00:00+00:00", "2031-01-01T00:00:00+00:00")
    [decision] = (await client.get(f"/v1/memories/{known}/decisions")).json()["results"]
    assert (await client.post(f"/v1/decisions/{decision['id']}/undo")).status_code == 200
    undone = await get(client, known)
    times = undone["timestamp"], undone["t_valid"], undone["t_invalid"]
    assert times == (THEN, None, "2030-01-01T00:00:00+00:00")
    assert await listed(client, valid_at="2025-05-01") == await listed(client)


async def test_every_read_shows_what_held_on_a_day(client: AsyncClient) -> None:
    known = await changed(client)
    for day, text, past in (("2025-05-01T00:00:00Z", BERLIN, True), ("2025-10-01T00:00:00Z", PARIS, False)):
        for found in (
            await search(client, valid_at=day, detail="full"),
            await search(client, query="", valid_at=day, detail="full"),
            await listed(client, valid_at=day, detail="full"),
            (await recalled(client, valid_at=day, detail="full"))["facts"],
            [await get(client, known, valid_at=day)],
        ):
            assert texts(found) == [text]
            assert found[0]["version_of"] == (known if past else None)
            assert (found[0]["t_valid"], found[0]["t_invalid"]) == ((None, LATER) if past else (LATER, None))
    for found in (await search(client), await listed(client), await listed(client, include_archived=True)):
        assert texts(found) == [PARIS]


async def test_history_tells_what_it_said_when(client: AsyncClient) -> None:
    known = await changed(client)
    answer = (await client.get(f"/v1/memories/{known}/history")).json()
    assert [each["event"] for each in answer["results"]] == ["ADD", "UPDATE"]
    values = [(each["memory"], each["t_valid"], each["t_invalid"], each["is_current"]) for each in answer["versions"]]
    assert values == [(BERLIN, None, LATER, False), (PARIS, LATER, None, True)]


async def test_a_past_version_is_read_only_and_goes_with_its_memory(client: AsyncClient, tables: Tables) -> None:
    known = await changed(client)
    [past] = await listed(client, valid_at="2025-05-01")
    answer = await client.put(f"/v1/memories/{past['id']}", json={"content": "Ann lives at sea."})
    assert (answer.status_code, known in answer.json()["detail"]) == (409, True)
    assert (await client.post(f"/v1/memories/{past['id']}/restore")).status_code == 409
    assert (await client.delete(f"/v1/memories/{known}")).status_code == 200
    assert await listed(client, valid_at="2025-05-01") == []
    assert (await client.get(f"/v1/memories/{past['id']}")).status_code == 404


async def test_the_same_said_again_is_as_new_as_that(client: AsyncClient) -> None:
    known = await store(client, BERLIN, timestamp=THEN)
    assert await told(client, BERLIN, timestamp=LATER) == known
    now = await get(client, known)
    assert (now["timestamp"], now["version"]) == (LATER, 1)


async def test_a_correction_by_hand_is_no_new_version(client: AsyncClient) -> None:
    known = await store(client, BERLIN, timestamp=THEN)
    await client.put(f"/v1/memories/{known}", json={"content": PARIS})
    assert texts(await listed(client, valid_at="2025-05-01")) == [PARIS]
    assert (await get(client, known))["timestamp"] == THEN


# -- what was believed when -------------------------------------------------------------------------------------------


async def moment(client: AsyncClient, memory_id: str, entry: int) -> str:
    """When the entry of its history was recorded."""
    found: str = (await client.get(f"/v1/memories/{memory_id}/history")).json()["results"][entry]["recorded_from"]
    return found


async def test_every_read_shows_what_was_believed_on_a_day(client: AsyncClient) -> None:
    known = await changed(client)
    other = await store(client, "Has a boat")
    for entry, text in ((0, BERLIN), (1, PARIS)):
        then = await moment(client, known, entry)
        for found in (
            await search(client, as_of=then),
            await search(client, query="", as_of=then),
            await listed(client, as_of=then),
            (await recalled(client, as_of=then))["facts"],
            [await get(client, known, as_of=then)],
        ):
            assert texts(found) == [text]
            assert found[0]["id"] == known
        assert (await client.get(f"/v1/memories/{other}", params={"as_of": then})).status_code == 404
    before = (datetime.fromisoformat(await moment(client, known, 0)) - timedelta(seconds=1)).isoformat()
    assert await search(client, as_of=before) == await listed(client, as_of=before) == []


async def test_the_two_together_say_what_was_believed_about_a_day(client: AsyncClient) -> None:
    known = await changed(client)
    then, now = await moment(client, known, 0), await moment(client, known, 1)
    may, october = "2025-05-01T00:00:00Z", "2025-10-01T00:00:00Z"
    wanted = {(then, may): BERLIN, (then, october): BERLIN, (now, may): BERLIN, (now, october): PARIS}
    for (as_of, valid_at), text in wanted.items():
        both = {"as_of": as_of, "valid_at": valid_at}
        assert texts(await search(client, **both)) == [text]
        assert texts(await listed(client, **both)) == [text]
        assert texts((await recalled(client, **both))["facts"]) == [text]
        assert (await get(client, known, **both))["memory"] == text


async def test_what_was_deleted_was_believed_and_what_was_purged_never(client: AsyncClient) -> None:
    known = await changed(client)
    then = await moment(client, known, 0)
    await client.delete(f"/v1/memories/{known}")
    assert texts(await search(client, as_of=then)) == texts(await listed(client, as_of=then)) == [BERLIN]
    both = {"as_of": await moment(client, known, 1), "valid_at": "2025-05-01"}
    assert (await get(client, known, **both))["memory"] == BERLIN
    purged = await client.delete(f"/v1/memories/{known}", params={"purge": True})
    assert purged.status_code == 200, purged.text
    assert await search(client, as_of=then) == await listed(client, as_of=then) == []
    assert await listed(client, **both) == []
    assert (await client.get(f"/v1/memories/{known}", params={"as_of": then})).status_code == 404


async def test_a_page_and_a_count_of_then(client: AsyncClient) -> None:
    ids = [await store(client, f"Owns boat number {name}") for name in ("one", "two", "three")]
    then = await moment(client, ids[-1], 0)
    await client.patch(f"/v1/memories/{ids[0]}", json={"tags": ["sold"]})
    await client.delete(f"/v1/memories/{ids[1]}")
    params: dict[str, Any] = {"user_id": "alice", "as_of": then, "limit": 2, "count": True}
    first = (await client.get("/v1/memories", params=params)).json()
    second = (await client.get("/v1/memories", params={**params, "cursor": first["next_cursor"]})).json()
    assert first["total"] == {"value": 3, "is_exact": True}
    assert {each["id"] for each in first["results"] + second["results"]} == set(ids)
    assert [each["tags"] for each in second["results"]] == [[]]
    assert await listed(client, as_of=then, tags="sold") == []


async def test_turns_of_then(client: AsyncClient) -> None:
    body = {"messages": [{"role": "user", "content": "The morning was cold."}], "user_id": "alice", "infer": False}
    await client.post("/v1/memories", json=body)
    known = await store(client, "Has a boat")
    then = await moment(client, known, 0)
    await client.post("/v1/memories", json={**body, "messages": [{"role": "user", "content": "A warm morning."}]})
    assert len((await recalled(client))["turns"]) == 2
    past = await recalled(client, as_of=then)
    assert [each["content"] for each in past["turns"]] == ["The morning was cold."]
    assert (past["entities"], past["goals"], past["user_context"]) == ([], [], None)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"as_of": "tomorrow"}, "as_of"),
        ({"as_of": "2999-01-01T00:00:00Z"}, "as_of"),
        ({"valid_at": "2025-13-01"}, "valid_at"),
        ({"as_of": "2025-01-01", "connected": True}, "connected"),
        ({"as_of": "2025-01-01", "explain_id": "01a20390-2b41-7558-954e-a1c9fa2131a4"}, "explain_id"),
        ({"valid_at": "2025-01-01", "validity": "ignore"}, "validity"),
    ],
)
async def test_nonsense_is_refused_by_name(client: AsyncClient, body: dict[str, Any], field: str) -> None:
    answer = await client.post("/v1/memories/search", json={"query": "home", "user_id": "alice", **body})
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    if field in ("as_of", "valid_at"):
        for path in ("/v1/memories", "/v1/memories/01a20390-2b41-7558-954e-a1c9fa2131a4"):
            answer = await client.get(path, params={"user_id": "alice", **body})
            assert (answer.status_code, answer.json()["field"]) == (400, field)
        answer = await client.post("/v1/recall", json={"query": "home", "user_id": "alice", **body})
        assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_another_tenant_sees_nothing_of_then(client: AsyncClient, other_client: AsyncClient) -> None:
    known = await changed(client)
    then = await moment(client, known, 0)
    assert await listed(other_client, as_of=then) == await search(other_client, as_of=then) == []
    assert (await other_client.get(f"/v1/memories/{known}", params={"as_of": then})).status_code == 404


# -- what a text says of its own time ---------------------------------------------------------------------------------

OWN_TIMES = [
    ("Ann worked at Netflix from 2016 to 2020.", "2016-01-01T00:00:00+00:00", "2021-01-01T00:00:00+00:00"),
    ("Ann is on leave until 5 March 2027.", None, "2027-03-06T00:00:00+00:00"),
    ("From 1 May to 31 August 2027 Ann will be in Oslo.", None, "2027-09-01T00:00:00+00:00"),
    ("Ann works from 9 to 5 every day.", None, None),
    ("Ann works from Monday to Friday.", None, None),
    ("The shop does not open until 5 March 2027.", None, None),
    ("Ann has been in Oslo from 2016 to now.", None, None),
    ("Ann lived in Rome from 2016 to 2020. She likes Rome.", None, None),
]


@pytest.mark.parametrize(("text", "t_valid", "t_invalid"), OWN_TIMES)
async def test_a_range_that_a_text_names_is_its_validity(
    client: AsyncClient, text: str, t_valid: str | None, t_invalid: str | None
) -> None:
    known = await get(client, await store(client, text))
    assert (known["t_valid"], known["t_invalid"]) == (t_valid, t_invalid)
    [kept] = await search(client, validity="exclude")
    assert kept["id"] == known["id"]


async def test_what_told_of_a_past_range_is_found_unless_another_day_is_asked_for(client: AsyncClient) -> None:
    text = OWN_TIMES[0][0]
    known = await store(client, text)
    assert texts(await search(client, query="Where did Ann work?")) == [text]
    assert texts(await search(client, valid_at="2018-01-01")) == texts(await listed(client, valid_at="2018-01-01"))
    assert texts(await search(client, valid_at="2018-01-01")) == [text]
    assert await search(client, valid_at="2024-01-01") == await listed(client, valid_at="2024-01-01") == []
    await client.put(f"/v1/memories/{known}", json={"content": "Ann works at Google."})
    now = await get(client, known)
    assert (now["t_valid"], now["t_invalid"]) == (None, None)


async def test_the_callers_times_count_before_those_of_the_text(client: AsyncClient) -> None:
    known = await store(client, OWN_TIMES[0][0], t_invalid="2030-01-01T00:00:00Z")
    now = await get(client, known)
    assert (now["t_valid"], now["t_invalid"]) == (None, "2030-01-01T00:00:00+00:00")


# -- in doubt ---------------------------------------------------------------------------------------------------------


async def test_every_read_shows_what_may_outdate_a_memory(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    old, new = await store(client, "Ann sails on Sundays."), await store(client, "Bob keeps the keys of the shed.")
    await tables.fetch(
        "INSERT INTO memory_edge (workspace_id, source_id, rel_type, target_id) VALUES ($1, $2, 'MAY_OUTDATE', $3)",
        *(tenant.workspace_id, UUID(new), UUID(old)),
    )
    for found in (
        await search(client),
        await listed(client),
        (await recalled(client))["facts"],
        [await get(client, old), await get(client, new)],
    ):
        assert {each["id"]: each["may_be_outdated_by"] for each in found} == {old: [new], new: []}
    lines = (await recalled(client, format="markdown", min_probability=0))["markdown"].splitlines()
    assert [line.startswith("- Ann sails") for line in lines if "may have changed: see" in line] == [True]
    await client.delete(f"/v1/memories/{new}")
    assert (await get(client, old))["may_be_outdated_by"] == []
