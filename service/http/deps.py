"""Dependencies of routes: the caller and its rights, resources and scope."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, get_args, get_origin

from fastapi import Depends, Query, Request, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute
from fastapi.security import APIKeyHeader, APIKeyQuery, HTTPBearer

from service.access.token_signing import caller_of, looks_like_token
from service.domain.access import Caller, Right
from service.domain.errors import Forbidden, InvalidInput, PiiRejected, Unauthenticated
from service.domain.scope import Scope
from service.domain.sizes import MAX_NAME
from service.http import errors, replica_reads
from service.http.admission import address_of
from service.http.cursors import Cursor
from service.http.key_ring import KeyRing
from service.http.query_parameters import fields_of
from service.http.schemas import INCLUDE_SHARED, NOT_A_NAME, Channel, Name, ReadScopeFields
from service.postgres.replicas import Source
from service.redaction import detection
from service.runtime.resources import Context, Resources

BEARER = HTTPBearer(auto_error=False, scheme_name="bearer", description="`Authorization: Bearer <key>` (preferred)")
HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, scheme_name="header")
QUERY = APIKeyQuery(
    name="api_key", auto_error=False, scheme_name="query", description="Disabled unless LOXODON_AUTH_ALLOW_QUERY is set"
)


async def authenticate(request: Request) -> Caller:
    """The caller, also as `request.state.caller`; raises Unauthenticated or RateLimited. The key is read from the
    bearer token, else from the header, else from the query, and the workspace comes from the key alone."""
    res: Resources = request.app.state.resources
    query = request.query_params.get("api_key")
    if query is not None and not res.settings.server.auth_allow_query:  # even along with a valid key: URLs are logged
        raise Unauthenticated("An API key in the URL (api_key) is not accepted: send Authorization: Bearer <key>.")
    secret = _bearer_secret(request) or request.headers.get("x-api-key") or query
    if not secret:
        raise Unauthenticated("An API key is required: Authorization: Bearer <key>.")
    request.state.caller = caller = await _caller_of_secret(secret, request, res.clock())
    request.app.state.key_uses.add(caller.workspace_id, caller.key_id, res.clock())
    return caller


def _bearer_secret(request: Request) -> str | None:
    """The key in `Authorization: Bearer`, or `Token`, as mem0 clients send it."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() in ("bearer", "token") else None


async def _caller_of_secret(secret: str, request: Request, now: datetime) -> Caller:
    """The caller of a key or token; raises as `authenticate`."""
    ring: KeyRing = request.app.state.keys
    if looks_like_token(secret):
        claims = await request.app.state.tokens.read(secret, now)
        return caller_of(claims, await ring.caller_by_id(claims.workspace, claims.key), now)
    caller = await ring.caller(secret, address_of(request.scope))
    if caller is None or (caller.expires_at is not None and caller.expires_at <= now):
        raise Unauthenticated("The API key is unknown, expired or revoked.")
    return caller


async def check_request(request: Request) -> Caller:
    """The caller, as authenticated by the middleware; openapi.py documents the key. All but the open routes depend on
    this, so it also raises InvalidInput for unknown query parameters and PiiRejected for a secret in X-Session-Id."""
    refuse_unknown_parameters(request)
    session_of(request)
    return known_caller(request)


def known_caller(request: Request) -> Caller:
    """The caller, as authenticated by the middleware."""
    known: Caller = request.state.caller
    return known


def refuse_unknown_parameters(request: Request) -> None:
    """Raises InvalidInput for a query parameter that the route does not have, or several values for one that takes one.
    Ignoring a misspelt one would widen the request: DELETE with `chanel` would delete every channel."""
    given, route = request.query_params, request.scope.get("route")
    if not given or not isinstance(route, APIRoute) or getattr(route, "any_parameter", False):
        return
    fields = {
        each.alias: each.field_info.annotation
        for each in get_flat_params(route.dependant)
        if isinstance(each.field_info, params.Query)
    }
    for name in given:
        if len(name) > MAX_NAME:
            raise InvalidInput(f"query: a parameter name has more than {MAX_NAME} characters.", field="query")
        if name not in fields and name != "api_key":  # which every route accepts
            hint = errors.suggest_name(name, fields)
            raise InvalidInput(f"{name}: is not a parameter of this request{hint}", field=name)
    if len(given.multi_items()) > len(given):
        for name in given:
            if len(set(given.getlist(name))) > 1 and not _takes_several(fields.get(name)):
                raise InvalidInput(f"{name}: must be given only once.", field=name)


def _takes_several(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(_takes_several(each) for each in get_args(annotation))


CallerOf = Annotated[Caller, Depends(check_request)]


RIGHTS: dict[Callable[..., Any], tuple[Right, ...]] = {}
"""Rights required by each dependency made by `needs`, for the OpenAPI document."""


def needs(*rights: Right, source: Source | None = None) -> Callable[..., Coroutine[Any, Any, Caller]]:
    """A dependency that returns the caller if it has all of `rights`, and raises Forbidden otherwise. `source`: which
    server the reads of a read-only route may use."""

    async def check(request: Request) -> Caller:
        known = await check_request(request)
        position = replica_reads.position_of(request.scope)
        if position is not None and source is not None:
            position.source = source
        for right in rights:
            if not known.may(right):
                raise Forbidden(f"This key lacks the right {right}.")
        return known

    RIGHTS[check] = rights
    return check


Reader = Annotated[Caller, Depends(needs(Right.READ, source="replicas"))]
"""For a route that only reads, and may do so on a standby."""

PrimaryReader = Annotated[Caller, Depends(needs(Right.READ, source="primary"))]
"""For a read of unlogged tables, which standbys lack, or of the progress of other writes. What it tells of must be
visible to the next read, so its answer has a position."""

Writer = Annotated[Caller, Depends(needs(Right.WRITE))]
Deleter = Annotated[Caller, Depends(needs(Right.DELETE))]

Changer = Annotated[Caller, Depends(needs(Right.WRITE, Right.READ))]
"""For a write that returns stored data, not only what the request sent."""

Forgetter = Annotated[Caller, Depends(needs(Right.DELETE, Right.READ))]
"""For a deletion that searches and returns what it found."""

Auditor = Annotated[Caller, Depends(needs(Right.AUDIT))]
Admin = Annotated[Caller, Depends(needs(Right.ADMIN))]
Operator = Annotated[Caller, Depends(needs(Right.OPERATOR))]


async def resources(request: Request) -> Resources:
    """The resources within the wall of the caller, with the settings of its workspace."""
    res: Resources | None = getattr(request.state, "resources", None)
    if res is None:
        caller, base = known_caller(request), request.app.state.resources.latest()
        position = replica_reads.position_of(request.scope)
        context = Context(caller.wall, deadline=request.state.deadline, position=position)
        res = request.state.resources = base.of_workspace(dict(caller.settings)).within(context)
    return res


ResourcesOf = Annotated[Resources, Depends(resources)]

UserId = Annotated[Name | None, Query(description="End user; a hard filter", examples=["alice"])]
AgentId = Annotated[Name | None, Query(description="Agent or persona; a hard filter")]
RunId = Annotated[Name | None, Query(description="One run with its own facts; a hard filter")]
ChannelName = Annotated[
    Channel | None, Query(description="Soft scope; reads also include _global, lists without it every channel")
]


def scope_of(
    caller: Caller,
    ids: Mapping[str, str | None],
    channel: str | None = None,
    *,
    shared: bool = False,
    needs_id: bool = True,
) -> Scope:
    """The scope of a request: its ids, else the key's defaults, and always those of its wall; or the shared scope of
    the workspace. Raises ScopeMissing without an id that it needs, Forbidden for one outside the wall, InvalidInput for
    one of a shared scope."""
    if shared:
        for name, value in ids.items():
            if value is not None:
                raise InvalidInput(f"{name}: cannot be combined with shared.", field=name)
        return Scope(caller.workspace_id, channel=caller.channel(channel))
    own = caller.ids(ids.get("user_id"), ids.get("agent_id"), ids.get("run_id"))
    scope = Scope(caller.workspace_id, *own, channel=caller.channel(channel))
    return scope.require_owner() if needs_id else scope


def read_scope(
    caller: Caller, res: Resources, given: ReadScopeFields, channel: str | None, channels: Sequence[str] | None = None
) -> Scope:
    """The scope of a read: its ids or the key's, only shared memories, or both. Raises as `scope_of`, also for one of
    its `channels`, and InvalidInput for contradicting options."""
    caller.check_channels(channels or ())
    if given.shared and given.include_shared is False:
        raise InvalidInput("include_shared: cannot be combined with shared.", field="include_shared")
    scope = scope_of(caller, given.scope_ids, channel, shared=given.shared)
    if given.shared:
        return replace(scope, include_shared=True)
    include_shared = res.settings.search.include_shared if given.include_shared is None else given.include_shared
    return replace(scope, match=given.scope_match, include_shared=include_shared)


async def _scope(
    caller: CallerOf,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    channel: ChannelName = None,
) -> Scope:
    return scope_of(caller, {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}, channel)


ScopeOf = Annotated[Scope, Depends(_scope)]


def list_scope(scope: Scope, caller: Caller, channel: str | None) -> Scope:
    """The scope of a list: every channel unless the request or the key names one, as for deletions."""
    return replace(scope, every_channel=channel is None and caller.own_channel is None)


async def _list_scope(scope: ScopeOf, caller: CallerOf, channel: ChannelName = None) -> Scope:
    return list_scope(scope, caller, channel)


ListScopeOf = Annotated[Scope, Depends(_list_scope)]

IncludeShared = Annotated[bool | None, Query(description=INCLUDE_SHARED)]


async def _read_scope(
    caller: CallerOf, res: ResourcesOf, given: Annotated[ReadScopeFields, fields_of(ReadScopeFields)]
) -> Scope:
    return list_scope(read_scope(caller, res, given, given.channel), caller, given.channel)


ReadScopeOf = Annotated[Scope, Depends(_read_scope)]
"""The scope of a list; see `list_scope`."""

MAX_SESSION_CHARS = 255


def header_text(given: str) -> str:
    """A header decoded as UTF-8 if possible: most clients send UTF-8, while servers decode Latin-1."""
    try:
        return given.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return given


def session_of(request: Request) -> str | None:
    """The X-Session-Id header for the audit log, cut to the limit of its index. Raises PiiRejected."""
    name = header_text(request.headers.get("x-session-id", "")).strip()
    if detection.holds_secret(name):
        raise PiiRejected(f"X-Session-Id: {NOT_A_NAME}.", field="X-Session-Id")
    return name[:MAX_SESSION_CHARS] or None


NOT_FILTERS = frozenset({"cursor", "limit", "detail", "count"})
"""Parameters that may change from page to page."""


def _cursor_of(request: Request, cursor: Annotated[str | None, Query(max_length=2_000)] = None) -> Cursor:
    filters = sorted(pair for pair in request.query_params.multi_items() if pair[0] not in NOT_FILTERS)
    digest = hashlib.sha256(repr((request.scope["path"], filters)).encode()).hexdigest()
    return Cursor(digest[:12], cursor)


CursorOf = Annotated[Cursor, Depends(_cursor_of)]
