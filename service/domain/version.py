"""The versions of one value in the order of time, and the place of another statement among them.

A version holds from its `start` until the next one's. The first has no start unless it says so; the last one is the
current one. The place of a statement does not depend on the order of arrival.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


def begins(said_at: datetime, t_valid: datetime | None, t_invalid: datetime | None) -> datetime:
    """When a statement begins to hold: the time it states, else when it was said. One that had already ended comes
    before whatever began at its end."""
    if t_valid is not None or t_invalid is None:
        return t_valid or said_at
    return min(said_at, t_invalid)


@dataclass(frozen=True, slots=True)
class Version:
    """One value that a memory had. `said_at`: every time it was said, ascending, at least one. `is_past`: it is a past
    version of another memory, or was superseded."""

    id: UUID
    text: str
    hash: str
    said_at: tuple[datetime, ...]
    t_valid: datetime | None
    t_invalid: datetime | None
    is_past: bool

    @property
    def start(self) -> datetime:
        return begins(self.said_at[0], self.t_valid, self.t_invalid)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a statement.

    `known`: the version there that already says the same, and was said again. Otherwise the statement is a new version
    in [t_valid, t_invalid). `before`, `after`: the versions on both sides. `is_split`: `before` was said again after
    the statement, so it held twice: until the statement begins, and from `t_invalid` on.
    """

    start: datetime
    t_valid: datetime | None
    t_invalid: datetime | None
    before: Version | None = None
    after: Version | None = None
    known: Version | None = None
    is_split: bool = False


def place(
    line: Sequence[Version], value_hash: str, said_at: datetime, t_valid: datetime | None, t_invalid: datetime | None
) -> Place:
    """The place of a statement in a line of versions ordered by start."""
    start = begins(said_at, t_valid, t_invalid)
    at = bisect_right([version.start for version in line], start)
    before, after = line[at - 1] if at else None, line[at] if at < len(line) else None
    is_split = before is not None and before.said_at[-1] > start
    known = next((each for each in (before, None if is_split else after) if each and each.hash == value_hash), None)
    since = t_valid or (start if before and start != t_invalid else None)
    if known is not None:
        return Place(start, since, t_invalid, before, after, known)
    again = next(moment for moment in before.said_at if moment > start) if before and is_split else None
    end = again or (after.start if after else None)
    until = min(filter(None, (t_invalid, end)), default=None)
    return Place(start, since, until, before, after, None, is_split)
