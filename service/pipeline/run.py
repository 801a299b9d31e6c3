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
    spent_ms: dict[str, float] = {}
    for stage in profile:
        if draft.settled:
            break
        began = time.perf_counter()
        draft = await stage(draft, res)
        spent_ms[_name(stage)] = _since(began)
    return _timed(draft, spent_ms)


async def run_all(
    profile: Sequence[Stage], drafts: Sequence[Draft], res: Resources, *, together: Mapping[Stage, Together]
) -> list[Draft]:
    """Several drafts, stage by stage; a stage that profits from having them all at once stands in `together`."""
    found, spent_ms = list(drafts), {}
    for stage in profile:
        began = time.perf_counter()
        if stage in together:
            found = await together[stage](found, res)
        elif len(found) == 1:
            found = [await stage(found[0], res)]
        else:
            found = list(await asyncio.gather(*(stage(draft, res) for draft in found)))
        spent_ms[_name(stage)] = _since(began)
    return [_timed(draft, spent_ms) for draft in found]


def _name(stage: Stage) -> str:
    return stage.__module__.rpartition(".")[2]


def _since(began: float) -> float:
    """Milliseconds."""
    return (time.perf_counter() - began) * 1000


def _timed(draft: Draft, spent_ms: Mapping[str, float]) -> Draft:
    """The draft with what this run took, on top of what earlier ones did."""
    before = draft.timings_ms
    added = {name: round(spent + before.get(name, 0.0), 3) for name, spent in spent_ms.items()}
    return replace(draft, timings_ms={**before, **added})
