"""A process to be killed while it waits for the language model: `url workspace_id model_url now`."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from uuid import UUID

from bench.superuser import login_url
from service.domain.model_budget import ModelBudget
from service.kit.settings import Settings
from service.postgres.engine import Database
from service.postgres.rights import find_access
from service.postgres.roles import APP
from service.providers.choose import open_llm
from service.providers.protocols import LlmRequest
from service.queue.wakeup import Wakeup
from service.runtime.embedding import CachedEmbedder
from service.runtime.resources import Resources
from service.understanding.model_calls import complete_on_account
from tests.fakes.embedder import AngleEmbedder

PROMPT = LlmRequest("annotate", "You rate.", "How important is tea?", max_tokens=100, deadline_s=5)


async def main(url: str, workspace_id: UUID, model_url: str, now: datetime) -> None:
    budget = ModelBudget(hard_tokens=1_000)
    settings = Settings.of({"llm_base_url": model_url, "llm_api_key": "key", "model_budget": budget})
    access = await find_access(login_url(url, APP), wanted_role=APP, pooled=False)
    database = Database(access, pool_size=2, pool_timeout_s=5)
    llm = open_llm(settings)
    assert llm is not None
    embedder = CachedEmbedder(AngleEmbedder(), entries=0)
    res = Resources(database, embedder, 1, llm, settings, Wakeup(url), lambda: now)
    await complete_on_account(res, workspace_id, PROMPT)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], UUID(sys.argv[2]), sys.argv[3], datetime.fromisoformat(sys.argv[4])))
