"""Each process loads only what it needs: a library that one of them does without stays out of its memory."""

from __future__ import annotations

import subprocess
import sys

import pytest

SERVERS = {"fastapi", "starlette", "uvicorn"}
MODELS = {"openai", "aiohttp", "httpx", "onnxruntime", "tokenizers"}
DATABASE = {"sqlalchemy", "asyncpg", "pgvector"}
TIMES = {"ms_recognizers_date_time", "regex", "emoji"}
STEMMERS = {"snowballstemmer"}
AGENTS = {"mcp", "mcp_types", "jwt", "cryptography", "jsonschema"}

DONE_WITHOUT = {
    "service.app.main": {*MODELS, *TIMES, *STEMMERS, *AGENTS},
    "service.worker.loop": {*SERVERS, *MODELS, *TIMES, *STEMMERS, *AGENTS},
    "service.providers.local": {*SERVERS, *MODELS, *DATABASE, *STEMMERS, *AGENTS},
    "service.launch.run": {*SERVERS, *MODELS, *DATABASE, *TIMES, *STEMMERS, "numpy"},
}


@pytest.mark.parametrize("module", DONE_WITHOUT)
def test_a_process_does_without(module: str) -> None:
    """Its start: the API, the worker, the process of its embedding model, the supervisor."""
    program = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "service" in loaded
    assert DONE_WITHOUT[module].isdisjoint(loaded)
