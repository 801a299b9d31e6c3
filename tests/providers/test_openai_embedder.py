from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import numpy as np
import pytest

from service.domain.errors import EmbeddingError
from service.domain.text import CleanText
from service.providers.openai_client import ClientOptions
from service.providers.openai_embedder import OpenAiEmbedder, batches
from service.providers.presets import PRESETS
from tests.fakes.openai_server import OpenAiServer, direction
from tests.support.endpoints import endpoint_of_embedder

Open = Callable[..., OpenAiEmbedder]

TEXTS = [CleanText("likes tea"), CleanText("lives in Turin"), CleanText("plays chess")]


@pytest.fixture
async def open_embedder(server: OpenAiServer, quick: ClientOptions) -> AsyncIterator[Open]:
    opened: list[OpenAiEmbedder] = []

    def open_one(provider: str = "openai", model: str | None = None, options: ClientOptions = quick) -> OpenAiEmbedder:
        url = server.azure_url if PRESETS[provider].api_version else server.base_url
        model = model or PRESETS[provider].embedding_model or "some-model"
        endpoint = endpoint_of_embedder(provider=provider, base_url=url, api_key="sk-test", model=model)
        opened.append(OpenAiEmbedder(endpoint, 8, options))
        return opened[-1]

    yield open_one
    for embedder in opened:
        await embedder.close()


@pytest.mark.parametrize(
    ("provider", "model", "path", "encoding", "dimensions"),
    [
        ("openai", None, "/v1/embeddings", "base64", 8),
        ("openai", "text-embedding-ada-002", "/v1/embeddings", "base64", None),
        ("azure_openai", None, "/openai/deployments/text-embedding-3-small/embeddings", "base64", 8),
        ("google", None, "/v1/embeddings", "float", 8),
        ("ollama", None, "/v1/embeddings", "float", None),
        ("huggingface", None, "/v1/embeddings", "float", None),
        ("vllm", None, "/v1/embeddings", "float", None),
        ("custom", None, "/v1/embeddings", "float", None),
    ],
)
async def test_requests(
    server: OpenAiServer,
    open_embedder: Open,
    provider: str,
    model: str | None,
    path: str,
    encoding: str,
    dimensions: int | None,
) -> None:
    embedder = open_embedder(provider, model=model)
    await embedder.embed(TEXTS)
    (request,) = server.embeddings.requests
    assert request.path == path
    body = request.json
    assert len(body["input"]) == 3
    assert body["encoding_format"] == encoding
    assert body.get("dimensions") == dimensions
    assert embedder.model == f"{provider}:{body['model']}"


@pytest.mark.parametrize("provider", ["openai", "custom"])
async def test_vectors_are_in_order_and_of_length_1(server: OpenAiServer, open_embedder: Open, provider: str) -> None:
    vectors = await open_embedder(provider).embed(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        expected = np.asarray(direction(text, 8))
        np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)
        assert vector.dtype == np.float32
        assert not vector.flags.writeable


async def test_nothing_to_embed(server: OpenAiServer, open_embedder: Open) -> None:
    assert await open_embedder().embed([]) == []
    assert server.embeddings.requests == []


async def test_batches(server: OpenAiServer, open_embedder: Open) -> None:
    """As many texts as the server takes."""
    texts = [CleanText(f"text {number}") for number in range(40)]
    vectors = await open_embedder("huggingface").embed(texts)
    assert [len(body["input"]) for body in server.embeddings.bodies] == [32, 8]
    last = direction("text 39", 8)
    np.testing.assert_allclose(vectors[39] @ np.asarray(last), np.linalg.norm(last))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], []),
        (["a"], [["a"]]),
        (["a", "b", "c"], [["a", "b"], ["c"]]),
        (["aaaa", "bbbb", "c"], [["aaaa"], ["bbbb", "c"]]),
        (["aaaaaaaaa", "b"], [["aaaaaaaaa"], ["b"]]),
    ],
)
def test_batches_are_bounded_twice(texts: list[str], expected: list[list[str]]) -> None:
    assert list(batches(texts, 2, max_chars=6)) == expected


async def test_prefixes(server: OpenAiServer, open_embedder: Open) -> None:
    embedder = open_embedder("ollama")
    await embedder.embed(TEXTS[:1])
    await embedder.embed_query(CleanText("what does he drink?"))
    assert server.embeddings.texts == ["search_document: likes tea", "search_query: what does he drink?"]


async def test_a_long_text_is_embedded_in_windows(server: OpenAiServer, open_embedder: Open) -> None:
    text = CleanText("word " * 500)
    (vector, short) = await open_embedder("custom").embed([text, TEXTS[0]])
    assert "".join(server.embeddings.texts) == text + TEXTS[0]
    assert [len(piece) for piece in server.embeddings.texts] == [1_000, 1_000, 500, 9]
    np.testing.assert_allclose(np.linalg.norm(vector), 1.0, atol=1e-6)
    np.testing.assert_allclose(short @ np.asarray(direction(TEXTS[0], 8)), np.linalg.norm(direction(TEXTS[0], 8)))


@pytest.mark.parametrize(("chars", "expected"), [(10, (1, True)), (2_500, (3, True)), (40_000, (32, False))])
async def test_windows_are_counted(open_embedder: Open, chars: int, expected: tuple[int, bool]) -> None:
    assert await open_embedder("custom").windows(CleanText("x" * chars)) == expected


@pytest.mark.parametrize("indices", [[2, 0, 1], [None, None, None], [0, 0, 0]])
async def test_the_index_counts_where_it_makes_sense(
    server: OpenAiServer, open_embedder: Open, indices: list[int | None]
) -> None:
    axes = np.eye(3, 8).tolist()
    server.embeddings.vectors(axes, indices=indices)
    vectors = await open_embedder("custom").embed(TEXTS)
    order = [2, 0, 1] if indices == [2, 0, 1] else [0, 1, 2]
    for row, at in enumerate(order):
        assert vectors[at][row] == 1.0


@pytest.mark.parametrize(
    ("vectors", "detail"),
    [
        ([[1.0] * 8] * 2, "2 vectors for 3 texts"),
        ([[1.0] * 8] * 4, "4 vectors for 3 texts"),
        ([[1.0] * 8, [1.0] * 8, [1.0] * 7], "7 dimensions instead of 8"),
        ([[1.0] * 8, [1.0] * 8, []], "0 dimensions instead of 8"),
        ([[1.0] * 8, [1.0] * 8, [0.0] * 8], "cannot be read"),
    ],
)
async def test_wrong_vectors(
    server: OpenAiServer, open_embedder: Open, vectors: list[list[float]], detail: str
) -> None:
    server.embeddings.vectors(vectors)
    with pytest.raises(EmbeddingError, match=detail) as caught:
        await open_embedder("custom").embed(TEXTS)
    assert not caught.value.retryable
    assert len(server.embeddings.requests) == 1


@pytest.mark.parametrize(
    "embedding",
    [b'"not base64!"', b'"AAAA"', b"[1, 2, 3, 4, 5, 6, 7, NaN]", b"[1, 2, 3, 4, 5, 6, 7, 1e999]"],
)
async def test_unreadable_vectors(server: OpenAiServer, open_embedder: Open, embedding: bytes) -> None:
    for _ in range(4):
        server.embeddings.raw(b'{"data": [{"index": 0, "embedding": ' + embedding + b"}]}")
    with pytest.raises(EmbeddingError):
        await open_embedder().embed(TEXTS[:1])


async def test_passing_troubles_are_retried(server: OpenAiServer, open_embedder: Open) -> None:
    embedder = open_embedder()
    server.embeddings.status(429, headers={"Retry-After": "0.01"})
    server.embeddings.status(503)
    server.embeddings.drop()
    assert len(await embedder.embed(TEXTS)) == 3
    assert len(server.embeddings.requests) == 4


async def test_lasting_troubles_are_raised(server: OpenAiServer, open_embedder: Open) -> None:
    server.embeddings.status(401)
    with pytest.raises(EmbeddingError, match="key refused") as caught:
        await open_embedder().embed(TEXTS)
    assert "likes tea" not in str(caught.value)
    assert len(server.embeddings.requests) == 1


async def test_a_slow_server_meets_the_deadline(server: OpenAiServer, open_embedder: Open) -> None:
    server.embeddings.hang()
    with pytest.raises(EmbeddingError, match="time-out"):
        await open_embedder(options=ClientOptions(timeout_s=0.2)).embed(TEXTS)


async def test_dimensions_refused(server: OpenAiServer, open_embedder: Open) -> None:
    server.embeddings.status(400, param="dimensions")
    assert len(await open_embedder().embed(TEXTS)) == 3
    assert "dimensions" not in server.embeddings.bodies[-1]
