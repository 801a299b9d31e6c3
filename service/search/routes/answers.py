"""How likely results hold an answer: the same fields wherever something is searched."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

MIN_PROBABILITY = "0..1: leaves out what answers with a smaller answer_probability; what has none stays"

HitProbability = Annotated[
    float | None,
    Field(
        description="0..1: how likely it holds the answer; null where it cannot be told: without a query or a vector, "
        "and for a request",
        examples=[0.58],
    ),
]
Answerable = Annotated[
    bool | None,
    Field(
        description="Whether answer_probability is 0.5 or more; null where that is null. Where question and answer "
        "share no word it is too low, so do not refuse to answer because of it: judge the hits",
        examples=[True],
    ),
]
AnswerProbability = Annotated[
    float | None,
    Field(
        description="0..1: how likely what was searched holds the answer at all, shown or not; null without a query or "
        "any vector, and for a request, which asks nothing",
        examples=[0.87],
    ),
]
