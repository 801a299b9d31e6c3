"""What does a route take from its surroundings?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated

from fastapi import Depends, Query, Request

from service.api.auth import CallerOf, identified
from service.api.schemas import Channel, Name
from service.domain.access import Caller
from service.domain.scope import GLOBAL_CHANNEL, Scope
from service.errors import ClientGone, DeadlineExceeded
from service.providers.budget import Budget, Limits, current, spending
from service.resources import Resources


async def resources(request: Request) -> Resources:
    """The process's resources under the caller's workspace settings, noted in the request's state too: a dependency
    of a dependency is solved anew for everyone who names it, before it is found to be known."""
    known: Resources | None = getattr(request.state, "resources", None)
    if known is None:
        base: Resources = request.app.state.resources
        known = request.state.resources = base.of_workspace(dict((await identified(request)).settings))
    return known


ResourcesOf = Annotated[Resources, Depends(resources)]

UserId = Annotated[Name | None, Query(description="End user; a hard filter", examples=["alice"])]
AgentId = Annotated[Name | None, Query(description="Agent or persona; a hard filter")]
RunId = Annotated[Name | None, Query(description="One run, whose facts are its own; a hard filter")]
ChannelName = Annotated[Channel | None, Query(description="Soft scope; reads also look at _global")]


def scope_of(
    who: Caller,
    *,
    user_id: str | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
    channel: str | None = None,
) -> Scope:
    """The scope of a call: the ids that came with it, else the key's default ones; raises ScopeMissing."""
    given = (user_id, agent_id, run_id)
    ids = given if any(given) else (who.user_id, who.agent_id, who.run_id)
    return Scope(who.workspace_id, *ids, channel=channel or who.channel or GLOBAL_CHANNEL).require_owner()


async def _scope(
    who: CallerOf,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    channel: ChannelName = None,
) -> Scope:
    return scope_of(who, user_id=user_id, agent_id=agent_id, run_id=run_id, channel=channel)


ScopeOf = Annotated[Scope, Depends(_scope)]

SESSION_CHARS = 255


def session_of(request: Request) -> str | None:
    """What X-Session-Id names (R13.08), as far as an index takes it."""
    return request.headers.get("x-session-id", "").strip()[:SESSION_CHARS] or None


MODELS_SHARE = 0.85
"""Of a request's time, that models may use up: what they say has still to be embedded and written."""

TECHNIQUES_SHARE = 0.6
"""Of a search's time, that the language model may use up: then the question is embedded as it is."""


@contextmanager
def budget(res: Resources, *, within_s: float | None = None) -> Iterator[Budget]:
    """The request's spending: calls, tokens and time of models. The items of a batch share the batch's. `within_s`: all
    the time there is, where that is less than a request's."""
    if (whole := current()) is not None:
        yield whole
        return
    settings = res.settings
    deadline_s, overall_deadline_s = settings.request_deadline_s * MODELS_SHARE, None
    if within_s is not None:
        deadline_s, overall_deadline_s = min(deadline_s, within_s * TECHNIQUES_SHARE), within_s * MODELS_SHARE
    limits = Limits(settings.llm_max_calls, settings.llm_max_request_tokens, deadline_s, overall_deadline_s)
    with spending(limits) as found:
        yield found


PATIENCE_S = 0.25
"""A search that takes longer looks whether anybody waits for it still: quick ones pay nothing for that."""


class _Departure:
    """Ends the time of a search when its client has left: else it would keep those waiting who are still there."""

    def __init__(self, request: Request, limit: asyncio.Timeout) -> None:
        self.noticed = False
        self._request, self._limit = request, limit
        self._looking: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_S, self._look)

    def _look(self) -> None:
        self._looking = asyncio.create_task(self._wait())

    async def _wait(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        self.noticed = True
        self._limit.reschedule(asyncio.get_running_loop().time())

    def forget(self) -> None:
        self._timer.cancel()
        if self._looking is not None:
            self._looking.cancel()


@asynccontextmanager
async def in_time(res: Resources, request: Request) -> AsyncIterator[None]:
    """`budget`, and an end to a search: a model is left out when its share of the time is used up, and what is not done
    by the end raises DeadlineExceeded, its statement cancelled. Likewise ClientGone once nobody waits any more."""
    deadline_s = res.settings.search_deadline_s
    with budget(res, within_s=deadline_s):
        try:
            async with asyncio.timeout(deadline_s) as limit:
                departure = _Departure(request, limit)
                try:
                    yield
                finally:
                    departure.forget()
        except TimeoutError:
            if not limit.expired():
                raise
            if departure.noticed:
                raise ClientGone("The client left before the search was done.") from None
            told = f"The search was not done within {deadline_s:g} s (LOXODON_SEARCH_DEADLINE_S) and was given up."
            raise DeadlineExceeded(told, retry_after_s=1.0) from None
