"""The call of a verb that writes: its ids for the audit, its Idempotency-Key and If-Match, and the answer stored for a
retry.

`Operation` and `Subject` are all the words that the audit log has; a filter with another one is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import UUID

from service.domain.errors import PreconditionFailed

Operation = Literal[
    "store", "update", "delete", "restore", "promote", "associate", "dissociate", "undo", "review_accepted",
    "review_rejected", "purge", "reset", "open", "store_turn", "upsert_entity", "delete_entity",
    "relate_entities", "unrelate_entities", "merge_entities", "goal_add", "goal_update",
    "goal_complete", "goal_delete",
    "strategy_add", "strategy_reinforce", "strategy_delete", "retrieve", "record_tool", "set_working",
    "delete_working", "create_api_key", "update_api_key", "rotate_api_key", "revoke_api_key", "create_token",
    "run_job", "retry_job", "cancel_job", "archive", "optimize", "create_webhook", "update_webhook",
    "delete_webhook",
]  # fmt: skip
"""What was done. A word stays here as long as the log may contain it, even if it is no longer written."""

Subject = Literal[
    "semantic", "episodic", "procedural", "working", "goal", "profile", "entity", "timeline", "api_key", "job",
    "webhook",
]  # fmt: skip
"""The object. A message stored verbatim is `episodic`, like turns; changes of entities are `semantic`, searches for
them `entity`."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An HTTP status and a JSON body: sent now, and again to every repetition of the request."""

    status: int
    body: Mapping[str, Any]


class Replay(Exception):
    """The request was answered before; roll back and send `answer`."""

    def __init__(self, answer: StoredAnswer) -> None:
        super().__init__("answered before")
        self.answer = answer


Serializer = Callable[[Any], StoredAnswer]
"""A pure function from the result of a verb to the answer of its route."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """An Idempotency-Key and the fingerprint of the request it came with; kept for `ttl_s` seconds. `owner`: the user,
    agent, run and channel of the request, so that their erasure finds the answer."""

    key: str
    fingerprint: str
    ttl_s: float
    owner: tuple[str | None, str | None, str | None, str | None] = (None, None, None, None)


@dataclass(frozen=True, slots=True)
class Expected:
    """The If-Match of a request. `versions`: any of them will do; `anything`: `*`."""

    versions: frozenset[int] = frozenset()
    anything: bool = False

    def meets(self, version: int) -> bool:
        return self.anything or version in self.versions


@dataclass(frozen=True, slots=True)
class Call:
    """Ids of request, API key and session (for the audit), the Idempotency-Key, the serializer of the answer, and the
    version that If-Match names. `may_share`: it may write shared memories, as jobs of the service may. `dry_run`: its
    transaction is rolled back."""

    request_id: str | None = None
    api_key_id: UUID | None = None
    idempotency: IdempotencyKey | None = None
    serialize: Serializer | None = None
    session_id: str | None = None
    may_share: bool = True
    dry_run: bool = False
    expected: Expected | None = None

    def with_serializer(self, serialize: Serializer) -> Call:
        return replace(self, serialize=serialize)


def check_version(version: int | None, expected: Expected | None, record: str = "memory") -> None:
    """Raises PreconditionFailed when If-Match names another version. `version`: None where there is no such record."""
    if expected is not None and (version is None or not expected.meets(version)):
        if not expected.versions and not expected.anything:
            raise PreconditionFailed('If-Match: is not an ETag as GET returns it, such as "3".', field="If-Match")
        absent = ", or does not exist" if version is None else ""
        raise PreconditionFailed(f"The {record} has changed since{absent}; read it again.", field="If-Match")
