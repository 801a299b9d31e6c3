"""Workspaces and API keys.

A key is `lox_` and 43 url-safe characters (256 bits from the system's generator), shown once. Only its SHA-256 is
stored: with that much entropy a slow hash would protect nothing. find_api_key() and create_workspace() are SECURITY
DEFINER, because they run before a workspace is known.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import func, insert, select, text, update
from uuid_utils.compat import uuid7

from service.db.engine import Database, Session
from service.db.tables import ApiKeyRow, WorkspaceRow
from service.domain.access import Caller, Right

EVERY_RIGHT: tuple[Right, ...] = tuple(Right)

FIND = text("SELECT * FROM find_api_key(:hash)")
CREATE_WORKSPACE = text("SELECT create_workspace(:workspace, :name, :key, :key_name, :hash, :hint, :rights)")


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key; `secret` is shown once and kept nowhere."""

    workspace_id: UUID
    key_id: UUID
    secret: str


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key without its secret. `hint`: the last four characters."""

    id: UUID
    name: str
    hint: str
    rights: tuple[str, ...]
    user_id: str | None
    agent_id: str | None
    run_id: str | None
    channel: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key to issue. The ids and the channel: the scope of calls that name none."""

    name: str
    rights: Sequence[Right]
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    channel: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WorkspaceInfo:
    id: UUID
    name: str
    settings: Mapping[str, Any]
    created_at: datetime


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def new_secret() -> str:
    return "lox_" + secrets.token_urlsafe(32)


async def find(database: Database, secret: str) -> Caller | None:
    """The caller behind a secret; None when unknown or revoked. Expiry is the caller's to check against its clock."""
    async with database.read() as session:
        row = (await session.execute(FIND, {"hash": digest(secret)})).one_or_none()
    if row is None:
        return None
    rights = frozenset(Right(right) for right in row.rights if right in set(Right))
    return Caller(
        row.workspace_id,
        row.id,
        rights,
        row.user_id,
        row.agent_id,
        row.run_id,
        row.channel,
        row.expires_at,
        row.settings,
    )


async def create_workspace(
    database: Database, name: str, *, rights: Iterable[Right], secret: str | None = None, key_name: str = "first key"
) -> Issued:
    """A new workspace with its first key; `secret` chooses the key, otherwise one is made."""
    issued = Issued(uuid7(), uuid7(), secret or new_secret())
    async with database.begin(issued.workspace_id) as session:
        await session.execute(
            CREATE_WORKSPACE,
            {
                "workspace": issued.workspace_id,
                "name": name,
                "key": issued.key_id,
                "key_name": key_name,
                "hash": digest(issued.secret),
                "hint": issued.secret[-4:],
                "rights": [str(right) for right in rights],
            },
        )
    return issued


async def issue(session: Session, workspace_id: UUID, key: NewKey) -> Issued:
    """Stores a new key of the workspace."""
    issued = Issued(workspace_id, uuid7(), new_secret())
    await session.execute(
        insert(ApiKeyRow).values(
            workspace_id=workspace_id,
            id=issued.key_id,
            name=key.name,
            key_hash=digest(issued.secret),
            hint=issued.secret[-4:],
            rights=[str(right) for right in key.rights],
            user_id=key.user_id,
            agent_id=key.agent_id,
            run_id=key.run_id,
            channel=key.channel,
            expires_at=key.expires_at,
        )
    )
    return issued


async def listing(session: Session, workspace_id: UUID) -> list[KeyInfo]:
    """Every key of the workspace, oldest first, revoked ones too."""
    columns = (ApiKeyRow.__table__.c[field.name] for field in fields(KeyInfo))
    query = select(*columns).where(ApiKeyRow.workspace_id == workspace_id).order_by(ApiKeyRow.created_at, ApiKeyRow.id)
    rows = await session.execute(query)
    return [KeyInfo(row[0], row[1], row[2], tuple(row[3]), *row[4:]) for row in rows]


async def revoke(session: Session, workspace_id: UUID, key_id: UUID) -> bool:
    """Ends a key; False when there is none with that id. Revoking twice keeps the first time."""
    found = await session.execute(
        update(ApiKeyRow)
        .where(ApiKeyRow.workspace_id == workspace_id, ApiKeyRow.id == key_id)
        .values(revoked_at=func.coalesce(ApiKeyRow.revoked_at, func.now()))
        .returning(ApiKeyRow.id)
    )
    return found.first() is not None


async def workspace(session: Session, workspace_id: UUID) -> WorkspaceInfo:
    """Name, settings and age of a workspace."""
    columns = WorkspaceRow.workspace_id, WorkspaceRow.name, WorkspaceRow.settings, WorkspaceRow.created_at
    row = (await session.execute(select(*columns).where(WorkspaceRow.workspace_id == workspace_id))).one()
    return WorkspaceInfo(*row)


async def change_workspace(
    session: Session, workspace_id: UUID, *, name: str | None, settings: Mapping[str, Any] | None
) -> None:
    """Renames the workspace or replaces its settings."""
    values: dict[str, Any] = {}
    if name is not None:
        values["name"] = name
    if settings is not None:
        values["settings"] = dict(settings)
    if values:
        await session.execute(update(WorkspaceRow).where(WorkspaceRow.workspace_id == workspace_id).values(**values))
