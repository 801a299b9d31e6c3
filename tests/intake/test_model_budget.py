"""The day's budget of a workspace for the language model: what is set aside, what is spent, and what waits."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from httpx2 import AsyncClient

from service.access.statements.model_days import ACCOUNT
from service.domain.access import NO_WALL
from service.domain.errors import LlmError, ModelBudgetSpent
from service.intake import deferred
from service.postgres import direct
from service.postgres.engine import Database
from service.providers.budget import estimate_prompt
from service.providers.protocols import LlmReply, LlmRequest
from service.runtime.resources import Context, Resources
from service.understanding.model_calls import RESERVED_AFTER_S, complete_on_account
from service.worker.loop import Worker
from service.worker.recorder import ending_of_failure
from service.worker.registry import TASKS
from tests.conftest import SetClock, Tenant
from tests.intake.model_victim import PROMPT
from tests.support.application import Tables, client_of, serving
from tests.support.scripted_model import ONCE, ConversationScript, ModelSetup, with_scripted_model
from tests.support.tasks import to_consolidate, work

ROOT = Path(__file__).parents[2]
ESTIMATE = estimate_prompt(PROMPT) + 100
REPORTED = 11 + 7
TEA = ConversationScript(facts={"tea": ["User likes green tea"]})
SAID = {"messages": [{"role": "user", "content": "I like green tea in the morning."}], "user_id": "alice"}


Ask = Callable[[LlmRequest], Coroutine[Any, Any, LlmReply]]


@asynccontextmanager
async def model(
    resources: Resources, tenant: Tenant, answers: Any = "yes", **limits: Any
) -> AsyncIterator[tuple[ModelSetup, Ask]]:
    """An application, and the model on the account of the tenant."""
    settings = resources.settings.changed(model_budget=limits)
    async with with_scripted_model(resources, tenant, answers, settings, ONCE) as scripted:
        yield scripted, partial(complete_on_account, scripted.resources, tenant.workspace_id)


WAITING = "SELECT run_after FROM job WHERE workspace_id = $1 AND kind = 'consolidate' AND state = 'ready'"


async def shown(client: AsyncClient) -> dict[str, Any]:
    """The account as it is shown."""
    found: dict[str, Any] = (await client.get("/v1/stats")).json()["model_budget"]
    return found


async def tokens(client: AsyncClient) -> tuple[int, int]:
    """Spent and reserved."""
    found = await shown(client)
    return found["prompt_tokens"] + found["completion_tokens"], found["reserved_tokens"]


async def test_a_call_is_reserved_and_settled_with_what_the_wire_reports(resources: Resources, tenant: Tenant) -> None:
    async with model(resources, tenant, hard_tokens=1_000, prompt_price=2, completion_price=10) as (scripted, ask):
        scripted.server.chat.reply("yes", delay_s=2.0)
        calling = asyncio.create_task(ask(PROMPT))
        for _ in range(100):  # until it is set aside
            if await tokens(scripted.client) != (0, 0):
                break
        assert await tokens(scripted.client) == (0, ESTIMATE)
        await calling
        found = await shown(scripted.client)
        assert (found["calls"], found["prompt_tokens"], found["completion_tokens"]) == (1, 11, 7)
        assert found["reserved_tokens"] == 0
        assert found["cost"] == pytest.approx((11 * 2 + 7 * 10) / 1_000_000)
        assert (found["day"], found["resets_at"][:19]) == ("2026-03-02", "2026-03-03T00:00:00")
        assert (found["hard_tokens"], found["soft_tokens"], found["state"]) == (1_000, None, "open")


async def test_the_estimate_stays_where_the_wire_reports_nothing(resources: Resources, tenant: Tenant) -> None:
    async with model(resources, tenant, hard_tokens=1_000) as (scripted, ask):
        scripted.server.chat.reply("yes", usage={"total_tokens": 0})
        await ask(PROMPT)
        assert await tokens(scripted.client) == (ESTIMATE, 0)


async def test_what_a_failed_call_costs(resources: Resources, tenant: Tenant) -> None:
    """Nothing when it was refused, what the wire reports of an answer that cannot be used, the estimate when nobody
    knows."""
    async with model(resources, tenant, hard_tokens=10_000) as (scripted, ask):
        scripted.server.chat.status(500)
        with pytest.raises(LlmError):
            await ask(PROMPT)
        assert await tokens(scripted.client) == (0, 0)
        scripted.server.chat.reply("", usage={"prompt_tokens": 40, "completion_tokens": 2})
        with pytest.raises(LlmError):
            await ask(PROMPT)
        assert await tokens(scripted.client) == (42, 0)
        scripted.server.chat.hang(1.0)
        with pytest.raises(LlmError):
            await ask(replace(PROMPT, deadline_s=0.2))
        assert await tokens(scripted.client) == (42 + ESTIMATE, 0)


async def test_calls_at_once_do_not_pass_the_limit(resources: Resources, tenant: Tenant) -> None:
    """Of twenty only as many are sent as there is room for, whoever comes first."""
    async with model(resources, tenant, hard_tokens=5 * ESTIMATE) as (scripted, ask):
        for _ in range(20):
            scripted.server.chat.reply(
                "yes", delay_s=1.0, usage={"prompt_tokens": ESTIMATE - 9, "completion_tokens": 9}
            )
        answers = await asyncio.gather(*(ask(PROMPT) for _ in range(20)), return_exceptions=True)
        refused = [each for each in answers if isinstance(each, ModelBudgetSpent)]
        assert (len(scripted.server.chat.requests), len(refused)) == (5, 15)
        assert await tokens(scripted.client) == (5 * ESTIMATE, 0)
        assert (await shown(scripted.client))["state"] == "hard"


async def test_a_new_day_begins_at_midnight_in_utc(resources: Resources, tenant: Tenant, clock: SetClock) -> None:
    async with model(resources, tenant, hard_tokens=ESTIMATE) as (scripted, ask):
        await ask(PROMPT)
        clock.forward(hours=14)
        with pytest.raises(ModelBudgetSpent) as refused:
            await ask(PROMPT)
        assert refused.value.retry_after_s == 30 * 60
        clock.forward(minutes=30)
        assert await tokens(scripted.client) == (0, 0)
        await ask(PROMPT)
        assert await tokens(scripted.client) == (REPORTED, 0)


async def test_one_workspace_does_not_spend_anothers(
    resources: Resources, tenant: Tenant, stranger: Tenant, database: Database, clock: SetClock
) -> None:
    async with model(resources, tenant, hard_tokens=ESTIMATE) as (scripted, ask):
        await ask(PROMPT)
        ask_other = partial(complete_on_account, scripted.resources, stranger.workspace_id)
        await ask_other(PROMPT)
        with pytest.raises(ModelBudgetSpent):
            await ask_other(PROMPT)
        assert await tokens(scripted.client) == (REPORTED, 0)
        async with database.read(stranger.workspace_id) as session:  # row-level security, not the WHERE
            values = {"workspace": tenant.workspace_id, "day": clock().date(), "now_s": clock().timestamp()}
            row = await direct.first(session, ACCOUNT, values)
            assert row is None or not row.calls


async def test_the_reservation_of_a_killed_process_ends_by_itself(
    resources: Resources, tenant: Tenant, clock: SetClock, owner_url: str
) -> None:
    async with model(resources, tenant, hard_tokens=ESTIMATE) as (scripted, ask):
        scripted.server.chat.hang(60)
        command = [sys.executable, "-m", "tests.intake.model_victim", owner_url, str(tenant.workspace_id)]
        where = scripted.server.base_url, clock().isoformat()
        process = await asyncio.create_subprocess_exec(*command, *where, cwd=ROOT)
        try:
            for _ in range(600):  # until its request is under way
                if scripted.server.chat.requests:
                    break
                await asyncio.sleep(0.05)
        finally:
            process.kill()
            await process.wait()
        spent, held = await tokens(scripted.client)
        assert (spent, held) == (0, ESTIMATE)
        with pytest.raises(ModelBudgetSpent):
            await ask(PROMPT)
        clock.forward(seconds=PROMPT.deadline_s + RESERVED_AFTER_S + 1)
        assert await tokens(scripted.client) == (0, 0)
        await ask(PROMPT)
        assert await tokens(scripted.client) == (REPORTED, 0)


async def test_a_call_that_is_cut_off_keeps_its_estimate(resources: Resources, tenant: Tenant) -> None:
    """The provider may go on, and wants to be paid."""
    async with model(resources, tenant, hard_tokens=1_000) as (scripted, ask):
        scripted.server.chat.hang(3)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(PROMPT), 0.3)
        assert await tokens(scripted.client) == (ESTIMATE, 0)


async def test_over_the_soft_limit_rules_answer_and_jobs_go_on(
    resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    """A conversation is read by the rules at once, and by the model on the next day: its turns are there for it."""
    async with model(resources, tenant, TEA, soft_tokens=1) as (scripted, _):
        answer = (await scripted.client.post("/v1/memories", json=SAID)).json()
        assert [each["event"] for each in answer["results"]] == ["ADD"]
        assert [each.partition(":")[0] for each in answer["warnings"]] == ["model_budget", "read_by_rules"]
        assert scripted.server.chat.requests == []
        [job] = await tables.fetch(WAITING, tenant.workspace_id)
        assert job["run_after"].isoformat() == "2026-03-03T00:00:00+00:00"
        read_at = await tables.value(
            "SELECT consolidated_at FROM conversation WHERE workspace_id = $1", tenant.workspace_id
        )
        assert read_at is None
        await work(scripted.resources, tables, tenant.workspace_id, "consolidate")
        assert len(scripted.requests_of("extract")) == 1
        found = (await scripted.client.get("/v1/memories", params={"user_id": "alice"})).json()["results"]
        assert "User likes green tea" in {each["memory"] for each in found}
        read_at = await tables.value(
            "SELECT consolidated_at FROM conversation WHERE workspace_id = $1", tenant.workspace_id
        )
        assert read_at is not None


async def test_a_text_over_the_soft_limit_is_annotated_by_the_rules(resources: Resources, tenant: Tenant) -> None:
    async with model(resources, tenant, TEA, soft_tokens=1) as (scripted, _):
        answer = await scripted.client.post("/v1/memories", json={"content": "Likes green tea", "user_id": "alice"})
        assert answer.status_code == 201
        [warning] = [each for each in answer.json()["results"][0]["warnings"] if each.startswith("model_budget")]
        assert "rules" in warning
        assert scripted.server.chat.requests == []


async def test_over_the_hard_limit_jobs_wait_for_the_next_day(
    resources: Resources, tenant: Tenant, tables: Tables
) -> None:
    """Without losing an attempt."""
    async with model(resources, tenant, TEA, hard_tokens=1) as (scripted, _):
        answer = (await scripted.client.post("/v1/memories", json=SAID)).json()
        assert answer["warnings"][0].startswith("model_budget: ")
        [job] = await to_consolidate(tables, tenant)
        with pytest.raises(ModelBudgetSpent) as refused:
            await deferred.consolidate(job, scripted.resources.within(Context(NO_WALL, background=True)))
        ending = ending_of_failure(replace(job, attempts=job.max_attempts), refused.value, alone=True, backoff_s=2)
        assert (ending.state, ending.counted, ending.delay_s) == ("ready", False, 14.5 * 3_600)


async def test_a_worker_puts_the_job_off_and_takes_no_attempt(
    resources: Resources, worker_database: Database, tenant: Tenant, tables: Tables
) -> None:
    async with model(resources, tenant, TEA, hard_tokens=1) as (scripted, _):
        await scripted.client.post("/v1/memories", json=SAID)
        due = "UPDATE job SET run_after = now() WHERE workspace_id = $1 AND kind = 'consolidate'"
        await tables.fetch(due, tenant.workspace_id)
        res = replace(scripted.resources, db=worker_database)
        stop = asyncio.Event()
        working = asyncio.create_task(Worker(res, {"consolidate": TASKS["consolidate"]}).run(stop))
        state = "SELECT state, attempts, last_error, run_after > now() + interval '14 hours' AS later FROM job"
        state += (
            " WHERE workspace_id = $1 AND kind = 'consolidate' AND payload ? 'conversation_id'"  # the clock's have none
        )
        for _ in range(400):
            [job] = await tables.fetch(state, tenant.workspace_id)
            if job["last_error"]:
                break
            await asyncio.sleep(0.05)
        stop.set()
        await working
        assert (job["state"], job["attempts"], job["later"]) == ("ready", 0, True)
        assert job["last_error"].startswith("model_budget: ")


async def test_jobs_know_the_budget_of_their_workspace(resources: Resources, tenant: Tenant, tables: Tables) -> None:
    async with model(resources, tenant, TEA) as (scripted, _):
        own = {"settings": {"model_budget": {"hard_tokens": 1}}}
        assert (await scripted.client.patch("/v1/workspaces/current", json=own)).status_code == 200
        await scripted.client.post("/v1/memories", json=SAID)
        [job] = await to_consolidate(tables, tenant)
        with pytest.raises(ModelBudgetSpent):
            await deferred.consolidate(job, scripted.resources)


async def test_a_walled_key_spends_and_sees_no_account(resources: Resources, tenant: Tenant) -> None:
    async with model(resources, tenant, TEA, hard_tokens=100_000) as (scripted, _):
        asked = {"name": "alice", "rights": ["memory:read", "memory:write"], "user_id": "alice"}
        key = (await scripted.client.post("/v1/api-keys", json=asked)).json()["api_key"]
        async with serving(scripted.resources) as app, client_of(app, key) as walled:
            answer = await walled.post("/v1/memories", json=SAID)
            assert (answer.status_code, answer.json()["warnings"]) == (200, [])
            assert (await walled.get("/v1/stats")).json()["model_budget"] is None
        assert (await shown(scripted.client))["calls"] >= 1


async def test_settings_name_the_field(client: AsyncClient) -> None:
    answer = await client.patch("/v1/workspaces/current", json={"settings": {"model_budget": {"soft_tokens": -1}}})
    assert answer.status_code == 400
    assert answer.json()["field"] == "settings.model_budget.soft_tokens"
    assert (await client.get("/v1/stats")).json()["model_budget"] is None, "there is no model"
