"""What a user is told to remember, told as a client tells it: reworded introductions and changes, talk over several
requests, changes in other words, and things that look alike.

Each case is a user of its own; the texts that are live in the end are judged. The cases were written by someone who had
not seen the rules; the rules were tuned on the first part of each, and nobody who works on them reads the other.

- found: of what is to be known, that one text says. false: claims that a text makes and that are wrong or outdated.
- right: cases in which all is found, nothing is false, and as many memories are live as there should be, where the case
  says how many.
- `changes` and `distinct` are told twice, as single texts and as messages; each way counts half.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.evals.scoring import read_rows
from bench.evals.stored_facts import get, over_http, post
from bench.numbers import table
from bench.target import Service

CORPORA = Path(__file__).resolve().parents[2] / "tests" / "corpora"
SETS = (
    ("reworded", "scenarios/reworded.jsonl"),
    ("dialogues", "talk/dialogues.jsonl"),
    ("changes", "scenarios/changes.jsonl"),
    ("distinct", "scenarios/distinct.jsonl"),
)
FORMS = ("content", "messages")
LIVE = 500
HEDGES = frozenset(
    [
        *("n't", "not", "never", "without", "anymore", "formerly", "former", "if", "unless", "would", "could", "might"),
        *("perhaps", "maybe", "possibly", "wish", "almost", "nearly", "asked", "whether", "wonder", "suppose"),
        *("pretend", "joke", "quote"),
    ]
)
"""Words that take a claim back, or only doubt it."""


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """`right` 0..1; of what was to be found, and of the claims that must not be made, how many were."""

    right: float
    found: int = 0
    wanted: int = 0
    false: int = 0


def report() -> str:
    """Cases right, facts found and false claims, of the parts tuned on and held out."""

    async def measure(service: Service, client: httpx.AsyncClient) -> str:
        head = ["set", "part", "cases", "right", "found", "of", "false"]
        rows = []
        for name, file in SETS:
            for part, path in (("tuned on", CORPORA / file), ("held out", CORPORA / held_out(file))):
                results = [await _result(client, name, case, part) for case in read_rows(path)]
                right = f"{sum(each.right for each in results):.1f}"
                sums = [sum(getattr(each, column) for each in results) for column in ("found", "wanted", "false")]
                rows.append([name, part, len(results), right, *sums])
        return table(head, rows)

    return over_http(measure)


def held_out(file: str) -> str:
    """The file of the part that nobody who works on the rules reads."""
    return file.replace(".jsonl", "-held-out.jsonl")


def says(text: str, words: Sequence[str]) -> bool:
    """Whether each of the words, or one of its alternatives between bars, stands in the text (in lower case)."""
    return all(any(word.lower() in text for word in each.split("|")) for each in words)


def states(text: str, claim: Mapping[str, Any]) -> bool:
    """Whether a text (in lower case) makes a claim, and does not take it back."""
    words = set(re.findall(r"n't|[a-z]+", text))
    taken_back = "?" in text or HEDGES & words or any(word in text for word in claim.get("unless", ()))
    return says(text, claim["words"]) and not taken_back


async def _result(client: httpx.AsyncClient, name: str, case: Mapping[str, Any], part: str) -> ScenarioResult:
    user = f"{case['id']}, {part}"
    if "requests" in case:
        for request in case["requests"]:
            await post(client, "/v1/memories", {"messages": request, "user_id": user, "session_id": "chat"})
        return _judged(case, await _live(client, user))
    right = 0.0
    for form in FORMS:
        told = case["texts"] if name == "distinct" else [*case["setup"], case["new"]]
        for text in told:
            await _tell(client, f"{user}, {form}", form, text)
        live = await _live(client, f"{user}, {form}")
        right += (len(live) >= len(told) if name == "distinct" else _is_changed(case, live)) / len(FORMS)
    return ScenarioResult(right)


def _judged(case: Mapping[str, Any], live: Sequence[str]) -> ScenarioResult:
    found = sum(any(says(text, fact["key"]) for text in live) for fact in case["must"])
    false = sum(any(states(text, claim) for text in live) for claim in case["never"])
    counted = case.get("count") in (None, len(live))
    return ScenarioResult(found == len(case["must"]) and not false and counted, found, len(case["must"]), false)


def _is_changed(case: Mapping[str, Any], live: Sequence[str]) -> bool:
    """Whether the new state is there, the old one is not, and everything else is."""
    read = "\n".join(live)
    old = any(says(read, [words]) for words in case["must_not_contain"])
    kept = all(any(text.lower().rstrip(".") in each for each in live) for text in case["keep"])
    return says(read, case["must_contain"]) and not old and kept


async def _tell(client: httpx.AsyncClient, user: str, form: str, text: str) -> None:
    body = {"content": text} if form == "content" else {"messages": [{"role": "user", "content": text}]}
    await post(client, "/v1/memories", {**body, "user_id": user})


async def _live(client: httpx.AsyncClient, user: str) -> list[str]:
    page = await get(client, "/v1/memories", user_id=user, limit=LIVE)
    return [memory["memory"].lower().replace("’", "'") for memory in page["results"]]
