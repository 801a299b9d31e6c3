"""Settings of a workspace: what they change, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from httpx2 import AsyncClient


async def configured(client: AsyncClient, **settings: Any) -> None:
    answer = await client.patch("/v1/workspaces/current", json={"settings": settings})
    assert answer.status_code == 200, answer.text


async def test_prefer_new_is_in_place(client: AsyncClient) -> None:
    await configured(client, contradiction_policy="prefer_new")
    assert (await client.get("/v1/config")).json()["memories"]["contradiction_policy"] == "in_place"


@pytest.mark.parametrize(
    ("own", "field"),
    [
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
    answer = await client.patch("/v1/workspaces/current", json={"settings": own})
    assert answer.status_code == 400, answer.text
    assert answer.json()["field"] == field
