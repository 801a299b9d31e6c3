"""A model that extracts and rules as it is told, and the rows of memories as they stand."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from httpx2 import AsyncClient

from service.postgres.engine import in_transaction
from service.providers.protocols import LlmReply, LlmRequest
from service.runtime.resources import Resources
from tests.conftest import Tenant
from tests.support.application import Tables, with_llm
from tests.support.calls import results_of

KNOWN = re.compile(r"^\((\d+)\) ", re.MULTILINE)


class Judge:
    """`say` sets the fact of the next conversation and the operations it is answered with; all that is known bears on
    it."""

    model = "test:judge"

    def __init__(self) -> None:
        self.fact = ""
        self.operations: list[dict[str, Any]] = []

    def say(self, fact: str, *operations: dict[str, Any]) -> None:
        self.fact, self.operations = fact, list(operations)

    async def complete(self, ask: LlmRequest) -> LlmReply:
        assert not in_transaction(), "a model was awaited inside a transaction"
        if ask.task == "extract":
            known = [int(number) for number in KNOWN.findall(ask.user)]
            return LlmReply(json.dumps({"facts": [{"text": self.fact, "known": known}]}), model=self.model)
        return LlmReply(json.dumps({"memory": self.operations}), model=self.model)

    async def close(self) -> None:
        return None


@asynccontextmanager
async def judged(resources: Resources, tenant: Tenant, **settings: Any) -> AsyncIterator[tuple[AsyncClient, Judge]]:
    """A client of an application with a judge, under these settings of the workspace."""
    judge = Judge()
    async with with_llm(resources, tenant, judge) as client:
        if settings:
            answer = await client.patch("/v1/workspaces/current", json={"settings": settings})
            assert answer.status_code == 200, answer.text
        yield client, judge


async def tell(client: AsyncClient, said: str, user_id: str = "alice", **fields: Any) -> list[dict[str, Any]]:
    """The results of a conversation of one message."""
    body = {"messages": [{"role": "user", "content": said}], "user_id": user_id, "infer": True, **fields}
    answer = await client.post("/v1/memories", json=body)
    assert answer.status_code in (200, 201), answer.text
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


async def decided(client: AsyncClient, memory_id: str) -> list[dict[str, Any]]:
    return await results_of(client.get(f"/v1/memories/{memory_id}/decisions"))


ROWS = """
    SELECT 'memory ' || m.id AS what, (to_jsonb(m) - '{version,updated_at}'::text[])::text AS how FROM memory m
    WHERE m.workspace_id = $1
    UNION ALL
    SELECT 'vector ' || v.memory_id || v.generation || v.kind, v.embedding::text FROM memory_vector v
    WHERE v.workspace_id = $1
    UNION ALL
    SELECT 'edge ' || e.source_id || e.rel_type || e.target_id, to_jsonb(e)::text FROM memory_edge e
    WHERE e.workspace_id = $1
    UNION ALL
    SELECT 'source ' || s.memory_id || s.turn_id, to_jsonb(s)::text FROM memory_source s WHERE s.workspace_id = $1
    UNION ALL
    SELECT 'entity ' || n.memory_id || n.entity_id, '' FROM memory_entity n WHERE n.workspace_id = $1
"""


async def dump(tables: Tables, workspace_id: UUID) -> dict[str, str]:
    """Every row of every memory but its version and the time of its last change."""
    return {row["what"]: row["how"] for row in await tables.fetch(ROWS, workspace_id)}
