"""Checks before a record is read or changed: its id, its scope, If-Match."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Any, Protocol
from uuid import UUID

from fastapi import Depends, Header

from service.domain.errors import NotFound
from service.domain.filters import uuid_or_none
from service.domain.request import Call, Expected
from service.domain.scope import Scope
from service.domain.sizes import MAX_HEADER
from service.http.deps import AgentId, CallerOf, ResourcesOf, RunId, UserId
from service.http.writes import CallOf
from service.postgres.engine import Session


class Scoped(Protocol):
    @property
    def scope(self) -> Scope: ...


async def parse_if_match(
    if_match: Annotated[str | None, Header(max_length=MAX_HEADER, description="The ETag of GET, or *")] = None,
) -> Expected | None:
    """The version required by If-Match, if any. A weak or foreign tag matches nothing (RFC 9110)."""
    if if_match is None:
        return None
    tags = [tag.strip() for tag in if_match.split(",")]
    numbers = (tag[1:-1] if len(tag) > 1 and tag[0] == tag[-1] == '"' else tag for tag in tags)
    versions = frozenset(int(number) for number in numbers if number.isascii() and number.isdigit())
    return Expected(versions, anything="*" in tags)


ExpectedOf = Annotated[Expected | None, Depends(parse_if_match)]


async def _add_expected(call: CallOf, expected: ExpectedOf) -> Call:
    return replace(call, expected=expected)


VersionedCallOf = Annotated[Call, Depends(_add_expected)]
"""For a write of a record with a version."""


def uuid_of(given: str, record: str = "memory") -> UUID:
    """The id of a record; raises NotFound for anything that is not a UUID."""
    if (wanted := uuid_or_none(given)) is None:
        raise NotFound.of(record)
    return wanted


def in_scope(get: Callable[[Session, UUID], Awaitable[Scoped | None]], record: str) -> Any:
    """A dependency for routes with `{id}`: scope ids are optional, but those given must match the record's, else it is
    not found. A shared memory matches any."""

    async def check(
        id: str,
        caller: CallerOf,
        res: ResourcesOf,
        user_id: UserId = None,
        agent_id: AgentId = None,
        run_id: RunId = None,
    ) -> None:
        if not any((user_id, agent_id, run_id)):
            return
        async with res.db.read(caller.workspace_id) as session:
            found = await get(session, uuid_of(id, record))
        if found is not None and not found.scope.has_ids(user_id=user_id, agent_id=agent_id, run_id=run_id):
            raise NotFound.of(record)

    return Depends(check)
