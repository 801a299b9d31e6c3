"""The reranker client speaks each API over real HTTP, and a bad server costs an error and no more."""

from __future__ import annotations

import json
from typing import Any

import pytest

from service.domain.errors import RerankError
from service.kit.settings import Settings
from service.providers.choose import open_reranker
from service.providers.reranker import MAX_ANSWER_BYTES, MAX_CHARS, HttpReranker
from tests.fakes.http_server import Cut, HttpRequest, HttpServer, ScriptedAnswer

TEXTS = ["tea", "coffee", "milk"]


def answering(body: Any, seen: list[HttpRequest] | None = None, **more: Any) -> HttpServer:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()

    def answer(request: HttpRequest) -> ScriptedAnswer:
        if seen is not None:
            seen.append(request)
        return ScriptedAnswer(body=content, **more)

    return HttpServer(answer)


async def ask(server: HttpServer, api: str = "tei", timeout_s: float = 5.0, **more: Any) -> list[float | None]:
    reranker = HttpReranker(f"http://127.0.0.1:{server.port}/rerank", api=api, timeout_s=timeout_s, **more)
    try:
        return await reranker.relevance("what does she drink", TEXTS)
    finally:
        await reranker.close()


TEI = [{"index": 1, "score": 0.9}, {"index": 0, "score": 0.4}, {"index": 2, "score": 0.1}]
OTHERS = {"results": [{"index": each["index"], "relevance_score": each["score"]} for each in TEI]}
APIS = [
    ("tei", TEI, {"query", "texts", "raw_scores", "truncate"}),
    ("cohere", OTHERS, {"model", "query", "documents", "top_n"}),
    ("jina", OTHERS, {"model", "query", "documents", "top_n", "return_documents"}),
]


@pytest.mark.parametrize(("api", "body", "fields"), APIS)
async def test_each_api(api: str, body: Any, fields: set[str]) -> None:
    seen: list[HttpRequest] = []
    with answering(body, seen) as server:
        found = await ask(server, api, model=None if api == "tei" else "rank-1", api_key="secret")
    assert found == [0.4, 0.9, 0.1]
    assert seen[0].json.keys() == fields
    assert seen[0].json.get("texts", seen[0].json.get("documents")) == TEXTS
    assert seen[0].headers["authorization"] == "Bearer secret"
    assert seen[0].path == "/rerank"


async def test_logits_become_relevance() -> None:
    with answering([{"index": 0, "score": -8.0}, {"index": 1, "score": 0.0}, {"index": 2, "score": 1e9}]) as server:
        low, middle, high = await ask(server)
    assert low == pytest.approx(0.000335, abs=1e-5)
    assert middle == 0.5
    assert high == pytest.approx(1.0)


async def test_odd_entries_are_left_out() -> None:
    odd = [
        {"index": 7, "score": 1},
        {"index": True, "score": 1},
        {"index": -1, "score": 1},
        {"index": 0, "score": "high"},
        {"index": 0, "score": None},
        "text",
        {"index": 2, "score": 0.25},
    ]
    with answering(odd) as server:
        assert await ask(server) == [None, None, 0.25]


BAD: list[Any] = [
    b"not JSON",
    [],
    {},
    {"results": None},
    [{"index": 0}],
    {"error": "overloaded"},
    b"[1e999]",
    b"[" * 99_999,
    b'[{"index": 0, "score": %s}]' % (b"9" * 400),
    b'{"results": [{"index": 0, "relevance_score": 0.5}], "more": "%s"}' % (b"x" * MAX_ANSWER_BYTES),
]


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
async def test_an_answer_without_a_score(body: Any) -> None:
    with answering(body) as server, pytest.raises(RerankError):
        await ask(server)


@pytest.mark.parametrize(
    "more",
    [
        {"status": 500},
        {"status": 429},
        {"status": 302},
        {"cut": Cut.BEFORE_ANSWER},
        {"cut": Cut.IN_BODY},
        {"delay_s": 30},
    ],
    ids=str,
)
async def test_a_server_that_fails(more: dict[str, Any]) -> None:
    with answering(TEI, **more) as server, pytest.raises(RerankError):
        await ask(server, timeout_s=0.3)


async def test_nobody_there() -> None:
    with answering(TEI) as server:
        pass
    with pytest.raises(RerankError):
        await ask(server)


async def test_a_text_is_cut() -> None:
    seen: list[HttpRequest] = []
    with answering([{"index": 0, "score": 0.5}], seen) as server:
        reranker = HttpReranker(f"http://127.0.0.1:{server.port}/")
        await reranker.relevance("q", ["x" * 50_000])
        await reranker.close()
    assert len(seen[0].json["texts"][0]) == MAX_CHARS


async def test_it_is_off_without_a_url() -> None:
    assert open_reranker(Settings.of({})) is None
    assert open_reranker(Settings.of({"rerank_provider": "tei"})) is None
    assert open_reranker(Settings.of({"rerank_url": "http://127.0.0.1:9"})) is None
    found = open_reranker(Settings.of({"rerank_provider": "tei", "rerank_url": "http://127.0.0.1:9"}))
    assert found is not None
    await found.close()


async def test_the_settings_name_model_and_key() -> None:
    seen: list[HttpRequest] = []
    with answering(OTHERS, seen) as server:
        given = {"rerank_provider": "cohere", "rerank_url": f"http://127.0.0.1:{server.port}/rerank"}
        reranker = open_reranker(Settings.of({**given, "rerank_model": "rank-2", "rerank_api_key": "hidden"}))
        assert reranker is not None
        await reranker.relevance("what does she drink", TEXTS)
        await reranker.close()
    assert (seen[0].json["model"], seen[0].headers["authorization"]) == ("rank-2", "Bearer hidden")
