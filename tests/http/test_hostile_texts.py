"""Texts made to keep the rules busy: answered soon, while other requests go on."""

from __future__ import annotations

import asyncio
import random
import time

import pytest
from httpx2 import AsyncClient, Response

from bench.hostile_corpus import HostileText
from tests.fakes.embedder import AngleEmbedder

NEWLINES = HostileText("newlines", "\n", "I live in Oslo.", "Yes.").of_length(8_000)
QUOTES = HostileText("quotes", "\u2018\u201c").of_length(100_000)
WORDS = [
    "Anna",
    "Rome",
    "Acme",
    "moved",
    "yesterday",
    "not",
    "lives",
    "in",
    "to",
    "from",
    "Monday",
    "the",
    "likes",
    "hates",
    "tea",
    "Bob's",
    "no",
    "longer",
    "I",
    ".",
    ",",
]
ALIKE = [" ".join(random.Random(number).choices(WORDS, k=120)) for number in range(64)]
LONGEST_S = 12.0
"""Many times what they take on an idle machine; quadratic, the newlines alone took 50 s of CPU."""


async def slowest_beside(client: AsyncClient, call: asyncio.Future[Response]) -> float:
    """Seconds of the slowest small request, while a large one is served."""
    worst = 0.0
    while not call.done():
        began = time.perf_counter()
        assert (await client.get("/health")).status_code == 200
        worst = max(worst, time.perf_counter() - began)
        await asyncio.sleep(0.01)
    return worst


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"messages": [{"role": "user", "content": NEWLINES}] * 4}, id="4 messages of newlines"),
        pytest.param({"messages": [{"role": "user", "content": QUOTES[:13_000]}]}, id="alternating quotes"),
        pytest.param(
            {"messages": [{"role": "user", "content": each} for each in ALIKE]}, id="many messages about the same"
        ),
        pytest.param({"content": QUOTES}, id="alternating quotes as content"),
    ],
)
async def test_a_hostile_text_holds_up_nobody(
    client: AsyncClient, embedder: AngleEmbedder, monkeypatch: pytest.MonkeyPatch, body: dict[str, object]
) -> None:
    monkeypatch.setattr(embedder, "similarity", lambda _: 0.5)  # so that the rules compare the facts with each other
    began = time.perf_counter()
    call = asyncio.ensure_future(client.post("/v1/memories", json={**body, "user_id": "ada"}))
    beside = await slowest_beside(client, call)
    answer = call.result()
    assert answer.status_code in (200, 201), answer.text
    assert time.perf_counter() - began < LONGEST_S
    assert beside < 1.0, "the interpreter was held"
