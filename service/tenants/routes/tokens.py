"""Route for tokens, which a server with a key mints for a browser or an agent that calls directly."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import Field

from service.domain.access import Caller, Right
from service.http.deps import ResourcesOf, needs
from service.http.json_body import JsonRoute
from service.http.schemas import ResponseModel, Time, example
from service.http.writes import UnkeyedCallOf
from service.tenants import keys
from service.tenants.routes.api_key_models import RightName, WallFields

router = APIRouter(prefix="/v1", tags=["API keys"], route_class=JsonRoute)

Minter = Annotated[Caller, Depends(needs(Right.TOKENS))]


class CreateTokenRequest(WallFields):
    """Restrictions, rights and lifetime of a token. At least one of `user_id`, `agent_id`, `run_id` and `channels` is
    required, unless the key itself is restricted."""

    model_config = example(user_id="alice", rights=["memory:read"])

    rights: list[RightName] = Field(
        min_length=1,
        max_length=100,
        examples=[["memory:read", "memory:write"]],
        description="Rights of the token, a subset of the key's",
    )
    expires_in_s: int = Field(900, ge=60, le=3_600, description="Seconds until it expires")


class CreateTokenResponse(ResponseModel):
    """The token, which the service does not store."""

    token: str = Field(description="Accepted wherever a key is: Authorization: Bearer <token>")
    expires_at: Time = Field(description="When it expires, at the latest together with its key")


@router.post("/tokens", summary="Mint a token for one end user", status_code=201)
async def create_token(
    body: CreateTokenRequest, caller: Minter, res: ResourcesOf, request: Request, call: UnkeyedCallOf
) -> CreateTokenResponse:
    """The restrictions of the key apply in addition to its own, and it expires with the key."""
    rights = [Right(right) for right in dict.fromkeys(body.rights)]
    token, expires_at = await keys.mint(
        *(body.wall, rights, body.expires_in_s, caller, res, call),
        signer=request.app.state.tokens,
        log=request.app.state.reads,
    )
    return CreateTokenResponse(token=token, expires_at=expires_at)
