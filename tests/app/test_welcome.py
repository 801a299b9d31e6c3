"""The address of the service says where to go."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import html
import subprocess
from pathlib import Path

from fastapi import FastAPI
from httpx2 import AsyncClient

from service.app.routes import welcome
from tests.conftest import Tenant
from tests.support.application import client_of
from tests.support.listening import listening


async def test_it_answers_a_program_and_a_person_without_a_key(app: FastAPI) -> None:
    async with client_of(app, None) as anybody:
        plain = await anybody.get("/")
        found = plain.json()
        assert (found["docs"], found["openapi"]) == ("/docs", "/openapi.json")
        for name in ("docs", "openapi", "health"):
            assert (await anybody.get(found[name])).status_code == 200
        page = await anybody.get("/", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
        assert page.headers["content-type"].startswith("text/html")
        assert page.headers["vary"] == plain.headers["vary"] == "Accept"
        assert "<a href=/docs>" in page.text


async def test_its_first_request_works(client: AsyncClient) -> None:
    first = (await client.get("/")).json()["first_request"]
    answer = await client.request(first["method"], first["path"], json=first["body"])
    assert answer.status_code == 201


async def test_its_lines_work_when_pasted(app: FastAPI, tenant: Tenant, tmp_path: Path) -> None:
    async with client_of(app, None) as anybody, listening(app) as (host, port):
        page = (await anybody.get("/", headers={"Accept": "text/html"})).text
        lines = html.unescape(page.partition("<pre>")[2].partition("</pre>")[0])
        assert "lox_" not in page.replace(welcome.KEY, ""), "the server puts no key into it"
        filled = lines.replace(welcome.KEY, tenant.key).replace(welcome.URL, f"http://{host}:{port}")
        pasted = ["bash", "-euo", "pipefail", "-c", filled]
        done = await asyncio.to_thread(
            subprocess.run, pasted, capture_output=True, text=True, check=False, cwd=tmp_path
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"memory": "Prefers tea over coffee"') == 2
    assert max(map(len, lines.splitlines())) < 100


async def test_only_its_own_script_runs(app: FastAPI) -> None:
    async with client_of(app, None) as anybody:
        page = await anybody.get("/", headers={"Accept": "text/html"})
    script = page.text.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in page.headers["Content-Security-Policy"]
    assert page.text.count("<script") == 1
