"""The command `mcp`: the Model Context Protocol on standard input and output, for a running service.

It speaks to the service over its REST API, so it starts in a second and holds no database; each client starts its own.
"""

from __future__ import annotations

import asyncio

import httpx2

from service.kit.settings import Settings
from service.launch.listener import note_position, service_key, service_url
from service.launch.problems import LaunchError
from service.mcp.requests import Ask, FixedIds, RestAnswer, RestRequest
from service.observability import logs

TIMEOUT_S = 60.0
"""A time-out longer than any request takes: the service ends longer ones itself, and says so."""

NO_KEY = (
    "The command mcp needs the key of a service: set LOXODON_API_KEY, and LOXODON_URL for one that does not run on "
    "this machine."
)


def serve(settings: Settings, ids: FixedIds) -> None:
    """Runs until standard input ends. Raises LaunchError without a key."""
    logs.set_up(settings)
    key = service_key(settings)
    if key is None:
        raise LaunchError(NO_KEY)
    asyncio.run(_serve(service_url(settings), key, ids))


async def _serve(url: str, key: str, ids: FixedIds) -> None:
    from service.mcp.server import over_stdio

    headers = {"Authorization": f"Bearer {key}", "User-Agent": "loxodon-mcp"}
    async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT_S) as client:
        await over_stdio(_asking(client, url), ids)


def _asking(client: httpx2.AsyncClient, url: str) -> Ask:
    """Asks the service at the URL; a service that is not there is an answer, too."""

    async def ask(wanted: RestRequest) -> RestAnswer:
        target = f"{url}{wanted.path}" + (f"?{wanted.query_string}" if wanted.query else "")
        try:
            response = await client.request(wanted.method, target, json=wanted.body)
        except httpx2.HTTPError as exc:
            detail = f"The memory service at {url} cannot be reached ({type(exc).__name__}). Is it running?"
            return RestAnswer(503, {"code": "unavailable", "detail": detail})
        note_position(client.headers, response.headers)
        try:
            return RestAnswer(response.status_code, response.json())
        except ValueError:
            detail = f"The server at {url} is not Loxodon: it did not send JSON."
            return RestAnswer(502, {"code": "http_error", "detail": detail})

    return ask
