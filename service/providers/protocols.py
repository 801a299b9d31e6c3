"""What does the service ask of an embedder and of a language model?

Two shapes, each with several implementations: the local model, the OpenAI wire, the fakes of the tests. Nothing
above `providers/` knows which one it talks to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.domain.text import CleanText

Vector: TypeAlias = NDArray[np.float32]
"""An embedding: float32, length 1 in the L2 norm, `Embedder.dimension` numbers; read-only, because caches share it."""


class Embedder(Protocol):
    """Turns texts into vectors. `model` is the id stored with a generation, e.g. "openai:text-embedding-3-small"."""

    @property
    def model(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        """One vector per text, in their order. Raises EmbeddingError; all or nothing."""
        ...

    async def embed_query(self, text: CleanText) -> Vector:
        """The vector of a search query: models trained on question and passage pairs treat the two differently."""
        ...

    def similarity(self, cosine: float) -> float:
        """The calibrated cosine, 0..1, rounded to 4 decimals: 0.98 and 0.70 mean the same with every embedder (B8)."""
        ...

    def query_similarity(self, cosine: float) -> float:
        """The same for the cosine of a question and a stored text, which lies on another scale with some models."""
        ...

    async def windows(self, text: CleanText) -> tuple[int, bool]:
        """How many windows of the text are read, and whether they cover it; (1, True) in the usual case."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Tool:
    """A function the model may call; `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Ask:
    """One question to a language model.

    `task` (annotate, classify, extract, decide, summarise, ...) picks the model where one is set per task (C28).
    `schema`: the JSON schema of the answer, None for free text. `deadline_s` bounds everything, retries included.
    """

    task: str
    system: str
    user: str
    schema: Mapping[str, object] | None = None
    temperature: float = 0.0
    max_tokens: int = 2_000
    deadline_s: float = 20.0
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer, as the provider counts them; 0 where it does not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model wants `name` called with `arguments`."""

    name: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. `truncated`: the model ran out of tokens, so JSON in `text` may end in the middle."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    truncated: bool = False


class Llm(Protocol):
    """Answers questions. `model` is the id of the default model, e.g. "openai:gpt-4o-mini"."""

    @property
    def model(self) -> str: ...

    async def complete(self, ask: Ask) -> Reply:
        """The model's answer, never empty. Raises LlmError within `ask.deadline_s`."""
        ...

    async def close(self) -> None: ...
