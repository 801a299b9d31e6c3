"""By what is a hit's place decided, and what may a caller say about it?

Every part has a default here, another one in the deployment's settings, in the workspace's, and in the request; the
later one wins, field by field. `docs/retrieval.md` says what each was measured to give.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Fusion = Literal["weighted", "zscore", "rrf"]
"""How signals become comparable before they are summed: by the best and worst candidate, by deviation, by rank."""

Weight = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Weights(_Part):
    """What each signal counts; only their proportions matter.

    Chosen on LoCoMo's dev conversations, where halving or doubling any one of them moves recall@10 by less than 0.02.
    `rare` costs a little MRR there and is kept for ids and odd names, which it puts first although their vector is far
    away. `time_alone` and `entity_alone` take the place of `time` and `entity` when the question asks for nothing
    else, `rare_alone` that of `rare` when at most three texts (or one in fifty) have a word of the question: then even
    one that tells of the past (0.7) passes the nearest vector that tells of now (1.2). No labelled set has measured
    `tag` and `goal`; without an active goal the latter takes no part.
    """

    text_lexical: Weight = Field(default=0.2, description="Words in common (BM25) with the memory's text")
    context_lexical: Weight = Field(default=0.8, description="The same with the turn and the two before it")
    text_vector: Weight = Field(default=1.0, description="Nearness of meaning (cosine) to the text")
    context_vector: Weight = Field(default=1.0, description="The same to the turn with its speaker and the turn before")
    speaker: Weight = Field(default=0.5, description="Said by the role asked for; 0.6 of it: by the one named")
    telling: Weight = Field(default=0.5, description="Tells rather than asks")
    oneself: Weight = Field(default=0.5, description="Speaks of its speaker, where one is named")
    time: Weight = Field(default=1.0, description="Near the time asked for")
    time_alone: Weight = Field(default=4.0, description="The same when nothing but a time is asked for")
    dated: Weight = Field(default=0.5, description="Names a time, where the question asks when")
    rare: Weight = Field(default=2.0, description="Holds a rare name or id of the question")
    rare_alone: Weight = Field(
        default=4.0, description="The same, or any odd word, when hardly a text has a word of it"
    )
    tag: Weight = Field(default=1.0, description="Has a wanted tag")
    entity: Weight = Field(default=0.3, description="Names an entity of the question")
    entity_alone: Weight = Field(default=4.0, description="The same when nothing but an entity is asked for")
    goal: Weight = Field(default=0.3, description="Belongs to an active goal of the scope, or is near to one")
    coverage: Share = Field(
        default=0.6, description="Share of what the question's words could score at which words in common count fully"
    )


class Factors(_Part):
    """What the sum is multiplied by. A strength of 0 is off; at 1 a factor reaches from 0 to 2, around 1."""

    importance: Share = Field(default=0.0, description="Strength of importance times relevance")
    recency: Share = Field(default=0.0, description="Strength of age: half the lift after recency_half_life_days")
    salience: Share = Field(default=0.0, description="Strength of salience, which grows with use")
    temporal_tag: bool = Field(default=True, description="1.2 for what is current, 0.7 for what is past")
    validity: bool = Field(default=True, description="expired_factor (0.7) for what is over")


class Techniques(_Part):
    """What is done with a question beside embedding it. The model ones fall back to rules, or are left out."""

    hybrid: bool = Field(default=True, description="Search by words, too (BM25, rare names); off: by meaning alone")
    entity_centric: bool = Field(default=True, description="Lift memories that name whom and what the question names")
    query_expansion: bool = Field(default=False, description="Search for the question rewritten as a statement, too")
    hyde: bool = Field(default=False, description="Search for an answer that the language model imagines, too")
    requests: bool = Field(
        default=True, description="In 'Book me a flight', look at what is wished for, not at its being a wish"
    )
    self_query: bool = Field(default=False, description="Take times, types and tags in the question as filters")


@dataclass(frozen=True, slots=True)
class Ranking:
    """All of it, as one search uses it. `diversity` 0..1: how much a hit loses for repeating one above it.
    `rerank`: a second model looks at the first hits. `half_life_days`: of recency."""

    fusion: Fusion = "weighted"
    weights: Weights = field(default_factory=Weights)
    factors: Factors = field(default_factory=Factors)
    techniques: Techniques = field(default_factory=Techniques)
    diversity: float = 0.0
    rerank: bool = False
    half_life_days: float = 30.0
    expired_factor: float = 0.7


Part = TypeVar("Part", bound=_Part)


def over(base: Part, given: Part | None) -> Part:
    """Returns `base` with what `given` says explicitly."""
    if given is None:
        return base
    return base.model_copy(update={name: getattr(given, name) for name in given.model_fields_set})
