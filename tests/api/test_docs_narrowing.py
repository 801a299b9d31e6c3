"""The examples of docs/narrowing.md find what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

from httpx2 import AsyncClient

from service.domain import filters

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "narrowing.md").read_text()
BLOCK = re.compile(r"```http\nPOST (\S+)\n(.*?)\n(?:→ ([^\n]*)\n)?```", re.DOTALL)


async def test_the_examples_are_true(client: AsyncClient) -> None:
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == PAGE.count("```http") > 8
    for path, body, expected in blocks:
        answer = await client.post(path, json=json.loads(body))
        assert answer.status_code == 200, (body, answer.text)
        if expected:
            found = sorted(hit["memory"] for hit in answer.json()["results"])
            assert found == sorted(expected.split("; ")), body
            assert bool(answer.json()["warnings"]) == ("birthday" in body)


def test_every_field_and_limit_is_on_the_page() -> None:
    told = set(re.findall(r"`(\w+)`", PAGE))
    assert set(filters.FIELDS) <= told
    assert set(filters.OPERATORS["any"]) <= told
    limits = [value for name, value in vars(filters).items() if name.startswith("MAX_") and name != "MAX_FIELD"]
    assert len(limits) == 8
    for limit in limits:
        assert re.search(rf"\b{limit:,}\s", PAGE), limit
