"""Tokens over HTTP: a server with a key mints them for a browser or an agent that calls directly."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import ConfigDict, Field

from service.domain.access import WHOLE_WORKSPACE, Caller, Right
from service.domain.errors import InvalidInput
from service.domain.scope import Scope
from service.http import errors
from service.http.deps import ResourcesOf, needs, session_of
from service.http.json_body import JsonRoute
from service.http.schemas import ResponseModel, Time
from service.runtime.statements.writes import AuditEntry
from service.tenants.routes.api_key_models import RightName, WallFields

router = APIRouter(prefix="/v1", tags=["API keys"], route_class=JsonRoute)

NOT_FOR_TOKENS = WHOLE_WORKSPACE | {Right.TOKENS}
Minter = Annotated[Caller, Depends(needs(Right.TOKENS))]


class CreateTokenRequest(WallFields):
    """Whom the token is for, what it may do, and for how long. At least one of `user_id`, `agent_id`, `run_id` and
    `channels` is needed, unless the key has one itself."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"user_id": "alice", "rights": ["memory:read"]}]})

    rights: list[RightName] = Field(
        min_length=1, max_length=100, examples=[["memory:read", "memory:write"]], description="Of those the key has"
    )
    expires_in_s: int = Field(900, ge=60, le=3_600, description="Seconds until it ends")


class CreateTokenResponse(ResponseModel):
    """The token is kept nowhere."""

    token: str = Field(description="Send it wherever a key is accepted: Authorization: Bearer <token>")
    expires_at: Time = Field(description="When it ends; with its key, if that is sooner")


@router.post(
    "/tokens", summary="Mint a token for one end user", status_code=201, responses=errors.documented(400, 401, 403, 503)
)
async def create_token(
    body: CreateTokenRequest, caller: Minter, res: ResourcesOf, request: Request
) -> CreateTokenResponse:
    """It reaches what lies inside its own wall and inside that of the key, and ends with the key."""
    rights = [Right(right) for right in dict.fromkeys(body.rights)]
    for right in rights:
        if right in NOT_FOR_TOKENS:
            raise InvalidInput(f"rights: a token cannot have {right}.", field="rights")
        caller.check_right(right)
    caller.check_wall(body.wall)
    wall = body.wall & caller.wall
    if not wall:
        raise InvalidInput("user_id: a token needs user_id, agent_id, run_id or channels.", field="user_id")
    expires_at = (res.clock() + timedelta(seconds=body.expires_in_s)).replace(microsecond=0)
    token = await request.app.state.tokens.mint(caller, wall, rights, expires_at)
    if res.settings.audit_level != "off":
        scope = Scope(caller.workspace_id, wall.user_id, wall.agent_id, wall.run_id)
        entry = AuditEntry(
            operation="create_token",
            memory_type="api_key",
            scope=scope,
            affected_ids=(caller.key_id,),
            request_id=request.state.request_id,
            api_key_id=caller.key_id,
            session_id=session_of(request),
            metadata={"rights": [str(right) for right in rights], "expires_in_s": body.expires_in_s},
        )
        request.app.state.reads.add(entry)  # in the background: minting waits for no write
    return CreateTokenResponse(token=token, expires_at=expires_at)
