"""Every rule that reads a caller's text, by name, as a function of the text: what the hostile corpus is put to."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from service.domain.fact import Fact
from service.domain.text import CleanText
from service.language import (
    context,
    entities,
    importance,
    kinds,
    lexemes,
    relations,
    sentences,
    tags,
    temporal,
    withdrawal,
)
from service.language.forgetting import forget_matching, forget_query, forget_requests
from service.language.forgetting.forget_matching import ForgetText
from service.language.talk import Utterance
from service.providers import json_reply
from service.redaction import detection
from service.search import query_parsing
from service.understanding import compare, extract, grounding
from service.understanding.sourcing import SourceTurns

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
ZONE = ZoneInfo("UTC")
USUAL = CleanText("I moved to Lisbon last March because my sister Anna works there.")

Entry = Callable[[str], Any]


def _split(text: str, count: int) -> list[str]:
    size = max(1, len(text) // count)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _one_message(text: str) -> object:
    return extract.by_rules(SourceTurns([Utterance("user", CleanText(text))]))


def _many_messages(text: str) -> object:
    return extract.by_rules(SourceTurns([Utterance("user", CleanText(part)) for part in _split(text, 200)]))


def _dialogue(text: str) -> object:
    roles = ("user", "assistant")
    parts = enumerate(_split(text, 40))
    return extract.by_rules(SourceTurns([Utterance(roles[at % 2], CleanText(part), said_at=NOW) for at, part in parts]))


def _named(text: str) -> object:
    names = ("Anna", "Ben")
    parts = enumerate(_split(text, 40))
    return extract.by_rules(SourceTurns([Utterance("user", CleanText(part), names[at % 2]) for at, part in parts]))


def _grounded(text: str) -> object:
    sources = SourceTurns([Utterance("user", CleanText(text)), Utterance("user", USUAL)])
    return grounding.ground(
        [Fact(text=USUAL, confidence=0.9, message=0), Fact(text=CleanText("User likes tea in May."), confidence=0.9)],
        sources,
    )


def _claims_more(text: str) -> object:
    return grounding.claims_more(text, SourceTurns([Utterance("user", USUAL)]))


def _entities(text: str) -> object:
    return relations.find_relations(text, entities.find(text))


def _times(text: str) -> object:
    found = temporal.find(text, NOW, ZONE)
    return (
        temporal.tag(text, found, NOW),
        temporal.find_held(text, found, NOW),
        temporal.validity(text, found, NOW, ZONE),
    )


def _matched(text: str) -> object:
    texts = [ForgetText(1, text), ForgetText(2, USUAL)]
    query = forget_query.parse("everything about my sister Anna", forget_matching.find_names(texts))
    return forget_matching.match(query, texts)


def _forgotten(text: str) -> object:
    found = forget_requests.choose_likely(text, forget_requests.find_possible(text))
    return forget_requests.blank_out(text, [(each.start, each.end) for each in found])


def _compared(text: str) -> object:
    return [
        compare.relate(one, other, near)
        for one, other in ((text, USUAL), (USUAL, text), (text, text + " I left."))
        for near in (0.95, 0.8, 0.4)
    ]


def _withdrawn(text: str) -> object:
    middle = text[len(text) // 4 : len(text) // 2]
    spans = sentences.split(text)[::2]
    return (
        withdrawal.locate(middle, text),
        withdrawal.still_said(middle, text),
        withdrawal.hide(text, withdrawal.subtract(spans, spans[::3])),
    )


@cache
def _tokenizer() -> Any:
    from service.providers import model_files
    from service.providers.local import Encoder

    return Encoder(model_files.load(None))


ENTRIES: dict[str, Entry] = {
    "talk, one message": _one_message,
    "talk, 200 messages": _many_messages,
    "talk, dialogue": _dialogue,
    "talk, two people": _named,
    "model's facts": _grounded,
    "a model's fact": _claims_more,
    "detection.redact": detection.redact,
    "detection.redact_json": lambda text: detection.redact_json({"note": text, text[:500]: [text[:100]] * 3}),
    "temporal.find": _times,
    "temporal.window": lambda text: temporal.window(text, NOW, ZONE),
    "entities and relations": _entities,
    "importance": lambda text: importance.rate(text, None),
    "kinds": lambda text: (kinds.classify(text), kinds.guess(text)),
    "categories": kinds.name_categories,
    "advice": importance.advise,
    "sentences": sentences.split,
    "query": lambda text: query_parsing.parse(text, NOW, ZONE, ["Anna Smith", "Ben"], "anna.smith@example.com"),
    "claims and comparison": _compared,
    "request to forget": _forgotten,
    "query to forget": forget_query.parse,
    "texts to forget": _matched,
    "withdrawn sentences": _withdrawn,
    "term weights": lexemes.weights,
    "context": lambda text: (context.question_share(text), context.first_person(text), context.end_of(text)),
    "summary": sentences.first_sentence,
    "tags": lambda text: tags.prefixes(tags.normalise(text)),
    "relation label": relations.normalise_label,
    "model's answer": lambda text: json_reply.parse_reply(text),
    "windows of the embedder": lambda text: _tokenizer().cut(text),
}
