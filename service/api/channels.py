"""Channels over HTTP: what there is to name, and how much stands in it."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from service.api import errors
from service.api.deps import AgentId, Reader, ResourcesOf, RunId, UserId
from service.api.schemas import NextCursor, ResponseModel, Time
from service.db.tenants import users
from service.domain.scope import Scope
from service.errors import InvalidInput

router = APIRouter(prefix="/v1/channels", tags=["scopes"])


class ChannelItem(ResponseModel):
    """What a search of this channel can find; every search also looks at `_global`."""

    channel: str = Field(description="Its name")
    memories: int = Field(description="Live ones: not archived, expired or waiting for a review")
    turns: int = Field(description="Turns that are not of archived conversations")
    conversations: int = Field(description="Conversations of these turns")
    last_used: Time = Field(description="Last write of such a memory or turn")


class ChannelPage(ResponseModel):
    """By name; hand `next_cursor` back to read on."""

    results: list[ChannelItem] = Field(description="At most `limit` channels")
    next_cursor: NextCursor = None


@router.get(
    "",
    operation_id="list_channels",
    summary="The channels in use, with what stands in them",
    response_model=ChannelPage,
    responses=errors.documented(400, 401, 403, 503),
)
async def list_channels(
    who: Reader,
    res: ResourcesOf,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=1_000)] = None,
) -> ChannelPage:
    """Of a user, agent or run, or of the whole workspace. Live memories and turns are counted."""
    given = (user_id, agent_id, run_id)
    scope = Scope(who.workspace_id, *(given if any(given) else (who.user_id, who.agent_id, who.run_id)))
    after = None if cursor is None else _decode(cursor)
    async with res.db.read(who.workspace_id) as session:
        found = await users.channels(session, scope, after=after, limit=limit + 1, now=res.clock())
    page = found[:limit]
    more = _encode(page[-1].name) if len(found) > limit else None
    results = [
        ChannelItem(
            channel=each.name,
            memories=each.memories,
            turns=each.turns,
            conversations=each.conversations,
            last_used=each.last_used,
        )
        for each in page
    ]
    return ChannelPage(results=results, next_cursor=more)


def _encode(name: str) -> str:
    return base64.urlsafe_b64encode(f"channel|{name}".encode()).decode().rstrip("=")


def _decode(cursor: str) -> str:
    try:
        kind, _, name = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition("|")
        if kind != "channel" or not name or "\x00" in name:
            raise ValueError
        return name
    except (ValueError, binascii.Error, UnicodeDecodeError):
        raise InvalidInput("cursor: is not one of ours; take next_cursor of the last page.", field="cursor") from None
