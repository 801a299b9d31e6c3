"""Real clients of mem0 against the application behind a real socket: that of npm on every run, those of PyPI only with
ALL_CLIENTS, because installing them takes half a minute of CPU. `make compat` has all."""

from __future__ import annotations

import asyncio
import os
import shutil

import pytest
from fastapi import FastAPI

from tests.compat.clients import CLIENTS
from tests.conftest import Tenant
from tests.support.listening import listening

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("name", CLIENTS)
async def test_a_client_of_mem0_walks_through_the_service(app: FastAPI, tenant: Tenant, name: str) -> None:
    if "npm" in name and shutil.which("npm") is None:
        pytest.skip("needs npm")
    if "npm" not in name and not os.environ.get("ALL_CLIENTS"):
        pytest.skip("only with ALL_CLIENTS")
    async with listening(app) as (host, port):
        await asyncio.to_thread(CLIENTS[name].prove, f"http://{host}:{port}", tenant.key, folder=name)
