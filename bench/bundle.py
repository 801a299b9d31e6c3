"""Measures how much evidence a bundle of recall holds, compared with plain search cut at the same token budget.

    python -m bench.recall PATH --bundle [--budget 2000] [--ids FILE] [--url URL --key KEY]

Plain search: its hits in order, as long as their texts fit, counted in three ways: the bare texts, each with its
speaker, and each with speaker and day, without which a question can hardly be answered. The bundle is the answer of
POST /v1/recall for `max_tokens`, headings included. Evidence found: the mean share of a question's evidence; whole: the
share of questions with all of their evidence.
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
from service.language.prompt_text import estimate_tokens_of_bytes

HITS = 200
SEARCH_TEXTS: Mapping[str, Callable[[dict[str, Any]], str]] = {
    "search, bare texts": lambda hit: str(hit["memory"]),
    "search, with speakers": lambda hit: f"{hit['speaker']}: {hit['memory']}",
    "search, with speakers and days": lambda hit: f"{hit['speaker']}: {hit['memory']} ({hit['timestamp'][:10]})",
}
RECALL_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "bundle": {},
    "bundle, 1 turn before and after": {"around": 1},
    "bundle, 3 of a conversation": {"per_conversation": 3},
    "bundle, both": {"per_conversation": 3, "around": 1},
}


@dataclass(frozen=True, slots=True)
class BundleResult:
    """The result of one question: the share of its evidence that was found, the tokens and the time."""

    share: float
    tokens: int
    ms: float


TurnIds = Mapping[tuple[str, int], str]
"""Turn ids of the data by session id and index in the session."""


def turn_ids_of(conversation: Mapping[str, Any]) -> TurnIds:
    return {
        (session["id"], index): turn["id"]
        for session in conversation["sessions"]
        for index, turn in enumerate(session["turns"])
    }


async def measure(
    client: Client,
    conversations: Sequence[dict[str, Any]],
    questions: Sequence[dict[str, Any]],
    known: Mapping[str, Turns],
    *,
    budget: int,
) -> str:
    """Returns the table of all variants over all questions."""
    turn_ids = {each["id"]: turn_ids_of(each) for each in conversations}
    found: dict[str, list[BundleResult]] = {name: [] for name in (*SEARCH_TEXTS, *RECALL_OPTIONS)}
    for question in questions:
        turns = known.get(question["conversation_id"], {})
        for name, result in (await _searched(client, question, turns, budget)).items():
            found[name].append(result)
        for name, options in RECALL_OPTIONS.items():
            found[name].append(await _recalled(client, question, turns, turn_ids, budget, options))
    rows = [
        [
            name,
            f"{mean(one.share for one in results):.3f}",
            f"{mean(float(one.share == 1) for one in results):.3f}",
            round(mean(float(one.tokens) for one in results)),
            f"{percentile([one.ms for one in results], 0.50):.0f}",
            f"{percentile([one.ms for one in results], 0.95):.0f}",
        ]
        for name, results in found.items()
    ]
    head = [f"{budget} tokens, {len(questions)} questions", "evidence found", "whole", "tokens", "p50 ms", "p95 ms"]
    return table(head, rows)


async def _searched(client: Client, question: dict[str, Any], turns: Turns, budget: int) -> dict[str, BundleResult]:
    body = {"query": question["text"], "user_id": question["conversation_id"], "limit": HITS}
    began = time.perf_counter()
    answer = await client.post("/v1/memories/search", json.dumps(body).encode())
    ms = (time.perf_counter() - began) * 1000
    wanted = set(question["evidence"])
    found = {}
    for name, phrase in SEARCH_TEXTS.items():
        spent, seen = 0, set[str]()
        for hit in answer.json["results"]:
            cost = len(phrase(hit).encode()) + 1
            if estimate_tokens_of_bytes(spent + cost) <= budget:
                spent += cost
                seen |= turns.get(hit["id"], set())
        found[name] = BundleResult(len(wanted & seen) / len(wanted), estimate_tokens_of_bytes(spent), ms)
    return found


async def _recalled(
    client: Client,
    question: dict[str, Any],
    turns: Turns,
    turn_ids: Mapping[str, TurnIds],
    budget: int,
    options: Mapping[str, Any],
) -> BundleResult:
    user = question["conversation_id"]
    body = {"query": question["text"], "user_id": user, "max_tokens": budget, "limit": HITS, **options}
    began = time.perf_counter()
    answer = await client.post("/v1/recall", json.dumps(body).encode())
    ms = (time.perf_counter() - began) * 1000
    if answer.status != 200:
        raise SystemExit(f"The service answered {answer.status}: {answer.body[:300]!r}")
    seen = {turn_ids[user].get((turn["external_id"], turn["turn_index"]), "") for turn in answer.json["turns"]}
    for fact in answer.json["facts"]:
        seen |= turns.get(fact["id"], set())
    wanted = set(question["evidence"])
    return BundleResult(len(wanted & seen) / len(wanted), answer.json["metrics"]["tokens"], ms)
