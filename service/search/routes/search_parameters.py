"""Search options as query parameters, converted to the fields of a body."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Query

from service.domain.query import Validity
from service.http import json_body
from service.http.deps import AgentId, ChannelName, RunId, UserId
from service.http.query_parameters import MAX_URL_QUERY, NarrowingParameters, Several, present, split
from service.http.reads import DetailOf
from service.http.schemas import Id
from service.search.routes.answers import MIN_PROBABILITY
from service.search.routes.search_models import CONNECTED, LIMIT, MIN_SCORE, TURNS, VALIDITY

TuningJson = Annotated[
    str | None,
    Query(
        max_length=20_000,
        description="How to rank, as URL-encoded JSON; default: the workspace's settings",
        examples=['{"diversity": 0.3}'],
    ),
]


async def _ranking_parameters(
    tuning: TuningJson = None,
    reinforce: Annotated[bool, Query(description="Count the hits as used; false for previews")] = True,
    explain: Annotated[bool, Query(description="Include the terms of each hit's score")] = False,
    explain_id: Annotated[
        Id | None, Query(description="UUID of a memory: `why` in the response says whether it was found, or why not")
    ] = None,
) -> dict[str, Any]:
    given = present(explain_id=explain_id)
    if tuning is not None:
        given["tuning"] = json_body.parse(tuning.encode(), "tuning")
    return {**given, "reinforce": reinforce, "explain": explain}


# -- a search ---------------------------------------------------------------------------------------------------------


async def _search_parameters(
    narrowing: NarrowingParameters,
    ranking: Annotated[dict[str, Any], Depends(_ranking_parameters)],
    query: Annotated[
        str | None,
        Query(
            max_length=MAX_URL_QUERY, description="The query; use POST for longer ones", examples=["Where is the boat?"]
        ),
    ] = None,
    user_id: UserId = None,
    agent_id: AgentId = None,
    run_id: RunId = None,
    channel: ChannelName = None,
    limit: Annotated[int, Query(ge=1, le=1_000, description=LIMIT)] = 100,
    prefer_tags: Several = None,
    min_score: Annotated[float, Query(ge=0, le=1, description=MIN_SCORE)] = 0.0,
    min_probability: Annotated[float, Query(ge=0, le=1, description=MIN_PROBABILITY)] = 0.0,
    validity: Annotated[Validity, Query(description=VALIDITY)] = "exclude",
    connected: Annotated[bool, Query(description=CONNECTED)] = False,
    cursor: Annotated[str | None, Query(max_length=100)] = None,
    turns: Annotated[bool, Query(description=TURNS)] = True,
    detail: DetailOf = "lean",
) -> dict[str, Any]:
    scope = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id, "channel": channel}
    return {
        **narrowing,
        **ranking,
        **scope,
        "limit": limit,
        "query": query,
        "prefer_tags": split(prefer_tags, "prefer_tags"),
        "min_score": min_score,
        "min_probability": min_probability,
        "validity": validity,
        "connected": connected,
        "cursor": cursor,
        "turns": turns,
        "detail": detail,
    }


SearchParameters = Annotated[dict[str, Any], Depends(_search_parameters)]
