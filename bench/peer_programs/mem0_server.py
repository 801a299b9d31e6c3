"""mem0 as a service for bench.peers: two FastAPI routes with a key over its library, as mem0's own server has them.

python mem0_server.py POSTGRES_URL PORT KEY
"""

# mypy: ignore-errors
from __future__ import annotations

import hmac
import sys
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException
from mem0_peer import Mem0
from pydantic import BaseModel


class AddedMessage(BaseModel):
    role: str
    content: str


class Add(BaseModel):
    messages: list[AddedMessage]
    user_id: str


class Search(BaseModel):
    query: str
    user_id: str
    limit: int = 10


def create_app(memory: Mem0, key: str) -> FastAPI:
    """Routes are plain functions, which FastAPI runs in threads, because the library blocks."""

    def check_key(authorization: Annotated[str, Header()] = "") -> None:
        if not hmac.compare_digest(authorization.encode(), f"Bearer {key}".encode()):
            raise HTTPException(401, "Unknown key.")

    app, keyed = FastAPI(), [Depends(check_key)]

    @app.get("/health")
    def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.post("/memories", dependencies=keyed)
    def add(body: Add) -> dict[str, Any]:
        return memory.add([each.model_dump() for each in body.messages], body.user_id)

    @app.post("/search", dependencies=keyed)
    def search(body: Search) -> dict[str, Any]:
        return memory.find(body.query, body.user_id, body.limit)

    return app


if __name__ == "__main__":
    url, port, api_key = sys.argv[1:]
    app = create_app(Mem0(url), api_key)
    uvicorn.run(app, port=int(port), log_level="warning", access_log=False, timeout_keep_alive=600)
