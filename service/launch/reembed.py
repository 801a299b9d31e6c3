"""`reembed`: begins a change of the embedder, goes back, or drops the old vectors. The worker does the work."""

from __future__ import annotations

import asyncio

from service.kit.settings import Settings
from service.launch.postgres import login_url
from service.postgres.roles import OWNER
from service.providers.choose import embedder_dimension, embedder_model
from service.upkeep.statements import reembedding

PROGRESS = "GET /v1/jobs/reembed?system=true (right metrics) shows its progress."


def begin(settings: Settings, *, again: bool = False) -> str:
    """Begins the change and returns a sentence for the terminal. Raises Conflict or StoreUnavailable."""
    model, dimension = embedder_model(settings), embedder_dimension(settings)
    with login_url(settings, OWNER) as url:
        generation, queued = asyncio.run(reembedding.begin(url, model, dimension, again=again))
    what = "A worker makes" if queued else "A worker is making"
    return (
        f"{what} the vectors of {generation}, as generation {generation.number}. Searches use the old ones until "
        f"all are there, and the new ones from then on. {PROGRESS}"
    )


def roll_back(settings: Settings) -> str:
    """Goes back to the previous vectors and returns a sentence for the terminal. Raises Conflict or
    StoreUnavailable."""
    with login_url(settings, OWNER) as url:
        active, given_up = asyncio.run(reembedding.roll_back(url))
    return (
        f"Searches use the vectors of {active} (generation {active.number}); those of {given_up} (generation "
        f"{given_up.number}) are kept. A worker makes what is missing. Set EMBEDDER_PROVIDER and EMBEDDER_MODEL back."
    )


def drop_old(settings: Settings) -> str:
    """Drops the old vectors and returns a sentence for the terminal. Raises Conflict or StoreUnavailable."""
    with login_url(settings, OWNER) as url:
        dropped = asyncio.run(reembedding.drop_retired(url))
    return f"A worker deletes the vectors of {' and of '.join(map(str, dropped))}. {PROGRESS}"
