"""Options of the ranking: weights of signals, factors, techniques, and others that a caller may set.

Defaults are here; the settings override techniques, and the request overrides all of it, field by field.
docs/ranking.md says what each was measured to give.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

Fusion = Literal["weighted", "rrf"]
"""How signals are normalised before they are summed: by the best and worst candidate, or by rank."""

Weight = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]
Multiplier = Annotated[float, Field(ge=0.01, le=10, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


# Chosen on LoCoMo's dev conversations, where halving or doubling any one of them moves recall@10 by less than 0.02.
# `rare` costs a little MRR there and is kept for ids and unusual names: with all words of the query it outweighs both
# vectors, however far away they are. `text_lexical` is off: along with `context_lexical`, which is equal for a memory
# that is not a turn, it lowered MRR on every set. `rare_alone` applies when at most three texts (or one in fifty)
# contain a word of the query: then even a text about the past (factor 0.7) passes the nearest vector about the present
# (1.2).
# No labelled set has measured `tag` and `goal`.
class Weights(_Part):
    """Weights of the signals; only their proportions matter.

    The defaults were chosen on labelled conversations.
    """

    text_lexical: Weight = Field(default=0.0, description="BM25 score of the memory's text")
    context_lexical: Weight = Field(
        default=0.9, description="BM25 score of a turn together with the two before it; for other memories, of the text"
    )
    text_vector: Weight = Field(default=0.9, description="Cosine similarity to the text")
    context_vector: Weight = Field(
        default=0.9, description="Cosine similarity to the turn with its speaker and the question of the turn before"
    )
    speaker: Weight = Field(default=0.5, description="Said by the role asked for; 0.6 of it if said by a named speaker")
    declarative: Weight = Field(default=0.5, description="States something rather than asks")
    first_person: Weight = Field(default=0.5, description="In the first person, if the query names a speaker")
    time: Weight = Field(default=1.0, description="Close to the time asked for")
    time_alone: Weight = Field(default=4.0, description="Replaces time if nothing but a time is asked for")
    dated: Weight = Field(default=0.5, description="Mentions a time, if the query asks when")
    rare: Weight = Field(default=1.5, description="Contains a rare name or id of the query")
    rare_alone: Weight = Field(
        default=4.0, description="Replaces rare, for any rare word, if hardly any text has a word of the query"
    )
    tag: Weight = Field(default=1.0, description="Has a wanted tag")
    entity: Weight = Field(default=0.3, description="Names an entity of the query")
    entity_alone: Weight = Field(default=4.0, description="Replaces entity if nothing but an entity is asked for")
    goal: Weight = Field(default=0.3, description="Linked to an active goal of the scope, or similar to one")
    coverage: Share = Field(
        default=0.6, description="Share of the highest possible BM25 score from which the lexical signals count fully"
    )


class Factors(_Part):
    """Factors that multiply the sum. A strength of 0 is off; at 1 a factor ranges from 0 to 2, with 1 as neutral. The
    others are off at 1."""

    importance: Share = Field(default=0.0, description="Strength of importance times relevance")
    recency: Share = Field(default=0.0, description="Strength of age: half the lift after 30 days")
    salience: Share = Field(default=0.0, description="Strength of salience, which grows with use")
    current_factor: Multiplier = Field(default=1.0, description="Factor for a memory tagged current")
    past_factor: Multiplier = Field(default=1.0, description="Factor for a memory tagged past")
    expired_factor: Multiplier = Field(default=0.7, description="Factor for a memory that is no longer valid")

    @property
    def tells_tags(self) -> bool:
        """Whether temporal tags matter."""
        return self.current_factor != 1 or self.past_factor != 1


class RecallWeights(_Part):
    """Weights of the parts that compete for the token budget; only proportions matter."""

    turns: Weight = Field(default=0.3, description="Share of turns")
    facts: Weight = Field(default=0.25, description="Share of memories that are not turns")
    entities: Weight = Field(default=0.2, description="Share of entities that the query names")
    strategies: Weight = Field(default=0.15, description="Share of strategies that worked in similar tasks")
    recency: Weight = Field(default=0.1, description="Share of recency, added to the share of the part")

    @model_validator(mode="after")
    def _something_counts(self) -> Self:
        if not any((self.turns, self.facts, self.entities, self.strategies, self.recency)):
            raise ValueError("at least one weight must be above 0")
        return self


class Techniques(_Part):
    """Techniques applied to a query. Those that need a language model fall back to rules, or are left out."""

    hybrid: bool = Field(default=True, description="Search by words too (BM25, rare names); off: by vectors only")
    entity_centric: bool = Field(default=True, description="Rank memories higher that name the entities of the query")
    query_expansion: bool = Field(default=False, description="Search also for the query rewritten as a statement")
    hyde: bool = Field(default=False, description="Search also for an answer that the language model makes up")
    self_query: bool = Field(default=False, description="Use times, types and tags in the query as filters")


@dataclass(frozen=True, slots=True)
class Ranking:
    """Everything that decides the ranking of one search. `diversity`: 0..1, how much a hit loses for repeating one
    above it. `rerank`: whether a second model reorders the first hits; None: if there is one."""

    fusion: Fusion = "weighted"
    weights: Weights = field(default_factory=Weights)
    factors: Factors = field(default_factory=Factors)
    techniques: Techniques = field(default_factory=Techniques)
    diversity: float = 0.0
    rerank: bool | None = None


HALF_LIFE_DAYS = 30.0
"""Age after which recency counts half."""

Part = TypeVar("Part", bound=_Part)


def over(base: Part, given: Part | None) -> Part:
    """Returns `base` with the fields that `given` sets explicitly."""
    if given is None:
        return base
    return base.model_copy(update={name: getattr(given, name) for name in given.model_fields_set})
