"""A model provider in the test process that speaks the OpenAI API over real HTTP and does what it is told.

    with OpenAiServer() as server:                       # or: async with
        server.chat.reply({"facts": ["likes tea"]})      # the next answer; several are given in order
        server.chat.status(429, headers={"Retry-After": "0.1"})
        server.chat.default(lambda request: {...})       # when nothing is scripted
        server.embeddings.place("a text", [1.0, 0.0])    # otherwise a text gets a stable direction of its own
        ...                                              # LLM_BASE_URL=server.base_url
        assert server.chat.requests[0].json["model"] == "gpt-4o-mini"

Paths: anything that ends in /chat/completions or /embeddings, so Azure's deployments too (`server.azure_url`).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from tests.fakes.http_server import Cut, HttpRequest, HttpServer, ScriptedAnswer

Content: TypeAlias = str | Mapping[str, Any] | Sequence[Any]


class ScriptedPath:
    """What one path answers: the scripted answers in order, then the default. `requests` holds all that came."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []
        self._queue: deque[ScriptedAnswer] = deque()

    @property
    def bodies(self) -> list[Any]:
        return [request.json for request in self.requests]

    def answer(self, request: HttpRequest) -> ScriptedAnswer:
        self.requests.append(request)
        return self._queue.popleft() if self._queue else self.unscripted(request)

    def unscripted(self, request: HttpRequest) -> ScriptedAnswer:
        return failure(400, message="nothing is scripted")

    def add(self, answer: ScriptedAnswer) -> None:
        self._queue.append(answer)

    def forget(self) -> None:
        """What was scripted and not asked for."""
        self._queue.clear()

    def status(
        self,
        status: int,
        *,
        headers: Mapping[str, str] | None = None,
        code: str | None = None,
        param: str | None = None,
        times: int = 1,
    ) -> None:
        """The provider refuses, `times` times."""
        for _ in range(times):
            self.add(failure(status, headers=headers, code=code, param=param))

    def raw(self, body: bytes, *, status: int = 200, delay_s: float = 0.0) -> None:
        """Any bytes at all."""
        self.add(ScriptedAnswer(status, body, delay_s=delay_s))

    def drop(self) -> None:
        """The connection ends without an answer."""
        self.add(ScriptedAnswer(cut=Cut.BEFORE_ANSWER))

    def cut_short(self) -> None:
        """The connection ends in the middle of the body."""
        self.add(ScriptedAnswer(body=b'{"choices": [], "data": []}', cut=Cut.IN_BODY))

    def hang(self, delay_s: float = 30.0) -> None:
        """The answer comes after `delay_s`, which should be too late."""
        self.add(ScriptedAnswer(delay_s=delay_s))


class ChatScript(ScriptedPath):
    """/chat/completions."""

    def __init__(self) -> None:
        super().__init__()
        self._default: Callable[[HttpRequest], Content | ScriptedAnswer] | None = None

    def reply(self, content: Content, *, delay_s: float = 0.0, **changes: Any) -> None:
        """The model says `content`; anything but a string is written as JSON. `changes`: see `completion`."""
        self.add(ScriptedAnswer(body=completion(content, **changes), delay_s=delay_s))

    def call_tool(self, name: str, arguments: Content, **changes: Any) -> None:
        self.add(ScriptedAnswer(body=completion(None, tool=(name, arguments), **changes)))

    def default(self, answer: Callable[[HttpRequest], Content | ScriptedAnswer] | Content) -> None:
        """What the model says when nothing is scripted: always the same, or a function of the request."""
        self._default = answer if callable(answer) else lambda _: answer

    def unscripted(self, request: HttpRequest) -> ScriptedAnswer:
        if self._default is None:
            return super().unscripted(request)
        found = self._default(request)
        if isinstance(found, ScriptedAnswer):
            return found
        return ScriptedAnswer(body=completion(found, model=request.json["model"]))


class EmbeddingScript(ScriptedPath):
    """/embeddings: stable directions, or the ones a test places. `dimension` where the request names none."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension
        self._placed: dict[str, Sequence[float]] = {}

    @property
    def texts(self) -> list[str]:
        """Every text that was to be embedded, in order."""
        return [text for body in self.bodies for text in body["input"]]

    def place(self, text: str, vector: Sequence[float]) -> None:
        self._placed[text] = vector

    def vectors(self, vectors: Sequence[Sequence[float]], *, indices: Sequence[int | None] | None = None) -> None:
        """The next answer holds exactly these."""
        self.add(ScriptedAnswer(body=embeddings(vectors, indices=indices)))

    def unscripted(self, request: HttpRequest) -> ScriptedAnswer:
        body = request.json
        dimension = body.get("dimensions", self.dimension)
        found = [self._placed.get(text) or direction(text, dimension) for text in body["input"]]
        return ScriptedAnswer(body=embeddings(found, packed=body.get("encoding_format") == "base64"))


class OpenAiServer(HttpServer):
    """See the module. `dimension`: length of the vectors unless a request asks for another."""

    def __init__(self, dimension: int = 8) -> None:
        super().__init__(self._route)
        self.chat = ChatScript()
        self.embeddings = EmbeddingScript(dimension)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def azure_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[HttpRequest]:
        return [*self.chat.requests, *self.embeddings.requests]

    def _route(self, request: HttpRequest) -> ScriptedAnswer:
        if request.path.endswith("/chat/completions"):
            return self.chat.answer(request)
        if request.path.endswith("/embeddings"):
            return self.embeddings.answer(request)
        return failure(404, message="no such path")


def completion(
    content: Content | None,
    *,
    tool: tuple[str, Content] | None = None,
    finish_reason: str = "stop",
    usage: Mapping[str, int] | None = None,
    model: str = "scripted",
    **message: Any,
) -> bytes:
    """The body of a chat completion."""
    says: dict[str, Any] = {"role": "assistant", "content": _text(content), **message}
    if tool is not None:
        function = {"name": tool[0], "arguments": _text(tool[1])}
        says["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    counted = usage or {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    choice = {"index": 0, "message": says, "finish_reason": finish_reason}
    whole = {"id": "c", "object": "chat.completion", "model": model, "choices": [choice], "usage": counted}
    return json.dumps(whole).encode()


def says(text: str | None, **changes: Any) -> ScriptedAnswer:
    """An answer with a chat completion. `changes`: see `completion`."""
    return ScriptedAnswer(body=completion(text, **changes))


def _text(content: Content | None) -> str | None:
    return content if content is None or isinstance(content, str) else json.dumps(content)


def embeddings(
    vectors: Sequence[Sequence[float]], *, indices: Sequence[int | None] | None = None, packed: bool = False
) -> bytes:
    """The body of an embeddings answer; `packed`: base64 of little-endian float32."""
    order = range(len(vectors)) if indices is None else indices
    data = [
        {"object": "embedding", "index": index, "embedding": _pack(vector) if packed else list(vector)}
        for index, vector in zip(order, vectors, strict=True)
    ]
    return json.dumps({"object": "list", "data": data, "model": "scripted", "usage": {"prompt_tokens": 3}}).encode()


def _pack(vector: Sequence[float]) -> str:
    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def direction(text: str, dimension: int) -> list[float]:
    """A stable direction for a text, not of length 1: providers that shorten vectors do not normalise them."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return [float(number) for number in np.random.default_rng(seed).standard_normal(dimension)]


def failure(
    status: int,
    *,
    headers: Mapping[str, str] | None = None,
    code: str | None = None,
    param: str | None = None,
    message: str = "scripted failure",
) -> ScriptedAnswer:
    """The error body of the wire."""
    error = {"message": message, "type": "scripted", "code": code, "param": param}
    return ScriptedAnswer(status, json.dumps({"error": error}).encode(), headers or {})
