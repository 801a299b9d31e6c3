"""Reranking servers (cross-encoders, which read query and text together).

One adapter for the APIs in use: TEI (`query`, `texts`; a bare list of `index`, `score`), Cohere and Jina (`model`,
`query`, `documents`, `top_n`; `results` of `index`, `relevance_score`). They differ in the request only: every form of
answer is understood from each. One attempt: a search has no time for a second, and without it the fused order stands.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from service.domain.errors import RerankError
from service.kit.fair_gate import outside
from service.observability import tracing

if TYPE_CHECKING:
    import httpx2

RERANK_TIMEOUT_S = 5.0
"""The longest time for a reranker; after that the order of the search is kept."""

MAX_CHARS = 4_000
"""Characters of one text: the models read some 512 to 8,192 word pieces and cut the rest off themselves."""

MAX_ANSWER_BYTES = 4_000_000


class Reranker(Protocol):
    """Rates texts by how well they answer a query."""

    async def relevance(self, query: str, texts: Sequence[str]) -> list[float | None]:
        """The relevance of each text to the query, 0..1, in their order; None for one without a score. Raises
        RerankError."""
        ...

    async def close(self) -> None: ...


class HttpReranker:
    """A reranker at a URL; implements `Reranker`. `timeout_s` bounds the whole exchange."""

    def __init__(
        self,
        url: str,
        *,
        api: str = "tei",
        model: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 5.0,
    ) -> None:
        import httpx2

        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client: httpx2.AsyncClient = httpx2.AsyncClient(headers=headers, timeout=timeout_s, trust_env=False)
        self._url, self._api, self._model, self._timeout_s = url, api, model, timeout_s

    @tracing.trace("rerank")
    async def relevance(self, query: str, texts: Sequence[str]) -> list[float | None]:
        """The relevance of each text to the query, 0..1, in their order. Raises RerankError."""
        import httpx2

        body = request(self._api, self._model, query, [text[:MAX_CHARS] for text in texts])
        try:
            async with (
                outside(),
                asyncio.timeout(self._timeout_s),
                self._client.stream("POST", self._url, json=body, headers=tracing.headers()) as answer,
            ):
                if answer.status_code != 200:
                    raise RerankError(f"The reranker refused with status {answer.status_code}.")
                content = await _read_limited(answer)
        except TimeoutError as exc:
            raise RerankError("The reranker did not answer in time.") from exc
        except httpx2.HTTPError as exc:
            raise RerankError("The reranker cannot be reached.") from exc
        return read(content, len(texts))

    async def close(self) -> None:
        await self._client.aclose()


async def _read_limited(answer: httpx2.Response) -> bytes:
    """The body; raises RerankError once it is too long, since it may never end."""
    body = bytearray()
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise RerankError("The reranker's answer is too long.")
    return bytes(body)


def request(api: str, model: str | None, query: str, texts: Sequence[str]) -> dict[str, object]:
    """The request body in the server's own form."""
    if api == "tei":
        return {"query": query, "texts": list(texts), "raw_scores": False, "truncate": True}
    body: dict[str, object] = {"query": query, "documents": list(texts), "top_n": len(texts)}
    if api == "jina":
        body["return_documents"] = False
    return {"model": model, **body} if model else body


def read(content: bytes, count: int) -> list[float | None]:
    """The relevance of each of `count` texts, 0..1; raises RerankError when the answer holds no score."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        raise RerankError("The reranker's answer is not JSON.") from None
    if isinstance(body, Mapping):
        body = next((body[name] for name in ("results", "data", "scores") if isinstance(body.get(name), list)), None)
    scores: list[float | None] = [None] * count
    for entry in body if isinstance(body, list) else []:
        if isinstance(entry, Mapping):
            at, score = entry.get("index"), _number(entry)
            if isinstance(at, int) and not isinstance(at, bool) and 0 <= at < count and score is not None:
                scores[at] = score
    known = [score for score in scores if score is not None]
    if not known:
        raise RerankError("The reranker's answer holds no score.")
    if all(0 <= score <= 1 for score in known):
        return scores
    return [None if score is None else _logistic(score) for score in scores]  # logits, as a cross-encoder gives them


def _number(entry: Mapping[str, object]) -> float | None:
    value = next((entry[name] for name in ("relevance_score", "score") if name in entry), None)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # an int of hundreds of digits
        return None
    return number if math.isfinite(number) else None


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-max(-60.0, min(60.0, value))))
