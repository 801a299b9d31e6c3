"""What ranks a hit: the fields of a body, the same as query parameters, and the metrics of the techniques used."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import Field

from service.api.schemas import Id, RequestModel, ResponseModel, Unit
from service.domain.query import SearchResult
from service.domain.ranking import Factors, Fusion, Ranking, Techniques, Weights, over


class RankingFields(RequestModel):
    """What ranks, for this request; what it leaves out is the workspace's."""

    fusion: Fusion | None = Field(
        None,
        description="Sum signals by value (weighted, zscore) or by rank (rrf); default weighted",
    )
    weights: Weights | None = Field(
        None, description="What each signal counts; the others keep theirs", examples=[{"text_vector": 2.0}]
    )
    factors: Factors | None = Field(
        None, description="What the sum is multiplied by; the others keep theirs", examples=[{"importance": 0.2}]
    )
    techniques: Techniques | None = Field(
        None,
        description="What is done with the query; the others keep theirs",
        examples=[{"query_expansion": True}],
    )
    diversity: Unit | None = Field(None, description="0..1: how much a hit loses for repeating one above it; default 0")
    rerank: bool | None = Field(None, description="Let the reranker, if there is one, look at the first hits")
    reinforce: bool = Field(True, description="Count the hits as used; false for previews")
    explain: bool = Field(False, description="Show with each hit the terms that its score is made of")
    explain_id: Id | None = Field(
        None, description="UUID of a memory: the answer says in `why` if it was found or why not"
    )

    def ranking(self, base: Ranking) -> Ranking:
        """The workspace's ranking with what the request says."""
        return replace(
            base,
            fusion=self.fusion or base.fusion,
            weights=over(base.weights, self.weights),
            factors=over(base.factors, self.factors),
            techniques=over(base.techniques, self.techniques),
            diversity=base.diversity if self.diversity is None else self.diversity,
            rerank=base.rerank if self.rerank is None else self.rerank,
        )


class TechniqueMetrics(ResponseModel):
    """A technique that was on: what it took, how many candidates, texts or filters it gave, and how."""

    ms: float = Field(description="Milliseconds it took", examples=[3.4])
    count: int = Field(description="Candidates, texts or filters it gave, from 0", examples=[40])
    note: str | None = Field(
        None, description="By rules or by a model, or why it was left out; null: neither", examples=["by rules"]
    )


class SearchMetrics(ResponseModel):
    """What a search was made of."""

    techniques: dict[str, TechniqueMetrics] = Field(description="By name; only those that were on")


def metrics(found: SearchResult) -> SearchMetrics:
    """What each technique took and gave."""
    uses = found.techniques.items()
    return SearchMetrics(
        techniques={name: TechniqueMetrics(ms=use.ms, count=use.count, note=use.note) for name, use in uses}
    )


def _switch(name: str) -> Any:
    return Query(description=f"Technique: {Techniques.model_fields[name].description}; default the workspace's")


Switch = bool | None


async def parameters(
    fusion: Annotated[
        Fusion | None,
        Query(description="Sum signals by value (weighted, zscore) or by rank (rrf); default weighted"),
    ] = None,
    hybrid: Annotated[Switch, _switch("hybrid")] = None,
    entity_centric: Annotated[Switch, _switch("entity_centric")] = None,
    query_expansion: Annotated[Switch, _switch("query_expansion")] = None,
    hyde: Annotated[Switch, _switch("hyde")] = None,
    requests: Annotated[Switch, _switch("requests")] = None,
    self_query: Annotated[Switch, _switch("self_query")] = None,
    diversity: Annotated[
        float | None, Query(ge=0, le=1, description="How much a hit loses for repeating one above it; default 0")
    ] = None,
    rerank: Annotated[Switch, Query(description="Let the reranker, if there is one, look at the first hits")] = None,
    reinforce: Annotated[bool, Query(description="Count the hits as used; false for previews")] = True,
    explain: Annotated[bool, Query(description="Show with each hit the terms that its score is made of")] = False,
    explain_id: Annotated[
        Id | None, Query(description="UUID of a memory: the answer says in `why` if it was found or why not")
    ] = None,
) -> dict[str, Any]:
    switches = {
        "hybrid": hybrid,
        "entity_centric": entity_centric,
        "query_expansion": query_expansion,
        "hyde": hyde,
        "requests": requests,
        "self_query": self_query,
    }
    switched = {name: value for name, value in switches.items() if value is not None}
    given = {
        "fusion": fusion,
        "techniques": switched or None,
        "diversity": diversity,
        "rerank": rerank,
        "explain_id": explain_id,
    }
    fixed = {"reinforce": reinforce, "explain": explain}
    return {name: value for name, value in given.items() if value is not None} | fixed


RankingParameters = Annotated[dict[str, Any], Depends(parameters)]
