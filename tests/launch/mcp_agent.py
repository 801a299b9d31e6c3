"""An agent with a memory: the command `mcp` as clients start it, before a restart of the service and after it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def over_stdio(data_dir: Path, port: int) -> AsyncIterator[Client]:
    """A client that starts the command, which finds the service and its first key by itself."""
    fixed = {"LOXODON_DATA_DIR": str(data_dir), "LOXODON_PORT": str(port), "LOXODON_MCP_USER_ID": "carol"}
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **fixed}
    command = StdioServerParameters(command=sys.executable, args=["-m", "service", "mcp"], env=env, cwd=ROOT)
    async with Client(command) as client:
        yield client


async def remember(data_dir: Path, port: int) -> None:
    """What the agent learns on one day."""
    async with over_stdio(data_dir, port) as client:
        assert len((await client.list_tools()).tools) == 12
        for content in ("Carol drinks tea in the morning", "Carol's cello teacher is called Wanda"):
            await _said(client, "remember", content=content)
        refused = await client.call_tool("recall", {"query": "tea", "user_id": "bob"})
        assert refused.is_error


async def recall_correct_and_forget(data_dir: Path, port: int) -> None:
    """The next day, first over standard input, then with the same memory over HTTP."""
    async with over_stdio(data_dir, port) as client:
        found = await _said(client, "recall", query="What does Carol drink in the morning?")
        assert "Carol drinks tea in the morning" in found["context"]
        hits = (await _said(client, "search", query="What does Carol drink in the morning?"))["results"]
        tea = next(each["id"] for each in hits if "tea" in each["memory"])
        await _said(client, "update", id=tea, content="Carol drinks coffee in the morning")
        assert (await _said(client, "forget", query="Wanda"))["removed"]
    key = (data_dir / "first-key").read_text().strip()
    headers = {"Authorization": f"Bearer {key}", "X-User-Id": "carol"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)) as client,
    ):
        kept = [each["memory"] for each in (await _said(client, "list_memories"))["results"]]
        assert kept == ["Carol drinks coffee in the morning"]
        found = await _said(client, "recall", query="Who teaches Carol the cello?")
        assert "Wanda" not in str(found)
        changes = (await _said(client, "why", id=tea))["changes"]
        assert [each["event"] for each in changes] == ["ADD", "UPDATE"]


async def is_told_where_nothing_runs(data_dir: Path, port: int) -> None:
    """A service that is not there is an error of the tool, with a sentence, and the client goes on."""
    async with over_stdio(data_dir, port) as client:
        assert len((await client.list_tools()).tools) == 12
        answer = await client.call_tool("recall", {"query": "tea"})
        assert answer.is_error
        assert f"http://127.0.0.1:{port} cannot be reached" in str(answer.content)


async def _said(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content
