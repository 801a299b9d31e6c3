"""The transaction of a write, with its audit entries, its stored answer, and the check of the right to share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from service.domain.access import Right
from service.domain.errors import Forbidden
from service.domain.request import Call, Operation, Replay, Subject, check_version
from service.domain.scope import Scope
from service.postgres import scopes
from service.postgres.engine import Session
from service.runtime.resources import Resources
from service.runtime.statements import audit, idempotency, stats
from service.runtime.statements.audit import AuditEntry, Promotion

R = TypeVar("R")


class _DryRun(Exception):
    """Rolls the transaction of a dry run back."""


class DecisionOutdated(Exception):
    """Something that matters to a decision changed since it was made: decide again."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write in its transaction. What it does to the rows, its audit entries and its stored answer commit together."""

    session: Session
    res: Resources
    call: Call

    async def audit(
        self,
        operation: Operation,
        scope: Scope,
        ids: Sequence[UUID],
        *,
        promotion: Promotion | None = None,
        subject: Subject = "semantic",
        conversation_id: UUID | None = None,
        **metadata: Any,
    ) -> None:
        """Adds one audit entry, unless the workspace wants none."""
        if self.res.settings.history.audit_level == "off":
            return
        entry = AuditEntry(
            operation=operation,
            memory_type=subject,
            scope=scope,
            affected_ids=tuple(ids),
            request_id=self.call.request_id,
            api_key_id=self.call.api_key_id,
            session_id=self.call.session_id,
            conversation_id=conversation_id,
            promotion=promotion,
            config_snapshot=audit.thresholds(self.res.settings, operation),
            metadata=metadata,
        )
        await audit.append(self.session, [entry])

    async def answer(self, result: R, *, of_user: str | None = None) -> R:
        """Returns the result of the verb, and stores the answer made of it, so that a retry gets the same one.
        `of_user`: whose data it is, if the request names nobody; erasing that user erases the answer too."""
        if self.call.idempotency and self.call.serialize:
            answer = self.call.serialize(result)
            await idempotency.store_answer(self.session, self.call.idempotency, answer, of_user=of_user)
        return result

    def check_version(self, version: int | None, record: str = "memory") -> None:
        """Raises PreconditionFailed when the request expects another version; None: there is no such record."""
        check_version(version, self.call.expected, record)

    async def check_share_of(self, ids: Sequence[UUID]) -> None:
        """Raises Forbidden if one of the memories is shared and the request may not write these."""
        if not self.call.may_share and await stats.any_shared(self.session, ids):
            check_share(Scope(self.session.workspace_id), self.call)


def write_transaction(scope: Scope, res: Resources, call: Call) -> AbstractAsyncContextManager[Write]:
    """A write that adds or changes texts: one at a time in its scope. Raises Replay for a repeated request,
    Forbidden in the shared scope for one without the right.

    Locks: the scope in this process, the scope in the database (docs/decisions/006-scope-lock.md), the idempotency key.
    """
    return scopes_transaction(scope.workspace_id, [scope], res, call, owner=scope)


@asynccontextmanager
async def scopes_transaction(
    workspace_id: UUID, wanted: Iterable[Scope], res: Resources, call: Call, *, owner: Scope | None = None
) -> AsyncIterator[Write]:
    """A transaction in several scopes of a workspace, whose locks are taken in the order of their names. `owner`: whose
    data the stored response contains."""
    new_turns = False
    by_name = {scope.lock_name: scope for scope in wanted}
    ordered = [by_name[name] for name in sorted(by_name)]
    for scope in ordered:
        check_share(scope, call)
    locks = "; ".join(map(scopes.lock, ordered)) or None
    shared = any(each.is_shared for each in ordered)
    async with AsyncExitStack() as held:
        held.enter_context(suppress(_DryRun))
        for scope in ordered:
            await held.enter_async_context(res.locks.hold(scope))
        async with res.db.begin(workspace_id, locks, generic_plans=True, writes_shared=shared) as session:
            if call.idempotency:
                await idempotency.claim(session, call.idempotency, owner)
            yield Write(session, res, call)
            if call.dry_run:
                raise _DryRun
            if res.context.deferred is not None:
                await res.context.deferred.flush(session, workspace_id)
            new_turns = session.info.pop("new_turns", False)
    for key in [key for key, kept in res.scope_summaries.items() if new_turns and not kept.summary.has_turns]:
        del res.scope_summaries[key]
    res.wakeup.notify()  # after the commit: inside it would cost two thirds of the commits per second


@asynccontextmanager
async def plain_transaction(workspace_id: UUID, res: Resources, call: Call) -> AsyncIterator[Write]:
    """A write that needs no scope lock, because it changes no text, or memories of many scopes. Raises Replay
    for a repeated request. The verb checks whether it may write shared memories (check_share, Write.check_share_of)."""
    async with res.db.begin(workspace_id, writes_shared=call.may_share) as session:
        if call.idempotency:
            await idempotency.claim(session, call.idempotency)
        yield Write(session, res, call)
    res.wakeup.notify()


async def refuse_repeated(call: Call, workspace_id: UUID, res: Resources) -> None:
    """Raises Replay when the request was answered before, IdempotencyMismatch when its key came with another one."""
    if call.idempotency is None:
        return
    async with res.db.read(workspace_id) as session:
        answer = await idempotency.find(session, call.idempotency)
    if answer is not None:
        raise Replay(answer)


def check_share(scope: Scope, call: Call) -> None:
    """Raises Forbidden if memories of this scope are shared and the request may not write these."""
    if scope.is_shared and not call.may_share:
        raise Forbidden(f"This key lacks the right {Right.SHARE}.", field="shared")
