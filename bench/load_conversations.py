"""Loads conversations, and measures how fast that is and whether search finds the turns that answer questions.

    python -m bench.load_conversations PATH [--captions] [--url URL --key KEY]

PATH: JSON lines. `kind=conversation`: id, sessions {id, datetime, turns {id, speaker, text, caption?}};
`kind=question`: conversation_id, text, category, evidence (turn ids). Every session is one POST /v1/memories with
infer=false; the user is the conversation, the run is the session, and turn number n was said n seconds after the
session began. The turns of a session without a `datetime` are facts: each is one POST with `content` only. Then every
question is searched for in its conversation. Prints aggregates, never texts.

recall@k: the share of a question's evidence among the first k hits, as the mean over questions that have evidence.
MRR: one over the rank of the first evidence, 0 when none is among the first 20.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench import target
from bench.clients import Client, TimedResponse
from bench.numbers import mean, percentile, table
from bench.stores import until_idle
from bench.target import Service

CUTS = (1, 5, 10, 20)
ENRICHED_S = 600.0

Turns = dict[str, set[str]]
"""Turn ids by memory id: equal texts of a session are one memory."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of one question: the ranks (from 1) of the evidence found, of `evidence` turns in all."""

    category: str
    evidence: int
    ranks: tuple[int, ...]
    ms: float

    def recall(self, cut: int) -> float:
        return sum(rank <= cut for rank in self.ranks) / self.evidence

    @property
    def reciprocal(self) -> float:
        return 1 / min(self.ranks) if self.ranks else 0.0

    def ndcg(self, cut: int) -> float:
        """Discounted cumulative gain of the evidence among the first `cut`, as a share of the best possible one."""
        best = sum(1 / math.log2(rank + 1) for rank in range(1, min(self.evidence, cut) + 1))
        return sum(1 / math.log2(rank + 1) for rank in self.ranks if rank <= cut) / best


def read(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the conversations and the questions of a file."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [row for row in rows if row["kind"] == "conversation"], [row for row in rows if row["kind"] == "question"]


async def load(client: Client, conversation: dict[str, Any], *, captions: bool) -> tuple[Turns, int, float]:
    """Returns the turns by memory, their number, and the seconds it took."""
    found: Turns = {}
    count, spent_s = 0, 0.0
    for session in conversation["sessions"]:
        for turns, body in _stores(conversation["id"], session, captions=captions):
            answer = _checked(await client.post("/v1/memories", json.dumps(body).encode()))
            for turn, result in zip(turns, answer.json["results"], strict=True):
                found.setdefault(result["id"], set()).add(turn["id"])
            count += len(turns)
            spent_s += answer.ms / 1000
    return found, count, spent_s


def _stores(user: str, session: dict[str, Any], *, captions: bool) -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """The requests that store a session, each with its turns."""
    turns = session["turns"]
    if "datetime" in session:
        return [(turns, _session(user, session, captions=captions))]
    return [([turn], {"content": _text(turn, captions=captions), "user_id": user}) for turn in turns]


def _session(user: str, session: dict[str, Any], *, captions: bool) -> dict[str, Any]:
    began = datetime.fromisoformat(session["datetime"])
    began = began if began.tzinfo else began.replace(tzinfo=UTC)
    speakers = list(dict.fromkeys(turn["speaker"] for turn in session["turns"]))
    messages = [
        {
            "role": "user" if speakers.index(turn["speaker"]) % 2 == 0 else "assistant",
            "name": turn["speaker"],
            "content": _text(turn, captions=captions),
            "timestamp": (began + timedelta(seconds=index)).isoformat(),
        }
        for index, turn in enumerate(session["turns"])
    ]
    # metadata applies to the whole request; which memory is which turn follows from the order of the answer
    places = {
        "session": session["id"],
        "first_turn": session["turns"][0]["id"],
        "last_turn": session["turns"][-1]["id"],
    }
    return {"messages": messages, "infer": False, "user_id": user, "run_id": session["id"], "metadata": places}


def _text(turn: dict[str, Any], *, captions: bool) -> str:
    return f"{turn['text']} [shares {turn['caption']}]" if captions and turn.get("caption") else str(turn["text"])


async def ask(client: Client, question: dict[str, Any], turns: Turns, /, **options: Any) -> QueryResult:
    """Searches the conversation for the question; `options` are added to the request. `turns`: of each hit by
    `place_of`."""
    body = {
        "query": question["text"],
        "user_id": question["conversation_id"],
        "limit": CUTS[-1],
        "reinforce": False,  # measuring must not change what is measured
        **options,
    }
    answer = _checked(await client.post("/v1/memories/search", json.dumps(body).encode()))
    wanted = set(question["evidence"])
    ranks: list[int] = []
    for rank, hit in enumerate(answer.json["results"], start=1):
        hits = wanted & turns.get(place_of(hit), set())
        wanted -= hits
        ranks += [rank] * len(hits)
    return QueryResult(question["category"], len(set(question["evidence"])), tuple(ranks), answer.ms)


def place_of(hit: Mapping[str, Any]) -> str:
    """The id of a memory; of a turn the name of its conversation and its index."""
    return f"{hit['run_id']} {hit['turn_index']}" if hit.get("source") == "turn" else str(hit["id"])


def _checked(answer: TimedResponse) -> TimedResponse:
    if answer.status not in (200, 201):
        raise SystemExit(f"The service answered {answer.status}: {answer.body[:300]!r}")
    return answer


def report(results: Sequence[QueryResult]) -> str:
    """Returns recall and MRR over all questions and by category, then the latencies."""
    counted = [one for one in results if one.evidence]
    groups = {"all": counted} | {name: [one for one in counted if one.category == name] for name in _names(counted)}
    rows = [
        [name, len(group), *(f"{mean(one.recall(cut) for one in group):.3f}" for cut in CUTS), _mrr(group)]
        for name, group in groups.items()
    ]
    found = table(["questions", "n", *(f"recall@{cut}" for cut in CUTS), "MRR"], rows)
    p50, p95, p99 = (percentile([one.ms for one in results], share) for share in (0.50, 0.95, 0.99))
    latencies = f"p50 {p50:.1f} ms, p95 {p95:.1f} ms, p99 {p99:.1f} ms ({len(results)} questions)"
    return f"{found}\n\nsearch, one client: {latencies}"


def _names(results: Sequence[QueryResult]) -> list[str]:
    return sorted({one.category for one in results})


def _mrr(group: Sequence[QueryResult]) -> str:
    return f"{mean(one.reciprocal for one in group):.3f}"


async def measure(service: Service, path: Path, *, captions: bool) -> str:
    """Loads, waits until the worker has enriched everything, searches; returns the report."""
    conversations, questions = read(path)
    client = Client(service.url, service.key, timeout_s=120)
    turns, loaded = await load_all(service, client, conversations, captions=captions)
    results = [await ask(client, question, turns.get(question["conversation_id"], {})) for question in questions]
    await client.close()
    return f"{loaded}\n\n{report(results)}"


async def load_all(
    service: Service, client: Client, conversations: Sequence[dict[str, Any]], *, captions: bool
) -> tuple[dict[str, Turns], str]:
    """Returns the turns by conversation once the worker has enriched them all, and a sentence on how long it took."""
    turns: dict[str, Turns] = {}
    count, spent_s = 0, 0.0
    for conversation in conversations:
        turns[conversation["id"]], loaded_turns, took_s = await load(client, conversation, captions=captions)
        count, spent_s = count + loaded_turns, spent_s + took_s
    loaded = f"{len(conversations)} conversations, {count} turns in {spent_s:.1f} s: {count / spent_s:.0f} turns/s"
    began = time.perf_counter()
    await until_idle(service, ENRICHED_S)
    return turns, f"{loaded}, then {time.perf_counter() - began:.1f} s until no job was due."


def main(words: Sequence[str] | None = None) -> int:
    parser = target.arguments(__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--captions", action="store_true", help="store what a picture shows after the text of its turn")
    options = parser.parse_args(words)
    with target.chosen(options) as service:
        print(asyncio.run(measure(service, options.path, captions=options.captions)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
