"""Settings of a workspace: what they change, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from httpx2 import AsyncClient

from tests.support.calls import body_of


async def test_prefer_new_is_in_place(client: AsyncClient) -> None:
    await body_of(client.patch("/v1/workspaces/current", json={"settings": {"contradiction_policy": "prefer_new"}}))
    assert (await client.get("/v1/config")).json()["memories"]["contradiction_policy"] == "in_place"


@pytest.mark.parametrize(
    ("own", "field"),
    [
        ({"timezone": "Mars/Olympus"}, "settings.timezone"),
        ({"timezone": 5}, "settings.timezone"),
        ({"dedup_exact": 1.5}, "settings.dedup_exact"),
        ({"dedup_exact": None}, "settings.dedup_exact"),
        ({"dedup_exact": "0.9"}, "settings.dedup_exact"),
        ({"dedup_near": False}, "settings.dedup_near"),
        ({"classifier_use_llm": "no"}, "settings.classifier_use_llm"),
        ({"audit_level": "some"}, "settings.audit_level"),
        ({"database_url": "postgres://x"}, "settings.database_url"),
        ({"custom_prompts": {"other": "x"}}, "settings.custom_prompts.other"),
        ({"search_techniques": 1}, "settings.search_techniques"),
        ({"search_techniques": {"hybrid": 3}}, "settings.search_techniques.hybrid"),
        ({"search_techniques": {"magic": True}}, "settings.search_techniques.magic"),
        ({"job_intervals_min": {"decay": 5}}, "settings.job_intervals_min.decay"),
        ({"ageing": {"stale_after_days": "long"}}, "settings.ageing.stale_after_days"),
        ({"version": "v1.0"}, "settings.version"),
        ({"ageing": {"conversation_archive_days": 0}}, "settings.ageing.conversation_archive_days"),
        ({"contradiction_policy": "prefer_newest"}, "settings.contradiction_policy"),
        ({"port": 1}, "settings.port"),
    ],
    ids=lambda value: json.dumps(value)[:60],
)
async def test_what_makes_no_sense_is_refused(client: AsyncClient, own: dict[str, Any], field: str) -> None:
    refused = await body_of(client.patch("/v1/workspaces/current", json={"settings": own}), 400)
    assert refused["field"] == field
    assert (await client.get("/v1/workspaces/current")).json()["settings"] == {}
