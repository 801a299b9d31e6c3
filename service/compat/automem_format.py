"""Translates AutoMem's requests into this service's, and memories into AutoMem's form; pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, get_args

from service.compat.adapter_routes import present
from service.domain.errors import InvalidInput
from service.domain.filters import uuid_or_none
from service.domain.job import WORKSPACE_JOBS, JobName
from service.domain.memory import Hit, Memory
from service.domain.relation import AUTHORABLE, ConnectedMemoryItem
from service.http.schemas import TypeName, iso
from service.language import tags
from service.memories.routes.memory_models import memory_fields

TYPES: Final[Mapping[str, str]] = {name.lower(): name for name in get_args(TypeName)}
SYSTEM_FIELDS_OF_PATCH: Final = ("timestamp", "updated_at", "last_accessed")
SYSTEM_FIELDS_OF_STORE: Final = ("updated_at", "last_accessed")
SORTS: Final = ("score", "time_desc", "time_asc", "updated_desc", "updated_asc")

MODES: Final[Mapping[str, tuple[JobName, ...]]] = {
    "decay": ("relevance", "decay"),
    "creative": ("patterns",),
    "cluster": ("promote",),
    "forget": ("forget",),
    "full": tuple(WORKSPACE_JOBS),
}
"""The jobs for each mode of a consolidation."""

NOT_OFFERED: Final[Mapping[str, str]] = {
    "graph": "The graph is read one memory at a time: GET /v1/memories/{id}/related and /v1/entities.",
    "viewer": "There is no viewer.",
    "stream": "Events in AutoMem's format are not available.",
    "documents": "Files are not stored; store their text instead.",
    "enrichment/reprocess": "A memory is enriched again when its content changes: PATCH it.",
}
"""Messages by the beginning of the path."""

# -- requests ----------------------------------------------------------------------------------------------------------


def store_body(sent: Mapping[str, Any], dimension: int) -> tuple[dict[str, Any], list[str]]:
    """The body of POST /v1/memories for a memory of AutoMem, and warnings; raises InvalidInput. Every text is kept,
    even if a similar one exists, as AutoMem does."""
    if not isinstance(sent.get("content"), str) or not sent["content"].strip():
        raise InvalidInput("content: is missing.", field="content")
    body = present(sent, "content", "tags", "metadata", "timestamp", "t_valid", "t_invalid", *SYSTEM_FIELDS_OF_STORE)
    body |= {"dedup": False, **_numbers(sent), **_type(sent)}
    if any(name in body for name in SYSTEM_FIELDS_OF_STORE):
        body["allow_system_fields"] = True
    warnings = []
    if sent.get("id") is not None:
        if uuid_or_none(str(sent["id"])) is not None:
            body["id"] = sent["id"]
        else:
            warnings.append("id: is not a UUID; the memory has been given one.")
    if isinstance(vector := sent.get("embedding"), list) and vector:
        if len(vector) == dimension:
            body["embedding"] = vector
        else:
            warnings.append(f"embedding: must contain exactly {dimension} values; the service has computed its own.")
    return body, warnings


def patch_body(sent: Mapping[str, Any]) -> dict[str, Any]:
    """The body of PATCH /v1/memories/{id}; raises InvalidInput. An empty time removes it."""
    body = present(sent, "content", "tags", "metadata", *SYSTEM_FIELDS_OF_PATCH)
    body |= {**_numbers(sent), **_type(sent)}
    body |= {name: sent[name] or None for name in ("t_valid", "t_invalid") if name in sent}
    if any(name in body for name in SYSTEM_FIELDS_OF_PATCH):
        body["allow_system_fields"] = True
    return body


def _numbers(sent: Mapping[str, Any]) -> dict[str, float]:
    names = {"importance": "importance", "confidence": "type_confidence"}
    given = {name: sent[name] for name in names if sent.get(name) is not None}
    return {names[name]: unit(value, name) for name, value in given.items()}


def unit(given: object, field: str) -> float:
    """A number 0..1, also in a string; raises InvalidInput."""
    try:
        number = float(str(given)) if not isinstance(given, bool) else -1.0
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise InvalidInput(f"{field}: must be a number between 0 and 1.", field=field)
    return number


def _type(sent: Mapping[str, Any]) -> dict[str, str]:
    if not sent.get("type"):
        return {}
    type_name = TYPES.get(str(sent["type"]).strip().lower())
    if type_name is None:
        known = ", ".join(TYPES.values())
        raise InvalidInput(f"type: must be one of {known}.", field="type")
    return {"type": type_name}


def relation_type(given: object) -> str:
    """RELATES_TO by default; raises InvalidInput for a type that clients may not create."""
    kind = str(given or "RELATES_TO").strip().upper()
    if kind not in AUTHORABLE:
        raise InvalidInput(f"type: must be one of {', '.join(sorted(AUTHORABLE))}.", field="type")
    return kind


def words(given: Sequence[str]) -> list[str]:
    """The values of a parameter that may be repeated and comma-separated."""
    return [part.strip() for word in given for part in word.split(",") if part.strip()]


def tags_in(given: Sequence[str]) -> list[str]:
    return list(tags.normalise(words(given)))


def flag(given: str | None) -> bool:
    return given is not None and given.strip().lower() in ("1", "true", "yes", "on")


# -- answers -----------------------------------------------------------------------------------------------------------


def memory_item(memory: Memory) -> dict[str, Any]:
    """A memory as AutoMem shows it."""
    fields = memory_fields(memory)
    return {
        "id": str(memory.id),
        "content": memory.text,
        "summary": memory.summary,
        "type": fields["type"],
        "confidence": fields["type_confidence"],
        "importance": memory.importance.value,
        "tags": list(memory.tags),
        "tag_prefixes": list(memory.tag_prefixes),
        "metadata": dict(memory.metadata),
        "entities": fields["entities"],
        "timestamp": iso(memory.timestamp),
        "updated_at": iso(memory.updated_at),
        "last_accessed": _iso(memory.last_accessed),
        "t_valid": iso(memory.t_valid or memory.timestamp),
        "t_invalid": _iso(memory.t_invalid),
        "relevance_score": memory.relevance,
        "archived": memory.archived,
        "enriched": memory.enriched_at is not None,
        "processed": memory.enriched_at is not None,
    }


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)


COMPONENTS: Final[Mapping[str, str]] = {
    "vector": "text_vector",
    "keyword": "context_lexical",
    "tag": "tag",
    "importance": "importance",
    "relation": "goal",
}
"""For each part of AutoMem's score, the nearest signal here."""


def hit_item(hit: Hit, match_type: str, relations: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """A hit of a recall; its score components come from the ranking here."""
    terms = {name: round(term.value, 4) for name, term in hit.terms.items() if term.weight > 0}
    parts = {name: terms.get(signal, 0.0) for name, signal in COMPONENTS.items()}
    if hit.similarity is not None:
        parts["vector"] = hit.similarity
    parts["importance"] = hit.memory.importance.value
    score = min(hit.score, 1.0)
    return {
        "id": str(hit.memory.id),
        "match_type": match_type,
        "match_score": score,
        "score": score,
        "original_score": hit.score,
        "final_score": score,
        "score_components": {**parts, **terms},
        "source": "graph" if match_type == "relation" else "qdrant",
        "relations": list(relations),
        "memory": memory_item(hit.whole),
    }


def relation_item(end: ConnectedMemoryItem) -> dict[str, Any]:
    """A relation of a hit, with the memory at its other end."""
    memory = {"id": str(end.id), "content": end.memory}
    return {"type": str(end.type), "strength": end.strength, "memory": memory}


def analysis(memories: Sequence[Memory]) -> dict[str, Any]:
    """Counts over the memories, without patterns and preferences."""
    types: dict[str, list[float]] = defaultdict(list)
    hours: dict[str, list[float]] = defaultdict(list)
    names: Counter[str] = Counter()
    for memory in memories:
        types[str(memory.kind.type)].append(memory.kind.confidence)
        hours[f"hour_{memory.timestamp.hour:02d}"].append(memory.importance.value)
        names.update(name.lower() for among in memory.entities.values() for name in among)
    sure = [each.kind.confidence for each in memories]
    return {
        "memory_types": {
            name: {"count": len(each), "average_confidence": _mean(each)}
            for name, each in sorted(types.items(), key=lambda pair: -len(pair[1]))
        },
        "patterns": [],
        "preferences": [],
        "temporal_insights": {
            hour: {"count": len(each), "avg_importance": _mean(each)} for hour, each in sorted(hours.items())
        },
        "entity_frequency": dict(names.most_common(50)),
        "confidence_distribution": {
            "low": sum(each < 0.4 for each in sure),
            "medium": sum(0.4 <= each < 0.7 for each in sure),
            "high": sum(each >= 0.7 for each in sure),
        },
    }


def _mean(numbers: Sequence[float]) -> float:
    return round(sum(numbers) / len(numbers), 3)
