"""Storing keeps the documented numbers."""

from __future__ import annotations

import hashlib
from typing import Any
from unicodedata import normalize
from uuid import UUID, uuid4

import pytest
import structlog
from httpx2 import AsyncClient

from service.runtime.resources import Resources
from service.understanding.compare import is_same
from tests.conftest import DIMENSION, SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.fakes.llm import ScriptedLlm
from tests.support.application import Tables, with_llm
from tests.support.calls import body_of
from tests.support.tasks import work

USER = {"user_id": "iris"}


async def store(client: AsyncClient, content: str, status: int | None = 201, **more: Any) -> dict[str, Any]:
    answer = await client.post("/v1/memories", json={"content": content, **USER, **more})
    assert status is None or answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()["results"][0]
    return found


async def read(client: AsyncClient, memory_id: str) -> dict[str, Any]:
    return await body_of(client.get(f"/v1/memories/{memory_id}"))


# -- dedup ------------------------------------------------------------------------------------------------------------

STORED = "Prefers morning calls"
PAIRS = [
    (0.99, "Prefers the morning calls", "duplicate_exact"),
    (0.98, "Prefers the morning calls", "duplicate_exact"),
    (0.85, "Prefers morning meetings", "stored_new"),
    (0.85, "No longer prefers morning calls", "updated_existing"),
    (0.60, "Walks the dog at dusk", "stored_new"),
]


@pytest.mark.parametrize(("angle", "text", "action"), PAIRS)
async def test_dedup_offline(
    client: AsyncClient,
    tenant: Tenant,
    tables: Tables,
    embedder: AngleEmbedder,
    angle: float,
    text: str,
    action: str,
) -> None:
    """Without a model: the local rules."""
    embedder.place(STORED, 1.0)
    embedder.place(text, angle)
    first = await store(client, STORED)
    second = await store(client, text, None)
    assert second["dedup"]["action"] == action, second
    assert second["dedup"]["similarity"] == pytest.approx(angle, abs=1e-3)
    same = action != "stored_new"
    assert second["dedup"]["existing_id"] == (first["id"] if same else None)
    assert (second["id"] == first["id"]) is same
    assert (await tables.counts(tenant.workspace_id))["memory"] == 2 - same
    assert second["event"] == {"duplicate_exact": "NONE", "updated_existing": "UPDATE", "stored_new": "ADD"}[action]
    if action == "updated_existing":
        assert second["old_memory"] == STORED
        assert second["memory"] != STORED
        history = (await client.get(f"/v1/memories/{first['id']}/history")).json()["results"]
        assert [(entry["event"], entry["old_memory"]) for entry in history] == [("ADD", None), ("UPDATE", STORED)]
        assert history[0]["recorded_to"] == history[1]["recorded_from"]


@pytest.mark.parametrize(
    ("angle", "asked"),
    [(1.0, 0), (0.99, 0), (0.98, 0), (0.9799, 1), (0.85, 1), (0.70, 1), (0.6999, 0), (0.60, 0), (-1.0, 0)],
)
async def test_the_model_is_asked_from_070_up_to_098(
    resources: Resources, tenant: Tenant, embedder: AngleEmbedder, angle: float, asked: int
) -> None:
    """The edges belong: 0.98 to exact, 0.70 to near, whatever halfvec makes of them."""
    embedder.place(STORED, 1.0)
    embedder.place("Prefers the morning calls", angle)
    llm = ScriptedLlm(decide={"action": "add", "reason": "another fact"})
    async with with_llm(resources, tenant, llm) as client:
        await store(client, STORED)
        result = await store(client, "Prefers the morning calls", None)
    assert len(llm.of("decide")) == asked
    assert result["dedup"]["action"] == ("duplicate_exact" if angle >= 0.98 else "stored_new")


GUARDED = [
    ("The load is > 80", "The load is < 80"),
    ("a = b", "a != b"),
    ("The ratio is 1:2", "The ratio is 1/2"),
    ("The locker code is AbC", "The locker code is aBC"),
    ("She likes Polish food", "She likes polish food"),
    ("Ich bin heute müde", "Ich bin heute mude"),
    ("Él tiene cuarenta años", "Él tiene cuarenta anos"),
    ("Pays 40 euros for parking", "Pays 400 euros for parking"),
    ("Likes coffee", "Does not like coffee"),
    ("The review is on May 3", "The review is on May 4"),
    ("Anna leads the project", "Berta leads the project"),
    ("Loves coffee", "Hates coffee"),
    ("Waits 5 minutes", "Waits 5 hours"),
]


@pytest.mark.parametrize(("old", "new"), GUARDED)
async def test_what_differs_in_one_word_is_never_dropped(
    client: AsyncClient, embedder: AngleEmbedder, old: str, new: str
) -> None:
    """The short-cut at 0.98 needs equal content words. The new text may replace the old one, never vanish."""
    embedder.place(old, 1.0)
    embedder.place(new, 0.995)
    await store(client, old)
    result = await store(client, new, None)
    assert result["event"] in ("ADD", "UPDATE")
    assert (await read(client, result["id"]))["memory"] == new


async def test_dedup_can_be_switched_off(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    for _ in range(3):
        assert (await store(client, STORED, dedup=False))["event"] == "ADD"
    assert (await tables.counts(tenant.workspace_id))["memory"] == 3
    again = await store(client, STORED, 200)
    assert again["event"] == "NONE", "whoever asks for dedup gets it, whatever the others asked for"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("It is -5 degrees", "It is 5 degrees"),
        ("The rating is +1", "The rating is -1"),
        ("The load is > 80", "The load is < 80"),
        ("a = b", "a != b"),
        ("a*b", "a/b"),
        ("The ratio is 1:2", "The ratio is 1/2"),
        ("Run it with --v", "Run it with -v"),
        ("Use !debug", "Use debug"),
        ("Ask @anna", "Ask #anna"),
        ("I feel :)", "I feel :("),
        ("The grade is A+.", "The grade is A."),
        ("The locker code is AbC", "The locker code is ABC"),
        ("/Data/in is full", "/data/in is full"),
        ("She likes Polish food", "She likes polish food"),
        ("Ich bin heute müde", "Ich bin heute mude"),
        ("The word is čas", "The word is cas"),
        ("They told US", "They told us"),
        ("It is raining?", "It is raining."),
        ("Anna trusts Ben", "Ben trusts Anna"),
    ],
)
def test_signs_and_capitals_tell_texts_apart(one: str, other: str) -> None:
    assert not is_same(one, other)
    assert not is_same(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Likes  tea\n", "Likes tea"),
        ("Likes tea.", "Likes tea"),
        ("likes tea, I think", "Likes tea, I think."),
        ("User: likes tea.", "User: Likes tea."),
        ("The place is Café Central", normalize("NFD", "The place is Café Central")),
    ],
)
def test_white_space_a_full_stop_a_first_letter_and_the_form_of_accents_do_not(one: str, other: str) -> None:
    assert is_same(one, other)
    assert is_same(other, one)


async def test_both_forms_of_an_accent_are_one_memory(client: AsyncClient, embedder: AngleEmbedder) -> None:
    one, other = (normalize(form, "The place is Café Central") for form in ("NFC", "NFD"))
    embedder.place(one, 1.0)
    embedder.place(other, 0.99)
    first = await store(client, one)
    again = await store(client, other, 200)
    assert (again["event"], again["id"], again["memory"]) == ("NONE", first["id"], one)


# -- size -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "warned"), [(1, False), (500, False), (501, True), (2_001, True)])
async def test_soft_limit(client: AsyncClient, length: int, warned: bool) -> None:
    """A warning above 500"""
    result = await store(client, "é" * length, use_llm=False)
    assert any(each.startswith("long_content") for each in result["warnings"]) is warned


@pytest.mark.parametrize(("length", "status"), [(1_999, 201), (2_000, 201), (2_001, 400)])
async def test_hard_limit(client: AsyncClient, tenant: Tenant, tables: Tables, length: int, status: int) -> None:
    """Refused above 2,000"""
    body = {"content": "ab " * (length // 3) + "x" * (length % 3), **USER, "limits": "strict"}
    answer = await client.post("/v1/memories", json=body)
    assert answer.status_code == status
    if status == 400:
        assert (answer.json()["field"], answer.json()["code"]) == ("content", "too_large")
        assert (await tables.counts(tenant.workspace_id))["memory"] == 0


async def test_summarise(resources: Resources, tenant: Tenant, embedder: AngleEmbedder) -> None:
    long = "The kiln was repaired because the old door leaked. " * 12
    llm = ScriptedLlm(summarise="The kiln's leaking door was repaired.")
    async with with_llm(resources, tenant, llm) as client:
        result = await store(client, long, summarise=True)
        short = await store(client, "A short note", summarise=True)
    assert (result["summarized"], result["original_length"], result["summarized_length"]) == (True, len(long), 37)
    assert result["memory"] == "The kiln's leaking door was repaired."
    assert (short["summarized"], short["original_length"]) == (False, None)
    assert long not in embedder.seen
    assert len(llm.of("summarise")) == 1


async def test_summarise_without_a_model_keeps_the_text(client: AsyncClient) -> None:
    long = "The kiln was repaired. " * 30
    result = await store(client, long, summarise=True)
    assert (result["memory"], result["summarized"]) == (long, False)
    assert any("not_summarised" in each for each in result["warnings"])


@pytest.mark.parametrize("text", [" led by a blank", "ends in a blank ", "\ttab\n", "e\u0301 decomposed", "ﬁ ligature"])
async def test_a_text_without_findings_is_kept_byte_for_byte(client: AsyncClient, text: str) -> None:
    result = await store(client, text)
    assert (await read(client, result["id"]))["memory"] == text


# -- type -------------------------------------------------------------------------------------------------------------


async def test_a_type_by_the_patterns(client: AsyncClient) -> None:
    """tests/corpora/text/kinds.jsonl has those of other texts."""
    result = await store(client, "Chose PostgreSQL over MongoDB for ACID compliance")
    assert (result["type"], result["classification_source"]) == ("Decision", "regex")
    assert 0.6 <= result["type_confidence"] <= 0.95


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Write commit messages in imperative mood", "Style"),
        ("Run pytest every morning before starting work", "Habit"),
    ],
)
async def test_the_model_reaches_the_other_two(resources: Resources, tenant: Tenant, text: str, kind: str) -> None:
    llm = ScriptedLlm(classify={"type": kind, "confidence": 0.8})
    async with with_llm(resources, tenant, llm) as client:
        result = await store(client, text)
    assert (result["type"], result["type_confidence"], result["classification_source"]) == (kind, 0.8, "llm")


async def test_the_classifiers_request(resources: Resources, tenant: Tenant) -> None:
    """The first 1,000 characters, temperature 0.3, 50 tokens."""
    text = "Zebra crossing painted. " * 50
    llm = ScriptedLlm()
    async with with_llm(resources, tenant, llm) as client:
        await store(client, text)
    (ask,) = llm.of("classify")
    assert (ask.temperature, ask.max_tokens) == (0.3, 50)
    assert text[:1_000] in ask.user
    assert text[:1_001] not in ask.user
    for name in ("Decision", "Pattern", "Preference", "Style", "Habit", "Insight", "Context"):
        assert name in ask.system


@pytest.mark.parametrize(
    ("answer", "confidence"),
    [
        ({"type": "Opinion", "confidence": 0.9}, 0.5),
        ({"type": "decision", "confidence": 0.9}, 0.5),
        ({"type": None}, 0.5),
        ({"type": ["Decision"]}, 0.5),
        ({"type": {"a": 1}}, 0.5),
        ("no JSON at all", 0.3),
        ({"kind": "Decision"}, 0.3),
        (None, 0.3),
    ],
)
async def test_an_unknown_type_is_context(resources: Resources, tenant: Tenant, answer: Any, confidence: float) -> None:
    """0.5 when the model said something else, 0.3 when it failed."""
    async with with_llm(resources, tenant, ScriptedLlm(classify=answer)) as client:
        result = await store(client, "Zebra crossing painted")
    assert (result["type"], result["type_confidence"]) == ("Context", confidence)


@pytest.mark.parametrize("more", [{"use_llm": False}, {}])
async def test_without_a_model_it_is_context_at_one_half(
    resources: Resources, tenant: Tenant, client: AsyncClient, more: dict[str, Any]
) -> None:
    llm = ScriptedLlm()
    async with with_llm(resources, tenant, llm) as with_model:
        result = await store(with_model if more else client, "Zebra crossing painted", **more)
    assert (result["type"], result["type_confidence"]) == ("Context", 0.5)
    assert llm.requests == []


async def test_an_explicit_type(client: AsyncClient) -> None:
    result = await store(client, "Zebra crossing painted", type="Style")
    assert (result["type"], result["type_confidence"], result["classification_source"]) == ("Style", 0.9, "explicit")
    sure = await store(client, "Zebra crossing removed", type="Style", type_confidence=0.4)
    assert sure["type_confidence"] == 0.4
    edge = await store(client, "Zebra crossing repainted", type="Style", type_confidence=0)
    assert edge["type_confidence"] == 0.0


# -- importance, temporal, categories ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "level", "band"),
    [
        (1.0, 10, "critical"),
        (0.9, 9, "critical"),
        (0.89, 9, "important"),
        (0.7, 7, "important"),
        (0.5, 5, "standard"),
        (0.3, 3, "minor"),
        (0.29, 3, "low"),
        (0.0, 1, "low"),
    ],
)
async def test_importance_of_the_caller(client: AsyncClient, value: float, level: int, band: str) -> None:
    result = await store(client, f"Importance {value}", importance=value, dedup=False)
    assert (result["importance"], result["importance_level"], result["importance_band"].lower()) == (value, level, band)
    kept = await read(client, result["id"])
    assert (kept["importance"], kept["importance_level"], kept["importance_band"].lower()) == (value, level, band)


async def test_importance_by_level_and_by_model(resources: Resources, tenant: Tenant) -> None:
    llm = ScriptedLlm(annotate={"importance": 8, "temporal": "persistent", "valid_until": None, "categories": ["a b"]})
    async with with_llm(resources, tenant, llm) as client:
        rated = await store(client, "Zebra crossing painted")
        chosen = await store(client, "Zebra crossing removed", importance_level=3)
    assert (rated["importance"], rated["importance_level"], rated["categories"]) == (0.8, 8, ["a_b"])
    assert (chosen["importance"], chosen["importance_level"]) == (0.3, 3), "the caller's word wins over the model's"


async def test_how_long_a_text_is_valid(client: AsyncClient) -> None:
    """At Monday 2026-03-02 09:30 UTC; tests/corpora/temporal has durable.jsonl and expiry.jsonl."""
    kept = (await store(client, "Client prefers async standups"))["temporal"]
    assert (kept["type"], kept["valid_until"]) == ("persistent", None)
    over = (await store(client, "Meeting at 3pm tomorrow"))["temporal"]
    assert (over["type"], over["valid_until"]) == ("temporal", "2026-03-03T16:00:00+00:00")


@pytest.mark.parametrize(
    ("timestamp", "zone", "begins"),
    [
        ("2025-06-10T12:00:00+02:00", None, "2025-06-11T13:00:00+00:00"),
        ("2025-06-10T12:00:00-07:00", None, "2025-06-11T22:00:00+00:00"),
        ("2025-06-10T12:00:00+05:30", None, "2025-06-11T15:00:00+00:00"),
        ("2025-06-10T12:00:00+02:00", "America/New_York", "2025-06-11T19:00:00+00:00"),
    ],
)
async def test_without_a_zone_the_offset_of_the_timestamp_counts(
    client: AsyncClient, timestamp: str, zone: str | None, begins: str
) -> None:
    """One of half hours has no zone of its own: then UTC, the workspace's."""
    given: dict[str, Any] = {"timezone": zone} if zone else {}
    result = await store(client, "Meeting at 3pm tomorrow", timestamp=timestamp, **given)
    assert result["temporal"]["mentions"][0]["begins_at"] == begins


# -- PII --------------------------------------------------------------------------------------------------------------

SECRET = "qX9vT2mB7pLs4KdW"
SAYS = f"my password is {SECRET}"


BETRAYALS: list[dict[str, Any]] = [
    {"content": f"For the record, {SAYS}.", "dedup": False},
    {"content": "In metadata", "metadata": {"a": [{"b": SAYS}], "password": SECRET}},
    {"content": "In tags", "tags": [f"password={SECRET}"]},
    {"messages": [{"role": "user", "content": SAYS}], "infer": False},
    {"messages": SAYS, "infer": False, "metadata": {"k": SAYS}},
    {"content": f"x {SAYS}", "dry_run": True},
]


async def test_a_secret_reaches_nothing(
    resources: Resources, tenant: Tenant, tables: Tables, embedder: AngleEmbedder
) -> None:
    """Not the database in any column of any table, not the embedder, not the model, not the log, not the answer."""
    llm = ScriptedLlm()
    with structlog.testing.capture_logs() as lines:
        async with with_llm(resources, tenant, llm) as client:
            answers = []
            for index, body in enumerate(BETRAYALS):
                for headers in ({}, {"Idempotency-Key": f"k{index}"}, {"Prefer": "respond-async"}):
                    answers.append(await client.post("/v1/memories", json={**body, **USER}, headers=headers))
            answers.append(await client.post("/v1/memories/search", json={"query": SAYS, **USER}))
            answers.append(await client.get("/v1/memories/search", params={"query": SAYS, **USER}))
            answers.append(await client.get("/v1/memories", params=USER))
        for kind in ("ingest", "enrich", "embed"):
            await work(resources, tables, tenant.workspace_id, kind)
    assert {answer.status_code for answer in answers} <= {200, 201, 202}, [answer.text for answer in answers]
    assert not [answer.text for answer in answers if SECRET.lower() in answer.text.lower()]
    assert await tables.holding(SECRET) == []
    assert await tables.holding(SECRET.lower()) == []
    assert not [text for text in embedder.seen if SECRET in text]
    assert not [ask for ask in llm.requests if SECRET in ask.user or SECRET in ask.system]
    assert SECRET not in str(lines)
    first = answers[0].json()["results"][0]
    assert "[REDACTED:" in first["memory"]
    assert first["pii"]["redactions"]
    assert first["hash" if "hash" in first else "id"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"content": "The password is"}, "content"),
        ({"content": "Fine", "metadata": {"note": "the password is"}}, "metadata"),
        ({"content": "Fine", "tags": ["password:"]}, None),
        ({"messages": "The password is", "infer": False}, "messages"),
    ],
)
async def test_an_announced_secret_without_an_end_is_refused(
    client: AsyncClient,
    tenant: Tenant,
    tables: Tables,
    embedder: AngleEmbedder,
    body: dict[str, Any],
    field: str | None,
) -> None:
    answer = await client.post("/v1/memories", json={**body, **USER})
    if field is None:  # a tag of one word may also be taken for a mention
        assert answer.status_code in (201, 422)
        return
    assert (answer.status_code, answer.json()["code"]) == (422, "pii_rejected"), answer.text
    assert answer.json()["field"] == field
    counts = await tables.counts(tenant.workspace_id)
    assert (counts["memory"], counts["turn"], counts["audit_log"]) == (0, 0, 0)
    assert embedder.seen == []


# -- embedding --------------------------------------------------------------------------------------------------------


async def test_a_placeholder_while_the_embedder_is_down(
    client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables, embedder: AngleEmbedder
) -> None:
    embedder.down = True
    result = await store(client, "Feeds the heron at dawn")
    assert result["embedding"] == "placeholder"
    assert any(each.startswith("embedding_unavailable") for each in result["warnings"])
    kinds = await tables.fetch("SELECT kind FROM memory_vector WHERE workspace_id = $1", tenant.workspace_id)
    assert [row["kind"] for row in kinds] == ["placeholder"]
    assert (await store(client, "Feeds the heron at dusk"))["event"] == "ADD", "a placeholder is near to nothing"
    again = await store(client, "Feeds the heron at dawn", 200)
    assert again["event"] == "NONE", "an equal text needs no vector"
    found = (await client.get("/v1/memories/search", params={"query": "heron dawn", **USER})).json()
    assert found["results"][0]["id"] == result["id"]
    assert found["vector_path"] == "none"
    assert found["warnings"]

    embedder.down = False
    assert await work(resources, tables, tenant.workspace_id, "embed") == 2
    assert (await read(client, result["id"]))["embedding"] == "stored"
    kinds = await tables.fetch("SELECT DISTINCT kind FROM memory_vector WHERE workspace_id = $1", tenant.workspace_id)
    assert [row["kind"] for row in kinds] == ["text"]
    found = (await client.get("/v1/memories/search", params={"query": "Feeds the heron at dawn", **USER})).json()
    assert found["results"][0]["similarity"] == pytest.approx(1.0, abs=1e-3)


async def test_a_callers_vector_is_taken(client: AsyncClient, embedder: AngleEmbedder) -> None:
    given = [3.0, 4.0] + [0.0] * (DIMENSION - 2)
    embedder.place("what", 0.6)
    embedder.place("what", 0.6, axis=0, side=1)
    result = await store(client, "With its own vector", embedding=given)
    assert result["embedding"] == "stored"
    assert "With its own vector" not in embedder.seen
    (hit,) = (await client.get("/v1/memories/search", params={"query": "what", **USER})).json()["results"]
    assert hit["similarity"] == pytest.approx(1.0, abs=1e-3)
    assert "vector" not in str(hit.keys())


# -- ids, tags, times, metadata ----------------------------------------------------------------------------------------


async def test_a_chosen_id(client: AsyncClient) -> None:
    """New, then an update of the same memory with its history; in another scope a conflict."""
    chosen = str(uuid4())
    first = await store(client, "Feeds the heron", id=chosen)
    assert first["id"] == chosen
    second = await store(client, "Sold the boat to a cousin", 200, id=chosen)
    assert (second["id"], second["event"], second["old_memory"]) == (chosen, "UPDATE", "Feeds the heron")
    kept = await read(client, chosen)
    assert (kept["memory"], kept["version"]) == ("Sold the boat to a cousin", 2)
    history = (await client.get(f"/v1/memories/{chosen}/history")).json()["results"]
    assert [entry["event"] for entry in history] == ["ADD", "UPDATE"]
    other = await client.post("/v1/memories", json={"content": "Mine", "user_id": "otto", "id": chosen})
    assert (other.status_code, other.json()["field"]) == (409, "id")
    found = (await client.get("/v1/memories/search", params={"query": "Sold the boat to a cousin", **USER})).json()
    assert found["results"][0]["similarity"] == pytest.approx(1.0, abs=1e-3), "the vector is the new text's"


@pytest.mark.parametrize(
    ("given", "tags", "prefixes"),
    [
        (
            ["Slack:Channel:General"],
            ["slack:channel:general"],
            ["slack", "slack:channel", "slack:channel:general"],
        ),
        ("project:automem:api, work", ["project:automem:api", "work"], None),
        ([" A ", "a", "", "  "], ["a"], ["a"]),
        ("a/b:c", ["a/b:c"], ["a", "a/b", "a/b:c"]),
        ("slack:user:U123", ["slack:user:u123"], None),
        ([], [], []),
        ("", [], []),
    ],
)
async def test_tags(client: AsyncClient, given: Any, tags: list[str], prefixes: list[str] | None) -> None:
    result = await store(client, "Tagged", tags=given)
    kept = await read(client, result["id"])
    assert kept["tags"] == tags == result["tags"]
    if prefixes is not None:
        assert sorted(kept["tag_prefixes"]) == sorted(prefixes)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05+00:00"),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05+00:00"),
        ("2026-01-02", "2026-01-02T00:00:00+00:00"),
        ("2026-01-02T03:04:05.123456Z", "2026-01-02T03:04:05.123456+00:00"),
        ("1969-07-20T20:17:40-05:00", "1969-07-21T01:17:40+00:00"),
    ],
)
async def test_times_are_kept_in_utc(client: AsyncClient, given: str, kept: str) -> None:
    result = await store(client, "Timed", timestamp=given)
    assert (await read(client, result["id"]))["timestamp"] == kept


async def test_a_memory_as_it_is_read(client: AsyncClient, clock: SetClock) -> None:
    result = await store(client, "Feeds the heron", metadata={"a": {"b": [1, None, True, 1.5]}}, session_id="s")
    assert (result["embedding"], result["enrichment"]) == ("stored", "queued")
    assert result["dedup"] == {"action": "stored_new", "existing_id": None, "similarity": None}
    kept = await read(client, result["id"])
    now = clock.now.isoformat()
    assert (kept["timestamp"], kept["created_at"], kept["updated_at"], kept["last_accessed"]) == (now,) * 4
    assert kept["metadata"] == {"a": {"b": [1, None, True, 1.5]}}
    assert (kept["enriched"], kept["lifecycle_state"], kept["enrichment_attempts"]) == (False, "enrichment_queued", 0)
    assert (kept["user_id"], kept["agent_id"], kept["channel"], kept["session_id"]) == ("iris", None, "_global", "s")
    assert kept["hash"] == hashlib.md5(b"Feeds the heron").hexdigest()
    assert UUID(kept["id"])


async def test_enrichment(client: AsyncClient, resources: Resources, tenant: Tenant, tables: Tables) -> None:
    """Summary of at most 240 characters, entities by kind, the same in metadata; then it is active."""
    text = "Maria Keller from Siemens uses Kubernetes in Hamburg. " + "And more of it follows here. " * 20
    result = await store(client, text, metadata={"mine": 1, "enriched_at": "my own"})
    assert await work(resources, tables, tenant.workspace_id, "enrich") == 1
    kept = await read(client, result["id"])
    assert (kept["enriched"], kept["lifecycle_state"], kept["enrichment_attempts"]) == (True, "active", 1)
    assert kept["summary"] == "Maria Keller from Siemens uses Kubernetes in Hamburg."
    assert "Siemens" in str(kept["entities"])
    assert kept["metadata"]["mine"] == 1
    assert kept["metadata"]["summary"] == kept["summary"]
    assert kept["metadata"]["entities"] == kept["entities"]
    assert kept["metadata"]["enrichment_attempts"] == 1
    assert kept["metadata"]["enriched_at"] == "my own", "what the caller wrote is never hidden"
    assert kept["version"] == 1


async def test_poor_contents_get_hints(client: AsyncClient) -> None:
    assert (await store(client, "[DECISION] Use Postgres for everything"))["warnings"]
    assert (await store(client, "Fixed typo"))["warnings"]
    assert (await store(client, "The parser was rewritten because the old one was quadratic"))["warnings"] == []


NOT_STORED = ("embedding_cache", "llm_cache", "model_day")


async def test_a_dry_run_stores_nothing(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    """Not a row in any table; the caches hold digests and vectors of what would have been asked anyway, and tokens
    are counted."""
    async with with_llm(resources, tenant, ScriptedLlm()) as client:
        await store(client, STORED)
        before = await tables.counts(tenant.workspace_id, leave_out=NOT_STORED)
        result = await store(client, "Meeting at 3pm tomorrow", 200, dry_run=True, tags=["a:b"])
        assert (result["event"], result["id"], result["enrichment"]) == ("ADD", None, "none")
        assert result["temporal"]["mentions"]
        assert (await store(client, STORED, 200, dry_run=True))["event"] == "NONE"
        said = {"messages": [{"role": "user", "content": "Hi"}], "infer": False, "dry_run": True, **USER}
        answer = await client.post("/v1/memories", json=said)
        assert (answer.status_code, answer.json()["dry_run"]) == (200, True)
        late = await client.post("/v1/memories", json=said, headers={"Prefer": "respond-async"})
        assert late.status_code == 200
    assert await tables.counts(tenant.workspace_id, leave_out=NOT_STORED) == before


# -- conversations: infer=false ----------------------------------------------------------------------------------------


async def say(client: AsyncClient, messages: Any, **more: Any) -> dict[str, Any]:
    answer = await client.post("/v1/memories", json={"messages": messages, "infer": False, **USER, **more})
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_messages_keep_order_roles_names_and_times(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    roles = ["system", "user", "assistant", "tool", "developer"]
    said = [
        {"role": role, "content": f"Line {index} by {role}", "name": f"N{index}", "timestamp": f"2023-05-0{index + 1}"}
        for index, role in enumerate(roles)
    ]
    found = await say(client, said, run_id="S1")
    assert [each["memory"] for each in found["results"]] == [each["content"] for each in said]
    assert [each["role"] for each in found["results"]] == roles
    assert [each["turn_index"] for each in found["results"]] == [0, 1, 2, 3, 4]
    assert len({each["conversation_id"] for each in found["results"]}) == 1
    for index, each in enumerate(found["results"]):
        kept = await read(client, each["id"])
        assert (kept["role"], kept["speaker"], kept["turn_index"]) == (roles[index], f"N{index}", index)
        assert kept["timestamp"] == f"2023-05-0{index + 1}T00:00:00+00:00"
        assert kept["conversation_id"] == each["conversation_id"]
    turns = await tables.fetch(
        "SELECT role, speaker, content FROM turn WHERE workspace_id = $1 ORDER BY turn_index", tenant.workspace_id
    )
    assert [tuple(row) for row in turns] == [(each["role"], each["name"], each["content"]) for each in said]
    counts = await tables.counts(tenant.workspace_id)
    assert (counts["conversation"], counts["memory_source"]) == (1, 5)


async def test_messages_as_clients_send_them(client: AsyncClient) -> None:
    """Parts, null and unknown roles warn, they do not fail."""
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    found = await say(
        client,
        [
            {"role": "user", "content": [{"type": "text", "text": "Two"}, image, {"type": "text", "text": "parts"}]},
            {"role": "assistant", "content": None},
            {"role": "critic", "content": "Said by a critic"},
            {"role": "user", "content": [image]},
            {"role": "user", "content": "  "},
        ],
    )
    assert [each["memory"] for each in found["results"]] == ["Two\nparts", "Said by a critic"]
    warned = " ".join(found["warnings"] + [text for each in found["results"] for text in each["warnings"]])
    for place in (0, 1, 2, 3, 4):
        assert f"messages[{place}]" in warned
    assert (await say(client, "A bare string"))["results"][0]["role"] == "user"


async def test_equal_turns(client: AsyncClient, tenant: Tenant, tables: Tables) -> None:
    """Two equal turns are one memory with dedup and two without; both stay turns."""
    twice = [{"role": "user", "content": "Yes, please"}] * 2
    found = (await say(client, twice, run_id="S1"))["results"]
    assert [each["event"] for each in found] == ["ADD", "NONE"]
    assert found[0]["id"] == found[1]["id"]
    apart = (await say(client, twice, run_id="S2", dedup=False))["results"]
    assert [each["event"] for each in apart] == ["ADD", "ADD"]
    counts = await tables.counts(tenant.workspace_id)
    assert (counts["memory"], counts["turn"]) == (3, 4)


async def test_records_have_mentions_but_no_expiry(client: AsyncClient) -> None:
    said = [{"role": "user", "content": "The meeting is tomorrow at 3pm", "timestamp": "2023-05-01T10:00:00Z"}]
    (found,) = (await say(client, said))["results"]
    kept = (await read(client, found["id"]))["temporal"]
    assert kept["mentions"]
    assert (kept["valid_until"], kept["tag"]) == (None, None)


@pytest.mark.parametrize("name", ["id", "embedding"])
async def test_what_belongs_to_one_text_is_refused_for_many(client: AsyncClient, name: str) -> None:
    value: Any = {"id": str(uuid4()), "embedding": [1.0] * DIMENSION}[name]
    answer = await client.post("/v1/memories", json={"messages": "x", "infer": False, **USER, name: value})
    assert (answer.status_code, answer.json()["field"]) == (400, name)


async def test_the_stages_of_a_store_are_timed_by_their_names(client: AsyncClient) -> None:
    answer = await client.post("/v1/memories", json={"content": "Keeps bees on the roof", "user_id": "zoe"})
    timed = answer.json()["results"][0]["timings_ms"]
    assert {"size", "pii", "embed", "temporal", "annotate", "dedup", "decide"} <= timed.keys()
