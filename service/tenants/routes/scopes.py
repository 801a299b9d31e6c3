"""Routes for users, agents, runs and channels: list, delete with their memories."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import Field

from service.access.values import KINDS, OwnerKind
from service.domain.scope import Extent
from service.erasure.forget_scope import forget_scope
from service.erasure.routes.deletion import ACCEPTED, scope_deletion_status
from service.http.deps import AgentId, ChannelName, CursorOf, Deleter, Reader, ResourcesOf, RunId, UserId, scope_of
from service.http.json_body import JsonRoute
from service.http.schemas import NextCursor, ResponseModel, ScopeDeletionResponse, Secretless, Time
from service.http.writes import CallOf, sends
from service.tenants import workspaces

router = APIRouter(prefix="/v1", tags=["scopes"], route_class=JsonRoute)


class ScopeItem(ResponseModel):
    """One user, agent or run."""

    type: OwnerKind = Field(description="user, agent or run")
    id: str = Field(description="Its name")
    memories: int = Field(description="Number of memories, including archived, without expired ones")
    archived: int = Field(description="Number of archived memories among them")
    first_used: Time = Field(description="When the oldest of these memories was stored")
    last_used: Time = Field(description="When one of them was last changed or found")


class ScopePage(ResponseModel):
    """Users, then agents, then runs, each by name; pass `next_cursor` as `cursor` for the next page."""

    results: list[ScopeItem] = Field(description="At most `limit` users, agents and runs")
    next_cursor: NextCursor = None


class ChannelItem(ResponseModel):
    """Contents of a channel, without those of `_global`, which every search includes."""

    channel: str = Field(description="Its name")
    memories: int = Field(description="Number of live memories: not archived, expired or under review")
    turns: int = Field(description="Number of turns, without those of archived conversations")
    conversations: int = Field(description="Number of conversations with these turns")
    last_used: Time = Field(description="Last write of such a memory or turn")


class ChannelPage(ResponseModel):
    """Channels by name; pass `next_cursor` as `cursor` for the next page."""

    results: list[ChannelItem] = Field(description="At most `limit` channels")
    next_cursor: NextCursor = None


@router.get("/scopes", summary="List users, agents and runs that have memories")
async def list_scopes(
    caller: Reader,
    res: ResourcesOf,
    cursor: CursorOf,
    type: Annotated[OwnerKind | None, Query(description="Only these")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> ScopePage:
    """Users, then agents, then runs, each by name; expired memories do not count."""
    wanted: tuple[OwnerKind, ...] = (type,) if type else KINDS
    since, after = cursor.key(OwnerKind, str) or (wanted[0], None)
    kinds = wanted[wanted.index(since) :]
    usages = await workspaces.list_owners(caller.workspace_id, kinds, res, after=after, limit=limit + 1)
    page, more = cursor.cut(usages, limit, "type", "id")
    return ScopePage(results=list(map(ScopeItem.of, page)), next_cursor=more)


@router.delete(
    "/scopes/{type}/{id:path}",
    summary="Delete every memory of a user, an agent or a run",
    responses=ACCEPTED,
)
@sends(status=scope_deletion_status)
async def delete_scope(
    type: Annotated[OwnerKind, Path(description="user, agent or run")],
    id: Annotated[str, Path(min_length=1, max_length=255), Secretless],
    caller: Deleter,
    res: ResourcesOf,
    call: CallOf,
    channel: ChannelName = None,
) -> ScopeDeletionResponse:
    """Equivalent to DELETE /v1/memories with this id alone."""
    names: dict[str, Any] = {f"{type}_id": id}
    extent = Extent(
        scope_of(caller, names, needs_id=False), channel or (caller.own_channel if caller.wall.channels else None)
    )
    return await forget_scope(extent, res, call)


@router.get("/channels", summary="List channels and their contents")
async def list_channels(
    caller: Reader,
    res: ResourcesOf,
    cursor: CursorOf,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> ChannelPage:
    """Channels of a user, agent or run, or of the whole workspace, with the number of live memories and turns."""
    scope = scope_of(caller, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, needs_id=False)
    (after,) = cursor.key(str) or (None,)
    usages = await workspaces.list_channels(scope, res, after=after, limit=limit + 1)
    page, more = cursor.cut(usages, limit, "channel")
    return ChannelPage(results=list(map(ChannelItem.of, page)), next_cursor=more)
