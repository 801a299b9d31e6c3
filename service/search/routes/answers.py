"""Fields of search results: the probability that they hold an answer."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MIN_PROBABILITY = "Minimum answer_probability, 0..1; results without one are kept"

HitProbability = Annotated[
    float | None,
    Field(
        description="Probability that it is the answer, 0..1; null without a query or a vector, and for a request",
        examples=[0.58],
    ),
]
Answerable = Annotated[
    bool | None,
    Field(
        description="Whether answer_probability is 0.5 or more; null if that is null. The estimate is too low if "
        "question and answer share no word, so look at the hits before refusing to answer",
        examples=[True],
    ),
]
AnswerProbability = Annotated[
    float | None,
    Field(
        description="Probability that the searched scope contains the answer at all, 0..1; null without a query or "
        "any vector, and for a request, which asks nothing",
        examples=[0.87],
    ),
]
