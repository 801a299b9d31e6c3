"""How does a bundle look on the wire?"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from service.api import goal_models, shapes
from service.api.conversation_models import TurnResponse, turn_fields
from service.api.goals import shown as shown_goal
from service.api.memory_models import SCOPE_SCHEMA, MemoryResponse, ScopeFields
from service.api.procedure_models import StrategySearchHit
from service.api.profiles import ProfileResponse
from service.api.profiles import shown as shown_profile
from service.api.ranking import TechniqueOut
from service.api.schemas import Channel, Filled, Id, RequestModel, ResponseModel, Unit
from service.api.strategies import fitting as shown_strategy
from service.domain.bundle import PARTS, Bundle, EntityItem, PartName
from service.domain.ranking import Techniques

MAX_QUERY = 20_000
MAX_TOKENS = 200_000
MAX_HOURS = 24 * 366 * 100


class SharesIn(RequestModel):
    """What each part counts where they compete for room; only proportions matter."""

    turns: float = Field(default=0.3, ge=0, le=100, allow_inf_nan=False, description="Of what was said")
    facts: float = Field(default=0.25, ge=0, le=100, allow_inf_nan=False, description="Of memories that are no turns")
    entities: float = Field(default=0.2, ge=0, le=100, allow_inf_nan=False, description="Of what the question names")
    strategies: float = Field(
        default=0.15, ge=0, le=100, allow_inf_nan=False, description="Of what worked in tasks like this"
    )
    recency: float = Field(
        default=0.1, ge=0, le=100, allow_inf_nan=False, description="Of being new, beside the share of its part"
    )

    @model_validator(mode="after")
    def _something_counts(self) -> Self:
        if not any((self.turns, self.facts, self.entities, self.strategies, self.recency)):
            raise ValueError("at least one weight must be above 0")
        return self


class IncludeIn(RequestModel):
    """Parts that are left out are not read."""

    turns: bool = Field(default=True, description="What was said")
    facts: bool = Field(default=True, description="Memories that are no turns")
    entities: bool = Field(default=True, description="What the question names, and the graph around it")
    strategies: bool = Field(default=True, description="What worked in tasks like this")
    goals: bool = Field(default=True, description="Active goals")
    user_context: bool = Field(default=True, description="The profile of the user")


class RecallIn(ScopeFields):
    """A question, whose memory to ask, and how much may come back."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": SCOPE_SCHEMA,
            "examples": [
                {"query": "Where does Alice want to live?", "user_id": "alice"},
                {
                    "query": "What did we decide about the boat?",
                    "user_id": "alice",
                    "max_tokens": 800,
                    "format": "markdown",
                    "include": {"entities": False},
                },
            ],
        }
    )

    query: Filled | None = Field(
        None, min_length=1, max_length=MAX_QUERY, description="The question; `q` is accepted too"
    )
    q: Filled | None = Field(None, min_length=1, max_length=MAX_QUERY, description="The same as query")
    channels: list[Channel] | None = Field(None, max_length=50, description="Looked at beside channel and _global")
    include: IncludeIn = Field(default_factory=lambda: IncludeIn(), description="Parts that are wanted; default all")
    include_episodic: bool = Field(True, description="The same for turns")
    include_semantic: bool = Field(True, description="The same for facts and entities")
    include_procedural: bool = Field(True, description="The same for strategies")
    weights: SharesIn = Field(default_factory=lambda: SharesIn(), description="Which part gets the room")
    top_k: int = Field(100, ge=1, le=500, description="At most so many of each part")
    max_tokens: int = Field(2_000, ge=50, le=MAX_TOKENS, description="Estimated, of the bundle as text")
    per_conversation: int | None = Field(
        None, ge=1, le=500, description="At most so many passages of one conversation, e.g. 3; default no cap"
    )
    around: int = Field(0, ge=0, le=10, description="Turns told before and after each one that answers")
    time_window_hours: float | None = Field(
        None,
        gt=0,
        le=MAX_HOURS,
        allow_inf_nan=False,
        description="Only turns and facts of so many hours back; left out: of all times",
    )
    min_confidence: Unit | None = Field(
        None, description="0..1: leaves out facts of a lower fact_confidence; what has none stays"
    )
    techniques: Techniques | None = Field(None, description="What is done with the question; others keep their setting")
    diversity: Unit | None = Field(
        None, description="0..1: how much a fact loses for repeating one above it; default 0"
    )
    reinforce: bool = Field(True, description="Count facts and entities as used; false for previews")
    format: Literal["json", "markdown"] = Field("json", description="markdown: also as one block to paste in a prompt")

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if (self.query is None) == (self.q is None):
            raise ValueError("query: give the question as query (or as q)")
        return self

    @property
    def parts(self) -> frozenset[PartName]:
        """What is wanted of the bundle: what neither way of saying it leaves out (R7.11)."""
        kinds = {"turns": self.include_episodic, "strategies": self.include_procedural}
        kinds |= dict.fromkeys(("facts", "entities"), self.include_semantic)
        return frozenset(part for part in PARTS if getattr(self.include, part) and kinds.get(part, True))


class BundleTurnOut(TurnResponse):
    """A turn that answers, or stands next to one that does."""

    score: float = Field(description="By this parts compete for room: share times `match`, and its share of recency")
    match: float = Field(description="0..1: how well it answers; 0 with `around`")
    around: bool = Field(description="It does not answer, but stands next to one that does, whose score it has")


class BundleFactOut(MemoryResponse):
    """A memory that answers."""

    score: float = Field(description="By this parts compete for room: share times `match`, and its share of recency")
    match: float = Field(description="Its score as a hit of a search: 0..1, times the factors")
    similarity: float | None = Field(description="The calibrated cosine to the question, 0..1; null without a vector")


class BundleEntityOut(ResponseModel):
    """An entity that the question names."""

    id: Id = Field(description="UUID")
    name: str = Field(description="What it is called")
    type: str = Field(description="Lower-case and singular, such as person or project")
    aliases: list[str] = Field(description="Its other names")
    description: str | None = Field(description="What it is; null: nobody said")
    salience: float = Field(description="0..1, 0.5 unless somebody said otherwise")
    score: float = Field(description="Always 1: the question names it")


class BundleRelationOut(ResponseModel):
    """An edge of the graph around these entities: read it from source to target."""

    source: str = Field(description="Name of the entity that it begins at")
    relation: str = Field(description="The type as it was given, such as works_at")
    target: str = Field(description="Name of the entity that it leads to")
    strength: float = Field(description="0..1")


class PartOut(ResponseModel):
    """What one part took and gave."""

    found: int = Field(description="What could have been told, from 0")
    kept: int = Field(description="What fitted, from 0")
    tokens: int = Field(description="What it takes of the room: bytes of UTF-8 / 4, its heading included")
    ms: float = Field(description="Milliseconds to read it")


class BundleMetricsOut(ResponseModel):
    """What each part took and gave."""

    parts: dict[str, PartOut] = Field(description="By the name of the part; only those that were wanted")
    tokens: int = Field(description="Of the whole bundle as text, estimated: bytes of UTF-8 / 4")
    max_tokens: int = Field(description="As it was asked for")
    vector_path: Literal["exact", "signs", "hnsw", "fallback", "none"] = Field(
        description="How the vectors of memories were searched; none without an embedder"
    )
    techniques: dict[str, TechniqueOut] = Field(description="By name; only those that were on")
    ms: float = Field(description="Milliseconds from the request to the answer")


class BundleOut(ResponseModel):
    """What is remembered that helps to answer, each part best first, as much as fits."""

    turns: list[BundleTurnOut] = Field(description="What was said")
    facts: list[BundleFactOut] = Field(description="Memories that are no turns")
    entities: list[BundleEntityOut] = Field(description="What the question names")
    graph: list[BundleRelationOut] = Field(
        description="The strongest relations of these entities, five in each direction, each once"
    )
    strategies: list[StrategySearchHit] = Field(description="What worked in tasks like this")
    goals: list[goal_models.GoalResponse] = Field(description="Active goals of the scope, by priority")
    user_context: ProfileResponse | None = Field(
        description="The profile of the user; null: there is none, or it was not wanted"
    )
    markdown: str | None = Field(None, description="With format=markdown: the same as one block; else null")
    metrics: BundleMetricsOut = Field(description="What each part took and gave")
    warnings: list[str] = Field(description="What was left out, each as `code: sentence`", default_factory=list)


def shown(found: Bundle, asked: RecallIn, *, ms: float, include: frozenset[PartName], now: datetime) -> BundleOut:
    return BundleOut(
        turns=[
            BundleTurnOut(**turn_fields(each.turn), score=each.score, match=each.match, around=each.around)
            for each in found.turns
        ],
        facts=[
            BundleFactOut(**shapes.fields(each.memory), score=each.score, match=each.match, similarity=each.similarity)
            for each in found.facts
        ],
        entities=[_entity(each) for each in found.entities],
        graph=_graph(found.entities),
        strategies=[shown_strategy(each) for each in found.strategies],
        goals=[shown_goal(each, now) for each in found.goals],
        user_context=shown_profile(found.profile) if found.profile else None,
        markdown=found.text if asked.format == "markdown" else None,
        metrics=BundleMetricsOut(
            parts={
                name: PartOut(found=part.found, kept=part.kept, tokens=part.tokens, ms=part.ms)
                for name, part in found.metrics.items()
                if name in include
            },
            tokens=found.tokens,
            max_tokens=asked.max_tokens,
            vector_path=found.vector_path,
            techniques={
                name: TechniqueOut(ms=used.ms, count=used.count, note=used.note)
                for name, used in found.techniques.items()
            },
            ms=ms,
        ),
        warnings=list(found.warnings),
    )


def _entity(found: EntityItem) -> BundleEntityOut:
    known = found.entity
    return BundleEntityOut(
        id=known.id,
        name=known.name,
        type=known.type,
        aliases=list(known.aliases),
        description=known.description,
        salience=known.salience,
        score=found.score,
    )


def _graph(entities: tuple[EntityItem, ...]) -> list[BundleRelationOut]:
    """Each edge once, however many of its ends are told."""
    edges = dict.fromkeys(relation for each in entities for relation in each.relations)
    return [
        BundleRelationOut(source=each.source, relation=each.label, target=each.target, strength=each.strength)
        for each in edges
    ]
