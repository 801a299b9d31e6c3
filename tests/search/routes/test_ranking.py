"""A caller can say what ranks, and the answer tells how each score came about."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from httpx2 import AsyncClient
from prometheus_client import REGISTRY

from service.runtime.resources import Resources
from service.search.statements.search_plan import MIN_ARM_LIMIT
from service.search.techniques import GENERIC_REQUESTS
from tests.conftest import SetClock, Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.fakes.llm import ScriptedLlm
from tests.search.scores import explained_score
from tests.support.application import Tables, client_of, serving, with_llm
from tests.support.calls import body_of, store_at, tuned

USER = {"user_id": "iris"}
QUESTION, BEFORE = "Where is the boat kept?", "Where was the boat kept before?"


@pytest.fixture(autouse=True)
def _asked(embedder: AngleEmbedder) -> None:
    for question in (QUESTION, BEFORE):
        embedder.place(question, 1.0)


async def ask(client: AsyncClient, query: str = QUESTION, **more: Any) -> dict[str, Any]:
    return await body_of(client.post("/v1/memories/search", json={"query": query, **USER, **tuned(more)}))


async def texts(client: AsyncClient, query: str = QUESTION, **more: Any) -> list[str]:
    return [hit["memory"] for hit in (await ask(client, query, **more))["results"]]


BOATS = {
    "The boat is in the harbour of Rerik.": 0.7,
    "Iris bought a boat named Libelle.": 0.8,
    "Tom lives in Kiel now.": 0.9,
    "Where is the key of the boat?": 0.85,
}


@pytest.fixture
async def boats(client: AsyncClient, embedder: AngleEmbedder) -> AsyncClient:
    for number, (content, angle) in enumerate(BOATS.items()):
        await store_at(client, embedder, content, angle, importance=0.2 + number / 5)
    return client


MODES: list[dict[str, Any]] = [
    {},
    {"fusion": "rrf"},
    {"weights": {"text_lexical": 3, "context_vector": 0}},
    {"factors": {"importance": 0.5, "recency": 1, "salience": 0.3, "current_factor": 1.2, "past_factor": 0.7}},
    {"diversity": 0.8},
    {"techniques": {"hybrid": False, "entity_centric": False}},
    {"techniques": {"query_expansion": True, "self_query": True, "hyde": True}},
]


@pytest.mark.parametrize("asked", MODES, ids=str)
async def test_terms_and_factors_make_the_score(boats: AsyncClient, asked: dict[str, Any]) -> None:
    """In every mode the score can be recomputed from the answer."""
    found = await ask(boats, explain=True, **asked)
    assert len(found["results"]) == len(BOATS)
    for hit in found["results"]:
        assert explained_score(hit["explain"]) == pytest.approx(hit["score"], abs=1e-6)
    scores = [hit["score"] for hit in found["results"]]
    assert scores == sorted(scores, reverse=True)
    assert {"read", "embed", "candidates", "signals", "rank", "rows", "total"} <= found["timings_ms"].keys()
    assert found["vector_path"] == "exact"
    assert found["candidates"]["text_vector"] == len(BOATS)


async def test_without_explain_nothing_is_told(boats: AsyncClient) -> None:
    found = await ask(boats)
    assert found["timings_ms"].keys() == {"total"}
    assert found["candidates"] is None
    assert all("explain" not in hit for hit in found["results"])


def only(**weights: float) -> dict[str, float]:
    names = (
        "text_lexical",
        "context_lexical",
        "text_vector",
        "context_vector",
        "speaker",
        "declarative",
        "time",
        "rare",
    )
    return {**dict.fromkeys(names, 0.0), "entity": 0.0, "entity_alone": 0.0, "rare_alone": 0.0, **weights}


async def test_weights_decide(boats: AsyncClient) -> None:
    """A signal alone, by request."""
    assert (await texts(boats, weights=only(text_vector=1)))[0] == "Tom lives in Kiel now."
    assert (await texts(boats, "harbour", weights=only(text_lexical=1)))[0] == "The boat is in the harbour of Rerik."


async def test_a_workspace_has_techniques_of_its_own(
    boats: AsyncClient, other_client: AsyncClient, embedder: AngleEmbedder
) -> None:
    """Deployment, workspace, request; the later one wins, field by field."""
    answer = await boats.patch("/v1/workspaces/current", json={"settings": {"search_techniques": {"hybrid": False}}})
    assert answer.status_code == 200, answer.text
    assert "hybrid" not in (await ask(boats))["metrics"]["techniques"]
    assert "hybrid" in (await ask(boats, techniques={"hybrid": True}))["metrics"]["techniques"]
    await store_at(other_client, embedder, "The boat is in Wismar.", 0.5)
    assert "hybrid" in (await ask(other_client))["metrics"]["techniques"]


BAD = [
    ({"weights": {"text_vector": -1}}, "tuning.weights.text_vector"),
    ({"weights": {"text_vektor": 1}}, "tuning.weights.text_vektor"),
    ({"weights": {"coverage": 1.5}}, "tuning.weights.coverage"),
    ({"factors": {"importance": 2}}, "tuning.factors.importance"),
    ({"factors": {"validity": 1}}, "tuning.factors.validity"),
    ({"techniques": {"hyde": "yes"}}, "tuning.techniques.hyde"),
    ({"techniques": {"magic": True}}, "tuning.techniques.magic"),
    ({"fusion": "sum"}, "tuning.fusion"),
    ({"diversity": 1.1}, "tuning.diversity"),
    ({"explain_id": "x"}, "explain_id"),
    ({"rerank": 1}, "tuning.rerank"),
]


@pytest.mark.parametrize(("asked", "field"), BAD)
async def test_what_cannot_be_asked_is_named(client: AsyncClient, asked: dict[str, Any], field: str) -> None:
    answer = await client.post("/v1/memories/search", json={"query": QUESTION, **USER, **tuned(asked)})
    assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_get_takes_tuning_as_post_does(boats: AsyncClient) -> None:
    tuning = {"weights": {"text_lexical": 3.0}, "fusion": "rrf", "techniques": {"hybrid": False}}
    asked: dict[str, Any] = {"query": QUESTION, **USER, "explain": True}
    by_get = await boats.get("/v1/memories/search", params={**asked, "tuning": json.dumps(tuning)})
    by_post = await boats.post("/v1/memories/search", json={**asked, "tuning": tuning})
    assert by_get.json()["results"] == by_post.json()["results"] != []
    for wrong, field in (("{", "tuning"), ('{"weights": {"no": 1}}', "tuning.weights.no"), ("3", "tuning")):
        refused = await boats.get("/v1/memories/search", params={**asked, "tuning": wrong})
        assert (refused.status_code, refused.json()["field"]) == (400, field)
    beside = await boats.get("/v1/memories/search", params={**asked, "rerank": "true"})
    assert (beside.status_code, beside.json()["field"]) == (400, "rerank")


# -- factors --------------------------------------------------------------------------------------------------------


async def test_importance_times_relevance_lifts(client: AsyncClient, embedder: AngleEmbedder) -> None:
    await store_at(client, embedder, "At rest", 0.5, importance=0.9)
    await store_at(client, embedder, "At sea", 0.52, importance=0.1)
    assert await texts(client) == ["At sea", "At rest"]
    found = await ask(client, factors={"importance": 1}, weights={"declarative": 5}, explain=True)
    assert [hit["memory"] for hit in found["results"]] == ["At rest", "At sea"]
    assert found["results"][0]["explain"]["factors"]["importance"] == pytest.approx(1.8)


async def test_what_is_recent_lifts(client: AsyncClient, embedder: AngleEmbedder, clock: SetClock) -> None:
    await store_at(client, embedder, "At sea", 0.52)
    clock.forward(days=30)
    await store_at(client, embedder, "At rest", 0.5)
    assert await texts(client) == ["At sea", "At rest"]
    found = await ask(client, factors={"recency": 0.5}, weights={"declarative": 5}, explain=True)
    assert [hit["memory"] for hit in found["results"]] == ["At rest", "At sea"]
    factors = [hit["explain"]["factors"]["recency"] for hit in found["results"]]
    assert factors == pytest.approx([1.5, 1.0])  # now, and after a half-life


async def test_what_is_past_ranks_lower_on_request_unless_asked_for(
    client: AsyncClient, embedder: AngleEmbedder, tables: Tables
) -> None:
    first = await store_at(client, embedder, "At sea", 0.52)
    second = await store_at(client, embedder, "At rest", 0.5)
    for memory_id, tag in ((first, "past"), (second, "current")):
        await tables.fetch("UPDATE memory SET temporal_tag = $1 WHERE id = $2", tag, UUID(memory_id))
    by_tag = {"current_factor": 1.2, "past_factor": 0.7}
    found = await ask(client, weights={"declarative": 5}, factors=by_tag, explain=True)
    assert [hit["memory"] for hit in found["results"]] == ["At rest", "At sea"]
    assert [hit["explain"]["factors"]["temporal_tag"] for hit in found["results"]] == [1.2, 0.7]
    assert (await texts(client, BEFORE, factors=by_tag))[0] == "At sea"
    assert (await texts(client, weights={"declarative": 5}))[0] == "At sea"


async def test_diversity_moves_repeats_down(client: AsyncClient, embedder: AngleEmbedder) -> None:
    """By request, off by default."""
    repeats = ["Iris likes green tea.", "Iris likes green tea a lot.", "Iris likes green tea very much."]
    for number, content in enumerate(repeats):
        await store_at(client, embedder, content, 0.9 - number / 100)
    await store_at(client, embedder, "Tom plays chess.", 0.8)
    assert (await texts(client))[3] == "Tom plays chess."
    assert (await texts(client, diversity=1.0))[1] == "Tom plays chess."


# -- currency -------------------------------------------------------------------------------------------------------

DRAW_EDGE = """
    INSERT INTO memory_edge (workspace_id, source_id, rel_type, target_id)
    SELECT workspace_id, $1, $3, id FROM memory WHERE id = $2
"""


async def ranked(client: AsyncClient, query: str = QUESTION, **more: Any) -> list[str]:
    return [hit["id"] for hit in (await ask(client, query, **more))["results"]]


async def test_what_may_be_outdated_comes_after_what_may_outdate_it(
    client: AsyncClient, embedder: AngleEmbedder, tables: Tables
) -> None:
    older = await store_at(client, embedder, "Trains at Iron Gym", 0.9)
    newer = await store_at(client, embedder, "Trains at Club Nord", 0.8)
    assert await ranked(client) == [older, newer]
    await tables.fetch(DRAW_EDGE, UUID(newer), UUID(older), "MAY_OUTDATE")
    hits = (await ask(client, explain=True))["results"]
    assert [hit["id"] for hit in hits] == [newer, older]
    assert hits[0]["score"] == hits[1]["score"]
    assert hits[0]["explain"]["factors"]["currency"] > 1
    assert await ranked(client, limit=1) == [newer]
    assert await ranked(client, BEFORE) == [older, newer]


async def test_what_was_superseded_comes_after_what_took_its_place(
    client: AsyncClient, embedder: AngleEmbedder, tables: Tables
) -> None:
    older = await store_at(client, embedder, "Trains in Bergen", 0.9, t_invalid="2026-01-01T00:00:00Z")
    newer = await store_at(client, embedder, "Trains in Oslo", 0.3, t_valid="2026-01-01T00:00:00Z")
    assert await ranked(client, validity="ignore") == [older, newer]
    await tables.fetch(DRAW_EDGE, UUID(newer), UUID(older), "SUPERSEDES")
    for validity in ("demote", "ignore"):
        assert await ranked(client, validity=validity) == [newer, older]


# -- entities -------------------------------------------------------------------------------------------------------


async def name_it(tables: Tables, tenant: Tenant, memory_id: str, name: str, *aliases: str) -> UUID:
    """An entity of iris that this memory names."""
    entity = uuid4()
    here = tenant.workspace_id
    await tables.fetch(
        "INSERT INTO entity (workspace_id, id, user_id, name, name_key, type, extracted_by)"
        " VALUES ($1, $2, 'iris', $3, $4, 'person', 'test')",
        *(here, entity, name, name.casefold()),
    )
    for alias in aliases:
        await tables.fetch(
            "INSERT INTO entity_alias (workspace_id, entity_id, user_id, alias_key, alias)"
            " VALUES ($1, $2, 'iris', $3, $4)",
            *(here, entity, alias.casefold(), alias),
        )
    await tables.fetch(
        "INSERT INTO memory_entity (workspace_id, memory_id, entity_id) VALUES ($1, $2, $3)",
        *(here, UUID(memory_id), entity),
    )
    return entity


@pytest.mark.parametrize("question", ["Tell me about Zenobia", "what do you know about zenobia?", "who is Zen"])
async def test_a_hit_by_its_entity_alone_can_be_first(
    client: AsyncClient, embedder: AngleEmbedder, tables: Tables, tenant: Tenant, question: str
) -> None:
    """No word in common, and the farthest vector."""
    embedder.place(question, 1.0)
    for number in range(8):
        await store_at(client, embedder, f"Note {number}", 0.9 - number / 100)
    about = await store_at(client, embedder, "She collects stamps.", 0.0)
    await name_it(tables, tenant, about, "Zenobia", "Zen")
    found = await ask(client, question, explain=True)
    assert found["results"][0]["id"] == about
    assert found["results"][0]["explain"]["terms"]["entity"]["value"] == pytest.approx(1.0)
    assert found["metrics"]["techniques"]["entity_centric"]["count"] == 1
    off = await ask(client, question, techniques={"entity_centric": False})
    assert off["results"][0]["id"] != about


def _place(found: dict[str, Any], memory_id: object) -> int:
    return [hit["id"] for hit in found["results"]].index(memory_id)


async def test_the_graph_leads_one_step_further(
    client: AsyncClient, embedder: AngleEmbedder, tables: Tables, tenant: Tenant
) -> None:
    """Memories of an entity that is related to the one asked for."""
    embedder.place("Tell me about Zenobia", 1.0)
    for number in range(8):
        await store_at(client, embedder, f"Note {number}", 0.5 - number / 100)
    about = await store_at(client, embedder, "She collects stamps.", 0.0)
    beside = await store_at(client, embedder, "The shop opens at nine.", 0.0)
    ends = [await name_it(tables, tenant, about, "Zenobia"), await name_it(tables, tenant, beside, "Palmyra Books")]
    await tables.fetch(
        "INSERT INTO entity_edge (workspace_id, id, source_id, rel_type, label, target_id, strength, extracted_by)"
        " VALUES ($1, $2, $3, 'works_at', 'works at', $4, 1, 'user')",
        *(tenant.workspace_id, uuid4(), *ends),
    )
    found = await ask(client, "Tell me about Zenobia", explain=True)
    values = {hit["id"]: hit["explain"]["terms"]["entity"]["value"] for hit in found["results"]}
    assert (values.pop(about), values.pop(beside)) == pytest.approx((1.0, 0.5))
    assert set(values.values()) == {0.0}
    off = await ask(client, "Tell me about Zenobia", techniques={"entity_centric": False})
    with_graph, without = (_place(each, beside) for each in (found, off))
    assert with_graph < without


async def test_entities_of_others_lead_nowhere(
    client: AsyncClient, other_client: AsyncClient, embedder: AngleEmbedder, tables: Tables, tenant: Tenant
) -> None:
    about = await store_at(client, embedder, "She collects stamps.", 0.0)
    await name_it(tables, tenant, about, "Zenobia")
    found = await ask(client, "Tell me about Zenobia", user_id="tom")
    assert found["results"] == []
    await store_at(other_client, embedder, "Nothing of the kind.", 0.0)
    found = await ask(other_client, "Tell me about Zenobia", explain=True)
    assert "entity" not in found["candidates"]


# -- techniques -----------------------------------------------------------------------------------------------------


async def test_a_request_is_matched_by_what_is_particular_to_it(
    client: AsyncClient, embedder: AngleEmbedder, resources: Resources
) -> None:
    resources.generic_requests.clear()
    for text in GENERIC_REQUESTS:
        embedder.place(text, 0.0, side=2)
    embedder.place("Find me a mooring.", 0.6, side=2)
    await store_at(client, embedder, "Please be brief with me.", 0.0)
    await store_at(client, embedder, "The boat is four metres wide.", 1.0)
    found = await ask(client, "Find me a mooring.")
    resources.generic_requests.clear()
    assert [hit["memory"][:8] for hit in found["results"]] == ["The boat", "Please b"]
    assert found["metrics"]["techniques"]["requests"]["count"] == 1
    assert "requests" not in (await ask(client))["metrics"]["techniques"]


async def test_the_newest_answers_how_things_stand(client: AsyncClient, embedder: AngleEmbedder) -> None:
    for day, rent in enumerate(("four hundred", "five hundred", "six hundred"), 1):
        when = {"timestamp": f"2024-0{day}-01T10:00:00Z"}
        await store_at(client, embedder, f"The rent is {rent} euros.", 0.8, **when)
    embedder.place("How much is the rent now?", 1.0)
    embedder.place("How much is the rent?", 1.0)
    now = (await ask(client, "How much is the rent now?", explain=True))["results"]
    assert now[0]["memory"] == "The rent is six hundred euros."
    assert "time" in now[0]["explain"]["terms"]
    plain = (await ask(client, "How much is the rent?", explain=True))["results"]
    assert "time" not in plain[0]["explain"]["terms"]


async def test_a_word_that_no_text_has_belongs_to_a_full_match(client: AsyncClient, embedder: AngleEmbedder) -> None:
    await store_at(client, embedder, "Buys bread on Fridays.", 0.5)
    await store_at(client, embedder, "Rows on the lake.", 0.5)
    values = []
    for query in ("buy", "buy zither", "buy zither ukulele"):
        embedder.place(query, 1.0)
        hits = (await ask(client, query, explain=True))["results"]
        values.append(
            next(hit for hit in hits if "bread" in hit["memory"])["explain"]["terms"]["context_lexical"]["value"]
        )
    assert values[0] > values[1] > values[2] > 0


async def test_a_model_says_it_in_other_words(
    boats: AsyncClient, resources: Resources, tenant: Tenant, embedder: AngleEmbedder
) -> None:
    """The vectors of what it says pull the search their way."""
    llm = ScriptedLlm(expand={"statements": ["Libelle lies there", 7, " "]}, hyde={"note": "In the harbour"})
    embedder.place("Libelle lies there", 0.1, side=2)
    async with with_llm(resources, tenant, llm) as client:
        found = await ask(client, techniques={"query_expansion": True, "hyde": True})
    used = found["metrics"]["techniques"]
    assert (used["query_expansion"]["count"], used["hyde"]["count"]) == (1, 1)
    assert used["hyde"]["note"] == "by the language model"
    assert {"Libelle lies there", "In the harbour"} <= set(embedder.seen)
    assert sorted(ask.task for ask in llm.requests) == ["expand", "hyde"], "both at once, whichever first"


@pytest.mark.parametrize("answer", [None, "no JSON at all", {"statements": []}, {"note": 3}])
async def test_a_model_that_fails_costs_no_answer(
    boats: AsyncClient, resources: Resources, tenant: Tenant, answer: Any
) -> None:
    plain = await texts(boats, techniques={"query_expansion": True})
    llm = ScriptedLlm(expand=answer, hyde=answer, self_query=answer)
    async with with_llm(resources, tenant, llm) as client:
        found = await ask(client, techniques={"query_expansion": True, "hyde": True, "self_query": True})
    assert [hit["memory"] for hit in found["results"]] == plain
    assert found["metrics"]["techniques"]["hyde"]["count"] == 0


async def test_techniques_wait_for_a_model_no_longer_than_a_search_may(
    boats: AsyncClient, resources: Resources, tenant: Tenant
) -> None:
    """And a model is asked for all that is read of its answer: `filters`, too, where the wire holds it to a schema."""
    llm = ScriptedLlm(expand={"statements": []}, hyde={"note": ""}, self_query={})
    async with with_llm(resources, tenant, llm) as client:
        await ask(client, techniques={"query_expansion": True, "hyde": True, "self_query": True})
    assert {each.task: each.deadline_s for each in llm.requests} == dict.fromkeys(("expand", "hyde", "self_query"), 5.0)
    (asked,) = llm.of("self_query")
    assert asked.schema is not None
    assert asked.schema["required"] == ["start", "end", "types", "tags", "filters"]


async def test_hyde_without_a_model_is_left_out_with_a_note(boats: AsyncClient) -> None:
    found = await ask(boats, techniques={"hyde": True})
    assert found["metrics"]["techniques"]["hyde"] == {
        "ms": 0.0,
        "count": 0,
        "note": "skipped: there is no language model",
    }


async def test_self_query_reads_filters_out_of_the_question(
    client: AsyncClient, embedder: AngleEmbedder, clock: SetClock
) -> None:
    """Offline: a time, a type, a tag."""
    await store_at(client, embedder, "Sailed to Poel.", 0.5, timestamp="2026-02-24T10:00:00Z")
    await store_at(client, embedder, "Sailed to Fehmarn.", 0.9, timestamp="2025-08-01T10:00:00Z", tags=["log"])
    await store_at(client, embedder, "Prefers oak.", 0.3, type="Preference")
    on = {"techniques": {"self_query": True}}
    assert await texts(client, "Where did I sail last week?", **on) == ["Sailed to Poel."]
    assert await texts(client, "What are my preferences?", **on) == ["Prefers oak."]
    assert await texts(client, "Sailing tagged log", **on) == ["Sailed to Fehmarn."]
    found = await ask(client, "Where did I sail in 2019?", explain=True, **on)
    assert len(found["results"]) == 3
    assert 0 < found["timings_ms"]["self_query_retry"] < found["timings_ms"]["total"]
    assert "nothing matched" in found["metrics"]["techniques"]["self_query"]["note"]
    assert len(await texts(client, "Where did I sail last week?")) == 3
    # what matches and is not good enough has matched: it is not looked for everywhere
    found = await ask(client, "What are my preferences about sails of Fehmarn?", min_score=1.0, **on)
    assert found["results"] == []
    assert "nothing matched" not in found["metrics"]["techniques"]["self_query"]["note"]


async def test_self_query_by_a_model_is_checked(
    client: AsyncClient, resources: Resources, tenant: Tenant, embedder: AngleEmbedder
) -> None:
    """What cannot be asked is ignored; what the caller gave stays."""
    await store_at(client, embedder, "Red paint", 0.5, metadata={"colour": "red"})
    await store_at(client, embedder, "Blue paint", 0.9, metadata={"colour": "blue"})
    both = ["Blue paint", "Red paint"]
    good = '{"field": "metadata.colour", "operator": "eq", "value": "red"}'
    for number, (filters, wanted) in enumerate(
        ((good, ["Red paint"]), ("{bad", both), ('{"field": "x", "operator": "is"}', both))
    ):
        llm = ScriptedLlm(self_query={"start": "soon", "end": 5, "types": ["Nonsense"], "tags": 3, "filters": filters})
        async with with_llm(resources, tenant, llm) as asking:
            question = f"Which paint is number {number}?"  # or the answer would come from the cache
            embedder.place(question, 1.0)
            found = await texts(asking, question, techniques={"self_query": True})
        assert found == wanted


async def test_techniques_are_counted(boats: AsyncClient) -> None:
    """In the answer and for Prometheus."""

    def seen() -> float:
        return (
            REGISTRY.get_sample_value("loxodon_search_technique_seconds_count", {"technique": "query_expansion"}) or 0.0
        )

    before = seen()
    found = await ask(boats, techniques={"query_expansion": True})
    assert seen() == before + 1
    used = found["metrics"]["techniques"]
    assert used.keys() == {"hybrid", "entity_centric", "query_expansion"}
    assert used["hybrid"]["ms"] > 0
    assert used["hybrid"]["count"] > 0


# -- why not --------------------------------------------------------------------------------------------------------


async def why(client: AsyncClient, memory_id: object, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await ask(client, explain_id=str(memory_id), **more))["why"]
    return found


async def test_why_was_it_found_or_not(client: AsyncClient, embedder: AngleEmbedder, clock: SetClock) -> None:
    first = await store_at(client, embedder, "At 0.9", 0.9)
    last = await store_at(client, embedder, "At 0.1", 0.1, tags=["far"])
    over = await store_at(client, embedder, "Over", 0.8, t_invalid="2026-01-01T00:00:00Z")
    early = await store_at(client, embedder, "Early", 0.8, t_valid="2027-01-01T00:00:00Z")
    elsewhere = await store_at(client, embedder, "Elsewhere", 0.9, user_id="tom")
    found = await why(client, first)
    assert (found["found"], found["place"], found["reasons"]) == (True, 1, [])
    below = await why(client, last, limit=1)
    assert (below["found"], below["place"], below["reasons"]) == (False, 2, ["below_limit"])
    assert explained_score(below["explain"]) == pytest.approx(below["score"], abs=1e-6)
    assert (await why(client, last, min_score=0.99))["reasons"] == ["below_min_score"]
    assert (await why(client, last, exclude_tags=["far"]))["reasons"] == ["filtered_out"]
    assert (await why(client, last, end="2020-01-01"))["reasons"] == ["after_window"]
    assert (await why(client, over))["reasons"] == ["no_longer_valid"]
    assert (await why(client, over, valid_at="2025-01-01"))["found"]
    unlike = {"field": "memory", "operator": "contains", "value": "nowhere"}
    for more in ({"tags": ["far"]}, {"types": ["Habit"]}, {"filters": unlike}):
        assert (await why(client, over, **more))["reasons"] == ["no_longer_valid", "filtered_out"], more
    assert (await why(client, last, filters=unlike, end="2020-01-01"))["reasons"] == ["after_window", "filtered_out"]
    assert (await why(client, early))["reasons"] == ["not_yet_valid"]
    for unknown in (elsewhere, uuid4()):
        assert (await why(client, unknown))["reasons"] == ["unknown"]
    answer = await client.post("/v1/memories/search", json={"tags": ["far"], **USER, "explain_id": first})
    assert (answer.status_code, answer.json()["field"]) == (400, "explain_id")


async def test_every_other_reason(
    client: AsyncClient, embedder: AngleEmbedder, clock: SetClock, tables: Tables
) -> None:
    plain = await store_at(client, embedder, "Plain", 0.5)
    assert (await why(client, plain, start="2030-01-01"))["reasons"] == ["before_window"]
    short = await store_at(client, embedder, "Short", 0.5, expires_at=(clock.now + timedelta(hours=1)).isoformat())
    clock.forward(hours=2)
    assert (await why(client, short))["reasons"] == ["expired"]
    for change, reason in (("archived = true", "archived"), ("review_status = 'flagged'", "awaits_review")):
        other = await store_at(client, embedder, f"To be {reason}", 0.5)
        await tables.fetch(f"UPDATE memory SET {change} WHERE id = $1", UUID(other))
        assert (await why(client, other))["reasons"] == [reason]
        assert (await why(client, other, include_archived=True))["found"] is (reason == "archived")
    late = await store_at(client, embedder, "Late", 0.5)
    await tables.fetch("UPDATE memory SET embedding_status = 'queued' WHERE id = $1", UUID(late))
    found = await why(client, late, min_score=1)
    assert found["reasons"] == ["no_vector_yet", "below_min_score"]


async def test_far_behind_all_arms(client: AsyncClient, embedder: AngleEmbedder) -> None:
    """More memories than an arm hands in, and one that is nearest to nothing."""
    last = await store_at(client, embedder, "Nowhere near", 0.01)
    items: list[dict[str, Any]] = [{"content": f"Number {n}", "dedup": False, **USER} for n in range(110)]
    for number, item in enumerate(items):
        embedder.place(item["content"], 0.5 + number / 1_000, side=2)
    for some in (items[:60], items[60:]):
        await body_of(client.post("/v1/memories/batch", json={"items": some}))
    found = await why(client, last, limit=1)
    assert (found["place"], found["reasons"]) == (MIN_ARM_LIMIT + 1, ["not_a_candidate", "below_limit"])
    assert explained_score(found["explain"]) == pytest.approx(found["score"], abs=1e-6)


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
async def test_why_adds_up_where_diversity_moves_it(client: AsyncClient, embedder: AngleEmbedder, fusion: str) -> None:
    """What is told of one memory is what is told of the hit."""
    for at, content in enumerate(("The red boat sails", "The red boat sails on", "A cart of straw")):
        await store_at(client, embedder, content, 0.9 - at / 10)
    asked: dict[str, Any] = {"fusion": fusion, "diversity": 0.9, "explain": True}
    hits = (await ask(client, **asked))["results"]
    assert [hit["memory"] for hit in hits][1] == "A cart of straw"
    for index, hit in enumerate(hits, 1):
        found = await why(client, hit["id"], **asked)
        assert (found["place"], found["score"], found["explain"]) == (index, hit["score"], hit["explain"])
        assert explained_score(found["explain"]) == pytest.approx(found["score"], abs=1e-6)
        quiet = await why(client, hit["id"], **{**asked, "explain": False})
        assert quiet["explain"] == hit["explain"]
    repeated = hits[2]["id"]
    moved = await why(client, repeated, **asked, limit=2)
    assert (moved["found"], moved["reasons"]) == (False, ["moved_down"])


async def test_a_listing_adds_up_too(client: AsyncClient, embedder: AngleEmbedder) -> None:
    await store_at(client, embedder, "At 0.9", 0.9, tags=["near"], importance=0.7)
    answer = await client.post("/v1/memories/search", json={"tags": ["near"], **USER, "explain": True})
    (hit,) = answer.json()["results"]
    assert hit["score"] == explained_score(hit["explain"]) == 0.7


# -- uses and limits ------------------------------------------------------------------------------------------------


@pytest.fixture
async def counting(
    resources: Resources, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[AsyncClient, Any]]:
    """A client of an application that counts uses, and the application."""
    settings = resources.settings.changed(reinforce=True)
    async with serving(replace(resources, settings=settings)) as app, client_of(app, tenant.key) as client:
        yield client, app


async def test_hits_are_counted_as_used(
    counting: tuple[AsyncClient, Any], embedder: AngleEmbedder, clock: SetClock
) -> None:
    """Beside the request; a preview is not counted."""
    client, app = counting
    hit = await store_at(client, embedder, "At 0.9", 0.9)
    miss = await store_at(client, embedder, "At 0.1", 0.1)
    clock.forward(hours=2)
    for _ in range(2):
        await ask(client, limit=1)
    await ask(client, reinforce=False)
    await app.state.uses.flush()
    read = (await client.get(f"/v1/memories/{hit}")).json()
    assert (read["access_count"], read["last_accessed"]) == (2, clock.now.isoformat())
    assert (await client.get(f"/v1/memories/{miss}")).json()["access_count"] == 0
    await app.state.uses.flush()
    assert (await client.get(f"/v1/memories/{miss}")).json()["access_count"] == 1  # being read counts, too


async def test_what_is_found_by_its_tag_is_counted_as_used(
    counting: tuple[AsyncClient, Any], embedder: AngleEmbedder
) -> None:
    client, app = counting
    hit = await store_at(client, embedder, "At 0.9", 0.9, tags=["near"])
    for reinforce in ("true", "false"):
        params = {"tags": "near", **USER, "reinforce": reinforce}
        assert len((await client.get("/v1/memories/by-tag", params=params)).json()["results"]) == 1
    await app.state.uses.flush()
    assert (await client.get(f"/v1/memories/{hit}")).json()["access_count"] == 1


async def test_entities_of_the_question_are_counted_as_used(
    counting: tuple[AsyncClient, Any], embedder: AngleEmbedder, tables: Tables, tenant: Tenant
) -> None:
    client, app = counting
    about = await store_at(client, embedder, "She collects stamps.", 0.5)
    entity = await name_it(tables, tenant, about, "Zenobia")
    await ask(client, "What does Zenobia collect?")
    await app.state.uses.flush()
    assert await tables.value("SELECT access_count FROM entity WHERE id = $1", entity) == 1


HOSTILE = [
    "'; DROP TABLE memory; --",
    "%' OR 1=1 -- _%",
    '{"$ne": null} MATCH (n) DETACH DELETE n',
    "\U0001f600 \u4f60\u597d \u0645\u0631\u062d\u0628\u0627 #tag:x @a",
    "Zenobia " * 2_000,
    "a:b & c | !d <-> (e) \\ :names $1",
]


@pytest.mark.parametrize("question", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_question_is_never_a_statement(boats: AsyncClient, question: str) -> None:
    """With every technique on."""
    on = {"query_expansion": True, "hyde": True, "self_query": True}
    found = await ask(boats, question, techniques=on, diversity=0.5, explain=True, factors={"importance": 1})
    assert len(found["results"]) == len(BOATS)


async def test_the_users_own_name_decides_nothing(client: AsyncClient, embedder: AngleEmbedder) -> None:
    """Of a user's memories few say the name, and all are about the user."""
    embedder.place("Where is tent?", 1.0)  # what is left of the question
    tent = await store_at(client, embedder, "The tent lies in the attic", 0.8)
    await store_at(client, embedder, "Iris turns forty in May", 0.7)
    best, other = (await ask(client, "Where is Iris's tent?", explain=True))["results"]
    assert best["id"] == tent
    assert other["explain"]["terms"]["context_lexical"]["value"] == 0.0
    assert other["explain"]["terms"]["rare"]["value"] == 0.0
