"""The block that a recall writes for a prompt: its days, its marks, and when it stays empty."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from service.search import recall_bundle
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables
from tests.support.calls import body_of, store

TALK: tuple[tuple[str, str, str], ...] = (
    ("2026-10-12T10:00:00Z", "user", "The handover of the flat is on Wednesday."),
    ("2026-10-12T10:05:00Z", "assistant", "Shall we say Friday for the handover?"),
    ("2026-10-12T10:10:00Z", "user", "ok"),
    ("2026-10-14T22:30:00Z", "user", "My flight to Oslo lands at 14:20."),
)


async def tell(client: AsyncClient, *said: tuple[str, str, str], session: str = "flat") -> None:
    """Stores messages (timestamp, role, content), one request each."""
    for timestamp, role, content in said:
        message = {"role": role, "content": content, "timestamp": timestamp}
        answer = await client.post(
            "/v1/memories", json={"messages": [message], "user_id": "alice", "session_id": session}
        )
        assert answer.status_code in (200, 201), answer.text


async def block(client: AsyncClient, query: str, **fields: Any) -> list[str]:
    """The lines of the block, however improbable an answer is."""
    body = {"query": query, "user_id": "alice", "format": "markdown", "min_probability": 0, **fields}
    found: list[str] = (await body_of(client.post("/v1/recall", json=body)))["markdown"].splitlines()
    return found


async def mark_outdated(tables: Tables, tenant: Tenant, older: str, newer: str) -> None:
    """Marks the memory with one word as perhaps outdated by that with another."""
    await tables.fetch(
        """INSERT INTO memory_edge (workspace_id, source_id, rel_type, target_id)
        SELECT o.workspace_id, n.id, 'MAY_OUTDATE', o.id FROM memory o JOIN memory n USING (workspace_id)
        WHERE o.workspace_id = $1 AND o.content ~ $2 AND n.content ~ $3 ON CONFLICT DO NOTHING""",
        tenant.workspace_id,
        older,
        newer,
    )


async def test_what_was_said_stands_by_day_and_conversation_each_message_once(client: AsyncClient) -> None:
    await tell(client, *TALK)
    await tell(client, ("2026-10-13T09:00:00Z", "user", "The handover needs two sets of keys."), session="keys")
    assert await block(client, "When is the handover of the flat?") == [
        "## Said before",
        "### Mon 2026-10-12 (flat)",
        "User: The handover of the flat is on Wednesday.",
        "Assistant asked: Shall we say Friday for the handover? User: ok",
        "### Tue 2026-10-13 (keys)",
        "User: The handover needs two sets of keys.",
        "### Wed 2026-10-14 (flat)",
        "User: My flight to Oslo lands at 14:20.",
    ]


async def test_days_begin_in_the_time_zone_of_the_request_or_else_of_the_workspace(client: AsyncClient) -> None:
    await tell(client, TALK[3])
    assert "### Wed 2026-10-14" in await block(client, "the flight to Oslo")
    assert "### Thu 2026-10-15" in await block(client, "the flight to Oslo", timezone="Europe/Oslo")
    await client.patch("/v1/workspaces/current", json={"settings": {"timezone": "Asia/Tokyo"}})
    assert "### Thu 2026-10-15" in await block(client, "the flight to Oslo")
    refused = await client.post("/v1/recall", json={"query": "x", "user_id": "alice", "timezone": "Mars/Olympus"})
    assert (refused.status_code, refused.json()["field"]) == (400, "timezone")


async def test_an_answer_comes_with_its_question_where_that_is_not_above_it(
    client: AsyncClient, embedder: AngleEmbedder
) -> None:
    await tell(client, *TALK[1:3])
    embedder.place("Shall we say Friday for the handover?", 0.0)
    alone = await block(client, "ok", limit=1)
    assert alone[-1] == "Assistant asked: Shall we say Friday for the handover? User: ok"
    together = await block(client, "the handover", around=1)
    assert together[-2:] == ["Assistant: Shall we say Friday for the handover?", "User: ok"]


async def test_a_quotation_of_two_turns_leaves_out_the_one_above_it(client: AsyncClient) -> None:
    await tell(
        client,
        ("2026-10-12T10:00:00Z", "user", "The celadon crawled on the rims above 1240 degrees."),
        ("2026-10-12T10:01:00Z", "assistant", "Yes, fire it at 1225 then."),
        ("2026-10-12T10:02:00Z", "user", "Ok, will do."),
    )
    lines = await block(client, "Did the celadon crawl on the rims above 1240 degrees? Ok, will do.", limit=2)
    assert lines[-2:] == [
        "User: The celadon crawled on the rims above 1240 degrees.",
        "Assistant said: Yes, fire it at 1225 then. User: Ok, will do.",
    ]


async def test_an_answer_of_the_assistant_comes_with_what_it_answers(client: AsyncClient) -> None:
    await tell(
        client,
        ("2026-10-12T10:00:00Z", "user", "Can chipped teeth be mended?"),
        ("2026-10-12T10:01:00Z", "assistant", "Yes, with composite."),
        ("2026-10-12T10:02:00Z", "assistant", "It lasts for some seven years."),
    )
    lines = await block(client, "composite", limit=1)
    assert lines[-2:] == ["User: Can chipped teeth be mended?", "Assistant: Yes, with composite."]


async def test_a_correction_stands_alone_below_what_it_corrects(client: AsyncClient) -> None:
    reply, correction = "Then be at the airport by 19:00 or so.", "Sorry, I misread the ticket: take-off is 20:15."
    await tell(client, ("2026-10-12T10:00:00Z", "user", "My flight to Nairobi leaves at 21:50."))
    await tell(client, ("2026-10-12T10:01:00Z", "assistant", reply), ("2026-10-13T10:00:00Z", "user", correction))
    lines = await block(client, "When does the flight to Nairobi leave?")
    assert any(line.startswith(f"User: {correction}") for line in lines)


async def test_the_likely_answers_among_many_messages_come_first(
    client: AsyncClient, embedder: AngleEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder.place("My flight to Oslo lands when?", 1.0)
    embedder.place("User: My flight to Oslo lands at 14:20.", 0.9)
    plants = enumerate(("oak", "fern", "rose", "mint", "pine"))
    await tell(client, TALK[3], *[(f"2026-10-1{day}T09:00:00Z", "user", f"A {name}.") for day, name in plants])
    monkeypatch.setattr(recall_bundle, "LIKELY", 0.0)
    assert "Closest" not in "".join(await block(client, "My flight to Oslo lands when?"))
    await tell(client, ("2026-10-16T09:00:00Z", "user", "A birch."))
    heading, answer = (await block(client, "My flight to Oslo lands when?"))[1:3]
    assert heading.startswith("### Closest to the question, ")
    assert answer == "User: My flight to Oslo lands at 14:20."
    monkeypatch.setattr(recall_bundle, "LIKELY", 1.1)
    assert "Closest" not in "".join(await block(client, "My flight to Oslo lands when?"))


async def test_an_entity_of_which_nothing_is_known_has_no_line(client: AsyncClient) -> None:
    await client.put("/v1/entities", json={"name": "Oslo", "type": "location", "user_id": "alice"})
    await tell(client, TALK[3])
    answer = await body_of(
        client.post("/v1/recall", json={"query": "When do I land in Oslo?", "user_id": "alice", "format": "markdown"})
    )
    assert [each["name"] for each in answer["entities"]] == ["Oslo"]
    assert "## People and things" not in answer["markdown"]


async def test_two_statements_of_one_speaker_on_a_subject_name_each_others_days(
    client: AsyncClient, embedder: AngleEmbedder
) -> None:
    ride, sold = "I ride a Triumph Bonneville.", "I gave the Triumph to my brother."
    for text in (ride, sold):
        embedder.place(f"User: {text}", 0.9)
    await tell(client, ("2026-10-12T10:00:00Z", "user", ride), ("2026-11-09T10:00:00Z", "user", sold))
    asked = f"User: {ride}"
    await tell(client, ("2026-11-10T10:00:00Z", "user", "I painted the hallway a light grey."))
    lines = await block(client, asked)
    assert f"User: {ride} (more on this: see 2026-11-09)" in lines
    assert f"User: {sold} (more on what was said 2026-10-12)" in lines
    assert "User: I painted the hallway a light grey." in lines
    assert f"User: {sold}" in await block(client, asked, limit=1)
    embedder.place(f"What did the user say before: {ride}", 0.9)
    assert f"User: {ride}" in await block(client, f"What did the user say before: {ride}", limit=1)


async def test_a_long_block_marks_only_what_probably_answers(
    client: AsyncClient, embedder: AngleEmbedder, tables: Tables, tenant: Tenant
) -> None:
    ride, sold = "I ride a Triumph Bonneville.", "I gave the Triumph to my brother."
    for text in (ride, sold):
        embedder.place(f"User: {text}", 0.9)
    await tell(client, ("2026-10-12T10:00:00Z", "user", ride), ("2026-11-09T10:00:00Z", "user", sold))
    await mark_outdated(tables, tenant, "ride", "gave")
    for number in range(10, 17):
        await tell(client, (f"2026-11-{number}T10:00:00Z", "user", f"Parcel {number} is at the neighbour's."))
    assert f"User: {ride}" in await block(client, "User: Parcel 12 is at the neighbour's.")
    assert f"User: {ride} (may have changed: see 2026-11-09)" in await block(client, f"User: {ride}")


async def test_a_long_block_reads_on_within_a_day_of_a_conversation(
    client: AsyncClient, embedder: AngleEmbedder
) -> None:
    texts = "The survey is on Tuesday.", "The survey costs 40 euros."
    for text in texts:
        embedder.place(f"User: {text}", 0.9)
    await tell(client, *((f"2026-10-12T1{hour}:00:00Z", "user", text) for hour, text in enumerate(texts)))
    assert f"User: {texts[0]} (more on this: see later that day)" in await block(client, f"User: {texts[0]}")
    for number in range(10, 17):
        await tell(client, (f"2026-11-{number}T10:00:00Z", "user", f"Parcel {number} is at the neighbour's."))
    lines = await block(client, f"User: {texts[0]}")
    assert lines[1].startswith("### Closest to the question")
    assert {f"User: {text}" for text in texts} <= {*lines}
    assert not any("more on" in line for line in lines)


async def test_what_two_people_say_about_themselves_is_not_paired(client: AsyncClient, embedder: AngleEmbedder) -> None:
    said = {"Kim": "I've moved to Leeds with my sister.", "Lee": "I'm still in my old flat in York."}
    for number, (name, text) in enumerate(said.items(), start=1):
        embedder.place(f"{name}: {text}", 0.9)
        message = {"role": "user", "name": name, "content": text, "timestamp": f"2026-10-1{number}T10:00:00Z"}
        body = {"messages": [message], "user_id": "alice", "session_id": "flat"}
        await body_of(client.post("/v1/memories", json=body))
    lines = await block(client, f"Kim: {said['Kim']}")
    assert [line for line in lines if ": I" in line] == [f"{name}: {text}" for name, text in said.items()]


async def test_facts_about_one_topic_stand_together_in_the_order_of_time(
    client: AsyncClient, embedder: AngleEmbedder
) -> None:
    texts = ("The rent is 800 euros", "Likes the sea", "The rent went up to 900 euros")
    for text, side in zip(texts, (1, 2, 1), strict=True):
        embedder.place(text, 0.6, side=side)
    for day, text in enumerate(texts, start=1):
        await store(client, text, timestamp=f"2026-03-0{day}T10:00:00Z", dedup=False)
    embedder.place("How high is the rent?", 1.0)
    assert await block(client, "How high is the rent?") == [
        "## Known facts",
        "- The rent is 800 euros (2026-03-01) (more on this: see 2026-03-03)",
        "- The rent went up to 900 euros (2026-03-03) (more on what was said 2026-03-01)",
        "- Likes the sea (2026-03-02)",
    ]


async def test_what_is_over_says_so(client: AsyncClient) -> None:
    await store(client, "Rents a flat in Porto", timestamp="2025-03-01T10:00:00Z", t_invalid="2025-06-30T10:00:00Z")
    lines = await block(client, "Rents a flat in Porto", valid_at="2025-04-01T00:00:00Z")
    assert lines == ["## Known facts", "- Rents a flat in Porto (2025-03-01) (no longer so, 2025-06-30)"]


@pytest.mark.parametrize(("answer", "is_marked"), [("A standup at 9:45, got it.", True), ("Noted.", False)])
async def test_an_answer_that_repeats_what_is_outdated_is_marked_as_well(
    client: AsyncClient, tables: Tables, tenant: Tenant, answer: str, is_marked: bool
) -> None:
    await tell(
        client,
        ("2026-10-12T10:00:00Z", "user", "Our standup is at 9:45."),
        ("2026-10-12T10:01:00Z", "assistant", answer),
        ("2026-11-09T10:00:00Z", "user", "The standup moves to 10:30."),
    )
    await mark_outdated(tables, tenant, "Our standup", "10:30")
    lines = await block(client, "Our standup is at 9:45.")
    mark = " (may have changed: see 2026-11-09)"
    assert f"User: Our standup is at 9:45.{mark}" in lines
    assert [line for line in lines if line.startswith("Assistant")] == [f"Assistant: {answer}{mark * is_marked}"]


@pytest.mark.parametrize("fields", [{"min_probability": 0}, {"format": "json"}])
async def test_nothing_is_injected_where_an_answer_is_improbable_unless_the_caller_decides(
    client: AsyncClient, embedder: AngleEmbedder, fields: dict[str, Any]
) -> None:
    body = await ask_for_what_was_not_said(client, embedder, "Planted broad beans. " * 60)
    found = (await client.post("/v1/recall", json=body)).json()
    assert (found["markdown"], found["facts"], found["answerable"]) == ("", [], False)
    assert len((await client.post("/v1/recall", json=body | fields)).json()["facts"]) == 1


async def test_the_little_that_is_known_is_injected_however_improbable_an_answer(
    client: AsyncClient, embedder: AngleEmbedder
) -> None:
    body = await ask_for_what_was_not_said(client, embedder, "Planted broad beans")
    found = (await client.post("/v1/recall", json=body)).json()
    assert (len(found["facts"]), found["answerable"]) == (1, False)


async def test_short_facts_are_injected_however_many_and_however_improbable_an_answer(
    client: AsyncClient, embedder: AngleEmbedder
) -> None:
    for number in range(40):
        await store(client, f"Planted row {number} of the broad beans")
    body = await ask_for_what_was_not_said(client, embedder, "Planted broad beans")
    found = (await client.post("/v1/recall", json=body | {"limit": 50})).json()
    assert (len(found["facts"]), found["answerable"]) == (41, False)


async def ask_for_what_was_not_said(client: AsyncClient, embedder: AngleEmbedder, known: str) -> dict[str, Any]:
    question = "Which exam board does the school use?"
    embedder.place(question, 1.0)
    embedder.place(known.strip(), 0.2)
    await store(client, known.strip())
    return {"query": question, "user_id": "alice", "format": "markdown"}
