"""A request to forget takes what it means, each with its look-alikes beside it, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from httpx2 import AsyncClient

from service.domain.errors import StoreUnavailable
from service.erasure import forget_matched
from service.runtime.resources import Resources
from service.runtime.transactions import Write
from tests.conftest import Tenant
from tests.conversations.test_withdrawn import ALICE, everything_read, learned, transcript
from tests.fakes.embedder import AngleEmbedder
from tests.support.application import Tables, client_of
from tests.support.calls import body_of, opened, said, store
from tests.support.judging import judged


async def ask(client: AsyncClient, query: str, **fields: Any) -> dict[str, Any]:
    return await body_of(client.post("/v1/forget", json={"query": query, **ALICE, **fields}))


async def left(client: AsyncClient) -> set[str]:
    answer = await client.get("/v1/memories", params={**ALICE, "limit": 100})
    return {each["memory"] for each in answer.json()["results"]}


LOOK_ALIKES = [
    ("MAC address AA:BB:CC:00:11", ["Printer AA:BB:CC:00:11 is on floor 2."], ["Router AA:BB:CC:00:11:22 is new."]),
    ("AA-BB-CC-00-11", ["Printer aa:bb:cc:00:11 is on floor 2."], ["Router AA-BB-CC-00-11-22 is new."]),
    ("ticket 88123", ["Ticket 88123 is open."], ["Ticket 881234 is open.", "Ticket 8812 is closed."]),
    ("order 17", ["Order 17 was shipped."], ["Room 17 is booked.", "Order 170 was shipped.", "17 people came."]),
    ("db7.lan.test", ["Host db7.lan.test runs the queue."], ["Host db77.lan.test is down.", "lan.test is ours."]),
    ("/srv/app/data", ["Backups go to /srv/app/data."], ["Logs go to /srv/app/data/old.", "See /srv/app."]),
    ("the build AX-77", ["Build AX-77 failed.", "AX77 is red."], ["Build AX-770 passed."]),
    (
        "@petra_k",
        ["Ask @petra_k first.", "petra_k (without the sign) reviews code."],
        ["Ask @petra_k2.", "Petra sings."],
    ),
    (
        "everything about Rosa",
        ["Rosa and Theo share a desk.", "The report is Rosa's.", "rosa sings."],
        ["Rosalind sings.", "Theo sings.", "The rosary is old."],
    ),
    (
        "Zoe Marchetti / Зоя Маркетти file",
        ["Client Zoë Marchetti pays late.", "Зоя Маркетти signed."],
        ["Zoe Marks pays.", "Bruno Marchetti pays."],
    ),
    (
        "client Zoë Marchetti (Zoe M)",
        ["Client Zoe Marchetti pays late.", "zoe marchetti called."],
        ["Client Bruno pays late.", "Zoe called."],
    ),
    ("Omar's passport", ["Omar's passport ends in spring."], ["Omar's bike is red.", "Lena's passport ends in May."]),
    (
        "@quill",
        ["User @quill is an admin.", "Quentin Hale is the same account as @quill."],
        ["Quentin Tay lives in Rome."],
    ),
    (
        "spare key code",
        ["The spare key's code is under the mat."],
        ["The key of the shed is lost.", "Code review is at ten."],
    ),
    ("everything about Mark", ["Mark leads sales.", "We met Mark."], ["Mark the date.", "The mark is deep."]),
]


@pytest.mark.parametrize(("query", "meant", "others"), LOOK_ALIKES)
async def test_what_is_meant_goes_and_look_alikes_stay(
    client: AsyncClient, query: str, meant: list[str], others: list[str]
) -> None:
    for text in [*meant, *others]:
        await store(client, text, dedup=False)
    there = await left(client)
    assert len(there) == len(meant) + len(others)
    tried = await ask(client, query, dry_run=True)
    assert await left(client) == there
    assert (tried["dry_run"], tried["removed"], tried["receipt"]) == (True, False, None)
    done = await ask(client, query)
    assert done["removed"] is True
    assert (done["memories"], done["turns"]) == (tried["memories"], tried["turns"])
    assert all(each["reason"] for each in done["memories"])
    assert len(await left(client)) == len(others), (done["memories"], await left(client))
    assert {each["memory"] for each in done["memories"]} == there - await left(client)


async def test_a_redacted_number_is_found_by_what_else_is_said(client: AsyncClient) -> None:
    await store(client, "The dentist's phone is +1-202-555-0147.")
    await store(client, "The plumber's phone is +1-202-555-0199.")
    unclear = await ask(client, "phone +1-202-555-0147")
    assert (unclear["removed"], unclear["memories"]) == (False, [])
    assert len(unclear["near_misses"]) == 2
    done = await ask(client, "dentist phone +1-202-555-0147")
    assert [each["memory"][:11] for each in done["memories"]] == ["The dentist"]
    assert len(await left(client)) == 1


async def test_nothing_is_guessed(client: AsyncClient) -> None:
    await store(client, "The north door opens at eight.")
    await store(client, "The south door opens at nine.")
    found = await ask(client, "door opening fees")
    assert (found["removed"], found["memories"], found["turns"], found["matched"]) == (False, [], [], "nothing")
    assert found["explanation"]
    assert found["near_misses"]
    assert len(await left(client)) == 2


NOT_STORED = [
    ("Lena has epilepsy.", "Lena's address"),
    ("Acme is our biggest customer.", "Acme's contract"),
    ("My wife is pregnant.", "my wife's email address"),
]
"""Each with a query for something else about the same person."""


@pytest.mark.parametrize(("known", "query"), NOT_STORED)
async def test_what_is_only_near_in_meaning_stays_where_a_thing_of_somebody_is_meant(
    client: AsyncClient, embedder: AngleEmbedder, known: str, query: str
) -> None:
    for text in (known, query):
        embedder.place(text, 1.0)
    await store(client, known)
    found = await ask(client, query)
    assert (found["removed"], found["memories"], found["matched"]) == (False, [], "nothing")
    assert [each["memory"] for each in found["near_misses"]] == [known]
    assert await left(client) == {known}


OF_THE_SPEAKER = [
    ("I moved to Kiel.", "Paul lives in Ulm.", "where I live"),
    ("My employer is Aldi.", "My wife works at Lidl.", "where I work"),
    ("I am 50.", "My dog is old.", "how old I am"),
    ("I teach maths.", "Mein Bruder wohnt in Ulm.", "wo ich wohne"),
]
"""Each with a statement about somebody else that has the words of the query."""


@pytest.mark.parametrize(("own", "other", "query"), OF_THE_SPEAKER)
async def test_what_is_asked_about_the_speaker_takes_nothing_about_somebody_else(
    client: AsyncClient, own: str, other: str, query: str
) -> None:
    await store(client, own)
    await store(client, other)
    found = await ask(client, query)
    assert (found["removed"], found["memories"]) == (False, [])
    assert found["near_misses"]
    assert await left(client) == {own, other}


@pytest.mark.parametrize("own", ["I live in Kiel.", "User lives in Kiel.", "Lives in Kiel.", "We live in Kiel."])
async def test_what_is_asked_about_the_speaker_takes_the_own_statement(client: AsyncClient, own: str) -> None:
    await store(client, own)
    await store(client, "Paul lives in Ulm.")
    await ask(client, "where I live")
    assert await left(client) == {"Paul lives in Ulm."}


OWN_THINGS = [
    ("My salary is 4100 euros.", "Greta's salary is 5200 euros.", "my salary"),
    ("My new address is Rosenweg 5.", "My mother's address is Lindweg 9.", "my address"),
    ("I have asthma.", "My son has asthma.", "my asthma"),
    ("The garden shed is green.", "Our neighbour's garden shed is red.", "my garden shed"),
    ("The car has a dent.", "Paul has a car.", "my car"),
]
"""Each with a statement about the same thing of somebody else, and the query."""


@pytest.mark.parametrize(("own", "other", "query"), OWN_THINGS)
async def test_a_thing_of_the_speaker_is_not_that_of_somebody_else(
    client: AsyncClient, own: str, other: str, query: str
) -> None:
    await store(client, own)
    await store(client, other)
    await ask(client, query)
    assert await left(client) == {other}


async def test_sentences_of_turns_go_with_their_memories_and_by_themselves(
    resources: Resources, tenant: Tenant
) -> None:
    async with judged(resources, tenant) as (client, judge):
        said = "Wanda runs the night shift. Olaf runs the day shift. Tea with Wanda was fun."
        memory = await learned(client, judge, said, "Wanda runs the night shift.")
        tried = await ask(client, "everything about Wanda", dry_run=True)
        assert [each["id"] for each in tried["memories"]] == [memory]
        assert [each["text"] for each in tried["turns"]] == [
            "Wanda runs the night shift.",
            "Tea with Wanda was fun.",
        ]
        done = await ask(client, "everything about Wanda")
        assert done["turns"] == tried["turns"]
        read = await everything_read(client, "Who leads what?")
        assert ("Wanda" in read, "Olaf runs the day shift" in read) == (False, True)
        [turn] = await transcript(client)
        assert turn["content"].strip() == "Olaf runs the day shift."
        assert (await ask(client, "everything about Wanda"))["removed"] is False


async def test_a_purge_leaves_no_word_anywhere(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    async with judged(resources, tenant, audit_level="verbose") as (client, judge):
        said = "Tangerinette sings at night. The weather was fine."
        memory = await learned(client, judge, said, "Tangerinette sings at night.")
        gone = await store(client, "Tangerinette was here before.")
        assert (await client.delete(f"/v1/memories/{gone}")).status_code == 200
        stays = await store(client, "Zanzibar is far away.")
        done = await ask(client, "everything about Tangerinette", purge=True)
        assert {each["id"] for each in done["memories"]} == {memory, gone}
        assert {each["memory"] for each in done["memories"]} == {None}
        assert done["receipt"]["counts"]["memory"] == 1
        assert await tables.holding("Tangerinette") == []
        assert (await client.get(f"/v1/memories/{stays}")).status_code == 200
        [turn] = await transcript(client)
        assert turn["content"].strip() == "The weather was fine."
        assert turn["withdrawn"] == []


async def test_ids_name_memories_of_the_scope_only(client: AsyncClient) -> None:
    mine = await store(client, "Keeps bees.")
    other = await store(client, "Keeps bees as well.", user_id="bob")
    answer = await client.post("/v1/forget", json={"ids": [mine, other], **ALICE})
    assert [each["id"] for each in answer.json()["memories"]] == [mine]
    assert (await client.get(f"/v1/memories/{other}")).status_code == 200
    again = await client.post("/v1/forget", json={"ids": [mine], **ALICE})
    assert (again.status_code, again.json()["removed"]) == (200, False)


async def test_a_session_narrows_it_down(client: AsyncClient) -> None:
    await store(client, "Rosa sings.", session_id="one")
    await store(client, "Rosa dances.", session_id="two")
    done = await ask(client, "everything about Rosa", session_id="one")
    assert [each["memory"] for each in done["memories"]] == ["Rosa sings."]


async def test_bad_input_is_named(client: AsyncClient) -> None:
    for body, field in (
        ({**ALICE}, "query"),
        ({"query": "Rosa", "ids": ["x"], **ALICE}, "query"),
        ({"ids": ["x"], **ALICE}, "ids"),
        ({"query": "Rosa", "purge": "yes", **ALICE}, "purge"),
        ({"query": "Rosa"}, "user_id"),
    ):
        answer = await client.post("/v1/forget", json=body)
        assert answer.status_code in (400, 422), answer.text
        assert field in answer.text


async def test_the_rights_are_those_of_deleting(client: AsyncClient, app: Any) -> None:

    made = await client.post("/v1/api-keys", json={"name": "writer", "rights": ["memory:read", "memory:write"]})
    async with client_of(app, made.json()["api_key"]) as writer:
        assert (await writer.post("/v1/forget", json={"query": "Rosa", **ALICE})).status_code == 403
    made = await client.post("/v1/api-keys", json={"name": "deleter", "rights": ["memory:read", "memory:delete"]})
    async with client_of(app, made.json()["api_key"]) as deleter:
        assert (await deleter.post("/v1/forget", json={"query": "Rosa", **ALICE})).status_code == 200
        assert (await deleter.post("/v1/forget", json={"query": "Rosa", "purge": True, **ALICE})).status_code == 403


async def test_another_workspace_is_out_of_reach(client: AsyncClient, other_client: AsyncClient) -> None:
    await store(client, "Rosa sings.")
    assert (await ask(other_client, "everything about Rosa"))["removed"] is False
    assert len(await left(client)) == 1


async def test_a_failure_half_way_removes_nothing(
    client: AsyncClient, tables: Tables, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store(client, "Rosa sings.")
    talk = await opened(client, "chat")
    await said(client, talk, "Rosa dances. It rains.")
    before = await tables.contents(tenant.workspace_id)

    async def fails(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("The connection is gone.")

    for purge, part, broken in ((False, Write, "audit"), (True, forget_matched, "receipt_of")):
        with monkeypatch.context() as patched:
            patched.setattr(part, broken, fails)
            body = {"query": "everything about Rosa", "purge": purge, **ALICE}
            assert (await client.post("/v1/forget", json=body)).status_code == 503
        after = await tables.contents(tenant.workspace_id)
        changed = {name for name in before if before[name] != after[name]}
        assert changed <= {"audit_log", "embedding_cache"}, changed
    done = await ask(client, "everything about Rosa", purge=True)
    assert (len(done["memories"]), len(done["turns"])) == (1, 1)
    assert [turn["content"].strip() for turn in await transcript(client)] == ["It rains."]


async def test_near_misses_say_how_likely_they_are_meant(client: AsyncClient) -> None:
    near = await store(client, "Rosa Beck sings.")
    await store(client, "Theo sings.")
    found = await ask(client, "Rosa Marin", dry_run=True)
    [miss] = [each for each in found["near_misses"] if each["id"] == near]
    assert 0 <= miss["probability"] <= 1
    assert (await client.post("/v1/forget", json={"ids": [near], **ALICE})).json()["removed"] is True


@pytest.mark.parametrize("purge", [False, True])
async def test_of_a_message_only_the_sentence_that_is_meant_goes(
    client: AsyncClient, tables: Tables, *, purge: bool
) -> None:
    name = "Clementina" if purge else "Apricotta"
    said = [{"role": "user", "content": f"{name} has my spare key. I work at the harbour."}]
    body = {"messages": said, "infer": True, "session_id": "chat", **ALICE}
    assert (await client.post("/v1/memories", json=body)).status_code == 200
    done = await ask(client, f"everything about {name}", purge=purge)
    [struck] = done["memories"]
    assert struck["remaining"] == (None if purge else "User: I work at the harbour.")
    assert await left(client) == {"User: I work at the harbour."}
    read = await everything_read(client, "Where is work?")
    assert (name in read, "harbour" in read) == (False, True)
    if purge:
        assert await tables.holding(name) == []


async def test_a_correction_goes_with_what_it_corrects(client: AsyncClient) -> None:
    for text in ("I like tea.", "I owe Sven 60 euros.", "Actually, 80 euros."):
        body = {"messages": [{"role": "user", "content": text}], "infer": True, "session_id": "chat", **ALICE}
        assert (await client.post("/v1/memories", json=body)).status_code == 200
    done = await ask(client, "what I owe Sven")
    assert len(done["memories"]) == 2
    assert await left(client) == {"User: I like tea."}
    assert [turn["content"] for turn in await transcript(client)] == ["I like tea."]
