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
class BackdatedEdit:
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
    line = await versions.read_line(session, draft.scope.workspace_id, target)
    ids = {target, *(version.id for version in line), *([previous.id] if previous else [])}
    if await history.lock(session, draft.scope.workspace_id, ids) != ids:
        raise write.Gone("A memory that it is about is gone.")
    given, digest = draft.given, draft.merged.hash if draft.merged else draft.hash
    position = place(line, digest, draft.timestamp, given.t_valid, given.t_invalid)
    edit = BackdatedEdit(session, draft.scope, draft.evidence, uuid7(), res)
    if position.known is not None:
        await _note_repetition(edit, position, draft.timestamp)
        return position.known.id
    await _make_room(edit, position, target)
    added = await _add(edit, draft, position, target)
    if previous is not None and not any(version.id == previous.id for version in line):
        await _end(edit, previous.id, position.start, added)
    return added


async def _note_repetition(edit: BackdatedEdit, position: Place, at: datetime) -> None:
    """Notes that an equal version was said at this time, too, and lets it begin then if it began later."""
    known, workspace_id = position.known, edit.scope.workspace_id
    assert known is not None, "the caller has looked"
    if known is position.after and known.t_valid == known.said_at[0]:  # it is valid from when it was first said
        await _set(edit, known, {"t_valid": position.t_valid})
        await _cut(edit, position.before, position.start)
    await versions.note_repetition(edit.session, workspace_id, known.id, at)


async def _make_room(edit: BackdatedEdit, position: Place, target: UUID) -> None:
    """Lets the version before end, and the one after begin, where the statement does."""
    before, after = position.before, position.after
    if before is not None and position.is_split:
        await _split(edit, before, position.start, target)
        return
    await _cut(edit, before, position.start)
    if after is not None and after.t_valid is None:
        await _set(edit, after, {"t_valid": write.holds_since(after.start, after.t_invalid, edit.res)})


async def _cut(edit: BackdatedEdit, before: Version | None, at: datetime) -> None:
    if before is None or not before.is_past or (before.t_valid is not None and before.t_valid >= at):
        return
    if before.t_invalid is None or before.t_invalid > at:
        await _set(edit, before, {"t_invalid": at})


async def _split(edit: BackdatedEdit, version: Version, at: datetime, target: UUID) -> None:
    """Splits a version that was said before and after: a copy is valid until `at`, the version itself from when it was
    said again."""
    first = [moment for moment in version.said_at if moment <= at]
    again = [moment for moment in version.said_at if moment > at]
    copy, history_id, workspace_id = uuid7(), uuid7(), edit.scope.workspace_id
    kept = await versions.keep(
        edit.session,
        workspace_id,
        version.id,
        copy,
        version_of=target,
        until=at,
        history_id=history_id,
        now=edit.res.clock(),
        said_at=first,
    )
    if kept:
        await _record_decision(edit, copy, history_id)
    said_at = again if len(again) > 1 else None
    await _set(edit, version, {"t_valid": again[0], "said_at": said_at})


async def _set(edit: BackdatedEdit, version: Version, values: Mapping[str, Any]) -> None:
    """Sets columns of a version, with an entry in its history and in the decision."""
    workspace_id, res = edit.scope.workspace_id, edit.res
    was = await history.snapshot(edit.session, workspace_id, version.id, generation=res.generation)
    if was is None:
        raise write.Gone("A version of the memory is gone.")
    await updates.set_columns(edit.session, workspace_id, version.id, values, now=res.clock())
    text, why, ruling_id = version.text, edit.evidence, edit.ruling_id
    await write.append_change(edit.session, edit.scope, version.id, text, text, was, evidence=why, ruling_id=ruling_id)


async def _add(edit: BackdatedEdit, draft: Draft, position: Place, target: UUID) -> UUID:
    """Adds the statement as a past version, or as a superseded memory under the policy that keeps those."""
    session, res, workspace_id = edit.session, edit.res, edit.scope.workspace_id
    given = replace(draft.given, t_valid=position.t_valid, t_invalid=position.t_invalid)
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
    await _record_decision(edit, new.id, new.history_id)
    if is_memory:
        await _tie(edit, position, new.id)
    else:
        await versions.hide(session, workspace_id, new.id, version_of=target)
    return new.id


async def _record_decision(edit: BackdatedEdit, memory_id: UUID, history_id: UUID) -> None:
    if edit.evidence is not None:
        added = NewDecision(memory_id, edit.evidence, edit.scope, Action.ADD, history_id, edit.ruling_id)
        await decisions.append(edit.session, edit.scope.workspace_id, [added])


async def _tie(edit: BackdatedEdit, position: Place, new_id: UUID) -> None:
    """Adds the edges: the next version supersedes the statement, and the statement the previous one."""
    session, workspace_id, now = edit.session, edit.scope.workspace_id, edit.res.clock()
    before, after, supersedes = (
        position.before,
        position.before if position.is_split else position.after,
        RelationType.SUPERSEDES,
    )
    if after is not None:
        await edges.put(session, workspace_id, Relation(after.id, supersedes, new_id, t_valid=now))
    if before is not None and before is not after:
        await edges.put(session, workspace_id, Relation(new_id, supersedes, before.id, t_valid=now))
        if after is not None:
            await edges.remove(session, workspace_id, after.id, before.id, supersedes)


async def _end(edit: BackdatedEdit, memory_id: UUID, at: datetime, by: UUID) -> None:
    """Ends another memory, which was valid until the statement began."""
    session, scope, evidence, res = edit.session, edit.scope, edit.evidence, edit.res
    if res.settings.memories.contradiction_policy == "supersede":
        await write.end_validity(session, scope, memory_id, by, evidence, res, at=at, ruling_id=edit.ruling_id)
    else:
        await write.retire(session, scope, memory_id, evidence, res, at=at, ruling_id=edit.ruling_id)
