from __future__ import annotations

import json
from uuid import uuid4

from httpx2 import AsyncClient

from tests.conftest import Tenant
from tests.support.application import Tables


async def test_a_duplicate_says_what_of_it_was_not_used(client: AsyncClient) -> None:
    """Also under an id of the caller's choice: two memories with one text must not be."""
    text = {"content": "Prefers rye bread", "user_id": "alice"}
    known = (await client.post("/v1/memories", json={**text, "tags": ["food"]})).json()["results"][0]
    assert known["warnings"] == []
    again = {**text, "id": str(uuid4()), "tags": ["bread"], "metadata": {"from": "chat"}}
    [found] = (await client.post("/v1/memories", json=again)).json()["results"]
    assert (found["event"], found["id"]) == ("NONE", known["id"])
    assert found["warnings"] == [
        f"duplicate: memory {known['id']} says this already and stays as it is; id, tags and metadata of this request "
        "were not used."
    ]
    read = (await client.get(f"/v1/memories/{known['id']}")).json()
    assert (read["tags"], read["metadata"]) == (["food"], {})
    assert (await client.get(f"/v1/memories/{again['id']}")).status_code == 404
    [plain] = (await client.post("/v1/memories", json=text)).json()["results"]
    assert plain["warnings"] == []


async def test_an_update_by_id_to_a_text_that_is_known_says_so_too(client: AsyncClient) -> None:
    texts = ["Prefers rye bread", "Sails on Sundays"]
    one, other = [
        (await client.post("/v1/memories", json={"content": text, "user_id": "alice"})).json()["results"][0]["id"]
        for text in texts
    ]
    body = {"content": texts[0], "user_id": "alice", "id": other, "tags": ["new"]}
    [found] = (await client.post("/v1/memories", json=body)).json()["results"]
    assert (found["event"], found["id"]) == ("NONE", one)
    assert "id and tags of this request were not used" in found["warnings"][0]
    assert (await client.get(f"/v1/memories/{other}")).json()["memory"] == texts[1]


async def test_what_was_looked_at_is_not_looked_for_again(client: AsyncClient, tables: Tables, tenant: Tenant) -> None:
    """Enrichment takes the nearest memories from the write, also when there were none; unless nobody looked."""
    for user, more in (("first", {}), ("first", {}), ("other", {"dedup": False})):
        text = f"Keeps bees {uuid4()}"
        assert (await client.post("/v1/memories", json={"content": text, "user_id": user, **more})).status_code == 201
    payloads = await tables.fetch(
        "SELECT payload FROM job WHERE workspace_id = $1 AND kind = 'enrich' ORDER BY id", tenant.workspace_id
    )
    alone, beside, unseen = (json.loads(row["payload"]) for row in payloads)
    assert alone["neighbours"] == []
    assert len(beside["neighbours"]) == 1
    assert "neighbours" not in unseen
