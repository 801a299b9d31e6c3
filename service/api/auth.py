"""Who is calling? A key in one of three places; the workspace comes from it and from nowhere else."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, APIKeyQuery, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from service.api import parameters
from service.db.engine import Database
from service.db.tenants import keys
from service.domain.access import Caller, Right
from service.errors import Forbidden, Unauthenticated
from service.resources import Resources

BEARER = HTTPBearer(auto_error=False, scheme_name="bearer", description="`Authorization: Bearer <key>` (preferred)")
HEADER = APIKeyHeader(name="X-API-Key", auto_error=False, scheme_name="header")
QUERY = APIKeyQuery(name="api_key", auto_error=False, scheme_name="query", description="Can be switched off")

REMEMBERED_S = 5.0
"""How long a key that was found is not looked up again: the longest a revoked key goes on working elsewhere."""

REMEMBERED_KEYS = 1_000


class KeyRing:
    """Keys seen lately, by their hash. Unknown keys are not remembered: a new one works at once."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._seen: OrderedDict[str, tuple[float, Caller]] = OrderedDict()

    async def caller(self, secret: str) -> Caller | None:
        digest = keys.digest(secret)
        until, known = self._seen.get(digest, (0.0, None))
        if known is not None and self._clock() < until:
            return known
        found = await keys.find(self._database, secret)
        self._seen.pop(digest, None)
        if found is not None:
            self._seen[digest] = (self._clock() + REMEMBERED_S, found)
            if len(self._seen) > REMEMBERED_KEYS:
                self._seen.popitem(last=False)
        return found

    def forget(self) -> None:
        """After a change to keys or workspace settings in this process."""
        self._seen.clear()


async def caller(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)],
    header: Annotated[str | None, Security(HEADER)],
    query: Annotated[str | None, Security(QUERY)],
) -> Caller:
    """The caller, noted in the request's state too; raises Unauthenticated. Bearer first, then the header, then the
    query (R2.09). A query parameter that the route does not have is refused, too."""
    res: Resources = request.app.state.resources
    secret = bearer.credentials if bearer else header
    if not secret and query:
        if not res.settings.auth_allow_query:
            raise Unauthenticated("A key in the query string is not accepted here; use Authorization: Bearer.")
        secret = query
    if not secret:
        raise Unauthenticated("An API key is needed: Authorization: Bearer <key>.")
    found = await request.app.state.keys.caller(secret)
    if found is None or (found.expires_at is not None and found.expires_at <= res.clock()):
        raise Unauthenticated("The API key is unknown, expired or revoked.")
    parameters.refuse_unknown(request)  # here, because every route but the open ones asks who calls
    request.state.caller = found
    return found  # type: ignore[no-any-return]


CallerOf = Annotated[Caller, Depends(caller)]


async def identified(request: Request) -> Caller:
    """The caller, for what serves a route beside it: asked for by hand rather than as a dependency, of which FastAPI
    goes through all that it depends on each time it is named, before it finds that the answer is known."""
    known: Caller | None = getattr(request.state, "caller", None)
    if known is not None:
        return known
    return await caller(request, await BEARER(request), await HEADER(request), await QUERY(request))


def needs(right: Right) -> Callable[..., Coroutine[Any, Any, Caller]]:
    """A dependency that gives the caller if it holds `right`; Forbidden otherwise."""

    async def check(who: CallerOf) -> Caller:
        if not who.may(right):
            raise Forbidden(f"This key lacks the right {right}.")
        return who

    return check


Reader = Annotated[Caller, Depends(needs(Right.READ))]
Writer = Annotated[Caller, Depends(needs(Right.WRITE))]
Deleter = Annotated[Caller, Depends(needs(Right.DELETE))]
Auditor = Annotated[Caller, Depends(needs(Right.AUDIT))]
Admin = Annotated[Caller, Depends(needs(Right.ADMIN))]
Operator = Annotated[Caller, Depends(needs(Right.OPERATOR))]
