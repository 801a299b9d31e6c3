"""Has this tenant asked the model exactly this before?

R17.11: answers to identical questions are kept in the `llm_cache` table, behind the `AnswerStore` port. There is no
level in the process: answers repeat what memories say, and an erasure has to reach every copy of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from service.providers import budget
from service.providers.json_reply import parse_reply
from service.providers.protocols import Ask, Llm, Reply


class AnswerStore(Protocol):
    """The table behind the cache; the store sets the expiry."""

    async def get(self, owner: UUID, task: str, model: str, prompt_sha256: bytes) -> str | None: ...

    async def put(self, owner: UUID, task: str, model: str, prompt_sha256: bytes, answer: str) -> None: ...


@dataclass(frozen=True, slots=True)
class CachedLlm:
    """An Llm that remembers for one owner (the workspace); implements `protocols.Llm`. Make one per request.

    `usable`: whoever asks can make something of the answer; None: it is JSON where that was asked. One that is not is
    never kept, or asking again would not help for as long as the cache lasts.
    """

    llm: Llm
    store: AnswerStore
    owner: UUID
    usable: Callable[[Reply], bool] | None = None

    @property
    def model(self) -> str:
        return self.llm.model

    async def complete(self, ask: Ask) -> Reply:
        """The kept answer, with no usage, or the model's. Raises LlmError."""
        if ask.tools:
            return await self.llm.complete(ask)
        key = (self.owner, ask.task, self.model, fingerprint(ask))
        kept = await self.store.get(*key)
        if kept is not None:
            budget.note(cached=1)
            return Reply(kept, model=self.model)
        reply = await self.llm.complete(ask)
        if self._worth_keeping(ask, reply):
            await self.store.put(*key, reply.text)
        return reply

    async def close(self) -> None:
        """Nothing: the model belongs to the process, this wrapper to a request."""

    def _worth_keeping(self, ask: Ask, reply: Reply) -> bool:
        """False for half an answer, or for one that is of no use: those would be served until they expire."""
        if reply.truncated:
            return False
        if self.usable is not None:
            return self.usable(reply)
        return ask.schema is None or parse_reply(reply.text) is not None


def fingerprint(ask: Ask) -> bytes:
    """SHA-256 of all that shapes the answer; `ask` holds redacted text only. Each part tells its length, so that no two
    questions run together."""
    form = json.dumps([ask.schema, ask.temperature, ask.max_tokens], sort_keys=True, default=dict)
    found = hashlib.sha256()
    for part in (ask.system, ask.user, form):
        encoded = part.encode("utf-8", "surrogatepass")
        found.update(b"%d:" % len(encoded))
        found.update(encoded)
    return found.digest()
