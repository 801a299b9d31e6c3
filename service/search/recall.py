"""Recall: reads the turns, facts, entities, strategies, goals and the profile that matter for a query, as one bundle.

The query is parsed and embedded holding no connection. Then all parts are read in one snapshot. Turns and facts come
from one search; a turn that a memory keeps as it was said has the place of that memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from service.cognition import procedures
from service.cognition.statements import goals, profiles
from service.cognition.values import Goal, ProfileResponse, StrategyMatch
from service.domain.conversation import SourcePassage, Turn, TurnPlace
from service.domain.memory import Hit
from service.domain.moments import Stopwatch
from service.domain.query import SearchResult, is_probable
from service.graph.entity_scope import EntityScope
from service.graph.statements import entities
from service.language.talk.quotes import ASSISTANT_ROLES
from service.memories.statements import sources
from service.postgres.engine import Session, use_custom_plans
from service.providers.protocols import Vector
from service.runtime.resources import Resources
from service.search import preparation, search, techniques
from service.search.preparation import PreparedText
from service.search.query_parsing import name_phrases
from service.search.recall_bundle import Message, RecallResults, bundle, plain
from service.search.statements import recall_context
from service.search.values import Bundle, EntityItem, PartName, RecallQuery

ANSWERS: frozenset[PartName] = frozenset({"turns", "facts", "entities"})
"""The parts that answer the question; the others do not depend on it."""

MAX_ENTITIES = 20
MAX_GOALS = 20
MAX_STRATEGIES = 5
MIN_STRATEGY_SIMILARITY = 0.5
"""Calibrated similarity from which a strategy is about the task."""

SHORT_HITS, SHORT_CHARS = 10, 700
"""What is found is shown however improbable an answer, if the first hits together are no longer than this: of short
facts asked for in other words the probability knows nothing (an AUC of .54 to .60 on 28 profiles)."""

MIN_HITS = 50
"""Minimum number of hits that are read: facts and turns come from one search."""


async def recall(query: RecallQuery, res: Resources) -> Bundle:
    """Returns the bundle, within `query.max_tokens`. Without an embedder only words, names and times count, and a
    warning says so."""
    limit = max(MIN_HITS, query.limit)
    # the hits that are left out later may still tell what became of others
    every_hit = replace(query, limit=limit, min_probability=0.0, turns="turns" in query.include)
    narrowed, used = await techniques.with_self_query(every_hit, res)
    prepared = await preparation.prepare(narrowed, res, used)
    task_vector = await _task_vector(query, prepared.text, res)
    names = (*name_phrases(query.text), *prepared.text.parsed.speakers)
    watch = Stopwatch()
    async with res.db.snapshot(query.scope.workspace_id, steady_plans=query.as_of is None) as session:
        with watch.measure("facts"):
            result = await search.rerank_and_shape(prepared, await search.read_results(session, prepared, res), res)
        passages = await sources.passages(
            session, [hit.memory.id for hit in result.hits if hit.memory.turn_index is None]
        )
        await use_custom_plans(session)
        by_turn = _group_by_turn(result.hits, passages)
        best = {place: max((each.hit for each in kept), key=lambda hit: hit.score) for place, kept in by_turn.items()}
        wanted = query if _is_injected(query, result) else replace(query, include=query.include - ANSWERS)
        matches, turns = await _turns(session, wanted, best, res, watch)
        not_shown = await recall_context.hidden_turns(session, [place for place in matches if place not in turns])
        results = RecallResults(
            matches=matches,
            turns=turns,
            facts=_facts(wanted, result, not_shown),
            entities=await _entities(session, wanted, names, res, watch),
            strategies=await _strategies(session, query, task_vector, res, watch),
            goals=await _goals(session, query, watch),
            profile=await _profile(session, query, watch),
            answer_probability=result.answer_probability,
            messages={place: kept for place, kept in by_turn.items() if place in turns},
            read_from={passage.memory_id: passage.place for passage in passages},
            later=later_of([hit for hit in result.hits if hit.memory.source == "memory"]),
        )
    return await res.rules.run(bundle, query, results, result, result.warnings, watch.ms, res.clock())


async def _task_vector(query: RecallQuery, text: PreparedText, res: Resources) -> Vector | None:
    """The vector of the whole query text, because names that became conditions are part of a task."""
    vector = text.vectors.searched
    if "strategies" not in query.include or vector is None or text.parsed.embedding_text == query.text:
        return vector
    return await res.embed_query_now(query.scope.workspace_id, query.text)


def _is_injected(query: RecallQuery, result: SearchResult) -> bool:
    """Whether what answers is shown: an answer is probable enough, or what was found is short."""
    chars = sum(len(hit.memory.text) for hit in result.hits[:SHORT_HITS])
    return chars <= SHORT_CHARS or is_probable(result.answer_probability, query.min_answer)


async def _turns(
    session: Session, query: RecallQuery, best: Mapping[TurnPlace, Hit], res: Resources, watch: Stopwatch
) -> tuple[dict[TurnPlace, Hit], Mapping[TurnPlace, Turn]]:
    """The first of the turns that are probable enough, best first, and these with their context windows."""
    if "turns" not in query.include:
        return {}, {}
    probable = [place for place, hit in best.items() if is_probable(hit.answer_probability, query.min_probability)]
    matches = {place: best[place] for place in sorted(probable, key=lambda place: -best[place].score)[: query.limit]}
    with watch.measure("turns"):
        answers = [place for place, hit in matches.items() if hit.memory.role in ASSISTANT_ROLES]
        places = [*matches, *((conversation_id, index - 1) for conversation_id, index in answers)]
        return matches, await recall_context.turn_windows(session, places, query.context_window, now=res.clock())


def _facts(query: RecallQuery, result: SearchResult, rewritten: Collection[TurnPlace]) -> list[Hit]:
    """Memories that are not turns, each text once: a copy promoted to another channel has the same text. `rewritten`:
    turns whose memories have a different text now, so that the turn is not shown."""
    if "facts" not in query.include:
        return []
    by_hash: dict[str, Hit] = {}
    for hit in result.hits:
        memory = hit.memory
        is_fact = memory.turn_index is None or (memory.conversation_id, memory.turn_index) in rewritten
        is_found = memory.source == "memory" and is_probable(hit.answer_probability, query.min_probability)
        if is_fact and is_found:
            by_hash.setdefault(hit.memory.hash, hit)
    return list(by_hash.values())[: query.limit]


async def _entities(
    session: Session, query: RecallQuery, names: Sequence[str], res: Resources, watch: Stopwatch
) -> list[EntityItem]:
    """The entities that the query names, with their strongest relations."""
    if "entities" not in query.include:
        return []
    with watch.measure("entities"):
        seen = EntityScope(query.scope.workspace_id, query.scope)
        known = await entities.by_names(session, seen, names, limit=MAX_ENTITIES) if names else []
        relations = await recall_context.relations(session, [entity.id for entity in known], now=res.clock())
    return [EntityItem(entity, tuple(relations.get(entity.id, ()))) for entity in known[: query.limit]]


async def _strategies(
    session: Session, query: RecallQuery, vector: Vector | None, res: Resources, watch: Stopwatch
) -> list[StrategyMatch]:
    """The strategies that worked in tasks like this one."""
    if "strategies" not in query.include:
        return []
    limit = min(MAX_STRATEGIES, query.limit)
    with watch.measure("strategies"):
        matches = await procedures.rank_nearest(session, query.scope, vector, res, limit=limit, channels=query.channels)
    return [match for match in matches if match.similarity is None or match.similarity >= MIN_STRATEGY_SIMILARITY]


async def _goals(session: Session, query: RecallQuery, watch: Stopwatch) -> list[Goal]:
    if "goals" not in query.include:
        return []
    with watch.measure("goals"):
        return await goals.active(session, query.scope, limit=min(MAX_GOALS, query.limit))


async def _profile(session: Session, query: RecallQuery, watch: Stopwatch) -> ProfileResponse | None:
    if "user_context" not in query.include or query.scope.user_id is None:
        return None
    with watch.measure("user_context"):
        return await profiles.find(session, query.scope.user_id)


# -- memories that keep messages --------------------------------------------------------------------------------------

TOPIC_HITS: Final = 10
"""Hits among which statements about the topic of the first hit are looked for: in a large store nearly every statement
has a later one about something similar."""


def _group_by_turn(hits: Iterable[Hit], passages: Sequence[SourcePassage]) -> dict[TurnPlace, list[Message]]:
    """The memories that keep messages, by their turns. `passages`: of all memories that are not turns themselves."""
    by_memory: dict[UUID, list[SourcePassage]] = {}
    for passage in passages:
        by_memory.setdefault(passage.memory_id, []).append(passage)
    by_turn: dict[TurnPlace, list[Message]] = {}
    for hit in hits:
        memory = hit.memory
        if memory.conversation_id is not None and memory.turn_index is not None:
            by_turn.setdefault((memory.conversation_id, memory.turn_index), []).append(Message(hit, memory.text))
        for passage in by_memory.get(memory.id, ()):
            if (message := _message(hit, passage)) is not None:
                by_turn.setdefault(passage.place, []).append(message)
    return by_turn


def _message(hit: Hit, passage: SourcePassage) -> Message | None:
    """The memory as the message of the passage, where it ends with all of its words."""
    text, quote = hit.memory.text, plain(passage.said)
    first = quote.split(" ")[0]
    at = text.rfind(first) if first else -1
    while at >= 0 and plain(text[at:]) != quote:
        at = text.rfind(first, 0, at)
    if at < 0:
        return None
    before, named, heading = text[:at].rpartition(f"{passage.speaker}: ")
    if not named:  # roles are capitalised there
        before, named, heading = text[:at].rpartition(f"{passage.speaker.capitalize()}: ")
    return Message(hit, f"{heading}{text[at:]}" if named else text[at:], passage.start, before.strip() if named else "")


def later_of(hits: Sequence[Hit]) -> Mapping[UUID, tuple[Hit, Hit]]:
    """Each hit (by id) with the last of the others that replaced it, or may have and is about the same thing, or that
    the same speaker said about it later, one of both being the first hit. The first two hits are about one thing."""
    by_id, first = {hit.memory.id: hit for hit in hits}, [hit.memory.id for hit in hits[:TOPIC_HITS]]
    last_of = {}
    for hit in hits:
        memory, after = hit.memory, [statement.id for statement in hit.later]
        likely = [each for each in memory.may_be_outdated_by if each in after or {memory.id, each} == {*first[:2]}]
        topic = first[:1] if memory.id != first[0] else first
        statements = [by_id[each].memory for each in after if each in topic and memory.id in first]
        related = [each.id for each in statements if (each.role, each.speaker) == (memory.role, memory.speaker)]
        if later := [each for each in (*memory.superseded_by, *likely, *related) if each in by_id]:
            last_of[memory.id] = (hit, by_id[later[0]])
    return last_of
