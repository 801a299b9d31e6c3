"""What embedders and language models have in common, and the values that pass through them.

Each has several implementations: the local model, OpenAI-compatible servers, the fakes of the tests. Nothing above
`providers/` knows which one it talks to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.domain.text import CleanText
from service.providers.calibration import IDENTITY

Vector: TypeAlias = NDArray[np.float32]
"""An embedding: float32, length 1 in the L2 norm, `Embedder.dimension` numbers; read-only, because caches share it."""


class Embedder(ABC):
    """Turns texts into vectors. `model` is the id stored with a generation, e.g. "openai:text-embedding-3-small"."""

    model: str
    dimension: int
    calibration = IDENTITY

    @abstractmethod
    async def embed(self, texts: Sequence[CleanText]) -> list[Vector]:
        """One vector per text, in their order. Raises EmbeddingError; all or nothing."""

    @abstractmethod
    async def embed_query(self, text: CleanText) -> Vector:
        """The vector of a search query: models trained on question and passage pairs treat the two differently."""

    def similarity(self, cosine: float) -> float:
        """The calibrated cosine, 0..1, rounded to 4 decimals: 0.98 and 0.70 mean the same with every embedder."""
        return self.calibration.documents(cosine)

    def query_similarity(self, cosine: float) -> float:
        """The calibrated cosine of a query and a stored text, for which some models use another scale."""
        return self.calibration.queries(cosine)

    async def windows(self, text: CleanText) -> tuple[int, bool]:
        """How many windows of the text are read, and whether they cover it; (1, True) in the usual case."""
        return 1, True

    async def close(self) -> None:
        """Ends what it holds: threads, a process, connections."""
        return


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function the model may call; `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """One prompt for a language model.

    `task` (annotate, classify, extract, decide, summarise, ...) picks the model where one is set per task.
    `schema`: the JSON schema of the answer, None for free text. `deadline_s` bounds everything, retries included.
    """

    task: str
    system: str
    user: str
    schema: Mapping[str, object] | None = None
    temperature: float = 0.0
    max_tokens: int = 2_000
    deadline_s: float = 20.0
    tools: tuple[ToolSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one answer, as the provider counts them; 0 where it does not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model's request to call the tool `name` with `arguments`."""

    name: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LlmReply:
    """One answer. `truncated`: the token limit cut it off, so JSON in `text` may end in the middle."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage = TokenUsage()
    model: str = ""
    truncated: bool = False


class Llm(Protocol):
    """Answers prompts. `model` is the id of the default model, e.g. "openai:gpt-6-luna"."""

    @property
    def model(self) -> str: ...

    async def complete(self, request: LlmRequest) -> LlmReply:
        """The model's answer, never empty. Raises LlmError within `request.deadline_s`."""
        ...

    async def close(self) -> None: ...
