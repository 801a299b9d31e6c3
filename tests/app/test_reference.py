"""The reference lists, for people and agents that choose what to store."""

from __future__ import annotations

from httpx2 import AsyncClient


async def test_it_says_what_to_store_and_what_never(client: AsyncClient) -> None:
    found = {each["content"]: each for each in (await client.get("/v1/reference/guidance")).json()["results"]}
    typical = {name: each["typical_importance"] for name, each in found.items() if each["store"]}
    assert typical["A correction by the user"] == [0.9, 0.9]
    assert typical["An architecture decision with its reasons"] == [0.9, 0.9]
    assert typical["A bug fix with its root cause"] == [0.7, 0.8]
    assert typical["A pattern that was found"] == [0.7, 0.9]
    never = [name for name, each in found.items() if not each["store"]]
    for what in ("trivial edit", "documented elsewhere", "debug output", "API keys", "Fixed typo", "[DECISION]"):
        assert any(what in each for each in never), what
    document = (await client.get("/openapi.json")).json()
    assert "trivial edits" in document["paths"]["/v1/reference/guidance"]["get"]["description"]
