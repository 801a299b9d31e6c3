"""How does a draft pass through its stages?"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any

from service.domain.draft import Draft
from service.resources import Resources

Stage = Callable[[Draft, Resources], Coroutine[Any, Any, Draft]]
Together = Callable[[Sequence[Draft], Resources], Coroutine[Any, Any, list[Draft]]]


async def run(profile: Sequence[Stage], draft: Draft, res: Resources) -> Draft:
    """The draft after every stage of the profile, timed; stops once it is settled. Stages raise ServiceError."""
    for stage in profile:
        if draft.settled:
            break
        began = time.perf_counter()
        draft = _timed(await stage(draft, res), stage, began)
    return draft


async def run_all(
    profile: Sequence[Stage], drafts: Sequence[Draft], res: Resources, *, together: Mapping[Stage, Together]
) -> list[Draft]:
    """Several drafts, stage by stage; a stage that profits from having them all at once stands in `together`."""
    found = list(drafts)
    for stage in profile:
        began = time.perf_counter()
        if stage in together:
            found = await together[stage](found, res)
        else:
            found = list(await asyncio.gather(*(stage(draft, res) for draft in found)))
        found = [_timed(draft, stage, began) for draft in found]
    return found


def _timed(draft: Draft, stage: Stage, began: float) -> Draft:
    name = stage.__module__.rpartition(".")[2]
    spent = round((time.perf_counter() - began) * 1000 + draft.timings_ms.get(name, 0.0), 3)
    return replace(draft, timings_ms={**draft.timings_ms, name: spent})
