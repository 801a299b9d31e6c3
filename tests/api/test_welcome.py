"""The address of the service says where to go."""

from __future__ import annotations

from fastapi import FastAPI
from httpx2 import AsyncClient

from tests.api.conftest import client_of


async def test_it_answers_a_program_and_a_person_without_a_key(app: FastAPI) -> None:
    async with client_of(app, None) as anybody:
        plain = await anybody.get("/")
        found = plain.json()
        assert (found["docs"], found["openapi"], found["readme"]) == ("/docs", "/openapi.json", "README.md")
        for name in ("docs", "openapi", "errors", "health"):
            assert (await anybody.get(found[name])).status_code == 200
        page = await anybody.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
        assert page.headers["content-type"].startswith("text/html")
        assert page.headers["vary"] == plain.headers["vary"] == "Accept"
        assert "<a href=/docs>" in page.text


async def test_its_first_request_works(client: AsyncClient) -> None:
    first = (await client.get("/")).json()["first_request"]
    answer = await client.request(first["method"], first["path"], json=first["body"])
    assert answer.status_code == 201
