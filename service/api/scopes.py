"""Users, agents and runs over HTTP: listed, and deleted with their memories."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from service.api import cursors, errors
from service.api.deps import ChannelName, Deleter, Reader, ResourcesOf
from service.api.forgetting import ACCEPTED, deleted_count_answer
from service.api.schemas import DeletedCountResponse, NextCursor, ResponseModel, Time
from service.api.writes import WriteOf, send
from service.db.erasure.deletion import Extent
from service.db.tenants import users
from service.db.tenants.users import KINDS, OwnerKind, OwnerUsage
from service.domain.scope import Scope
from service.memory.forget import forget_scope

router = APIRouter(prefix="/v1/scopes", tags=["scopes"])

KindName = Literal["user", "agent", "run"]


class ScopeItem(ResponseModel):
    """One user, agent or run."""

    type: KindName = Field(description="Which of the three")
    id: str = Field(description="Its name, as it was stored with")
    memories: int = Field(description="Archived ones included, expired ones not, from 1")
    archived: int = Field(description="Of these the archived ones, from 0")
    first_used: Time = Field(description="When the oldest of these memories was stored")
    last_used: Time = Field(description="When one of them was last changed or found")


class ScopePage(ResponseModel):
    """Users, then agents, then runs, each by name; send `next_cursor` back for the next page."""

    results: list[ScopeItem] = Field(description="At most `limit`")
    next_cursor: NextCursor = None


@router.get(
    "",
    operation_id="list_scopes",
    summary="The users, agents and runs that have memories",
    response_model=ScopePage,
    responses=errors.documented(400, 401, 403, 503),
)
async def list_scopes(
    who: Reader,
    res: ResourcesOf,
    type: Annotated[KindName | None, Query(description="Only these")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    cursor: Annotated[str | None, Query(max_length=2_000)] = None,
) -> ScopePage:
    """Users, then agents, then runs, each by name; memories that have expired do not count."""
    wanted: tuple[OwnerKind, ...] = (type,) if type else KINDS
    since, after = cursors.unpack(cursor, _kind_and_id) if cursor else (wanted[0], None)
    found: list[OwnerUsage] = []
    async with res.db.snapshot(who.workspace_id) as session:
        for kind in wanted[wanted.index(since) if since in wanted else 0 :]:
            if len(found) > limit:
                break
            behind = after if kind == since else None
            room = limit + 1 - len(found)
            found += await users.owners(session, who.workspace_id, kind, after=behind, limit=room, now=res.clock())
    page, last = cursors.cut(found, limit)
    more = cursors.pack(f"{last.kind}|{last.id}") if last else None
    return ScopePage(results=[ScopeItem.of(each, type=each.kind) for each in page], next_cursor=more)


@router.delete(
    "/{type}/{id:path}",
    operation_id="delete_scope",
    summary="Delete every memory of a user, an agent or a run",
    response_model=DeletedCountResponse,
    responses={**ACCEPTED, **errors.documented(400, 401, 403, 503)},
)
async def delete_scope(
    type: Annotated[KindName, Path(description="Whose memories go")],
    id: Annotated[str, Path(min_length=1, max_length=255)],
    who: Deleter,
    res: ResourcesOf,
    write: WriteOf,
    channel: ChannelName = None,
) -> Response:
    """The same as DELETE /v1/memories with this one id."""
    names = {f"{type}_id": id}
    extent = Extent(Scope(who.workspace_id, **names), channel)
    return send(deleted_count_answer(await forget_scope(extent, res, write.answered_by(deleted_count_answer))))


def _kind_and_id(text: str) -> tuple[OwnerKind, str]:
    kind, _, last = text.partition("|")
    return KINDS[KINDS.index(kind)], last
