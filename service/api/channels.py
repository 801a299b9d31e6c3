"""Channels over HTTP: their names and how much each holds."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from service.api import cursors, errors
from service.api.deps import AgentId, Reader, ResourcesOf, RunId, UserId, optional_scope
from service.api.schemas import NextCursor, ResponseModel, Time
from service.db.tenants import users

router = APIRouter(prefix="/v1/channels", tags=["scopes"])


class ChannelItem(ResponseModel):
    """What a search in this channel can find; every search also looks at `_global`."""

    channel: str = Field(description="Its name")
    memories: int = Field(description="Live ones: not archived, expired or waiting for a review")
    turns: int = Field(description="Turns that are not of archived conversations")
    conversations: int = Field(description="Conversations of these turns")
    last_used: Time = Field(description="Last write of such a memory or turn")


class ChannelPage(ResponseModel):
    """By name; send `next_cursor` back for the next page."""

    results: list[ChannelItem] = Field(description="At most `limit` channels")
    next_cursor: NextCursor = None


@router.get(
    "",
    operation_id="list_channels",
    summary="The channels in use, with what they hold",
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
    scope = optional_scope(who, user_id=user_id, agent_id=agent_id, run_id=run_id)
    after = None if cursor is None else cursors.unpack(cursor, _name)
    async with res.db.read(who.workspace_id) as session:
        found = await users.channels(session, scope, after=after, limit=limit + 1, now=res.clock())
    page, last = cursors.cut(found, limit)
    results = [ChannelItem.of(each, channel=each.name) for each in page]
    return ChannelPage(results=results, next_cursor=cursors.pack(f"channel|{last.name}") if last else None)


def _name(text: str) -> str:
    kind, _, name = text.partition("|")
    if kind != "channel" or not name:
        raise ValueError
    return name
