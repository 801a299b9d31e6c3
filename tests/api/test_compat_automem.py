"""AutoMem's contract in process; whose memories its clients see; its ways to send a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from httpx2 import AsyncClient

from tests.compat.automem import CALLS, AutomemCaller


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
async def test_the_contract_holds(client: AsyncClient, call: Callable[[AutomemCaller], Awaitable[None]]) -> None:
    await call(AutomemCaller(client))
