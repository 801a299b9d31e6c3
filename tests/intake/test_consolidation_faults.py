"""A model or a worker that fails while kept conversations become facts loses nothing: it is tried again, and what is
said comes out once."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from service.intake import deferred
from service.kit.settings import Settings
from service.postgres.engine import Database
from service.runtime.resources import Resources
from service.worker.registry import TASKS
from tests.conftest import Tenant
from tests.fakes.http_server import Cut, HttpRequest, ScriptedAnswer
from tests.fakes.openai_server import Content
from tests.support.application import Tables
from tests.support.scripted_model import FENCED, ONCE, ModelSetup, with_scripted_model
from tests.support.workers import Start, until, working

SAID = {
    "I work as a nurse in Bergen.": "User works as a nurse in Bergen",
    "My sister Ana lives in Lisbon.": "User's sister Ana lives in Lisbon",
    "I own a boat.": "User owns a boat",
    "My dog is named Rex.": "User has a dog named Rex",
}
FACTS = sorted(SAID.values())


class FaultyModel:
    """Knows the facts of SAID; while it has a fault every answer is that."""

    def __init__(self) -> None:
        self.fault: ScriptedAnswer | None = None

    def __call__(self, request: HttpRequest) -> Content | ScriptedAnswer:
        if self.fault is not None:
            return self.fault
        return {"facts": facts_in(request)}


def facts_in(request: HttpRequest) -> list[str]:
    """Those of the messages of the prompt, which stand in its last block."""
    said = FENCED.findall(request.json["messages"][1]["content"])[-1]
    return [fact for message, fact in SAID.items() if message in said]


@dataclass(frozen=True)
class Kept:
    """A conversation that is kept, with a job that is to read it."""

    model: FaultyModel
    setup: ModelSetup
    tables: Tables
    tenant: Tenant

    async def row(self, sql: str) -> Any:
        [found] = await self.tables.fetch(sql, self.tenant.workspace_id)
        return found

    async def job(self) -> Any:
        """The job that reads it, without the pause after a failure; None before it is queued."""
        await self.tables.fetch(
            "UPDATE job SET run_after = now() WHERE workspace_id = $1 AND state = 'ready'", self.tenant.workspace_id
        )
        found = await self.tables.fetch(
            "SELECT * FROM job WHERE workspace_id = $1 AND payload ? 'first'", self.tenant.workspace_id
        )
        return found[0] if found else None

    async def failed(self, why: str) -> bool:
        job = await self.job()
        return job is not None and (job["last_error"] or "").endswith(why)

    async def done(self) -> bool:
        job = await self.job()
        return job is not None and job["state"] == "done"

    async def facts(self) -> list[str]:
        rows = await self.tables.fetch(
            "SELECT content FROM memory WHERE workspace_id = $1 AND fact_confidence IS NOT NULL",
            self.tenant.workspace_id,
        )
        return sorted(row["content"] for row in rows)

    async def assert_untouched(self) -> None:
        """Nothing is read: the turns are there, the watermark stands before them."""
        found = await self.row("SELECT consolidated_turns, consolidated_at FROM conversation WHERE workspace_id = $1")
        assert (found["consolidated_turns"], found["consolidated_at"]) == (0, None)
        rows = await self.tables.fetch(
            "SELECT coalesce(shown, content) AS said FROM turn WHERE workspace_id = $1 ORDER BY turn_index",
            self.tenant.workspace_id,
        )
        assert [row["said"] for row in rows] == list(SAID)
        assert await self.facts() == []

    async def assert_read(self) -> None:
        """Every fact once, and the conversation read to its end."""
        assert await self.facts() == FACTS
        found = await self.row(
            "SELECT consolidated_turns, turn_count, consolidated_at FROM conversation WHERE workspace_id = $1"
        )
        assert found["consolidated_turns"] == found["turn_count"] == len(SAID)
        assert found["consolidated_at"] is not None


@pytest.fixture(scope="session")
def hurried(settings: Settings) -> Settings:
    return settings.changed(llm_timeout_s=1.5)


@pytest.fixture
async def kept(
    resources: Resources, tenant: Tenant, tables: Tables, hurried: Settings, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Kept]:
    model = FaultyModel()
    await tables.fetch(
        "UPDATE job SET state = 'dead', finished_at = now() WHERE kind = 'consolidate' AND state = 'ready'"
    )
    async with with_scripted_model(resources, tenant, model, hurried, ONCE) as setup:
        messages = [{"role": "user", "content": said} for said in SAID]
        body = {"messages": messages, "user_id": "ann", "infer": False}
        assert (await setup.client.post("/v1/memories", json=body)).status_code == 201
        monkeypatch.setattr(deferred, "QUIET", timedelta(0))
        assert (await setup.client.post("/v1/jobs/consolidate/run")).status_code == 202
        yield Kept(model, setup, tables, tenant)


@asynccontextmanager
async def worker(kept: Kept, database: Database) -> AsyncIterator[None]:
    task = replace(TASKS["consolidate"], interval_s=None)
    async with working(replace(kept.setup.resources, db=database), {"consolidate": task}):
        yield


FAULTS = {
    "unreadable answer.": ScriptedAnswer(body=b"<html>bad gateway</html>"),
    "time-out.": ScriptedAnswer(delay_s=30.0),
    "connection failed.": ScriptedAnswer(cut=Cut.BEFORE_ANSWER),
}
"""What the model does, by the end of the error."""


async def test_a_model_that_fails_again_and_again_is_asked_until_it_answers(
    kept: Kept, worker_database: Database
) -> None:
    async with worker(kept, worker_database):
        for said, fault in FAULTS.items():
            kept.model.fault = fault
            await until(partial(kept.failed, said), timeout_s=30)
            await kept.assert_untouched()
        kept.model.fault = None
        await until(kept.done, timeout_s=30)
    await kept.assert_read()
    assert (await kept.job())["attempts"] > len(FAULTS)


async def test_a_worker_killed_while_it_reads_or_writes_leaves_the_facts_to_the_next(
    kept: Kept,
    worker_database: Database,
    owner_url: str,
    start_worker: Start,
    tmp_path: Path,
) -> None:
    async def asked() -> bool:
        return bool(kept.setup.server.chat.requests)

    async def waits_for_the_turns() -> bool:
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR KEY SHARE%'"
        )
        return bool(await kept.tables.value(waiting))

    kept.model.fault = ScriptedAnswer(delay_s=60.0)
    reading = start_worker(owner_url, "consolidate", "real", tmp_path, kept.setup.server.base_url)
    await until(asked, timeout_s=60)
    reading.send_signal(signal.SIGKILL)
    reading.wait()
    kept.model.fault = None
    await kept.assert_untouched()

    holder = await asyncpg.connect(owner_url.replace("+asyncpg", ""))
    held = holder.transaction()
    await held.start()
    await holder.fetch("SELECT FROM turn WHERE workspace_id = $1 FOR UPDATE", kept.tenant.workspace_id)
    writing = start_worker(owner_url, "consolidate", "real", tmp_path, kept.setup.server.base_url)
    await until(waits_for_the_turns, timeout_s=60)
    writing.send_signal(signal.SIGKILL)
    writing.wait()
    await held.rollback()
    await holder.close()
    await kept.assert_untouched()

    async with worker(kept, worker_database):
        await until(kept.done, timeout_s=60)
    await kept.assert_read()
    assert (await kept.job())["attempts"] >= 3


NO_ROOM = {
    "OpenAI": (400, {"error": {"message": "Please reduce the length.", "code": "context_length_exceeded"}}),
    "vLLM": (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400}),
    "llama.cpp": (400, {"error": {"code": 400, "message": "the request exceeds the available context size"}}),
    "a proxy": (413, {}),
}


@pytest.mark.parametrize("server", NO_ROOM)
async def test_a_talk_longer_than_the_model_has_room_for_is_read_in_parts(
    kept: Kept, worker_database: Database, server: str
) -> None:
    """And a message that is too long alone by rules."""
    status, refusal = NO_ROOM[server]

    def narrow(request: HttpRequest) -> Content | ScriptedAnswer:
        found = facts_in(request)
        if len(found) == 1 and "Rex" not in found[0]:
            return {"facts": found}
        return ScriptedAnswer(status, json.dumps(refusal).encode())

    kept.setup.server.chat.default(narrow)
    async with worker(kept, worker_database):
        await until(kept.done, timeout_s=30)
    by_model = {fact for fact in FACTS if "Rex" not in fact}
    facts = set(await kept.facts())
    assert by_model < facts
    [by_rules] = facts - by_model
    assert "Rex" in by_rules
    found = await kept.row("SELECT consolidated_turns, turn_count FROM conversation WHERE workspace_id = $1")
    assert found["consolidated_turns"] == found["turn_count"]
