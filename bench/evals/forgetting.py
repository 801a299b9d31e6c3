"""Forgetting: whether what was superseded, released or purged is gone from what a client reads, and nothing else.

Each case is told as a client tells it, a request at a time: the setup facts, the mutations, the final query; once as
single texts (`content`) and once as the user's messages (`messages`, infer=true), each case as a user of its own.

What the client does for a mutation:
- supersede: the new text is told like the setup facts, and nothing is deleted by hand.
- release, purge: POST /v1/forget with the mutation's query, where the service has that route. Otherwise the client
  searches for the query and deletes, of the first five hits, those that have as many of its key words as the hit with
  most of them, and at least one. Key words of a query: its words with a digit or an @; without such, the words that do
  not begin with a lower-case letter; without such, all of four letters and more. A word is compared whole, in any case.
  `purge` deletes with `purge=true`, `release` without.

A case passes when every text that must be there stands somewhere in what was read, and none that must not be, in any
case of letters: by the first five facts of a search, and by the whole block that recall returns as markdown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.evals.scoring import read_rows
from bench.evals.stored_facts import get, hits, over_http, post, settled
from bench.numbers import table
from bench.target import Service

FORMS = ("content", "messages")
FIRST = 5
RECALL_TOKENS = 2_000
_EDGES = re.compile(r"^\W+(?<!@)|(?:'s)?\W+$|'s$")


@dataclass(frozen=True, slots=True)
class CaseResult:
    """Whether a case told in one form passed, by search and by recall."""

    form: str
    category: str
    by_search: bool
    by_recall: bool


def report(path: Path) -> str:
    """Passes of n by category and in all, for both forms."""
    cases = read_rows(path)

    async def measure(service: Service, client: httpx.AsyncClient) -> str:
        can_forget = "/v1/forget" in (await get(client, "/openapi.json"))["paths"]
        results = [
            await _result(service, client, case, f"{form}-{number}", form, can_forget=can_forget)
            for form in FORMS
            for number, case in enumerate(cases)
        ]
        return shown(results)

    return over_http(measure)


def shown(results: Sequence[CaseResult]) -> str:
    """The table of passes."""
    head = ["passed of n", "n", *(f"{form}, {way}" for form in FORMS for way in ("search", "recall"))]
    rows = []
    for category in [*sorted({each.category for each in results}), "all"]:
        group = [each for each in results if category in (each.category, "all")]
        cells: list[int] = []
        for form in FORMS:
            told = [each for each in group if each.form == form]
            cells += [sum(each.by_search for each in told), sum(each.by_recall for each in told)]
        rows.append([category, len(group) // len(FORMS), *cells])
    return table(head, rows)


async def _result(
    service: Service, client: httpx.AsyncClient, case: Mapping[str, Any], user: str, form: str, *, can_forget: bool
) -> CaseResult:
    for text in case["setup_facts"]:
        await _tell(client, user, form, text)
    for mutation in case["mutations"]:
        await settled(service)
        if mutation["op"] == "supersede":
            await _tell(client, user, form, mutation["new"])
        else:
            await _forget(client, user, mutation["query"], purge=mutation["op"] == "purge", can_forget=can_forget)
    await settled(service)
    found = await hits(client, user, case["final_query"], limit=FIRST)
    body = {"query": case["final_query"], "user_id": user, "max_tokens": RECALL_TOKENS, "format": "markdown"}
    recalled = await post(client, "/v1/recall", body)
    return CaseResult(
        form,
        case["category"],
        by_search=passes(case, [hit["memory"] for hit in found]),
        by_recall=passes(case, [recalled["markdown"]]),
    )


async def _tell(client: httpx.AsyncClient, user: str, form: str, text: str) -> None:
    if form == "content":
        await post(client, "/v1/memories", {"content": text, "user_id": user})
    else:
        messages = [{"role": "user", "content": text}]
        await post(client, "/v1/memories", {"messages": messages, "infer": True, "user_id": user, "session_id": "chat"})


async def _forget(client: httpx.AsyncClient, user: str, query: str, *, purge: bool, can_forget: bool) -> None:
    if can_forget:
        await post(client, "/v1/forget", {"query": query, "user_id": user, "purge": purge})
        return
    found = await hits(client, user, query, limit=FIRST)
    for place in to_delete(query, [hit["memory"] for hit in found]):
        address = f"/v1/memories/{found[place]['id']}"
        (await client.delete(address, params={"purge": "true"} if purge else {})).raise_for_status()


def to_delete(query: str, texts: Sequence[str]) -> list[int]:
    """The places of the texts that a client deletes for a query."""
    keys = key_words(query)
    counts = [len(keys & {word.casefold() for word in _words(text)}) for text in texts]
    return [index for index, count in enumerate(counts) if count and count == max(counts)]


def key_words(query: str) -> set[str]:
    """The words of a query that single out what is meant, in lower case."""
    words = _words(query)
    identifiers = [word for word in words if "@" in word or any(letter.isdigit() for letter in word)]
    names = [word for word in words if not word[0].islower()]
    return {word.casefold() for word in identifiers or names or [word for word in words if len(word) > 3]}


def _words(text: str) -> list[str]:
    return [word for part in text.split() if (word := _EDGES.sub("", part))]


def passes(case: Mapping[str, Any], texts: Sequence[str]) -> bool:
    """Whether the texts hold all that they must and nothing that they must not."""
    read = "\n".join(texts).casefold()
    needed = all(each.casefold() in read for each in case["must_contain"])
    return needed and not any(each.casefold() in read for each in case["must_not_contain"])
