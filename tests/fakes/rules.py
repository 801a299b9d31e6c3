"""Rules that run in a thread of the test, for tests that put something else in their place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from service.rule_processes import RuleProcesses

P = ParamSpec("P")
T = TypeVar("T")


class RulesInThreads(RuleProcesses):
    """The same calls, without processes."""

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(work, *args, **kwargs)
