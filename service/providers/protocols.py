"""What embedders and language models have in common, the values that pass through them, and the calibration of cosines.

Each has several implementations: the local model, OpenAI-compatible servers, the fakes of the tests. Nothing above
`providers/` knows which one it talks to.

The cosines of two models lie on different scales: for one 0.85 is a paraphrase, for another two unrelated texts.
A `similarity` reads the same everywhere:

    >= 0.98   the same text but for a comma
    >= 0.70   may say the same or the opposite: the curator decides
    >  0.50   about the same subject
    <  0.50   unrelated

It is a monotone piecewise-linear curve, so it never changes an order. Queries have a curve of their own, since a short
question and its answer never score as high as two statements. See docs/decisions/011-similarity.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.domain.text import CleanText

Knot = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Curve:
    """Knots (cosine, similarity), both strictly ascending; outside of them the curve is flat."""

    knots: tuple[Knot, ...]

    def __call__(self, cosine: float) -> float:
        """The similarity, 0..1, rounded to 4 decimals: thresholds compare that rounded number."""
        at = bisect_right(self.knots, (cosine, 1.0))
        if at == 0:
            return round(self.knots[0][1], 4)
        if at == len(self.knots):
            return round(self.knots[-1][1], 4)
        (x0, y0), (x1, y1) = self.knots[at - 1], self.knots[at]
        return round(y0 + (y1 - y0) * (cosine - x0) / (x1 - x0), 4)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The curves from cosine to similarity: `documents` for two stored texts, `queries` for a query and a stored
    text."""

    documents: Curve
    queries: Curve


IDENTITY = Calibration(Curve(((0.0, 0.0), (1.0, 1.0))), Curve(((0.0, 0.0), (1.0, 1.0))))
"""For models without a fitted curve: the cosine, cut off at 0."""


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


def unit(vector: Sequence[float] | np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> Vector:
    """The vector scaled to length 1, as read-only float32. Raises ValueError when it is zero or not finite."""
    wide = np.asarray(vector, dtype=np.float64)
    length = float(np.linalg.norm(wide))
    if not np.isfinite(length) or length < 1e-12:
        raise ValueError("the vector is zero or not finite")
    result: Vector = (wide / length).astype(np.float32)
    result.flags.writeable = False
    return result


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


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens of one answer, as the provider counts them; 0 where it does not say."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class LlmReply:
    """One answer. `truncated`: the token limit cut it off, so JSON in `text` may end in the middle."""

    text: str
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
