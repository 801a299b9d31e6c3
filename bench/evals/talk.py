"""Talk, told one request a message: what is kept, what a change leaves, what is answered, what is forgotten.

The file is one JSON object: chats with gold facts (`A`), changes (`B`), questions about the chats that they answer or
not (`C`), requests to forget (`D`). Every chat, change and request has a user and a session of its own.

- whole: gold facts of which one live memory says all; in five: one of the first five hits of a search for the fact.
- right: changes after which every text that must be shown is in a hit that is not over, and every outdated one is
  hidden, marked as over or followed by what was said later; first: a text that must be shown stands before them.
- lost: texts that must stay and are in no hit that holds.
- answerable: questions whose `answerable` is right; AUC of `answer_probability` between the two kinds.
- empty: questions that nothing answers for which the recall block is empty.
- forgotten: requests after which no read shows what should be gone, and every read what should stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from bench.evals.stored_facts import get, over_http, post, settled
from bench.numbers import table
from bench.target import Service

FIRST, LIVE = 5, 500
OVER = ("superseded", "expired", "ended")

Case = Mapping[str, Any]


def report(path: Path) -> str:
    """All of it as one table, with the cases that are not right by name."""
    cases = json.loads(path.read_text())

    async def measure(service: Service, client: httpx.AsyncClient) -> str:
        for case in (*cases["A"], *cases["B"], *cases["D"]):
            await tell(client, case)
        await settled(service)
        parts = [
            await _kept(client, cases["A"]),
            await _changed(client, cases["B"]),
            await _answered(client, cases["C"]),
            await _forgotten(service, client, cases["D"]),
        ]
        return table(["talk", "right", "of", "not"], [row for part in parts for row in part])

    return over_http(measure)


async def tell(client: httpx.AsyncClient, case: Case) -> None:
    """Stores the messages of a case, one request each."""
    for message in case["messages"]:
        said = {key: value for key, value in message.items() if value is not None}
        await post(client, "/v1/memories", {"messages": [said], "user_id": case["id"], "session_id": case["id"]})


def _row(name: str, results: Sequence[tuple[str, bool]]) -> list[object]:
    wrong = [each for each, good in results if not good]
    return [name, sum(good for _, good in results), len(results), " ".join(wrong)]


async def _kept(client: httpx.AsyncClient, chats: Iterable[Case]) -> list[list[object]]:
    whole, found = [], []
    for chat in chats:
        texts = await _live(client, chat["id"])
        for fact in chat["gold"]:
            name = f"{chat['id'][:3]}.{fact['id']}"
            whole.append((name, any(_says(text, fact["all"]) for text in texts)))
            hits = await _hits(client, chat["id"], fact["fact"])
            found.append((name, any(_says(hit["memory"], fact["all"]) for hit in hits[:FIRST])))
    return [_row("gold facts whole in one memory", whole), _row("gold facts in five hits", found)]


async def _changed(client: httpx.AsyncClient, changes: Iterable[Case]) -> list[list[object]]:
    right, kept, first, block = [], [], [], []
    for case in changes:
        hits = await _hits(client, case["id"], case["question"])
        shown = [hit for hit in hits if not _is_over(hit)]
        wanted = [*case["must_contain"], *case["keep"]]
        stays = all(any(_says(hit["memory"], [each]) for hit in shown) for each in wanted)
        outdated = [hit for hit in shown if any(_says(hit["memory"], [each]) for each in case["must_not_contain"])]
        unmarked = [hit for hit in outdated if not hit.get("later") and not hit.get("may_be_outdated_by")]
        kept.append((case["id"], stays))
        right.append((case["id"], stays and not unmarked))
        block.append((case["id"], _block_is_right(await _block(client, case), case)))
        if outdated:
            current = [hit for hit in shown if any(_says(hit["memory"], [each]) for each in case["must_contain"])]
            first.append((case["id"], bool(current) and shown.index(current[0]) < shown.index(outdated[0])))
    return [
        _row("changes right by search", right),
        _row("changes right by block", block),
        _row("nothing lost or ended wrongly", kept),
        _row("current before what stays of the outdated", first),
    ]


def _block_is_right(block: str, case: Case) -> bool:
    """Every line that is outdated is marked as over or as followed by something later."""
    lines = block.splitlines()
    plain = [line for line in lines if not re.search(r"no longer so|may have changed: see|more on this: see", line)]
    there = all(any(_says(line, [each]) for line in lines) for each in (*case["must_contain"], *case["keep"]))
    return there and not any(_says(line, [each]) for line in plain for each in case["must_not_contain"])


async def _answered(client: httpx.AsyncClient, questions: Sequence[Case]) -> list[list[object]]:
    right: list[tuple[str, bool]] = []
    empty: list[tuple[str, bool]] = []
    answered: list[tuple[str, bool]] = []
    scores: dict[bool, list[float]] = {True: [], False: []}
    for index, case in enumerate(questions):
        body = {"query": case["question"], "user_id": case["chat"], "reinforce": False}
        found = await post(client, "/v1/memories/search", body)
        name = f"c{index + 1}"
        right.append((name, found["answerable"] == case["answerable"]))
        scores[case["answerable"]].append(found["answer_probability"])
        block = (await post(client, "/v1/recall", {**body, "max_tokens": 2000, "format": "markdown"}))["markdown"] or ""
        (answered if case["answerable"] else empty).append((name, bool(block.strip()) == case["answerable"]))
    area = _auc(scores[True], scores[False])
    return [
        _row(f"answerable (AUC {area:.3f})", right),
        _row("block empty where nothing answers", empty),
        _row("block filled where something answers", answered),
    ]


async def _forgotten(service: Service, client: httpx.AsyncClient, cases: Sequence[Case]) -> list[list[object]]:
    for case in cases:
        if case["how"] == "message":
            said = {"role": "user", "content": case["ask"], "timestamp": case["messages"][-1]["timestamp"]}
            body = {"messages": [said], "user_id": case["id"], "session_id": case["id"]}
            await post(client, "/v1/memories", body)
        else:
            body = {"user_id": case["id"], "query": case["ask"], "purge": case["purge"]}
            await post(client, "/v1/forget", body)
    await settled(service)
    gone, kept = [], []
    for case in cases:
        reads = await _reads(client, case)
        gone.append((case["id"], not any(_says(read, [each]) for read in reads for each in case["gone"])))
        kept.append((case["id"], all(any(_says(read, [each]) for read in reads) for each in case["keep"])))
    return [_row("forgotten without a leak", gone), _row("nothing else forgotten", kept)]


async def _reads(client: httpx.AsyncClient, case: Case) -> list[str]:
    """What a search, a list, a recall and a search of turns show of a user."""
    shown = await _live(client, case["id"])
    for query in (case["ask"], *(message["content"] for message in case["messages"])):
        shown += [hit["memory"] for hit in await _hits(client, case["id"], query)]
        body = {"query": query, "user_id": case["id"], "format": "markdown"}
        shown.append((await post(client, "/v1/recall", body))["markdown"] or "")
    return shown


async def _live(client: httpx.AsyncClient, user: str) -> list[str]:
    return [each["memory"] for each in (await get(client, "/v1/memories", user_id=user, limit=LIVE))["results"]]


async def _hits(client: httpx.AsyncClient, user: str, query: str) -> list[dict[str, Any]]:
    body = {"query": query, "user_id": user, "limit": 10, "reinforce": False}
    results: list[dict[str, Any]] = (await post(client, "/v1/memories/search", body))["results"]
    return results


async def _block(client: httpx.AsyncClient, case: Case) -> str:
    body = {"query": case["question"], "user_id": case["id"], "max_tokens": 2000, "format": "markdown"}
    block: str | None = (await post(client, "/v1/recall", body))["markdown"]
    return block or ""


def _is_over(hit: Mapping[str, Any]) -> bool:
    return hit.get("lifecycle_state") in OVER or bool(hit.get("t_invalid")) or bool(hit.get("over"))


def _auc(right: Sequence[float], wrong: Sequence[float]) -> float:
    """How often a value of the first is above one of the second; 0.5 by chance."""
    wins = sum((a > b) + (a == b) / 2 for a in right for b in wrong)
    return wins / (len(right) * len(wrong)) if right and wrong else 0.5


def _says(text: str, patterns: Sequence[str]) -> bool:
    return all(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)
