"""Plans a request to forget, before anything is removed.

Identifiers, names and words are compared with every text of the scope (language/forgetting). If no text has all the
words, sentences are compared by meaning, and one matches only if it is clearly nearer than all others. Where the query
says whose thing it is, or a message names somebody, meaning finds near misses only. Matching content is removed
everywhere: in turns, where other memories repeat it, and in the assistant's next reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from service.conversations.statements import withdrawn
from service.domain.draft import Draft
from service.domain.errors import EmbeddingError
from service.domain.scope import Extent
from service.domain.text import CleanText
from service.erasure import forget_texts
from service.erasure.forget_texts import ALIKE, ChosenParts, ForgetTexts, Key, MemoryKey
from service.erasure.statements import targets
from service.erasure.statements.targets import SpokenText, StoredText
from service.erasure.values import ForgetPlan, ForgetTarget, ForgottenSentenceItem, Matched
from service.language import withdrawal
from service.language.forgetting import forget_matching, forget_query
from service.language.forgetting.forget_matching import NEAR_MISSES, Matches
from service.language.forgetting.forget_query import ForgetQuery
from service.language.forgetting.request_head import Sort
from service.language.talk import speech_acts
from service.memories.statements import near_memories
from service.postgres import scopes
from service.postgres.engine import Session
from service.runtime.resources import Resources

CLEAR_SIMILARITY = 0.55
"""Calibrated similarity of a query and a sentence from which the sentence may match."""

CLEAR_LEAD = 0.1
"""The lead that the nearest must have over any other memory: of 26 queries with the answer among three texts, 14 had
it, all correctly; for the others the candidates are listed."""

COMPARED_PARTS = 40
"""The most sentences that are embedded for one request."""

NEAR = "is close in meaning"
NOTHING_SAID = "No stored text has the identifier, the name or all words of the query."
NOT_CLEAR = "No memory has all words of the query, and none is clearly nearer to it than the others."
SEVERAL = "Several memories match, and none is clearly nearer than the others."
EXPLANATIONS: dict[Matched, str] = {
    "ids": "The memories with these ids, and the sentences that they rest on.",
    "identifier": "Everything that has the identifier, whole and in any of its forms.",
    "name": "Everything that names it as a whole word and has the other words of the query, if there are any.",
    "words": "Everything that contains all words of the query.",
    "meaning": "No memory contains all words of the query; this one is clearly the closest in meaning.",
}
_ASKS_FOR_NAME = re.compile(r"\b(?:name|nombre|nom|nome|naam)\b", re.IGNORECASE)


async def by_query(
    wanted: Extent,
    raw: str,
    query: CleanText,
    res: Resources,
    *,
    with_deleted: bool = False,
    sort: Sort | None = None,
) -> ForgetPlan:
    """The plan for a query. `raw`: the query as sent, compared first; `query`: redacted, as the texts were.
    `with_deleted`: also deleted memories, as far as their history has them. `sort`: the kind of request in a message,
    which means one memory unless it says "everything"."""
    async with res.db.snapshot(wanted.scope.workspace_id) as session:
        texts = await forget_texts.read(session, wanted, with_deleted=with_deleted)
    for asked in dict.fromkeys((raw, str(query))):
        parsed, matches, spoken = await res.rules.run(_match, asked, texts)
        if matches.meant or spoken.meant:
            break
    chosen = await res.rules.run(_in_words, parsed, matches, spoken, texts)
    cosines = await _cosines(wanted, query, res)
    like = {key: reason for key, reason in matches.meant.items() if key not in chosen.parts} | matches.near
    by_words = [(key, reason, cosines.get(key[0])) for key, reason in like.items() if isinstance(key, tuple)]
    by_meaning = [((one, 0), NEAR, score) for one, score in cosines.items() if score >= CLEAR_SIMILARITY]
    near = _near(texts, [*by_words, *by_meaning])
    matched: Matched = "identifier" if parsed.identifiers else "name" if parsed.names else "words"
    guess = sort not in (None, "everything") and (matched == "words" or sort == "statement")
    if chosen.parts and guess:
        chosen, open_ = await _one_of(chosen, parsed, query, sort, texts, res, wanted)
        if open_:
            return ForgetPlan("nothing", SEVERAL, near=_near(texts, [(key, NEAR, score) for key, _, score in open_]))
    if parsed.is_own and matched == "words" and sort not in (None, "statement"):  # it does not say which home
        chosen = forget_texts.with_current(chosen, texts)
    chosen = await res.rules.run(forget_texts.with_occasions, chosen, texts)
    if all(texts.by_assistant(key) for key in chosen.parts):  # the user said it in other words
        if not chosen.parts and (parsed.identifiers or not parsed.terms):
            return ForgetPlan("nothing", NOTHING_SAID, near=near)
        candidates = [(key, 0) for key in cosines if (key, 0) in texts.memories]
        if parsed.has_owner or (parsed.names and sort is not None):
            candidates = []
        elif parsed.names:
            candidates = [key for key in candidates if key in matches.near]
        scored = await _score(parsed, query, candidates, texts, res, wanted)
        first = _standing_out(scored, texts)
        if not first and not chosen.parts:
            explanation = NOT_CLEAR if scored else NOTHING_SAID
            return ForgetPlan(
                "nothing", explanation, near=_near(texts, [(key, NEAR, score) for key, _, score in scored]) or near
            )
        matched = "meaning" if first else matched
        for key, index, similarity in first:
            reason = f"nearest by meaning: similarity {similarity:.2f}"
            chosen.add(key, forget_matching.with_dependents(texts.parts[key], {index}), reason)
    named = parsed if _ASKS_FOR_NAME.search(query) else None
    plan = _build_plan(matched, await res.rules.run(forget_texts.spread, chosen, texts, named), texts)
    removed = {target.id for target in plan.memories}
    async with res.db.snapshot(wanted.scope.workspace_id) as session:
        plan = await _with_sources(session, wanted, plan)
    return replace(plan, near=tuple(target for target in near if target.id not in removed))


async def by_ids(wanted: Extent, ids: Sequence[UUID], res: Resources) -> ForgetPlan:
    """The plan for memories of the scope with these ids."""
    async with res.db.snapshot(wanted.scope.workspace_id) as session:
        texts = {text.id: text for text in await targets.by_ids(session, wanted, ids)}
        chosen = [
            ForgetTarget(text.id, text.text, "given by its id", text.version)
            for text in (texts[one] for one in dict.fromkeys(ids) if one in texts)
        ]
        chosen += _past_versions(texts.values(), {target.id for target in chosen})
        if not chosen:
            return ForgetPlan("nothing", "No memory of this scope has one of these ids.")
        return await _with_sources(session, wanted, ForgetPlan("ids", EXPLANATIONS["ids"], tuple(chosen)))


async def last_said(wanted: Extent, request: Draft, res: Resources) -> ForgetPlan:
    """The plan for the last message in which the user stated something in the conversation of a request ("OK" does
    not), with its memories."""
    async with res.db.snapshot(wanted.scope.workspace_id) as session:
        texts = await forget_texts.read(
            session, replace(wanted, session_id=request.given.session_id), with_deleted=False
        )
    if request.given.session_id is None:
        return ForgetPlan("nothing", NOTHING_SAID)
    turns = [text for text in texts.turns.values() if text.role == "user"]
    chosen = ChosenParts()
    if turns:
        telling = [
            turn
            for turn in turns
            if not speech_acts.is_fragment(turn.text)
            or speech_acts.is_worth_keeping(turn.text, answers_something=False)
        ]
        last = max(telling or turns, key=lambda each: each.turn_index)
        chosen.add(last.id, set(range(len(texts.parts[last.id]))), "was said last")
    plan = _build_plan("words", await res.rules.run(forget_texts.spread, chosen, texts), texts)
    async with res.db.snapshot(wanted.scope.workspace_id) as session:
        return await _with_sources(session, wanted, plan)


# -- reading and comparing -------------------------------------------------------------------------------------------


def _match(asked: str, texts: ForgetTexts) -> tuple[ForgetQuery, Matches[Key], Matches[Key]]:
    memories, turns = texts.joined(texts.memories), texts.joined(texts.turns)
    parsed = forget_query.parse(asked, forget_matching.find_names([*memories, *turns]))
    return parsed, forget_matching.match(parsed, memories), forget_matching.match(parsed, turns)


def _in_words(parsed: ForgetQuery, by_words: Matches[Key], spoken: Matches[Key], texts: ForgetTexts) -> ChosenParts:
    """The parts that match by their words."""
    chosen = ChosenParts()
    for matches in (by_words, spoken):
        for key, reason in matches.meant.items():
            parts = texts.parts[key]
            places = forget_matching.meant_parts(parsed, parts)
            if own := {place for place in places if not forget_matching.is_about_another(parsed, parts[place].text)}:
                chosen.add(key, forget_matching.with_dependents(parts, own), reason)
    return chosen


async def _cosines(wanted: Extent, query: CleanText, res: Resources) -> dict[UUID, float]:
    """The memories nearest to the query with their calibrated similarity, nearest first; none if the embedder fails."""
    scope = wanted.scope
    vector = await res.embed_query_now(scope.workspace_id, query)
    if vector is None:
        return {}
    where, rows = scopes.deletable("v", scope, wanted.channel), scopes.deletable("m", scope, wanted.channel)
    most, generation = 2 * NEAR_MISSES, res.generation
    async with res.db.snapshot(scope.workspace_id) as session:
        near = await near_memories.find_nearest(session, where, rows, vector, generation=generation, limit=most)
    return {key: res.embedder.query_similarity(cosine) for key, cosine in near}


Scored = tuple[MemoryKey, int, float]
"""A part of a memory and its similarity to the query."""


async def _score(
    parsed: ForgetQuery,
    query: CleanText,
    keys: Sequence[MemoryKey],
    texts: ForgetTexts,
    res: Resources,
    wanted: Extent,
) -> list[Scored]:
    """The own sentences of these memories by their similarity to the query, nearest first; 0 if the embedder fails."""
    units = [
        (key, index, part)
        for key in keys
        for index, part in enumerate(texts.parts[key])
        if not part.is_context and not forget_matching.is_about_another(parsed, part.text)
    ][:COMPARED_PARTS]
    if not units:
        return []
    try:
        asked = await res.embedder.embed_query(wanted.scope.workspace_id, query)
        vectors = await res.embedder.embed(wanted.scope.workspace_id, [CleanText(part.text) for _, _, part in units])
    except EmbeddingError:
        return [(key, index, 0.0) for key, index, _ in units]
    scores = [res.embedder.query_similarity(float(asked @ vector)) for vector in vectors]
    scored = [(key, index, score) for (key, index, _), score in zip(units, scores, strict=True)]
    return sorted(scored, key=lambda each: -each[2])


def _standing_out(scored: Sequence[Scored], texts: ForgetTexts, first: Scored | None = None) -> list[Scored]:
    """The nearest sentence, if it stands out from all other memories (or the given `first`), with equally near
    sentences of the assistant; none if it would be a guess."""
    own = [item for item in scored if not texts.by_assistant(item[0])] or list(scored)
    if not own or (first is None and own[0][2] < CLEAR_SIMILARITY):
        return []
    others = [item for item in own if texts.memory_of(item[0]) != texts.memory_of(own[0][0])]
    if first is None and others and own[0][2] - others[0][2] < CLEAR_LEAD:
        return []
    first = first or own[0]
    said_back = [item for item in scored if texts.by_assistant(item[0]) and first[2] - item[2] < CLEAR_LEAD]
    return [first, *(item for item in said_back if item[0] != first[0])]


async def _one_of(
    chosen: ChosenParts,
    parsed: ForgetQuery,
    query: CleanText,
    sort: Sort | None,
    texts: ForgetTexts,
    res: Resources,
    wanted: Extent,
) -> tuple[ChosenParts, list[Scored]]:
    """The one memory that is clearly nearest among those that match by words; if there is none, the candidates as
    second value."""
    keys = [key for key in chosen.parts if isinstance(key, tuple)]
    if sort != "statement" and len({texts.memory_of(key) for key in keys}) <= 1:
        return chosen, []
    scored = await _score(parsed, query, keys, texts, res, wanted)
    first = None
    if sort == "statement":
        shares = {(key, index): forget_texts.share(query, texts.parts[key][index].text) for key, index, _ in scored}
        best = max((*shares.values(), ALIKE))
        alike = [each for each in scored if shares[each[0], each[1]] == best]
        first = next((each for each in alike if not texts.by_assistant(each[0])), None)
    clear = _standing_out(scored, texts, first)
    one = ChosenParts()
    for key, index, _ in clear:
        one.add(key, forget_matching.with_dependents(texts.parts[key], {index}), chosen.reasons[key])
    for key in set(keys) - one.parts.keys():
        if any(texts.memory_of(key) == texts.memory_of(each) for each, _, _ in clear):
            one.add(key, chosen.parts[key], chosen.reasons[key])
    return one, [] if clear or sort == "statement" else scored


# -- the plan --------------------------------------------------------------------------------------------------------


def _build_plan(matched: Matched, chosen: ChosenParts, texts: ForgetTexts) -> ForgetPlan:
    meant: dict[UUID, ForgetTarget] = {}
    sentences = []
    for key, places in chosen.parts.items():
        reason = chosen.reasons[key]
        if isinstance(key, tuple):
            text = texts.memories[key]
            left = forget_matching.cut_parts(text.text, places) if text.version and text.version_of is None else ""
            known = meant.get(text.id)
            if known is None or (known.remaining and not left):
                meant[text.id] = ForgetTarget(text.id, text.text, reason, text.version, left)
            continue
        turn = texts.turns[key]
        for part in (texts.parts[key][index] for index in sorted(places)):
            sentences.append(_sentence(turn, part.start, part.end, reason))
    removed = {target.id for target in meant.values() if not target.remaining}
    for target in _past_versions(texts.memories.values(), removed):
        meant.setdefault(target.id, target)
    return ForgetPlan(matched, EXPLANATIONS[matched], tuple(meant.values()), tuple(sentences))


def _sentence(
    turn: SpokenText, start: int, end: int, reason: str, memory_id: UUID | None = None
) -> ForgottenSentenceItem:
    return ForgottenSentenceItem(
        turn_id=turn.id,
        conversation_id=turn.conversation_id,
        turn_index=turn.turn_index,
        start=start,
        end=end,
        text=turn.text[start:end],
        reason=reason,
        memory_id=memory_id,
    )


def _past_versions(texts: Iterable[StoredText], meant: set[UUID]) -> list[ForgetTarget]:
    """The past versions of the matching memories."""
    return [
        ForgetTarget(text.id, text.text, f"is a past version of memory {text.version_of}", text.version)
        for text in texts
        if text.version_of in meant and text.id not in meant
    ]


def _near(texts: ForgetTexts, scored: Iterable[tuple[MemoryKey, str, float | None]]) -> tuple[ForgetTarget, ...]:
    """The memories as near misses, each once, with what they say now."""
    near: dict[UUID, ForgetTarget] = {}
    for key, reason, score in scored:
        if key in texts.memories:
            text = texts.memories.get((texts.memory_of(key), 0), texts.memories[key])
            near.setdefault(text.id, ForgetTarget(text.id, text.text, reason, text.version, probability=score))
    return tuple(near.values())[:NEAR_MISSES]


async def _with_sources(session: Session, wanted: Extent, plan: ForgetPlan) -> ForgetPlan:
    """The plan with the sentences of completely removed memories that no other live memory needs."""
    ids = [target.id for target in plan.memories if not target.remaining]
    spans = await targets.spans(session, ids)
    by_span = {(sentence.turn_id, sentence.start, sentence.end): sentence for sentence in plan.sentences}
    turns = await targets.turns_by_id(session, {span.turn_id for span in spans})
    kept = await withdrawn.read_kept(session, list(turns), besides=ids)
    for memory_span in spans:
        turn = turns[memory_span.turn_id]
        for start, end in withdrawal.subtract([memory_span.span], kept.get(memory_span.turn_id, [])):
            reason = f"memory {memory_span.memory_id} rests on it"
            if not any(one[0] == turn.id and one[1] <= start and end <= one[2] for one in by_span):
                by_span[turn.id, start, end] = _sentence(turn, start, end, reason, memory_span.memory_id)
    ordered = sorted(by_span.values(), key=lambda each: (str(each.conversation_id), each.turn_index, each.start))
    return replace(plan, sentences=tuple(ordered))
