"""Embedding models on an OpenAI-compatible server.

Texts go in batches and every answer is checked: a server that returns too few vectors, too many, or vectors of another
length would otherwise store a memory under the vector of another. A text longer than the model's window is cut into
windows, and the mean of their vectors, weighted by length, stands for it: otherwise everything after the first window
would be invisible to search.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence

import numpy as np
from pydantic import BaseModel

from service.domain.errors import EmbeddingError
from service.domain.text import CleanText
from service.observability import tracing
from service.providers.openai_client import ClientOptions, OpenAiClient
from service.providers.presets import Endpoint, prefixes
from service.providers.protocols import Embedder, Vector, unit
from service.providers.retry import LASTING, CallFailed

PATH = "/embeddings"
BATCH_CHARS = 200_000
"""Characters per call: OpenAI takes 300,000 tokens, and a character of Chinese may be more than one."""


MAX_WINDOWS = 32
"""A longer text is represented by this many windows spread evenly over it."""

BREAK = re.compile(r"\s+(?=\S*$)")


class _Item(BaseModel):
    embedding: list[float] | str
    index: int | None = None


class EmbeddingsResponse(BaseModel):
    data: list[_Item]


class OpenAiEmbedder(Embedder):
    """An embedding model at an endpoint. The time of `options` bounds one batch, retries included."""

    def __init__(self, endpoint: Endpoint, dimension: int, options: ClientOptions) -> None:
        self._endpoint = endpoint
        self.model, self.dimension = endpoint.id, dimension
        self._client = OpenAiClient(endpoint, options)
        self._deadline_s = options.timeout_s
        self._prefixes = prefixes(endpoint.model)

    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        return await self._embed(texts, self._prefixes.passage)

    async def embed_query(self, text: CleanText) -> Vector:
        return (await self._embed([text], self._prefixes.query))[0]

    async def windows(self, text: CleanText) -> tuple[int, bool]:
        pieces = split(text, self._endpoint.preset.window_chars)
        return len(pieces), sum(map(len, pieces)) == len(text)

    async def close(self) -> None:
        await self._client.close()

    async def _embed(self, texts: Sequence[str], prefix: str) -> list[Vector]:
        pieces = [split(text, self._endpoint.preset.window_chars) for text in texts]
        flat = [prefix + piece for group in pieces for piece in group]
        vectors = [
            vector for batch in batches(flat, self._endpoint.preset.batch_texts) for vector in await self._batch(batch)
        ]
        rest = iter(vectors)
        try:
            return [mean([next(rest) for _ in group], [len(piece) for piece in group]) for group in pieces]
        except ValueError as exc:
            raise _unusable("a text's windows cancel out") from exc

    async def _batch(self, texts: list[str]) -> list[Vector]:
        preset, model = self._endpoint.preset, self._endpoint.model
        body: dict[str, object] = {
            "model": model,
            "input": texts,
            "encoding_format": "base64" if preset.base64_vectors else "float",
        }
        if model.startswith(preset.sized_models):
            body["dimensions"] = self.dimension
        try:
            about = {"gen_ai.operation.name": "embeddings", "gen_ai.request.model": model}
            with tracing.span(f"embeddings {model}", "CLIENT", about):
                answer = await self._client.post(PATH, body, EmbeddingsResponse, deadline_s=self._deadline_s)
        except CallFailed as failed:
            error = EmbeddingError(f"The embedder did not answer: {failed}.", retry_after_s=failed.retry_after_s)
            error.retryable = failed.reason not in LASTING
            raise error from failed
        return read_vectors(answer, count=len(texts), dimension=self.dimension)


def batches(texts: Sequence[str], max_texts: int, max_chars: int = BATCH_CHARS) -> Iterator[list[str]]:
    """The texts in order, in lists of at most `max_texts` and, a single long text aside, `max_chars`."""
    batch: list[str] = []
    chars = 0
    for text in texts:
        if batch and (len(batch) == max_texts or chars + len(text) > max_chars):
            yield batch
            batch, chars = [], 0
        batch.append(text)
        chars += len(text)
    if batch:
        yield batch


def read_vectors(answer: EmbeddingsResponse, *, count: int, dimension: int) -> list[Vector]:
    """The vectors in the order of the texts, each of length 1. Raises EmbeddingError unless it is one per text."""
    items = answer.data
    if len(items) != count:
        raise _unusable(f"{len(items)} vectors for {count} texts")
    # Some servers leave the index out or count from 0 in each item; then the order itself is the promise.
    if sorted(item.index if item.index is not None else -1 for item in items) == list(range(count)):
        items = sorted(items, key=lambda item: item.index or 0)
    return [_vector(item, dimension) for item in items]


def _vector(item: _Item, dimension: int) -> Vector:
    try:
        numbers = _unpack(item.embedding) if isinstance(item.embedding, str) else np.asarray(item.embedding)
        if numbers.shape != (dimension,):
            raise _unusable(f"{numbers.size} dimensions instead of {dimension}")
        return unit(numbers)
    except (ValueError, binascii.Error) as exc:
        raise _unusable("a vector that cannot be read") from exc


def _unpack(packed: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.frombuffer(base64.b64decode(packed, validate=True), dtype="<f4")


def _unusable(what: str) -> EmbeddingError:
    """The error for an unusable answer. Not retryable: the same model will answer the same way."""
    error = EmbeddingError(f"The embedder's answer cannot be used: {what}.")
    error.retryable = False
    return error


def split(text: str, max_chars: int) -> list[str]:
    """The text in at most MAX_WINDOWS pieces of at most `max_chars`, cut at white space close to the limit if any."""
    pieces = []
    start = 0
    while len(text) - start > max_chars:
        end = start + _cut(text[start : start + max_chars])
        pieces.append(text[start:end])
        start = end
    pieces.append(text[start:])
    if len(pieces) <= MAX_WINDOWS:
        return pieces
    return [pieces[round(at * (len(pieces) - 1) / (MAX_WINDOWS - 1))] for at in range(MAX_WINDOWS)]


def _cut(piece: str) -> int:
    """Where to end the piece: after the last white space of its last quarter, else at its end."""
    tail = len(piece) - len(piece) // 4
    match = BREAK.search(piece, tail)
    return match.end() if match else len(piece)


def mean(vectors: Sequence[Vector], weights: Sequence[int]) -> Vector:
    """The weighted mean, of length 1. Raises ValueError when it is zero or not finite."""
    if len(vectors) == 1:
        return vectors[0]
    return unit(np.average(np.stack(vectors), axis=0, weights=np.asarray(weights, dtype=np.float64)))
