"""A model that fails costs no memory: the rules read at once, the model reads again, and the answer says who failed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from service.domain.errors import LlmError, UnusableAnswer
from service.domain.job import Job
from service.intake import deferred
from service.intake.deferred import UNUSABLE_ATTEMPTS
from service.kit.settings import Settings
from service.postgres.engine import Database
from service.runtime.resources import Resources
from service.worker.recorder import ending_of_failure
from service.worker.registry import TASKS
from tests.conftest import Tenant
from tests.fakes.http_server import Cut, HttpRequest, ScriptedAnswer
from tests.fakes.openai_server import Content, failure, says
from tests.support.application import Tables
from tests.support.conversing import answer, known
from tests.support.scripted_model import FENCED, ONCE, ModelSetup, with_scripted_model
from tests.support.workers import until, working

SAID = "I live in Oslo and I am allergic to nuts."
BY_RULES = ["User: I live in Oslo and I am allergic to nuts."]
BY_MODEL = "User is allergic to nuts"
SIX = {
    "I live in Oslo.": "User lives in Oslo",
    "My cat is named Tom.": "User has a cat named Tom",
    "I work at Acme as a welder.": "User works at Acme as a welder",
    "I play chess on Sundays.": "User plays chess on Sundays",
    "I am allergic to nuts.": "User is allergic to nuts",
    "My sister is called Una.": "User has a sister called Una",
}


# what becomes of a request with each of them: test_hostile_llm.py
FAILURES = {
    "wrong key": failure(401, message="Incorrect API key provided: key. See the console."),
    "forbidden": failure(403),
    "wrong model": failure(404, message="The model `gpt-x` does not exist", code="model_not_found"),
    "wrong key, as Google says it": failure(400, message="API key not valid."),
    "rate limit": failure(429, headers={"Retry-After": "60"}),
    "quota": failure(429, message="You exceeded your current quota.", code="insufficient_quota"),
    "broken": failure(500),
    "overloaded": failure(529),
    "hung up": ScriptedAnswer(cut=Cut.BEFORE_ANSWER),
    "hangs": ScriptedAnswer(delay_s=30.0),
    "prose": says("Sure! How can I help you today?"),
    "prose with facts": says("The user lives in Oslo and is allergic to nuts."),
    "out of tokens": says("", finish_reason="length"),
}


@pytest.fixture(scope="session")
def hasty(settings: Settings) -> Settings:
    return settings.changed(llm_timeout_s=1.5)


async def jobs_of(tables: Tables, tenant: Tenant) -> list[Any]:
    return list(
        await tables.fetch("SELECT * FROM job WHERE workspace_id = $1 AND kind = 'consolidate'", tenant.workspace_id)
    )


async def claimed(tables: Tables, tenant: Tenant, attempts: int = 1) -> Job:
    [row] = await jobs_of(tables, tenant)
    payload = json.loads(row["payload"])
    return Job(tenant.workspace_id, row["id"], "consolidate", None, payload, attempts, row["max_attempts"], "test")


@pytest.mark.parametrize("fault", ["wrong key", "wrong model", "quota", "wrong key, as Google says it"])
async def test_what_somebody_has_to_change_waits_long_and_does_not_die(
    resources: Resources, tenant: Tenant, tables: Tables, hasty: Settings, fault: str
) -> None:
    async with with_scripted_model(resources, tenant, lambda _: FAILURES[fault], hasty, ONCE) as setup:
        warning = (await answer(setup.client, SAID))["warnings"][0]
        assert warning.endswith(json.loads(FAILURES[fault].body)["error"]["message"])
        job = await claimed(tables, tenant)
        with pytest.raises(LlmError) as failed:
            await deferred.consolidate(job, setup.resources)
        ending = ending_of_failure(job, failed.value, alone=True, backoff_s=2)
        assert (ending.state, ending.delay_s) == ("ready", 1_800)
        assert "[key]" not in (ending.error or "")
        assert "does not exist" not in (ending.error or ""), "the provider's sentence may quote a memory"


async def test_a_worker_that_starts_tries_at_once_what_waits_for_the_model(
    resources: Resources, worker_database: Database, tenant: Tenant, tables: Tables, hasty: Settings
) -> None:
    """It may have other settings."""

    async def ended() -> bool:
        return [each["state"] for each in await jobs_of(tables, tenant)] == ["done"]

    await tables.fetch("UPDATE job SET state = 'dead', finished_at = now() WHERE state = 'ready'")  # of other tests
    async with with_scripted_model(resources, tenant, lambda _: FAILURES["wrong model"], hasty, ONCE) as setup:
        await answer(setup.client, SAID)
        await tables.fetch(
            "UPDATE job SET run_after = now() + interval '30 minutes', attempts = 1, "
            "last_error = 'llm_error: openai:extract did not answer: request refused (404).' WHERE workspace_id = $1",
            tenant.workspace_id,
        )
        setup.server.chat.default({"facts": [BY_MODEL]})
        async with working(
            replace(setup.resources, db=worker_database),
            {"consolidate": replace(TASKS["consolidate"], interval_s=None)},
        ):
            await until(ended, timeout_s=20)
        assert BY_MODEL in await known(setup.client)


async def test_an_answer_that_can_never_be_used_is_not_paid_for_all_day(
    resources: Resources, tenant: Tenant, tables: Tables, hasty: Settings
) -> None:
    async with with_scripted_model(resources, tenant, lambda _: FAILURES["prose"], hasty, ONCE) as setup:
        await answer(setup.client, SAID)
        for attempt in range(1, UNUSABLE_ATTEMPTS):
            with pytest.raises(UnusableAnswer):
                await deferred.consolidate(await claimed(tables, tenant, attempt), setup.resources)
        await deferred.consolidate(await claimed(tables, tenant, UNUSABLE_ATTEMPTS), setup.resources)
        assert sorted(await known(setup.client)) == BY_RULES
        read = await tables.value(
            "SELECT consolidated_at FROM conversation WHERE workspace_id = $1", tenant.workspace_id
        )
        assert read is not None
        assert len(setup.server.chat.requests) == 1 + UNUSABLE_ATTEMPTS


NOTHING = (
    "I could not find anything worth remembering.",
    "There are no facts worth keeping in this conversation.",
    "None.",
    "No relevant information found.",
    "The messages don't contain anything noteworthy.",
    "<think>Small talk, I suppose.</think>Nothing to extract.",
)


@pytest.mark.parametrize("said", NOTHING)
async def test_prose_that_there_is_nothing_is_an_empty_list(
    resources: Resources, tenant: Tenant, tables: Tables, hasty: Settings, said: str
) -> None:
    async with with_scripted_model(resources, tenant, said, hasty, ONCE) as setup:
        found = await answer(setup.client, "I had soup for lunch today.")
        assert found["results"] == []
        assert [each.partition(":")[0] for each in found["warnings"]] == ["no_facts"]
        assert await jobs_of(tables, tenant) == []
        assert len(setup.server.chat.requests) == 1


MALFUNCTIONS = (
    "User found no soup for lunch.",
    "I cannot store personal data.",
    "I'm not able to keep any facts about people.",
    "Nothing is better than soup.",
    "asdf qwer",
)


@pytest.mark.parametrize("said", MALFUNCTIONS)
async def test_other_prose_is_a_malfunction(
    resources: Resources, tenant: Tenant, tables: Tables, hasty: Settings, said: str
) -> None:
    async with with_scripted_model(resources, tenant, said, hasty, ONCE) as setup:
        found = await answer(setup.client, "I had soup for lunch today.")
        assert len(found["results"]) == 1
        assert len(await jobs_of(tables, tenant)) == 1


def brief(request: HttpRequest) -> Content | ScriptedAnswer:
    """Has no room for more than two facts."""
    said = FENCED.findall(request.json["messages"][1]["content"])[-1]
    facts = [fact for message, fact in SIX.items() if message in said]
    if len(facts) <= 2:
        return {"facts": facts}
    return says(json.dumps(facts[:2])[:-1] + ', "User', finish_reason="length")


async def test_what_an_answer_that_was_cut_off_did_not_reach_is_read_in_parts(
    resources: Resources, tenant: Tenant, tables: Tables, hasty: Settings
) -> None:
    async with with_scripted_model(resources, tenant, brief, hasty, ONCE) as setup:
        found = await answer(setup.client, [{"role": "user", "content": each} for each in SIX])
        assert [each["memory"] for each in found["results"]] == list(SIX.values())[:2]
        assert [each.partition(":")[0] for each in found["warnings"]] == ["llm_truncated"]
        await deferred.consolidate(await claimed(tables, tenant), setup.resources)
        assert set(await known(setup.client)) == set(SIX.values())


async def test_the_rules_read_what_is_cut_off_in_every_part(
    resources: Resources, tenant: Tenant, tables: Tables, hasty: Settings
) -> None:
    cut = says('["User lives in Oslo", "User', finish_reason="length")
    async with with_scripted_model(resources, tenant, lambda _: cut, hasty, ONCE) as setup:
        await answer(setup.client, [{"role": "user", "content": each} for each in SIX])
        await deferred.consolidate(await claimed(tables, tenant), setup.resources)
        facts = " ".join(await known(setup.client))
        assert not [each for each in ("Tom", "Acme", "chess", "nuts", "Una") if each not in facts]


async def test_a_dry_run_keeps_nothing_and_promises_nothing(
    resources: Resources, tenant: Tenant, tables: Tables, hasty: Settings
) -> None:
    async with with_scripted_model(resources, tenant, lambda _: FAILURES["wrong key"], hasty, ONCE) as setup:
        found = await answer(setup.client, SAID, dry_run=True)
        assert sorted(each["memory"] for each in found["results"]) == BY_RULES
        assert [each.partition(":")[0] for each in found["warnings"]] == ["llm_unavailable"]
        assert await jobs_of(tables, tenant) == []


async def test_a_content_says_who_failed(resources: Resources, tenant: Tenant, hasty: Settings) -> None:
    async with with_scripted_model(resources, tenant, lambda _: FAILURES["wrong model"], hasty, ONCE) as setup:
        sent = {"content": "Nora's boat is called Skarv.", "user_id": "bob"}
        stored = (await setup.client.post("/v1/memories", json=sent)).json()["results"][0]
        assert any("openai:" in each and "`gpt-x` does not exist" in each for each in stored["warnings"])
        details = (await setup.client.get("/v1/health/details")).json()
        assert details["llm_status"].endswith("did not answer: request refused (404).")


async def test_the_status_follows_the_model(resources: Resources, tenant: Tenant, hasty: Settings) -> None:
    from service.understanding import model_calls

    async def status(setup: ModelSetup) -> tuple[str, str]:
        found = (await setup.client.get("/v1/health/details")).json()
        return found["llm"], found["llm_status"]

    async with with_scripted_model(resources, tenant, lambda _: FAILURES["wrong model"], hasty, ONCE) as setup:
        before = await status(setup)
        assert before[1] == "no answer yet"
        await model_calls.probe(setup.resources)
        assert (await status(setup))[1].endswith("request refused (404). The model `gpt-x` does not exist")
        setup.server.chat.default({"facts": []})
        await answer(setup.client, SAID)
        assert (await status(setup))[1] == "answers"
