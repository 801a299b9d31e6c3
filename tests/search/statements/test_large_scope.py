"""What only one arm finds comes first in a large scope, as in a small one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from httpx2 import AsyncClient

from service.domain import sizes
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.search.statements import exact
from service.search.statements.search_plan import Candidates, SearchPlan
from tests.conftest import Tenant
from tests.fakes.embedder import AngleEmbedder
from tests.search.routes.test_ranking import name_it
from tests.support.application import Tables, client_of, serving
from tests.support.calls import body_of, store_at, tuned

USER = {"user_id": "iris"}
NEARER = 60
"""Notes that are nearer to every question: more than the 50 that the arm of the vectors hands in."""

FAR = -0.9


class SearchClient:
    """The client, and what its answers have to look like."""

    def __init__(self, client: AsyncClient, embedder: AngleEmbedder, path: str) -> None:
        self.client, self.embedder, self.path = client, embedder, path

    async def store(self, content: str, **more: Any) -> str:
        """A memory as far away from every question as can be; its id."""
        return await store_at(self.client, self.embedder, content, FAR, **more)

    async def search(self, question: str, **more: Any) -> list[str]:
        self.embedder.place(question, 1.0)
        body = {"query": question, "limit": 5, **USER, **tuned(more)}
        found = await body_of(self.client.post("/v1/memories/search", json=body))
        assert found["vector_path"] == self.path
        assert len(found["results"]) == 5
        return [hit["id"] for hit in found["results"]]

    async def is_first(self, memory_id: str, question: str, without: dict[str, Any], **more: Any) -> None:
        """It is the first hit, and far from it without the arm."""
        assert (await self.search(question, **more))[0] == memory_id
        assert memory_id not in await self.search(question, **{**more, **without})


@pytest.fixture(params=[("exact", 20_000, 0), ("binary", 5, 150_000), ("hnsw", 5, 0)], ids=lambda param: param[0])
async def asked(
    request: pytest.FixtureRequest,
    resources: Resources,
    tenant: Tenant,
    embedder: AngleEmbedder,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[SearchClient]:
    """A user with many notes, looked at row by row or by index."""
    path, exact_rows, binary_rows = request.param
    monkeypatch.setattr(sizes, "EXACT_ROWS", exact_rows)
    monkeypatch.setattr(sizes, "BINARY_ROWS", binary_rows)
    notes = [f"Note {number} about nothing in particular" for number in range(NEARER)]
    for number, note in enumerate(notes):
        embedder.place(note, 0.5 + number / 1_000, side=2)
    async with serving(replace(resources)) as app, client_of(app, tenant.key) as client:
        for start in range(0, NEARER, 100):
            items = [{"content": note, "dedup": False, **USER} for note in notes[start : start + 100]]
            answer = await client.post("/v1/memories/batch", json={"items": items})
            assert answer.status_code in (200, 201), answer.text
        yield SearchClient(client, embedder, path)


async def test_by_its_words_alone(asked: SearchClient) -> None:
    ledger = await asked.store("The zirconium ledger lies under the stairs")
    await asked.is_first(ledger, "Where does the zirconium ledger lie?", {"techniques": {"hybrid": False}})


async def test_a_word_that_other_texts_have_too_does_not_outweigh_meaning(asked: SearchClient) -> None:
    for number in range(9):
        await asked.store(f"A ledger with {number + 3} pages")
    found = await asked.search("Where does the zirconium ledger lie?")
    assert (await asked.search("nothing in common"))[0] == found[0]


async def test_a_rare_word_far_away_in_vector_space(asked: SearchClient) -> None:
    await asked.store("Nothing to do with it at all")
    for word in ("ZX-4471", "quetzalcoatlus", "łódzkość", "咖啡馆"):
        text = f"Somebody wrote {word} on the wall once, and nobody knows who it was or what it meant"
        rare = await asked.store(text)
        await asked.is_first(rare, f"what about {word}", {"techniques": {"hybrid": False}})


async def test_by_its_entity_alone(asked: SearchClient, tables: Tables, tenant: Tenant) -> None:
    about = await asked.store("She collects stamps.")
    await name_it(tables, tenant, about, "Zenobia")
    await asked.is_first(about, "Tell me about Zenobia", {"techniques": {"entity_centric": False}})


async def test_by_its_time_alone(asked: SearchClient) -> None:
    sailed = await asked.store("We sailed around the island.", timestamp="2023-05-14T10:00:00Z")
    question = "What happened in May 2023?"
    await asked.is_first(sailed, question, {"weights": {"time": 0, "time_alone": 0}})


async def test_by_its_tag_alone(asked: SearchClient) -> None:
    tagged = await asked.store("It is moored at the second pier.", tags=["boat:mooring"])
    wanted = {"prefer_tags": ["boat"], "weights": {"tag": 5}}
    await asked.is_first(tagged, "anything new", {"prefer_tags": []}, **wanted)


@pytest.mark.parametrize(("prefilter_rows", "reads_all"), [(5, False), (1_000, True)])
async def test_conditions_come_first_where_prefilter_rows_would_be_read(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch, prefilter_rows: int, reads_all: bool
) -> None:
    """Also in a scope that is read row by row; the answer is the same."""
    for number in range(12):
        tags = ["rare"] if number % 6 == 0 else ["often"]
        body = {"content": f"Note {number} about a ledger", "dedup": False, "tags": tags, **USER}
        assert (await client.post("/v1/memories", json=body)).status_code == 201
    monkeypatch.setattr("service.search.statements.candidates.PREFILTER_ROWS", prefilter_rows)
    whole: list[bool] = []

    async def watched(session: Session, plan: SearchPlan) -> Candidates | None:
        whole.append(not plan.prefiltered)
        return await find(session, plan)

    find = exact.find
    monkeypatch.setattr(exact, "find", watched)
    body = {"query": "Where is the ledger?", "tags": ["rare"], "limit": 5, **USER}
    found = (await client.post("/v1/memories/search", json=body)).json()["results"]
    assert whole == [reads_all]
    assert len(found) == 2
