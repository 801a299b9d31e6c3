"""What each signal of the ranking contributes: the same questions in many configurations, side by side.

    python -m bench.recall PATH [--variants arms,sums,without,with] [--ids FILE] [--captions] [--url URL --key KEY]

PATH: JSON lines as in `bench.load_conversations`, which stores them. Then every question is asked once for each
variant: each arm alone, plain sums, reciprocal ranks and the full search (`arms`, `sums`); the full search without one
of its signals (`without`), and with one of its options (`with`). --ids FILE keeps which memory is which turn, so that a
service that holds the conversations already (--url) is asked again without storing them anew. Prints aggregates, never
texts: recall@k, MRR and nDCG@10 as the mean over the questions that have evidence, by category, and latencies.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import bundle, target
from bench.clients import Client
from bench.load_conversations import CUTS, QueryResult, Turns, ask, load_all, read
from bench.numbers import mean, percentile, table
from bench.target import Service
from service.domain.ranking import Weights

Variant = Mapping[str, Any]
FULL = "full search"
NDCG_CUT = 10
PARAMETERS = frozenset({"coverage"})
"""Of the weights: how a signal is measured, not what it counts."""


def only(**weights: float) -> Variant:
    """A request in which nothing but these signals counts."""
    none = dict.fromkeys(Weights.model_fields.keys() - PARAMETERS, 0.0)
    factors = {"current_factor": 1.0, "past_factor": 1.0, "expired_factor": 1.0}
    return {"weights": {**none, **weights}, "factors": factors}


FOUR = ("text_lexical", "context_lexical", "text_vector", "context_vector")

VARIANTS: Mapping[str, Mapping[str, Variant]] = {
    "arms": {
        "words of the text (BM25)": only(text_lexical=1),
        "words with context (BM25)": only(context_lexical=1),
        "vector of the text": only(text_vector=1),
        "vector with context": only(context_vector=1),
        "entities": only(entity=1, entity_alone=1),
    },
    "sums": {
        "text: words + vector": only(text_lexical=1, text_vector=1),
        "sum of the four arms": only(**dict.fromkeys(FOUR, 1.0)),
        "rrf of the four arms": {**only(**dict.fromkeys(FOUR, 1.0)), "fusion": "rrf"},
        "full signals by rrf": {"fusion": "rrf"},
        FULL: {},
    },
    "without": {
        FULL: {},
        **{
            f"without {name}": {"weights": {name: 0}}
            for name in (*FOUR, "speaker", "declarative", "first_person", "dated")
        },
        "without rare": {"weights": {"rare": 0, "rare_alone": 0}},
        "without time": {"weights": {"time": 0, "time_alone": 0}},
        "without entity": {"weights": {"entity": 0, "entity_alone": 0}},
        "without hybrid": {"techniques": {"hybrid": False}},
        "without entity_centric": {"techniques": {"entity_centric": False}},
        "without validity": {"factors": {"expired_factor": 1.0}},
        "without temporal_tag": {"factors": {"current_factor": 1.0, "past_factor": 1.0}},
    },
    "with": {
        FULL: {},
        "with importance 0.2": {"factors": {"importance": 0.2}},
        "with recency 0.2": {"factors": {"recency": 0.2}},
        "with salience 0.2": {"factors": {"salience": 0.2}},
        "with diversity 0.3": {"diversity": 0.3},
        "with query_expansion": {"techniques": {"query_expansion": True}},
        "with self_query": {"techniques": {"self_query": True}},
    },
}


async def measure(
    service: Service,
    conversations: Sequence[dict[str, Any]],
    questions: Sequence[dict[str, Any]],
    variants: Mapping[str, Variant],
    *,
    captions: bool,
    known: Mapping[str, Turns] | None,
) -> tuple[str, Mapping[str, Turns], dict[str, list[QueryResult]]]:
    """How it was loaded (not at all when it is `known`), which memory is which turn, and how the questions fared."""
    client = Client(service.url, service.key, timeout_s=120)
    loaded = f"{len(conversations)} conversations, stored before."
    if known is None:
        known, loaded = await load_all(service, client, conversations, captions=captions)
        await _ask_all(client, questions, known, {})  # whichever variant comes first would pay for the embeddings
    found = {name: await _ask_all(client, questions, known, variant) for name, variant in variants.items()}
    await client.close()
    return loaded, known, found


async def _ask_all(
    client: Client, questions: Sequence[dict[str, Any]], turns: Mapping[str, Turns], variant: Variant
) -> list[QueryResult]:
    return [await ask(client, each, turns.get(each["conversation_id"], {}), tuning=variant) for each in questions]


def report(found: Mapping[str, Sequence[QueryResult]]) -> str:
    """A table over all questions, then one for each category."""
    categories = sorted({one.category for asked in found.values() for one in asked})
    parts = [_table("all", found, timed=True)]
    for category in categories:
        parts.append(
            _table(
                category, {name: [one for one in asked if one.category == category] for name, asked in found.items()}
            )
        )
    return "\n\n".join(parts)


def _table(title: str, found: Mapping[str, Sequence[QueryResult]], *, timed: bool = False) -> str:
    times = ["p50 ms", "p95 ms", "p99 ms"] if timed else []
    count = len(next(iter(found.values())))
    head = [f"{title} ({count})", *(f"recall@{cut}" for cut in CUTS), "MRR", f"nDCG@{NDCG_CUT}", *times]
    rows = []
    for name, asked in found.items():
        figures = [
            *(mean(one.recall(cut) for one in asked) for cut in CUTS),
            mean(one.reciprocal for one in asked),
            mean(one.ndcg(NDCG_CUT) for one in asked),
        ]
        latencies = [percentile([one.ms for one in asked], share) for share in (0.50, 0.95, 0.99)] if timed else []
        rows.append([name, *(f"{figure:.3f}" for figure in figures), *(f"{ms:.1f}" for ms in latencies)])
    return table(head, rows)


def chosen(words: str) -> dict[str, Variant]:
    """The variants of these groups, or single ones by name; raises SystemExit for an unknown name."""
    found: dict[str, Variant] = {}
    single = {name: variant for group in VARIANTS.values() for name, variant in group.items()}
    for word in (part.strip() for part in words.split(",")):
        if word not in VARIANTS and word not in single:
            raise SystemExit(f"{word!r} is none of {', '.join([*VARIANTS, *single])}")
        found |= VARIANTS.get(word) or {word: single[word]}
    return found


def _kept(ids: Path | None) -> Mapping[str, Turns] | None:
    if ids is None or not ids.exists():
        return None
    kept = json.loads(ids.read_text(encoding="utf-8"))
    return {name: {memory: set(turns) for memory, turns in each.items()} for name, each in kept.items()}


async def _bundles(
    service: Service,
    conversations: Sequence[dict[str, Any]],
    questions: Sequence[dict[str, Any]],
    options: argparse.Namespace,
) -> str:
    client = Client(service.url, service.key, timeout_s=120)
    known = _kept(options.ids)
    if known is None:
        known, _ = await load_all(service, client, conversations, captions=options.captions)
        if options.ids is not None:
            options.ids.write_text(json.dumps(known, default=sorted), encoding="utf-8")
    found = await bundle.measure(client, conversations, questions, known, budget=options.budget)
    await client.close()
    return found


def main(words: Sequence[str] | None = None) -> int:
    parser = target.arguments(__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--variants", default=",".join(VARIANTS), help="groups or single variants, divided by commas")
    parser.add_argument("--ids", type=Path, help="where to keep which memory is which turn")
    parser.add_argument("--bundle", action="store_true", help="instead: is the evidence in a bundle? (bench/bundle.py)")
    parser.add_argument("--budget", type=int, default=2_000, help="tokens of the bundle")
    parser.add_argument("--captions", action="store_true", help="store what a picture shows with the words beside it")
    options = parser.parse_args(words)
    variants = chosen(options.variants)
    conversations, questions = read(options.path)
    judged = [question for question in questions if question["evidence"]]
    if options.bundle:
        with target.chosen(options) as service:
            print(asyncio.run(_bundles(service, conversations, judged, options)))
        return 0
    with target.chosen(options) as service:
        loaded, known, found = asyncio.run(
            measure(service, conversations, judged, variants, captions=options.captions, known=_kept(options.ids))
        )
    if options.ids is not None:
        options.ids.write_text(json.dumps(known, default=sorted), encoding="utf-8")
    print(f"{loaded}\n\n{report(found)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
