"""A change of a memory, and the version that a change of any record expects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from service.domain.errors import PreconditionFailed
from service.domain.kinds import Importance, MemoryType

Moment = Literal["t_valid", "t_invalid", "expires_at", "timestamp", "updated_at", "last_accessed"]


@dataclass(frozen=True, slots=True)
class Revision:
    """A change; None leaves a field unchanged. `metadata` is merged key by key, a None in it removes the key, and None
    for all of it every key; `tags` replace the whole list; `moments` has the given times, None clears one. `embed_now`:
    the vector is made in the request, else by a job."""

    text: str | None = None
    tags: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] | None = field(default_factory=dict)
    type: MemoryType | None = None
    type_confidence: float | None = None
    fact_confidence: float | None = None
    importance: Importance | None = None
    moments: Mapping[Moment, datetime | None] = field(default_factory=dict)
    embed_now: bool = False


@dataclass(frozen=True, slots=True)
class Expected:
    """The If-Match of a request. `versions`: any of them will do; `anything`: `*`."""

    versions: frozenset[int] = frozenset()
    anything: bool = False

    def meets(self, version: int) -> bool:
        return self.anything or version in self.versions


def check_version(version: int | None, expected: Expected | None, record: str = "memory") -> None:
    """Raises PreconditionFailed when If-Match names another version. `version`: None where there is no such record."""
    if expected is not None and (version is None or not expected.meets(version)):
        gone = ", or is not there" if version is None else ""
        raise PreconditionFailed(f"The {record} has changed since{gone}: read it again.", field="If-Match")
