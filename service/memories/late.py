"""Statements about an earlier time than a known memory's, kept as its past versions.

A statement is placed among all versions of the memory it is about, so the order of arrival makes no difference to what
is valid now or was valid before. All its changes are undone together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from service.domain.decision import Action, Edit, Evidence, Neighbour
from service.domain.draft import Draft
from service.domain.relation import Relation, RelationType
from service.domain.scope import Scope
from service.domain.version import Place, Version, place
from service.graph.statements import edges
from service.memories import write
from service.memories.statements import decisions, history, memories, updates, versions
from service.memories.statements.decisions import NewDecision
from service.postgres import direct
from service.postgres.engine import Session
from service.queue import queue
from service.runtime.resources import Resources

KEPT = "kept_as_history: it is older than what is known, so it was kept as what held before."


@dataclass(frozen=True, slots=True)
class LateNews:
    """The context that all changes because of one statement share."""

    session: Session
    scope: Scope
    evidence: Evidence | None
    ruling_id: UUID
    res: Resources


async def keep_as_history(session: Session, draft: Draft, edit: Edit, res: Resources) -> tuple[Draft, UUID | None]:
    """Keeps the draft as an earlier version of the target of its edit. Returns it with a warning, and the id of the
    version; None if the target only began earlier than was known. Raises Gone."""
    target = edit.target
    assert target is not None, "it is older than something"
    version = await keep(session, draft, target.id, res, previous=edit.previous)
    if version == target.id:
        return draft, None
    return replace(draft, warnings=(*draft.warnings, KEPT)), version


async def keep(
    session: Session, draft: Draft, target: UUID, res: Resources, *, previous: Neighbour | None = None
) -> UUID:
    """Keeps the draft as an earlier version of `target`; returns the id of the version, which may be an existing one.
    `previous`: another memory, which is valid until the draft begins. Raises Gone."""
    line = await versions.line(session, draft.scope.workspace_id, target)
    ids = {target, *(each.id for each in line), *([previous.id] if previous else [])}
    if await history.lock(session, draft.scope.workspace_id, ids) != ids:
        raise write.Gone("A memory that it is about is gone.")
    given, digest = draft.given, draft.merged.hash if draft.merged else draft.hash
    here = place(line, digest, draft.timestamp, given.t_valid, given.t_invalid)
    news = LateNews(session, draft.scope, draft.evidence, uuid7(), res)
    if here.known is not None:
        await _say_again(news, here, draft.timestamp)
        return here.known.id
    await _make_room(news, here, target)
    added = await _add(news, draft, here, target)
    if previous is not None and not any(each.id == previous.id for each in line):
        await _end(news, previous.id, here.start, added)
    return added


async def _say_again(news: LateNews, here: Place, at: datetime) -> None:
    """Notes that an equal version was said at this time, too, and lets it begin then if it began later."""
    known, workspace_id = here.known, news.scope.workspace_id
    assert known is not None, "the caller has looked"
    if known is here.after and known.t_valid == known.said_at[0]:  # it is valid from when it was first said
        await _set(news, known, {"t_valid": here.t_valid})
        await _cut(news, here.before, here.start)
    await versions.say_again(news.session, workspace_id, known.id, at)


async def _make_room(news: LateNews, here: Place, target: UUID) -> None:
    """Lets the version before end, and the one after begin, where the statement does."""
    before, after = here.before, here.after
    if before is not None and here.is_split:
        await _split(news, before, here.start, target)
        return
    await _cut(news, before, here.start)
    if after is not None and after.t_valid is None:
        await _set(news, after, {"t_valid": write.holds_since(after.start, after.t_invalid, news.res)})


async def _cut(news: LateNews, before: Version | None, at: datetime) -> None:
    if before is None or not before.is_past or (before.t_valid is not None and before.t_valid >= at):
        return
    if before.t_invalid is None or before.t_invalid > at:
        await _set(news, before, {"t_invalid": at})


async def _split(news: LateNews, version: Version, at: datetime, target: UUID) -> None:
    """Splits a version that was said before and after: a copy is valid until `at`, the version itself from when it was
    said again."""
    first = [moment for moment in version.said_at if moment <= at]
    again = [moment for moment in version.said_at if moment > at]
    copy, history_id, workspace_id = uuid7(), uuid7(), news.scope.workspace_id
    kept = await versions.keep(
        news.session,
        workspace_id,
        version.id,
        copy,
        version_of=target,
        until=at,
        history_id=history_id,
        now=news.res.clock(),
        said_at=first,
    )
    if kept:
        await _record_decision(news, copy, history_id)
    said_at = again if len(again) > 1 else None
    await _set(news, version, {"t_valid": again[0], "said_at": said_at})


async def _set(news: LateNews, version: Version, values: Mapping[str, Any]) -> None:
    """Sets columns of a version, with an entry in its history and in the decision."""
    workspace_id, res = news.scope.workspace_id, news.res
    was = await history.snapshot(news.session, workspace_id, version.id, generation=res.generation)
    if was is None:
        raise write.Gone("A version of the memory is gone.")
    await updates.set_columns(news.session, workspace_id, version.id, values, now=res.clock())
    text, why, ruling_id = version.text, news.evidence, news.ruling_id
    await write.record(news.session, news.scope, version.id, text, text, was, evidence=why, ruling_id=ruling_id)


async def _add(news: LateNews, draft: Draft, here: Place, target: UUID) -> UUID:
    """Adds the statement as a past version, or as a superseded memory under the policy that keeps those."""
    session, res, workspace_id = news.session, news.res, news.scope.workspace_id
    given = replace(draft.given, t_valid=here.t_valid, t_invalid=here.t_invalid)
    new = replace(draft, given=given, options=replace(draft.options, dedup=False)).finish(uuid7())
    is_memory = res.settings.memories.contradiction_policy == "supersede"
    await direct.insert(
        session,
        *memories.new_rows([new], generation=res.generation, now=res.clock()),
        queue.new_rows(workspace_id, write.jobs_of(new, new.id, enrich=is_memory)),
    )
    if new.draft.given.id is not None:
        added = history.Change(new.id, Action.ADD, new.draft.scope, None, new.text, id=new.history_id)
        await history.append(session, workspace_id, [added])
    await _record_decision(news, new.id, new.history_id)
    if is_memory:
        await _tie(news, here, new.id)
    else:
        await versions.hide(session, workspace_id, new.id, version_of=target)
    return new.id


async def _record_decision(news: LateNews, memory_id: UUID, history_id: UUID) -> None:
    if news.evidence is not None:
        added = NewDecision(memory_id, news.evidence, news.scope, Action.ADD, history_id, news.ruling_id)
        await decisions.append(news.session, news.scope.workspace_id, [added])


async def _tie(news: LateNews, here: Place, new_id: UUID) -> None:
    """Adds the edges: the next version supersedes the statement, and the statement the previous one."""
    session, workspace_id, now = news.session, news.scope.workspace_id, news.res.clock()
    before, after, supersedes = here.before, here.before if here.is_split else here.after, RelationType.SUPERSEDES
    if after is not None:
        await edges.put(session, workspace_id, Relation(after.id, supersedes, new_id, t_valid=now))
    if before is not None and before is not after:
        await edges.put(session, workspace_id, Relation(new_id, supersedes, before.id, t_valid=now))
        if after is not None:
            await edges.remove(session, workspace_id, after.id, before.id, supersedes)


async def _end(news: LateNews, memory_id: UUID, at: datetime, by: UUID) -> None:
    """Ends another memory, which was valid until the statement began."""
    session, scope, evidence, res = news.session, news.scope, news.evidence, news.res
    if res.settings.memories.contradiction_policy == "supersede":
        await write.supersede(session, scope, memory_id, by, evidence, res, at=at, ruling_id=news.ruling_id)
    else:
        await write.retire(session, scope, memory_id, evidence, res, at=at, ruling_id=news.ruling_id)
