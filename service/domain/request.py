"""The request that a verb serves: its ids for the audit, its Idempotency-Key, and the answer stored for a retry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An HTTP status and a JSON body: sent now, and again to every repetition of the request."""

    status: int
    body: Mapping[str, Any]


Serializer = Callable[[Any], StoredAnswer]
"""A pure function from what a verb returns to the answer of its route. It reads nothing and changes nothing."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An Idempotency-Key and the fingerprint of the request it came with; kept for `ttl_s` seconds. `owner`: the user,
    agent and run that the request named, so that their erasure finds the answer."""

    key: str
    fingerprint: str
    ttl_s: float
    owner: tuple[str | None, str | None, str | None] = (None, None, None)


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Ids of request, API key and session (for the audit), the Idempotency-Key, and what makes the answer. `may_share`:
    it may write shared memories; a job of the service's own may."""

    request_id: str | None = None
    api_key_id: UUID | None = None
    idempotency: IdempotencyKey | None = None
    serialize: Serializer | None = None
    session_id: str | None = None
    may_share: bool = True

    def answered_by(self, serialize: Serializer) -> WriteContext:
        return replace(self, serialize=serialize)
