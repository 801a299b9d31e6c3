"""Chat models on an OpenAI-compatible server.

An empty answer, a refusal or an unreadable body is an LlmError, never an empty reply: "no answer" must not look like
"nothing to remember".
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, BeforeValidator

from service.domain.errors import AnswerCut, LlmError, PromptTooLong, UnusableAnswer
from service.observability import metrics, tracing
from service.providers.openai_client import ClientOptions, OpenAiClient
from service.providers.presets import Endpoint, JsonMode
from service.providers.protocols import LlmReply, LlmRequest, TokenUsage
from service.providers.retry import UNTIL_CHANGED, CallFailed, FailureReason

PATH = "/chat/completions"
JSON_INSTRUCTION = "Answer with one JSON object."
MOST_TOKENS = 100_000_000
"""Tokens of one call; a larger count is a mistake of the server, and would end the budget of the day."""

CHANGE_S = 1_800.0
"""Pause after a failure that persists until somebody changes a key or a model."""


def _joined(content: object) -> object:
    """The text of a content that some servers send in parts, such as thoughts and text."""
    if not isinstance(content, list):
        return content
    return "".join(str(each["text"]) for each in content if isinstance(each, dict) and each.get("type") == "text")


def _token_count(count: object) -> int | None:
    """None for what is not a number of tokens: no answer is lost for a count that cannot be used."""
    return int(count) if isinstance(count, int | float) and 0 <= count <= MOST_TOKENS else None


class _Message(BaseModel):
    content: Annotated[str | None, BeforeValidator(_joined)] = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    prompt_tokens: Annotated[int | None, BeforeValidator(_token_count)] = None
    completion_tokens: Annotated[int | None, BeforeValidator(_token_count)] = None


class ChatCompletion(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None
    model: str | None = None


class OpenAiLlm:
    """A chat model at an endpoint; implements `protocols.Llm`."""

    def __init__(self, endpoint: Endpoint, options: ClientOptions) -> None:
        self._endpoint = endpoint
        self._client = OpenAiClient(endpoint, options)

    @property
    def model(self) -> str:
        return self._endpoint.id

    async def complete(self, request: LlmRequest) -> LlmReply:
        """The answer to `request`. Raises LlmError within its deadline."""
        model = self._endpoint.models.get(request.task, self._endpoint.model)
        provider, began = self._endpoint.preset.name, time.perf_counter()
        about = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model, "gen_ai.provider.name": provider}
        outcome = "cancelled"
        try:
            with tracing.span(f"chat {model}", "CLIENT", about):
                completion = await self._client.post(
                    PATH, self._body(request, model), ChatCompletion, deadline_s=request.deadline_s
                )
                _count_tokens(completion.usage, provider, model)
                reply = read_completion(completion, model, provider)
            outcome = "answered"
        except CallFailed as failed:
            outcome = failed.reason.name.lower()
            raise _error(failed, f"{provider}:{model}") from failed
        except LlmError:
            outcome = "unusable"
            raise
        finally:
            metrics.MODEL_CALLS.labels(provider, model, request.task, outcome).inc()
            metrics.MODEL_SECONDS.labels(provider, model).observe(time.perf_counter() - began)
        return reply

    async def close(self) -> None:
        await self._client.close()

    def _body(self, request: LlmRequest, model: str) -> dict[str, object]:
        preset = self._endpoint.preset
        body: dict[str, object] = {
            "model": model,
            "messages": _messages(request, preset.json_mode),
            "temperature": request.temperature,
            preset.length_field: request.max_tokens,
        }
        if request.schema is not None and (answer := response_format(preset.json_mode, request.task, request.schema)):
            body["response_format"] = answer
        if model == preset.chat_model:
            body = {name: value for name, value in {**body, **preset.chat_fields}.items() if value is not None}
        return body


def _count_tokens(usage: _Usage | None, provider: str, model: str) -> None:
    if usage is not None:
        metrics.MODEL_TOKENS.labels(provider, model, "prompt").inc(usage.prompt_tokens or 0)
        metrics.MODEL_TOKENS.labels(provider, model, "completion").inc(usage.completion_tokens or 0)


def response_format(mode: JsonMode, task: str, schema: Mapping[str, object]) -> dict[str, object] | None:
    """The request's `response_format`; None where the server has no JSON mode and the answer is parsed out of the text.

    A schema whose root is not an object is put under the key `items`, since the API allows objects only;
    `json_reply.as_list` takes it out again.
    """
    if mode is JsonMode.NONE:
        return None
    if mode is JsonMode.OBJECT:
        return {"type": "json_object"}
    if schema.get("type") != "object":
        schema = {
            "type": "object",
            "properties": {"items": dict(schema)},
            "required": ["items"],
            "additionalProperties": False,
        }
    return {"type": "json_schema", "json_schema": {"name": task, "schema": dict(schema)}}


def _messages(request: LlmRequest, mode: JsonMode) -> list[dict[str, str]]:
    system = request.system
    # json_object is refused with 400 when no message holds the word.
    if request.schema is not None and mode is JsonMode.OBJECT and "json" not in f"{system}{request.user}".lower():
        system = f"{system}\n{JSON_INSTRUCTION}"
    return [{"role": "system", "content": system}, {"role": "user", "content": request.user}]


def read_completion(completion: ChatCompletion, requested_model: str, provider: str) -> LlmReply:
    """The first choice of a completion. Raises LlmError when it holds no text."""
    usage = completion.usage or _Usage()
    try:
        return _read(completion, usage, requested_model, f"{provider}:{requested_model}")
    except LlmError as unusable:  # and yet paid for
        unusable.tokens = (usage.prompt_tokens or 0, usage.completion_tokens or 0) if completion.usage else None
        raise


def _read(completion: ChatCompletion, usage: _Usage, requested_model: str, name: str) -> LlmReply:
    if not completion.choices:
        raise UnusableAnswer(f"{name} gave no answer.")
    choice = completion.choices[0]
    reply = LlmReply(
        text=choice.message.content or "",
        usage=TokenUsage(usage.prompt_tokens or 0, usage.completion_tokens or 0),
        model=completion.model or requested_model,
        truncated=choice.finish_reason == "length",
    )
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise UnusableAnswer(f"{name} refused to answer.")
    if not reply.text.strip():
        raise AnswerCut(f"{name} ran out of tokens.") if reply.truncated else UnusableAnswer(f"{name} sent no text.")
    return reply


def _error(failed: CallFailed, name: str) -> LlmError:
    kinds = {FailureReason.TOO_LONG: PromptTooLong, FailureReason.FILTERED: UnusableAnswer}
    wait_s = CHANGE_S if failed.reason in UNTIL_CHANGED else failed.retry_after_s
    error = kinds.get(failed.reason, LlmError)(f"{name} did not answer: {failed}.", retry_after_s=wait_s)
    error.provider_message = failed.message
    if failed.reason in (FailureReason.TIMEOUT, FailureReason.UNREADABLE):
        error.tokens = None
    return error
