"""What was asked of the service during chaos, and what did it answer?

Every text is different and says something else, so every write has to become a memory of its own. Most bring a vector
at random: that keeps the round on the write path instead of the embedder. Some share a scope, so that writers queue for
its lock.
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
class Write:
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
class Ledger:
    """`added`: text by memory id, of every memory that was acknowledged. `given_up`: texts that may be there or not.
    `keyed`: texts sent with a key and answered, so they are there exactly once."""

    added: dict[UUID, str] = field(default_factory=dict)
    keyed: set[str] = field(default_factory=set)
    given_up: set[str] = field(default_factory=set)
    statuses: Counter[int] = field(default_factory=Counter)
    repeated: int = 0
    wrong: list[str] = field(default_factory=list)
    _ids_of: dict[str, list[UUID]] = field(default_factory=dict)

    def answered(self, write: Write, status: int, body: Mapping[str, Any]) -> None:
        """Notes what an answer below 500 promises; whatever is no ADD of every text is wrong."""
        self.statuses[status] += 1
        results = results_of(body)
        if status not in (200, 201) or len(results) != len(write.texts) or any(each is None for each in results):
            if write.kind == "batch" and status == 200 and write.key is None:
                self._part_of_a_batch(write, results)  # an item may have met the kill; the others count
                return
            self.wrong.append(f"{write.kind}: answered {status}, {str(body)[:200]}")
            return
        self._added(write, [UUID(each["id"]) for each in results if each is not None])
        if any(each is not None and each["event"] != "ADD" for each in results):
            self.wrong.append(f"{write.kind}: {[each and each['event'] for each in results]} for new texts")

    def gave_up(self, write: Write) -> None:
        self.given_up.update(write.texts)
        if write.key:
            self.wrong.append(f"{write.kind}: never answered, though it was repeated")

    def _added(self, write: Write, ids: list[UUID]) -> None:
        if write.key:
            first = self._ids_of.setdefault(write.key, ids)
            self.repeated += first is not ids
            if first != ids:
                self.wrong.append(f"{write.kind}: the same Idempotency-Key got {first}, then {ids}")
            self.keyed.update(write.texts)
        self.added.update(zip(ids, write.texts, strict=True))

    def _part_of_a_batch(self, write: Write, results: list[dict[str, Any] | None]) -> None:
        for text, each in zip(write.texts, results, strict=True):
            if each is None:
                self.given_up.add(text)
            else:
                self.added[UUID(each["id"])] = text


def results_of(body: Mapping[str, Any]) -> list[dict[str, Any] | None]:
    """One result per text; of a batch item that failed None."""
    found = body.get("results", [])
    if found and "index" in found[0]:
        return [each["results"][0] if each.get("results") else None for each in found]
    return list(found)


def text_of(chance: random.Random) -> str:
    """A text nobody had before: 64 bits of it are a name."""
    name = "".join(chance.choices(LETTERS, k=14))  # no digits: sixteen of them may be a card's, and are then cut out
    return f"Crate {name} holds {', '.join(chance.sample(THINGS, 4))}."


def _memory(chance: random.Random, *, embed: bool = False) -> dict[str, Any]:
    """A single memory of one of four shared users; with `embed` of a user of its own, so that nothing lies near it."""
    text = text_of(chance)
    if embed:
        return {"content": text, "user_id": f"own-{chance.getrandbits(64):x}"}
    vector = [round(chance.gauss(0, 1), 3) for _ in range(DIMENSION)]
    return {"content": text, "user_id": f"shared-{chance.randrange(4)}", "embedding": vector}


def content(chance: random.Random) -> Write:
    body = _memory(chance, embed=chance.random() < 0.3)
    return Write("content", "/v1/memories", json.dumps(body).encode(), (body["content"],), None)


def content_with_key(chance: random.Random) -> Write:
    write = content(chance)
    return Write("content+key", write.path, write.body, write.texts, f"chaos-{chance.getrandbits(64):x}")


def messages(chance: random.Random) -> Write:
    """With a key now and then; a few runs are shared, so conversations grow by several requests."""
    texts = tuple(text_of(chance) for _ in range(MESSAGES))
    said = [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(texts)]
    body = {"messages": said, "infer": False, "user_id": "talker", "run_id": f"talk-{chance.randrange(3)}"}
    key = f"chaos-{chance.getrandbits(64):x}" if chance.random() < 0.5 else None
    return Write("messages", "/v1/memories", json.dumps(body).encode(), texts, key)


def batch(chance: random.Random) -> Write:
    """Each item is a transaction of its own, and the answer says which of them succeeded; with a key now and then."""
    items = [_memory(chance) for _ in range(BATCH)]
    texts = tuple(item["content"] for item in items)
    key = f"chaos-{chance.getrandbits(64):x}" if chance.random() < 0.5 else None
    return Write("batch", "/v1/memories/batch", json.dumps({"items": items}).encode(), texts, key)


KINDS: tuple[Callable[[random.Random], Write], ...] = (content, content_with_key, content_with_key, messages, batch)
