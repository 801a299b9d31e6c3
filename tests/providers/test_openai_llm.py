from __future__ import annotations

import asyncio
import gzip
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from service.domain.errors import LlmError
from service.providers import openai_client
from service.providers.openai_client import ClientOptions
from service.providers.openai_llm import OpenAiLlm, response_format
from service.providers.presets import PRESETS, Endpoint, JsonMode
from service.providers.protocols import LlmRequest, TokenUsage
from tests.fakes.http_server import Cut, ScriptedAnswer
from tests.fakes.openai_server import OpenAiServer, failure
from tests.support.endpoints import endpoint_of_llm

SCHEMA = {"type": "object", "properties": {"facts": {"type": "array"}}}
ASK = LlmRequest("extract", "Return the facts as JSON.", "I moved to Turin.", schema=SCHEMA, deadline_s=5)

Open = Callable[..., OpenAiLlm]


@pytest.fixture
async def open_llm(server: OpenAiServer, quick: ClientOptions) -> AsyncIterator[Open]:
    """Opens LLMs of a provider at the fake server and closes them."""
    opened: list[OpenAiLlm] = []

    def open_one(provider: str = "openai", options: ClientOptions = quick, **changes: str) -> OpenAiLlm:
        opened.append(OpenAiLlm(endpoint(server, provider, **changes), options))
        return opened[-1]

    yield open_one
    for llm in opened:
        await llm.close()


def endpoint(server: OpenAiServer, provider: str, **changes: str) -> Endpoint:
    url = server.azure_url if PRESETS[provider].api_version else server.base_url
    model = changes.pop("model", PRESETS[provider].chat_model or "some-model")
    found = endpoint_of_llm(provider=provider, base_url=url, api_key="sk-test", model=model)
    return replace(found, models=changes)


@pytest.mark.parametrize(
    ("provider", "model", "length_field", "json_mode"),
    [
        ("openai", "gpt-6-luna", "max_completion_tokens", "json_object"),
        ("anthropic", "claude-haiku-5-5", "max_tokens", None),
        ("google", "gemini-flash-lite-latest", "max_tokens", "json_schema"),
        ("ollama", "llama3.2", "max_tokens", "json_schema"),
        ("huggingface", "some-model", "max_tokens", None),
        ("vllm", "some-model", "max_tokens", "json_schema"),
        ("custom", "some-model", "max_tokens", None),
    ],
)
async def test_requests(
    server: OpenAiServer, open_llm: Open, provider: str, model: str, length_field: str, json_mode: str | None
) -> None:
    server.chat.reply({"facts": ["moved to Turin"]})
    llm = open_llm(provider)
    reply = await llm.complete(ASK)
    assert reply.text == '{"facts": ["moved to Turin"]}'
    (request,) = server.chat.requests
    assert (request.method, request.path, request.query) == ("POST", "/v1/chat/completions", {})
    assert request.headers["authorization"] == "Bearer sk-test"
    body = request.json
    assert llm.model == f"{provider}:{model}"
    assert body.pop("response_format", {"type": None})["type"] == json_mode
    own: dict[str, dict[str, object]] = {
        "openai": {"temperature": 0, "reasoning_effort": "none"},
        "anthropic": {"thinking": {"type": "disabled"}},
    }
    assert body == {
        "model": model,
        "messages": [{"role": "system", "content": ASK.system}, {"role": "user", "content": ASK.user}],
        length_field: 2_000,
        **own.get(provider, {"temperature": 0}),
    }


async def test_azure(server: OpenAiServer, open_llm: Open) -> None:
    server.chat.default("fine")
    llm = open_llm("azure_openai", model="my-deployment", classify="other-deployment")
    await llm.complete(ASK)
    await llm.complete(replace(ASK, task="classify"))
    assert [request.path for request in server.chat.requests] == [
        "/openai/deployments/my-deployment/chat/completions",
        "/openai/deployments/other-deployment/chat/completions",
    ]
    first = server.chat.requests[0]
    assert first.query == {"api-version": "2024-10-21"}
    assert first.headers["api-key"] == "sk-test"
    assert "authorization" not in first.headers
    assert first.json["response_format"] == {"type": "json_object"}


async def test_nothing_of_the_environment_is_sent(
    server: OpenAiServer, open_llm: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "from-the-environment")
    server.chat.default("fine")
    await open_llm("anthropic").complete(ASK)
    assert "from-the-environment" not in str(server.chat.requests[0].headers)


async def test_a_redirect_is_followed(server: OpenAiServer, open_llm: Open) -> None:
    with OpenAiServer() as elsewhere:
        elsewhere.chat.default("fine")
        for _ in range(2):
            server.chat.add(ScriptedAnswer(307, headers={"location": f"{elsewhere.base_url}/chat/completions"}))
        llm = open_llm()
        assert [(await llm.complete(ASK)).text, (await llm.complete(ASK)).text] == ["fine", "fine"]
        request = elsewhere.chat.requests[0]
        assert request.json["messages"][1]["content"] == ASK.user
        assert "authorization" not in request.headers, "another server learns no key"


async def test_a_proxy_of_the_environment_is_used(
    server: OpenAiServer, open_llm: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.base_url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "")
    server.chat.default("fine")
    found = endpoint_of_llm(base_url="http://model.invalid/v1", model="m", api_key="sk-test")
    llm = OpenAiLlm(found, ClientOptions(timeout_s=5.0, retries=0))
    assert (await llm.complete(ASK)).text == "fine"
    (request,) = server.chat.requests
    assert (request.path, request.headers["host"]) == ("/v1/chat/completions", "model.invalid")
    await llm.close()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert (await open_llm().complete(ASK)).text == "fine"
    assert server.chat.requests[1].headers["host"].startswith("127.0.0.1")


async def test_texts_of_any_length_and_script(server: OpenAiServer, open_llm: Open) -> None:
    text = "Я переехал в Турин \U0001f600 \u2028" * 20_000
    server.chat.default("прекрасно" * 20_000)
    assert (await open_llm().complete(replace(ASK, user=text))).text == "прекрасно" * 20_000
    assert server.chat.bodies[0]["messages"][1]["content"] == text


async def test_no_key(server: OpenAiServer, quick: ClientOptions) -> None:
    server.chat.default("fine")
    llm = OpenAiLlm(endpoint_of_llm(provider="ollama", base_url=server.base_url), quick)
    assert (await llm.complete(ASK)).text == "fine"
    await llm.close()


async def test_free_text_asks_for_no_json(server: OpenAiServer, open_llm: Open) -> None:
    server.chat.default("a summary")
    await open_llm().complete(replace(ASK, schema=None, temperature=0.3, max_tokens=50))
    body = server.chat.bodies[0]
    assert "response_format" not in body
    assert (body["temperature"], body["max_completion_tokens"]) == (0.3, 50)


async def test_json_mode_needs_the_word(server: OpenAiServer, open_llm: Open) -> None:
    server.chat.default({})
    await open_llm().complete(replace(ASK, system="List the facts."))
    assert "JSON" in server.chat.bodies[0]["messages"][0]["content"]


def test_a_list_is_wrapped_for_schema_mode() -> None:
    array = {"type": "array", "items": {"type": "string"}}
    found = response_format(JsonMode.SCHEMA, "extract", array)
    assert found is not None
    wrapped = found["json_schema"]
    assert isinstance(wrapped, dict)
    assert wrapped["name"] == "extract"
    assert wrapped["schema"]["properties"] == {"items": array}


async def test_the_reply(server: OpenAiServer, open_llm: Open) -> None:
    server.chat.reply(
        "half an ans", finish_reason="length", usage={"prompt_tokens": 5, "completion_tokens": 9}, model="m1"
    )
    reply = await open_llm().complete(ASK)
    assert (reply.text, reply.truncated, reply.usage, reply.model) == ("half an ans", True, TokenUsage(5, 9), "m1")


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        ({"content": ""}, "sent no text"),
        ({"content": "", "finish_reason": "length"}, "ran out of tokens"),
        ({"content": "", "refusal": "I cannot help."}, "refused to answer"),
        ({"content": "x", "finish_reason": "content_filter"}, "refused to answer"),
        (None, "no answer"),
    ],
)
async def test_silence_is_an_error(
    server: OpenAiServer, open_llm: Open, answer: dict[str, Any] | None, detail: str
) -> None:
    server.chat.reply(**answer) if answer else server.chat.raw(b'{"choices": []}')
    with pytest.raises(LlmError, match=detail):
        await open_llm().complete(ASK)
    assert len(server.chat.requests) == 1


@pytest.mark.parametrize("count", [-1, 10**30, -5e30, "ten", [1], 1.5e300, True])
async def test_a_count_of_tokens_that_cannot_be_used_costs_no_answer(
    server: OpenAiServer, open_llm: Open, count: object
) -> None:
    server.chat.reply("fine", usage={"prompt_tokens": count, "completion_tokens": 7})
    reply = await open_llm().complete(ASK)
    assert (reply.text, reply.usage.completion_tokens) == ("fine", 7)
    assert reply.usage.prompt_tokens in (0, 1)


async def test_a_text_in_parts_is_read(server: OpenAiServer, open_llm: Open) -> None:
    parts = [
        {"type": "thinking", "thinking": [{"text": "hm"}]},
        {"type": "text", "text": "fi"},
        {"type": "text", "text": "ne"},
    ]
    server.chat.raw(json.dumps({"choices": [{"message": {"content": parts}}]}).encode())
    assert (await open_llm().complete(ASK)).text == "fine"


async def test_a_very_large_answer_is_not_read_to_its_end(
    server: OpenAiServer, open_llm: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_client, "MAX_ANSWER_BYTES", 100_000)
    packed = gzip.compress(b" " * 50_000_000)
    server.chat.add(ScriptedAnswer(body=packed, headers={"Content-Encoding": "gzip"}))
    server.chat.add(ScriptedAnswer(body=b"[" * 200_000))
    server.chat.reply("fine")
    assert (await open_llm().complete(ASK)).text == "fine"


@pytest.mark.parametrize("status", [200, 400])
async def test_the_servers_sentence_is_one_line_of_visible_text(
    server: OpenAiServer, open_llm: Open, status: int
) -> None:
    error = {"error": {"message": "Quota\x1b[31m of \u202ethe\nday\u200b is used up."}}
    for _ in range(4):
        server.chat.add(ScriptedAnswer(status=status, body=json.dumps(error).encode()))
    with pytest.raises(LlmError) as failed:
        await open_llm().complete(ASK)
    assert failed.value.provider_message == "Quota[31m of the day is used up."


async def test_an_error_nested_too_deeply_has_no_sentence(server: OpenAiServer, open_llm: Open) -> None:
    server.chat.add(ScriptedAnswer(status=400, body=b"[" * 50_000 + b"]" * 50_000))
    with pytest.raises(LlmError, match="refused"):
        await open_llm().complete(ASK)


@pytest.mark.parametrize(
    "trouble",
    [
        failure(429, headers={"Retry-After": "0.01"}),
        failure(408),
        failure(500),
        failure(529),
        ScriptedAnswer(cut=Cut.BEFORE_ANSWER),
        ScriptedAnswer(cut=Cut.IN_BODY),
        ScriptedAnswer(body=b"<html>bad gateway</html>"),
        ScriptedAnswer(body=b'{"error": {"message": "overloaded"}}'),
        ScriptedAnswer(body=b'{"choices": [{"mess'),
    ],
)
async def test_passing_troubles_are_retried(server: OpenAiServer, open_llm: Open, trouble: ScriptedAnswer) -> None:
    server.chat.add(trouble)
    server.chat.reply("fine")
    assert (await open_llm().complete(ASK)).text == "fine"
    assert len(server.chat.requests) == 2


async def test_the_rate_limit_reaches_the_caller(server: OpenAiServer, open_llm: Open) -> None:
    server.chat.status(429, headers={"Retry-After": "60"})
    began = time.monotonic()
    with pytest.raises(LlmError, match="rate limit") as caught:
        await open_llm().complete(ASK)
    assert (caught.value.retry_after_s, caught.value.retryable) == (60, True)
    assert time.monotonic() - began < 1
    assert len(server.chat.requests) == 1


@pytest.mark.parametrize(
    ("status", "code", "detail", "retryable"),
    [
        (400, None, "request refused", True),
        (404, None, "request refused", True),
        (400, "content_filter", "request filtered", True),
        (401, "invalid_api_key", "key refused", True),
        (403, None, "key refused", True),
        (400, "context_length_exceeded", "request too long", False),
        (413, None, "request too long", False),
        (429, "insufficient_quota", "quota used up", True),
    ],
)
async def test_lasting_troubles_are_raised_at_once(
    server: OpenAiServer, open_llm: Open, status: int, code: str | None, detail: str, retryable: bool
) -> None:
    server.chat.status(status, code=code)
    with pytest.raises(LlmError, match=detail) as caught:
        await open_llm().complete(ASK)
    assert caught.value.retryable is retryable
    assert len(server.chat.requests) == 1
    assert caught.value.__cause__ is not None


async def test_errors_tell_nothing_of_text_or_key(server: OpenAiServer, open_llm: Open) -> None:
    server.chat.raw(b'{"error": {"message": "I moved to Turin with sk-test"}}', status=400)
    with pytest.raises(LlmError) as caught:
        await open_llm().complete(ASK)
    assert "Turin" not in f"{caught.value.detail}{caught.value.__cause__}"
    assert "sk-test" not in f"{caught.value.detail}{caught.value.__cause__}"


async def test_logs_tell_nothing_of_the_text(
    server: OpenAiServer, open_llm: Open, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.chat.status(500)
    server.chat.reply("Porto")
    await open_llm().complete(ASK)
    assert not [line for line in caplog.messages if "Turin" in line or "Porto" in line or "sk-test" in line]


@pytest.mark.parametrize("timeout_s", [0.3, 5.0])
async def test_a_slow_model_meets_the_deadline(server: OpenAiServer, open_llm: Open, timeout_s: float) -> None:
    server.chat.hang()
    llm = open_llm(options=ClientOptions(timeout_s=timeout_s))
    began = time.monotonic()
    with pytest.raises(LlmError, match="time-out"):
        await llm.complete(replace(ASK, deadline_s=0.3))
    assert 0.25 < time.monotonic() - began < 1.0


async def test_a_slow_attempt_is_repeated(server: OpenAiServer, open_llm: Open) -> None:
    server.chat.hang()
    server.chat.reply("fine")
    llm = open_llm(options=ClientOptions(timeout_s=0.2, base_delay_s=0.01))
    assert (await llm.complete(ASK)).text == "fine"


async def test_nobody_listens(quick: ClientOptions) -> None:
    llm = OpenAiLlm(endpoint_of_llm(base_url="http://127.0.0.1:1/v1", model="m"), quick)
    with pytest.raises(LlmError, match="connection failed"):
        await llm.complete(ASK)
    await llm.close()


async def test_waiting_for_a_slot_counts(server: OpenAiServer, open_llm: Open) -> None:
    llm = open_llm(options=ClientOptions(concurrency=1))
    server.chat.hang(0.5)
    server.chat.reply("second")
    first = asyncio.create_task(llm.complete(replace(ASK, deadline_s=0.6)))
    await asyncio.sleep(0.05)
    with pytest.raises(LlmError, match="time-out"):
        await llm.complete(replace(ASK, deadline_s=0.1))
    assert len(server.chat.requests) == 1
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)


async def test_a_refused_field_is_left_out_from_then_on(server: OpenAiServer, open_llm: Open) -> None:
    server.chat.status(400, code="unsupported_value", param="temperature")
    server.chat.status(400, code="unsupported_parameter", param="max_completion_tokens")
    server.chat.default("fine")
    llm = open_llm(model="reasoner")
    assert (await llm.complete(ASK)).text == "fine"
    assert (await llm.complete(ASK)).text == "fine"
    assert len(server.chat.requests) == 4
    last = server.chat.bodies[-1]
    assert "temperature" not in last
    assert (last["max_tokens"], "max_completion_tokens" in last) == (2_000, False)


async def test_a_field_that_only_the_sentence_names_is_left_out(server: OpenAiServer, open_llm: Open) -> None:
    server.chat.raw(b'{"error": {"message": "`temperature` is deprecated for this model."}}', status=400)
    server.chat.default("fine")
    assert (await open_llm("anthropic", model="claude-opus-5-5").complete(ASK)).text == "fine"
    assert "temperature" not in server.chat.bodies[-1]


SENTENCES = {
    "OpenAI": (404, {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}),
    "Google": (400, [{"error": {"code": 400, "message": "The model `x` does not exist"}}]),
    "Ollama": (404, {"error": "The model `x` does not exist"}),
    "vLLM": (404, {"object": "error", "message": "The model `x` does not exist"}),
    "FastAPI": (422, {"detail": "The model `x` does not exist"}),
}


@pytest.mark.parametrize(("status", "body"), SENTENCES.values(), ids=SENTENCES)
async def test_the_provider_is_quoted(server: OpenAiServer, open_llm: Open, status: int, body: object) -> None:
    server.chat.raw(json.dumps(body).encode(), status=status)
    with pytest.raises(LlmError) as caught:
        await open_llm(model="x").complete(ASK)
    assert caught.value.detail == f"openai:x did not answer: request refused ({status})."
    assert caught.value.provider_message == "The model `x` does not exist"


async def test_the_provider_is_quoted_shortly_and_without_keys(server: OpenAiServer, open_llm: Open) -> None:
    told = (
        "Incorrect API key provided: sk-test.\n Not sk-proj-Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZg either. " + "x" * 900
    )
    server.chat.raw(json.dumps({"error": {"message": told}}).encode(), status=401)
    with pytest.raises(LlmError) as caught:
        await open_llm().complete(ASK)
    message = caught.value.provider_message
    assert message.startswith("Incorrect API key provided: [")
    assert len(message) <= 300
    assert not [part for part in ("sk-test", "Zm9vYmFy", "\n") if part in message]


@pytest.mark.parametrize(("field", "tries"), [("messages", 1), ("max_completion_tokens", 2)])
async def test_a_field_that_matters_or_is_refused_in_every_form_is_an_error(
    server: OpenAiServer, open_llm: Open, field: str, tries: int
) -> None:
    server.chat.status(400, param=field, times=9)
    with pytest.raises(LlmError, match="request refused"):
        await open_llm().complete(ASK)
    assert len(server.chat.requests) == tries
