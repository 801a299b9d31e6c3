"""Requests of the chaos benchmark, and a record of their answers.

Every text says something different, so every write has to become a memory of its own. Most come with a random vector,
which keeps the load on the write path instead of the embedder. Some share a scope, so that writers wait for its lock.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from bench.sentences import THINGS

DIMENSION = 384
BATCH, MESSAGES = 4, 5
LETTERS = "bcdfghjkmnpqrstvwxz"


@dataclass(frozen=True, slots=True)
class SentWrite:
    """One request; `texts` are what it stores, `key` its Idempotency-Key."""

    kind: str
    path: str
    body: bytes
    texts: tuple[str, ...]
    key: str | None

    @property
    def headers(self) -> dict[str, str]:
        return {"Idempotency-Key": self.key} if self.key else {}


@dataclass(slots=True)
class AnswerRecord:
    """What the service promised. `added`: text by memory id, of every acknowledged memory. `given_up`: texts that may
    have been stored or not. `keyed`: texts sent with a key and answered, so they are stored exactly once."""

    added: dict[UUID, str] = field(default_factory=dict)
    keyed: set[str] = field(default_factory=set)
    given_up: set[str] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)
    repeated: int = 0
    wrong: list[str] = field(default_factory=list)
    _ids_of: dict[str, list[UUID]] = field(default_factory=dict)

    def answered(self, write: SentWrite, status: int, body: Mapping[str, Any]) -> None:
        """Records what an answer below 500 promises; an answer that does not add every text is wrong."""
        self.statuses[status] += 1
        results = results_of(body)
        if status not in (200, 201) or len(results) != len(write.texts) or any(each is None for each in results):
            if write.kind == "batch" and status == 200 and write.key is None:
                self._partial_batch(write, results)  # the kill may have met one item; the others count
                return
            self.wrong.append(f"{write.kind}: answered {status}, {str(body)[:200]}")
            return
        self._added(write, [UUID(each["id"]) for each in results if each is not None])
        if any(each is not None and each["event"] != "ADD" for each in results):
            self.wrong.append(f"{write.kind}: {[each and each['event'] for each in results]} for new texts")

    def gave_up(self, write: SentWrite) -> None:
        self.given_up.update(write.texts)
        if write.key:
            self.wrong.append(f"{write.kind}: never answered, though it was repeated")

    def _added(self, write: SentWrite, ids: list[UUID]) -> None:
        if write.key:
            first = self._ids_of.setdefault(write.key, ids)
            self.repeated += first is not ids
            if first != ids:
                self.wrong.append(f"{write.kind}: the same Idempotency-Key got {first}, then {ids}")
            self.keyed.update(write.texts)
        self.added.update(zip(ids, write.texts, strict=True))

    def _partial_batch(self, write: SentWrite, results: list[dict[str, Any] | None]) -> None:
        for text, each in zip(write.texts, results, strict=True):
            if each is None:
                self.given_up.add(text)
            else:
                self.added[UUID(each["id"])] = text


def results_of(body: Mapping[str, Any]) -> list[dict[str, Any] | None]:
    """Returns one result per text; None for a batch item that failed."""
    found = body.get("results", [])
    if found and "index" in found[0]:
        return [each["results"][0] if each.get("results") else None for each in found]
    return list(found)


def text_of(chance: random.Random) -> str:
    """Returns a new text: a name of 64 random bits makes it unique."""
    name = "".join(chance.choices(LETTERS, k=14))  # no digits: sixteen could be a card number, which would be redacted
    return f"Crate {name} holds {', '.join(chance.sample(THINGS, 4))}."


def _memory(chance: random.Random, *, embed: bool = False) -> dict[str, Any]:
    """A memory of one of four shared users; with `embed` of a user of its own, so that it has no neighbours."""
    text = text_of(chance)
    if embed:
        return {"content": text, "user_id": f"own-{chance.getrandbits(64):x}"}
    vector = [round(chance.gauss(0, 1), 3) for _ in range(DIMENSION)]
    return {"content": text, "user_id": f"shared-{chance.randrange(4)}", "embedding": vector}


def content(chance: random.Random) -> SentWrite:
    body = _memory(chance, embed=chance.random() < 0.3)
    return SentWrite("content", "/v1/memories", json.dumps(body).encode(), (body["content"],), None)


def content_with_key(chance: random.Random) -> SentWrite:
    write = content(chance)
    return SentWrite("content+key", write.path, write.body, write.texts, f"chaos-{chance.getrandbits(64):x}")


def messages(chance: random.Random) -> SentWrite:
    """Messages, half of them with a key; a few runs are shared, so conversations grow by several requests."""
    texts = tuple(text_of(chance) for _ in range(MESSAGES))
    turns = [{"role": ("user", "assistant")[index % 2], "content": text} for index, text in enumerate(texts)]
    body = {"messages": turns, "infer": False, "user_id": "talker", "run_id": f"talk-{chance.randrange(3)}"}
    key = f"chaos-{chance.getrandbits(64):x}" if chance.random() < 0.5 else None
    return SentWrite("messages", "/v1/memories", json.dumps(body).encode(), texts, key)


def batch(chance: random.Random) -> SentWrite:
    """A batch, half of them with a key. Each item is its own transaction, and the answer says which succeeded."""
    items = [_memory(chance) for _ in range(BATCH)]
    texts = tuple(item["content"] for item in items)
    key = f"chaos-{chance.getrandbits(64):x}" if chance.random() < 0.5 else None
    return SentWrite("batch", "/v1/memories/batch", json.dumps({"items": items}).encode(), texts, key)


KINDS: tuple[Callable[[random.Random], SentWrite], ...] = (content, content_with_key, content_with_key, messages, batch)
