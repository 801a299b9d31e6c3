"""What does a verb need to know of the request it serves?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from service.domain.memory import Outcome

Render = Callable[[Sequence[Outcome], Sequence[str]], tuple[int, Mapping[str, Any]]]
"""Shapes outcomes and warnings into an HTTP status and a body, so that the answer can be kept in the same commit."""


Accept = Callable[[UUID], tuple[int, Mapping[str, Any]]]
"""The same for the id of an operation that will answer later."""


Shape = Callable[[Any], tuple[int, Mapping[str, Any]]]
"""The same for whatever else a verb returns."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An Idempotency-Key and the fingerprint of the request it came with; kept for `ttl_s` seconds. `owner`: the user,
    agent and run that the request named, so that their erasure finds the answer."""

    key: str
    fingerprint: str
    ttl_s: float
    owner: tuple[str | None, str | None, str | None] = (None, None, None)


@dataclass(frozen=True, slots=True)
class Request:
    """Who asks, and in which session (for the audit), and how the answer is kept for a retry."""

    request_id: str | None = None
    api_key_id: UUID | None = None
    idempotency: IdempotencyKey | None = None
    render: Render | None = None
    accepted: Accept | None = None
    shape: Shape | None = None
    session_id: str | None = None
