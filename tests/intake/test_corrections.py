"""A correction is recognised when a model made the facts, and what it corrects is superseded."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.conversing import answer, events, known, tell
from tests.support.scripted_model import ConversationScript, with_scripted_model

OLD, NEW = "User lives in Lisbon", "User lives in Porto"
TAKES_ITS_PLACE = {NEW: [{"event": "UPDATE", "of": OLD, "data": NEW}]}
CUES = [
    "Actually, I live in Porto.",
    "No, I meant Porto. I live in Porto.",
    "Sorry, my mistake. I live in Porto.",
    "I was wrong, I live in Porto.",
]


async def corrected(client: AsyncClient, said: str, **settings: Any) -> list[dict[str, Any]]:
    if settings:
        got = await client.patch("/v1/workspaces/current", json={"settings": settings})
        assert got.status_code == 200, got.text
    await tell(client, "I live in Lisbon")
    return await tell(client, said)


@pytest.mark.parametrize("policy", ["in_place", "prefer_new", "supersede", "prefer_old", "flag_review"])
@pytest.mark.parametrize("said", CUES)
async def test_a_correction_supersedes_what_it_corrects(
    resources: Resources, tenant: Tenant, said: str, policy: str
) -> None:
    """Whatever else the policy says about contradictions."""
    mind = ConversationScript({"in Lisbon": [OLD], "Porto": [NEW]}, TAKES_ITS_PLACE)
    async with with_scripted_model(resources, tenant, mind) as scripted:
        results = await corrected(scripted.client, said, contradiction_policy=policy)
        assert [(each["event"], each["memory"]) for each in results] == [("ADD", NEW), ("DELETE", None)]
        edges = (await scripted.client.get(f"/v1/memories/{results[0]['id']}/relations")).json()["results"]
        assert [(edge["type"], edge["target_id"], edge["direction"]) for edge in edges] == [
            ("SUPERSEDES", results[1]["id"], "out")
        ]
        old = (await scripted.client.get(f"/v1/memories/{results[1]['id']}")).json()
        assert old["memory"] == OLD
        assert old["t_invalid"] is not None


async def test_the_models_own_word_for_it_counts(resources: Resources, tenant: Tenant) -> None:
    fact = {"text": NEW, "certainty": "explicit", "correction": True}
    mind = ConversationScript({"in Lisbon": [OLD], "by the sea": [fact]}, TAKES_ITS_PLACE)
    async with with_scripted_model(resources, tenant, mind) as scripted:
        results = await corrected(scripted.client, "Porto is my home by the sea", contradiction_policy="prefer_old")
        assert events(results) == ["ADD", "DELETE"]


async def test_without_a_cue_the_policy_decides(resources: Resources, tenant: Tenant) -> None:
    mind = ConversationScript({"in Lisbon": [OLD], "Porto": [NEW]}, TAKES_ITS_PLACE)
    async with with_scripted_model(resources, tenant, mind) as scripted:
        [kept] = await corrected(scripted.client, "I live in Porto", contradiction_policy="prefer_old")
        assert kept["event"] == "NONE"
        assert await known(scripted.client) == [OLD]


async def test_offline_the_same(client: AsyncClient) -> None:
    results = await corrected(client, "Actually, I live in Porto.", contradiction_policy="prefer_old")
    assert events(results) == ["ADD", "DELETE"]
    assert (await answer(client, "I live in Faro"))["results"][0]["event"] == "NONE"


async def test_a_corrected_appointment_can_be_undone_and_erased(client: AsyncClient) -> None:
    await tell(client, "My dentist appointment is on Tuesday at 9:30.")
    results = await tell(client, "No, I meant my dentist appointment is on Thursday at 9:30.")
    new, old = (each["id"] for each in results)
    [edge] = (await client.get(f"/v1/memories/{new}/relations")).json()["results"]
    assert (edge["type"], edge["target_id"]) == ("SUPERSEDES", old)
    [verdict, *_] = (await client.get(f"/v1/memories/{new}/decisions")).json()["results"]
    undone = await client.post(f"/v1/decisions/{verdict['id']}/undo")
    assert undone.status_code == 200, undone.text
    assert (await client.get(f"/v1/memories/{new}")).status_code == 404
    assert (await client.get(f"/v1/memories/{old}")).json()["t_invalid"] is None
    again = await tell(client, "No, I meant my dentist appointment is on Friday at 9:30.")
    assert (await client.delete(f"/v1/memories/{again[0]['id']}?purge=true")).status_code == 200
    assert (await client.get(f"/v1/memories/{old}/relations")).json()["results"] == []


async def test_a_short_correction_names_only_the_value(client: AsyncClient) -> None:
    await tell(client, "My flight lands at 5 pm.")
    results = await tell(client, "Sorry, 6 pm.")
    assert events(results) == ["ADD", "DELETE"]
    assert "My flight lands at" in results[0]["memory"]


async def test_a_value_of_the_future_leaves_what_holds_until_then(client: AsyncClient) -> None:
    start = "2087-03-01T00:00:00+00:00"
    for body in ({"content": "I live in Oslo."}, {"content": "I live in Rome.", "t_valid": start}):
        [stored] = (await client.post("/v1/memories", json={"user_id": "carol", **body})).json()["results"]
        assert stored["event"] == "ADD"
    listed = (await client.get("/v1/memories?user_id=carol")).json()["results"]
    assert {each["memory"]: each["t_invalid"] for each in listed} == {"I live in Oslo.": start, "I live in Rome.": None}


async def test_what_is_told_before_a_value_of_the_future_begins_is_found(client: AsyncClient) -> None:
    body = {"user_id": "carol", "content": "I moved to Rome.", "t_valid": "2087-03-01T00:00:00Z"}
    await client.post("/v1/memories", json=body)
    [stored] = (await client.post("/v1/memories", json={"user_id": "carol", "content": "I moved to Bonn."})).json()[
        "results"
    ]
    assert (stored["event"], stored["memory"]) == ("ADD", "I moved to Bonn.")


async def test_a_value_that_comes_back_within_a_request_is_current(
    client: AsyncClient, embedder: AngleEmbedder
) -> None:
    said = ("I live in Oslo.", "I moved to Rome.", "I live in Oslo.", "I live in Oslo.")
    for text, cosine in zip(said[:2], (1.0, 0.9), strict=True):
        embedder.place(f"User: {text}", cosine)
    messages = [{"role": "user", "content": text} for text in said]
    await client.post("/v1/memories", json={"user_id": "carol", "messages": messages})
    listed = (await client.get("/v1/memories?user_id=carol")).json()["results"]
    assert [each["memory"] for each in listed] == ["User: I live in Oslo."]
