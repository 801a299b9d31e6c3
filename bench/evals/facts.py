"""Facts of talk between two people: evidence that they cover, how many there are, and how many cannot stand alone.

Every conversation is stored with `infer=true`, both speakers as users with a `name`; counted are the live facts.
- covered: the share of evidence turns that are a source of a fact. Evidence turns are those that any question rests on.
- pronoun: the share of facts with a pronoun at all; unresolved: with one that can refer to nothing
  before it in the fact. The rules for both are in `pronouns`.
- recall: the share of a question's evidence among the sources of the first k hits, facts and turns, beside the same
  search over the turns, stored with `infer=false` for another user. Mean over the questions that have evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from bench.bundle import turn_ids_of
from bench.clients import Client
from bench.evals.pronouns import has_pronoun, unresolved
from bench.evals.stored_facts import StoredFact, facts, over_http, settled, store
from bench.load_conversations import QueryResult, Turns, ask, load, read
from bench.numbers import mean, table
from bench.target import Service

CUTS = (1, 5, 10, 20)
TIMEOUT_S = 120.0


def report(path: Path) -> str:
    """Coverage, number and self-containedness of the facts, then recall of facts beside that of turns."""
    conversations, questions = read(path)
    judged = [question for question in questions if question["evidence"]]

    async def measure(service: Service, client: httpx.AsyncClient) -> str:
        for conversation in conversations:
            await store(client, conversation)
        await settled(service)
        found = {each["id"]: await facts(client, each) for each in conversations}
        return f"{shown(conversations, judged, found)}\n\n{await _recalls(service, conversations, judged, found)}"

    return over_http(measure)


def shown(
    conversations: Sequence[Mapping[str, Any]],
    questions: Sequence[Mapping[str, Any]],
    found: Mapping[str, Sequence[StoredFact]],
) -> str:
    """The table by conversation (by its number) and in all."""
    rows: list[tuple[int, ...]] = []
    for each in conversations:
        own = found[each["id"]]
        evidence = {turn for asked in questions if asked["conversation_id"] == each["id"] for turn in asked["evidence"]}
        sources = {turn for fact in own for _, turn in fact.sources}
        pronouns = sum(has_pronoun(fact.text) for fact in own)
        hanging = sum(unresolved(fact.text, each["speakers"]) for fact in own)
        turns = sum(len(session["turns"]) for session in each["sessions"])
        rows.append((turns, len(own), len(evidence), len(evidence & sources), pronouns, hanging))
    total = tuple(sum(column) for column in zip(*rows, strict=True))
    head = ["conversation", "turns", "facts", "facts/turn", "evidence turns", "covered", "pronoun", "unresolved"]
    names = [*map(str, range(1, len(rows) + 1)), "all"]
    cells = []
    for name, (turns, count, evidence, covered, pronouns, hanging) in zip(names, [*rows, total], strict=True):
        shares = [_share(covered, evidence), _share(pronouns, count), _share(hanging, count)]
        cells.append([name, turns, count, _share(count, turns), evidence, *shares])
    return table(head, cells)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "-"


async def _recalls(
    service: Service,
    conversations: Sequence[dict[str, Any]],
    questions: Sequence[dict[str, Any]],
    found: Mapping[str, Sequence[StoredFact]],
) -> str:
    """The table of recall by facts and by turns; the turns of a conversation are stored as another user's."""
    client = Client(service.url, service.key, timeout_s=TIMEOUT_S)
    ways: dict[str, list[QueryResult]] = {"facts": [], "turns": []}
    turns: dict[str, Turns] = {}
    of_turns = {
        each["id"]: {f"{session} {index}": {turn} for (session, index), turn in turn_ids_of(each).items()}
        for each in conversations
    }
    for each in conversations:
        turns[each["id"]], _, _ = await load(client, {**each, "id": _turns_user(each["id"])}, captions=False)
    await settled(service)
    for question in questions:
        user = question["conversation_id"]
        sources: Turns = {fact.id: {turn for _, turn in fact.sources} for fact in found[user]} | of_turns[user]
        ways["facts"].append(await ask(client, question, sources))
        ways["turns"].append(await ask(client, {**question, "conversation_id": _turns_user(user)}, turns[user]))
    await client.close()
    head = [f"evidence of {len(questions)} questions", *(f"recall@{cut}" for cut in CUTS), "MRR"]
    rows = [
        [
            name,
            *(f"{mean(one.recall(cut) for one in results):.3f}" for cut in CUTS),
            f"{mean(one.reciprocal for one in results):.3f}",
        ]
        for name, results in ways.items()
    ]
    return table(head, rows)


def _turns_user(user: str) -> str:
    return f"{user}, turns"
