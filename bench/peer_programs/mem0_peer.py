"""mem0 for bench.peers: its library in this process, its pgvector store on the Postgres named in the argument."""

# mypy: ignore-errors
from __future__ import annotations

import os
import sys
from typing import Any

os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "unused"}

from mem0 import Memory
from peer import DIMENSION, Model, serve


class Vectors:
    """The local model in the place of mem0's embedder, which would ask a server."""

    def __init__(self) -> None:
        self._model = Model()

    def embed(self, text: str, _action: str | None = None) -> list[float]:
        return self._model.vector(text)

    def embed_batch(self, texts: list[str], _action: str | None = None) -> list[list[float]]:
        return [self._model.vector(text) for text in texts]


class Mem0:
    """Each call is blocking; several run in threads."""

    def __init__(self, url: str) -> None:
        store = {"connection_string": url, "collection_name": "peer", "embedding_model_dims": DIMENSION, "maxconn": 10}
        self._memory = Memory.from_config(
            {"vector_store": {"provider": "pgvector", "config": store}, "history_db_path": ":memory:"}
        )
        self._memory.embedding_model = Vectors()

    def store(self, user: str, texts: list[str]) -> list[str]:
        return [each["id"] for each in self.add([{"role": "user", "content": text} for text in texts], user)["results"]]

    def search(self, user: str, query: str, limit: int) -> list[str]:
        return [each["id"] for each in self.find(query, user, limit)["results"]]

    def add(self, messages: list[dict[str, str]], user: str) -> dict[str, Any]:
        """Stores each message as it is; no language model."""
        return self._memory.add(messages, user_id=user, infer=False)

    def find(self, query: str, user: str, limit: int) -> dict[str, Any]:
        return self._memory.search(query, filters={"user_id": user}, top_k=limit, threshold=0.0)


if __name__ == "__main__":
    serve(Mem0(sys.argv[1]))
