"""Is the evidence in the prompt? A bundle of recall beside plain search, cut at the same budget.

    python -m bench.recall PATH --bundle [--budget 2000] [--ids FILE] [--url URL --key KEY]

Plain search: its hits in order, as long as their texts fit. Three ways to count them: the bare texts, each with its
speaker, and each with speaker and day, without which an answer can hardly be given. The bundle is what POST /v1/recall
gives for `max_tokens`, headings included. Evidence found: the mean share of a question's evidence; whole: the share of
questions of which all of it is there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.clients import Client
from bench.load_conversations import Turns
from bench.numbers import mean, percentile, table
from service.language.tokens import of_bytes

HITS = 200
WAYS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "search, bare texts": lambda hit: str(hit["memory"]),
    "search, with speakers": lambda hit: f"{hit['speaker']}: {hit['memory']}",
    "search, with speakers and days": lambda hit: f"{hit['speaker']}: {hit['memory']} ({hit['timestamp'][:10]})",
}
BUNDLES: Mapping[str, Mapping[str, Any]] = {
    "bundle": {},
    "bundle, 1 turn around": {"around": 1},
    "bundle, 3 of a conversation": {"per_conversation": 3},
    "bundle, both": {"per_conversation": 3, "around": 1},
}


@dataclass(frozen=True, slots=True)
class Told:
    """How one question fared: which share of its evidence was told, in how many tokens, and how long it took."""

    share: float
    tokens: int
    ms: float


Places = Mapping[tuple[str, int], str]
"""The turn's id in the data by the session's id and the turn's place in it."""


def places(conversation: Mapping[str, Any]) -> Places:
    return {
        (session["id"], place): turn["id"]
        for session in conversation["sessions"]
        for place, turn in enumerate(session["turns"])
    }


async def measure(
    client: Client,
    conversations: Sequence[dict[str, Any]],
    questions: Sequence[dict[str, Any]],
    known: Mapping[str, Turns],
    *,
    budget: int,
) -> str:
    """The table of all ways over all questions."""
    where = {each["id"]: places(each) for each in conversations}
    found: dict[str, list[Told]] = {name: [] for name in (*WAYS, *BUNDLES)}
    for question in questions:
        turns = known.get(question["conversation_id"], {})
        for name, told in (await _searched(client, question, turns, budget)).items():
            found[name].append(told)
        for name, way in BUNDLES.items():
            found[name].append(await _recalled(client, question, turns, where, budget, way))
    rows = [
        [
            name,
            f"{mean(one.share for one in told):.3f}",
            f"{mean(float(one.share == 1) for one in told):.3f}",
            round(mean(float(one.tokens) for one in told)),
            f"{percentile([one.ms for one in told], 0.50):.0f}",
            f"{percentile([one.ms for one in told], 0.95):.0f}",
        ]
        for name, told in found.items()
    ]
    head = [f"{budget} tokens, {len(questions)} questions", "evidence found", "whole", "tokens", "p50 ms", "p95 ms"]
    return table(head, rows)


async def _searched(client: Client, question: dict[str, Any], turns: Turns, budget: int) -> dict[str, Told]:
    body = {"query": question["text"], "user_id": question["conversation_id"], "limit": HITS}
    began = time.perf_counter()
    answer = await client.post("/v1/memories/search", json.dumps(body).encode())
    ms = (time.perf_counter() - began) * 1000
    wanted = set(question["evidence"])
    found = {}
    for name, phrase in WAYS.items():
        spent, seen = 0, set[str]()
        for hit in answer.json["results"]:
            cost = len(phrase(hit).encode()) + 1
            if of_bytes(spent + cost) <= budget:
                spent += cost
                seen |= turns.get(hit["id"], set())
        found[name] = Told(len(wanted & seen) / len(wanted), of_bytes(spent), ms)
    return found


async def _recalled(
    client: Client,
    question: dict[str, Any],
    turns: Turns,
    where: Mapping[str, Places],
    budget: int,
    way: Mapping[str, Any],
) -> Told:
    user = question["conversation_id"]
    body = {"query": question["text"], "user_id": user, "max_tokens": budget, "top_k": HITS, **way}
    began = time.perf_counter()
    answer = await client.post("/v1/recall", json.dumps(body).encode())
    ms = (time.perf_counter() - began) * 1000
    if answer.status != 200:
        raise SystemExit(f"The service answered {answer.status}: {answer.body[:300]!r}")
    seen = {where[user].get((turn["external_id"], turn["turn_index"]), "") for turn in answer.json["turns"]}
    for fact in answer.json["facts"]:
        seen |= turns.get(fact["id"], set())
    wanted = set(question["evidence"])
    return Told(len(wanted & seen) / len(wanted), answer.json["metrics"]["tokens"], ms)
