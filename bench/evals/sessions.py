"""Sessions of long chats with an assistant, found by the facts made of them.

Every conversation is stored with `infer=true`. A question's share is the part of its evidence sessions among the
sessions that the first ten hits, facts and turns, come from; printed is the mean over the questions, by category and in
all.
"""

from __future__ import annotations

import time
from pathlib import Path

import httpx

from bench.evals.stored_facts import facts, hits, over_http, settled, store
from bench.load_conversations import read
from bench.numbers import mean, table
from bench.target import Service

FIRST = 10


def report(path: Path) -> str:
    """Evidence sessions found, and how many facts there are of how many turns."""
    conversations, questions = read(path)

    async def measure(service: Service, client: httpx.AsyncClient) -> str:
        began = time.perf_counter()
        for conversation in conversations:
            await store(client, conversation)
        stored_s = time.perf_counter() - began
        await settled(service)
        sessions: dict[str, set[str]] = {}
        for conversation in conversations:
            for fact in await facts(client, conversation):
                sessions[fact.id] = {session for session, _ in fact.sources}
        shares: list[tuple[str, float]] = []
        for question in questions:
            found = await hits(client, question["conversation_id"], question["text"], limit=FIRST)
            seen = {each for hit in found for each in sessions.get(hit["id"], {hit["run_id"]})}
            wanted = set(question["evidence_sessions"])
            shares.append((question["category"], len(wanted & seen) / len(wanted)))
        turns = sum(len(session["turns"]) for each in conversations for session in each["sessions"])
        loaded = f"{len(conversations)} conversations, {turns} turns, {len(sessions)} facts, stored in {stored_s:.0f} s"
        return f"{loaded}\n\n{shown(shares)}"

    return over_http(measure)


def shown(shares: list[tuple[str, float]]) -> str:
    """The table of the mean shares by category and in all."""
    rows = []
    for category in [*sorted({name for name, _ in shares}), "all"]:
        group = [share for name, share in shares if category in (name, "all")]
        rows.append([category, len(group), f"{mean(group):.3f}"])
    return table([f"evidence sessions@{FIRST}", "n", "found"], rows)
