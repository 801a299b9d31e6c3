"""Statements about an earlier time than a known memory's, kept as its past versions.

A statement is placed among all versions of the memory it is about, so the order of arrival makes no difference to what
is valid now or was valid before. All its changes are undone together.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from service.domain.decision import Action, Edit, Neighbour
from service.domain.draft import Draft
from service.domain.relation import Relation, RelationType
from service.domain.version import Place, Version, place
from service.graph.statements import edges
from service.memories import writing
from service.memories.statements import history, versions
from service.memories.writing import ChangeContext, MemoryBatch
from service.runtime.transactions import Write

KEPT = "kept_as_history: it is older than what is known, so it was kept as what held before."


async def keep_as_history(write: Write, draft: Draft, edit: Edit) -> tuple[Draft, UUID | None]:
    """Keeps the draft as an earlier version of the target of its edit. Returns it with a warning, and the id of the
    version; None if the target only began earlier than was known. Raises Gone."""
    assert edit.target is not None, "it is older than something"
    version = await _keep(write, draft, edit.target.id, edit.previous)
    if version == edit.target.id:
        return draft, None
    return replace(draft, warnings=(*draft.warnings, KEPT)), version


async def _keep(write: Write, draft: Draft, target: UUID, previous: Neighbour | None) -> UUID:
    """The id of the version, which may be an existing one. `previous`: another memory, which is valid until the draft
    begins."""
    line = await versions.read_line(write.session, target)
    ids = {target, *(version.id for version in line), *([previous.id] if previous else [])}
    if await history.lock(write.session, ids) != ids:
        raise writing.Gone("A memory that it is about no longer exists.")
    given, digest = draft.given, draft.merged.hash if draft.merged else draft.hash
    position = place(line, digest, draft.timestamp, given.t_valid, given.t_invalid)
    context = ChangeContext(write, draft.scope, draft.evidence, uuid7())
    if position.known is not None:
        await _note_repetition(context, position, draft.timestamp)
        return position.known.id
    await _make_room(context, position, target)
    added = await _add(context, draft, position, target)
    if previous is not None and not any(version.id == previous.id for version in line):
        await _end_previous(context, previous.id, position.start, added)
    return added


async def _note_repetition(context: ChangeContext, position: Place, at: datetime) -> None:
    """Notes that an equal version was said at this time, too, and lets it begin then if it began later."""
    known = position.known
    assert known is not None, "the caller has looked"
    if known is position.after and known.t_valid == known.said_at[0]:  # it is valid from when it was first said
        await writing.set_columns(context, known.id, {"t_valid": position.t_valid})
        await _end_before(context, position.before, position.start)
    await versions.note_repetition(context.session, known.id, at)


async def _make_room(context: ChangeContext, position: Place, target: UUID) -> None:
    """Lets the version before end, and the one after begin, where the statement does."""
    before, after = position.before, position.after
    if before is not None and position.is_split:
        await _split(context, before, position.start, target)
        return
    await _end_before(context, before, position.start)
    if after is not None and after.t_valid is None:
        since = writing.holds_since(after.start, after.t_invalid, context.res)
        await writing.set_columns(context, after.id, {"t_valid": since})


async def _end_before(context: ChangeContext, before: Version | None, at: datetime) -> None:
    if before is None or not before.is_past or (before.t_valid is not None and before.t_valid >= at):
        return
    if before.t_invalid is None or before.t_invalid > at:
        await writing.set_columns(context, before.id, {"t_invalid": at})


async def _split(context: ChangeContext, version: Version, at: datetime, target: UUID) -> None:
    """Splits a version that was said before and after: a copy is valid until `at`, the version itself from when it was
    said again."""
    first = [moment for moment in version.said_at if moment <= at]
    again = [moment for moment in version.said_at if moment > at]
    copy, history_id = uuid7(), uuid7()
    kept = await versions.keep(
        context.session,
        version.id,
        copy,
        version_of=target,
        history_id=history_id,
        until=at,
        said_at=first,
        now=context.res.clock(),
    )
    if kept:
        await context.keep_evidence(copy, Action.ADD, history_id)
    said_at = again if len(again) > 1 else None
    await writing.set_columns(context, version.id, {"t_valid": again[0], "said_at": said_at})


async def _add(context: ChangeContext, draft: Draft, position: Place, target: UUID) -> UUID:
    """Adds the statement as a past version, or as a superseded memory under the policy that keeps those."""
    given = replace(draft.given, t_valid=position.t_valid, t_invalid=position.t_invalid)
    new = replace(draft, given=given, options=replace(draft.options, dedup=False)).finish(uuid7())
    is_memory = context.res.settings.memories.contradiction_policy == "supersede"
    batch = MemoryBatch(context.write)
    await writing.add(batch, [new], ruling_id=context.ruling_id, enrich=is_memory)
    await batch.flush()
    if is_memory:
        await _link_neighbours(context, position, new.id)
    else:
        await versions.hide(context.session, new.id, version_of=target)
    return new.id


async def _link_neighbours(context: ChangeContext, position: Place, new_id: UUID) -> None:
    """Adds the edges: the next version supersedes the statement, and the statement the previous one."""
    session, now = context.session, context.res.clock()
    before, supersedes = position.before, RelationType.SUPERSEDES
    after = before if position.is_split else position.after
    if after is not None:
        await edges.put(session, Relation(after.id, supersedes, new_id, t_valid=now))
    if before is not None and before is not after:
        await edges.put(session, Relation(new_id, supersedes, before.id, t_valid=now))
        if after is not None:
            await edges.remove(session, after.id, before.id, supersedes)


async def _end_previous(context: ChangeContext, memory_id: UUID, at: datetime, by: UUID) -> None:
    """Ends another memory, which was valid until the statement began."""
    if context.res.settings.memories.contradiction_policy == "supersede":
        await writing.end_validity(context, memory_id, by, at=at)
    else:
        await writing.retire(context, memory_id, at=at)
