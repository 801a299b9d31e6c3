"""Lines of the log: whom they are about, what they say of an unexpected error, and how they look."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest
import structlog
from fastapi import FastAPI
from httpx2 import AsyncClient
from sqlalchemy import text

from service.kit import faults
from service.memories.statements import memories
from tests.conftest import Tenant
from tests.support.application import client_of

SECRET = "my-secret-text"
ID = "01a21506-0a89-754a-b527-79e88364b055"
LINES = (
    "import os, structlog, logging\n"
    "from service.kit.settings import Settings\n"
    "from service.observability import logs\n"
    "logs.set_up(Settings.from_env(os.environ))\n"
    "structlog.contextvars.bind_contextvars(request_id='01a21506-0a89-754a-b527-79e88364b055')\n"
    "structlog.get_logger('a').info('request', method='GET', path='/v1/memories/{id}', status=200, workspace='w1')\n"
    "logging.getLogger('b').warning('%s failed', 'decay', extra={'frames': ['worker/loop.py:1', 'x.py:2']})\n"
)


async def test_a_line_says_whom_it_is_about(app: FastAPI, tenant: Tenant) -> None:
    async with client_of(app, tenant.key) as client, client_of(app, None) as anonymous:
        with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
            body = {"content": SECRET, "user_id": "ada"}
            assert (await client.post("/v1/memories", json=body, headers={"X-Request-ID": "r-1"})).status_code == 201
            assert (await anonymous.get("/v1/stats")).status_code == 401
    stored, refused = (line for line in lines if line["event"] == "request")
    assert (stored["request_id"], stored["workspace"]) == ("r-1", str(tenant.workspace_id))
    assert len(stored["key_id"]) == 36
    assert "workspace" not in refused
    assert "key_id" not in refused
    for said in (SECRET, "ruth-with-no-hex", tenant.key):
        assert said not in repr(lines)


async def test_an_unexpected_error_says_where_it_came_from(
    client: AsyncClient, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(session: Any, *_: Any, **__: Any) -> None:
        await session.execute(text("SELECT :said, * FROM nowhere"), {"said": SECRET})

    monkeypatch.setattr(memories, "get_many", broken)
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        stored = (await client.post("/v1/memories", json={"content": "Ada likes tea.", "user_id": "ada"})).json()
        answer = await client.get(f"/v1/memories/{stored['results'][0]['id']}", headers={"X-Request-ID": "r-2"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    [line] = [line for line in lines if line["event"] == "unexpected"]
    assert line["kind"] == "ProgrammingError < UndefinedTableError"
    assert line["sqlstate"] == "42P01"
    assert (line["request_id"], line["workspace"]) == ("r-2", str(tenant.workspace_id))
    assert any(frame.startswith("memories/routes/memories.py:") for frame in line["frames"]), line["frames"]
    assert SECRET not in repr(lines)


def test_frames_are_ours_alone() -> None:
    with pytest.raises(ValueError, match="Expecting") as raised:
        json.loads("{")
    assert faults.frames(raised.value) == []
    assert faults.classes(raised.value) == "JSONDecodeError"
    assert faults.details(raised.value) == {}
    assert faults.locate(raised.value).startswith("decoder.py:")


def test_json_lines_where_nobody_looks() -> None:
    run = subprocess.run([sys.executable, "-c", LINES], capture_output=True, text=True, check=True)
    first, second = map(json.loads, run.stderr.splitlines())
    assert (first["event"], first["path"], first["status"], first["level"]) == (
        "request",
        "/v1/memories/{id}",
        200,
        "info",
    )
    assert (first["workspace"], first["request_id"]) == ("w1", ID)
    assert (second["event"], second["request_id"]) == ("decay failed", ID)
    assert second["frames"] == ["worker/loop.py:1", "x.py:2"]


def test_text_for_people() -> None:
    ours, theirs = os.openpty()
    subprocess.run([sys.executable, "-c", LINES], stderr=theirs, check=True)
    os.close(theirs)
    printed = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "\x1b" in printed, "colours"
    first, second, *frames = re.sub(r"\x1b\[[0-9;]*m", "", printed).splitlines()
    assert "GET /v1/memories/{id} 200" in first
    assert ID[-12:] in first
    assert ID not in first
    assert "w1" not in first
    assert len(first) < 100
    assert "decay failed" in second
    assert [frame.strip() for frame in frames] == ["worker/loop.py:1", "x.py:2"]
