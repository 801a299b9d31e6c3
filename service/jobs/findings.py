"""What does a text name, what does it tell of that, and what is it in one line? By rules, and as a model read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.domain.entity import NamedEntity, display_name, key, type_name
from service.domain.fact import NamedRelation
from service.language import entities, pii, relations, summary

NOBODY = frozenset({"user", "the user", "assistant", "i", "me", "we", "you"})
"""Who speaks is no entity: the memory's own scope says who that is."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a text says: its entities, each once, what it tells of them, and its first sentence."""

    named: tuple[NamedEntity, ...] = ()
    summary: str | None = None
    related: tuple[NamedRelation, ...] = ()


def find(text: str, known: Mapping[str, NamedEntity]) -> Findings:
    """Entities under the name they are known by, and the summary; None for a text without a sentence."""
    types = {each: named.type for each, named in known.items()}
    named: dict[str, NamedEntity] = {}
    names: dict[str, str] = {}
    spans = entities.find(text, known=types)
    for entity in spans:
        found = known.get(key(entity.name), NamedEntity(entity.name, entity.type))
        named.setdefault(key(found.name), found)
        names[entity.name] = found.name
    related = tuple(
        NamedRelation(names[each.source], each.relation, names[each.target]) for each in relations.find(text, spans)
    )
    return Findings(tuple(named.values()), summary.first_sentence(text) or None, related)


def by_model(payload: Mapping[str, object]) -> Findings:
    """What a model found in the text, its names redacted; speakers, and relations of what it did not name, are left
    out (R8.04)."""
    if "entities" not in payload:
        return Findings()
    clean, _ = pii.redact_json({"entities": payload.get("entities"), "relations": payload.get("relations")})
    assert isinstance(clean, dict)
    named: dict[str, NamedEntity] = {}
    for name, kind in clean["entities"] or ():
        if key(name) not in NOBODY and "[REDACTED" not in name:
            named.setdefault(key(name), NamedEntity(display_name(name), type_name(kind)))
    related = tuple(
        NamedRelation(source, label, target)
        for source, label, target in clean["relations"] or ()
        if key(source) in named and key(target) in named and key(source) != key(target)
    )
    return Findings(tuple(named.values()), None, related)
