"""LangGraph's store for bench.peers: AsyncPostgresStore in this process, on the Postgres named in the argument."""

# mypy: ignore-errors
from __future__ import annotations

import asyncio
import sys
import threading
from uuid import uuid4

from langgraph.store.base import PutOp
from langgraph.store.postgres import AsyncPostgresStore
from peer import DIMENSION, Model, serve


class LangGraph:
    """Calls of any thread run on one event loop."""

    def __init__(self, url: str) -> None:
        self._model = Model()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._store = self._wait(self._open(url))

    async def _open(self, url: str) -> AsyncPostgresStore:
        index = {"dims": DIMENSION, "embed": self._vectors, "fields": ["text"]}
        pool = {"min_size": 1, "max_size": 10}
        self._context = AsyncPostgresStore.from_conn_string(url, index=index, pool_config=pool)
        store = await self._context.__aenter__()
        await store.setup()
        return store

    async def _vectors(self, texts: list[str]) -> list[list[float]]:
        return [await asyncio.to_thread(self._model.vector, text) for text in texts]

    def _wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def store(self, user: str, texts: list[str]) -> list[str]:
        keys = [uuid4().hex for _ in texts]
        puts = [PutOp((user,), key, {"text": text}) for key, text in zip(keys, texts, strict=True)]
        self._wait(self._store.abatch(puts))
        return keys

    def search(self, user: str, query: str, limit: int) -> list[str]:
        return [each.key for each in self._wait(self._store.asearch((user,), query=query, limit=limit))]


if __name__ == "__main__":
    serve(LangGraph(sys.argv[1]))
