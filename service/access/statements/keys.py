"""Workspaces and API keys.

A key is `lox_` and 43 url-safe characters (256 bits from the system's generator), shown once. Only its SHA-256 is
stored: with that much entropy a slow hash would protect nothing. find_api_key() and create_workspace() are SECURITY
DEFINER, because they run before a workspace is known.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, func, insert, or_, select, text, update
from uuid_utils.compat import uuid7

from service.access.values import Issued, NewKey, defaults_of, wall_of
from service.domain.access import Caller, Right
from service.domain.scope import NIL_WORKSPACE
from service.postgres import rights
from service.postgres.engine import Database, Session
from service.postgres.tables import API_KEY, WORKSPACE

EVERY_RIGHT: tuple[Right, ...] = tuple(Right)
EVERY_RIGHT_IN_WORKSPACE = tuple(right for right in Right if right not in (Right.OPERATOR, Right.METRICS))
"""The rights of a tenant; the others are over the whole service."""

FIND = text("SELECT * FROM find_api_key(:hash)")
NOTE_USES = text("""
    UPDATE api_key k SET last_used_at = greatest(k.last_used_at, used.at)
    FROM unnest(CAST(:ids AS uuid[]), CAST(:times AS timestamptz[])) AS used (id, at)
    WHERE k.workspace_id = :workspace AND k.id = used.id
""")
FIND_BY_ID = text("""
    SELECT k.*, NULL::timestamptz AS old_until, w.settings FROM api_key k JOIN workspace w USING (workspace_id)
    WHERE k.workspace_id = :workspace AND k.id = :id AND k.revoked_at IS NULL
""")
TOKEN_SECRET = text("SELECT token_secret(:proposed)")
CREATE_WORKSPACE = text("SELECT create_workspace(:workspace, :name, :key, :key_name, :hash, :hint, :rights)")


INFO = tuple(column for column in API_KEY.c if "hash" not in column.name)
"""The columns of a key that may be shown."""


def rights_of(names: Iterable[str]) -> frozenset[Right]:
    """The rights with these names; unknown ones are ignored."""
    return frozenset(Right(name) for name in names if name in set(Right))


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def new_secret() -> str:
    return "lox_" + secrets.token_urlsafe(32)


async def find(database: Database, secret: str) -> Caller | None:
    """The caller with this secret; None when unknown or revoked. The calling code checks expiry."""
    async with database.read() as session:
        row = (await session.execute(FIND, {"hash": digest(secret)})).one_or_none()
    return _caller(row) if row is not None else None


def _caller(row: Any) -> Caller:
    ends = [end for end in (row.expires_at, row.old_until) if end is not None]
    own = rights_of(row.rights), wall_of(row), defaults_of(row)
    return Caller(row.workspace_id, row.id, *own, min(ends, default=None), row.settings)


async def find_by_id(database: Database, workspace_id: UUID, key_id: UUID) -> Caller | None:
    """The caller for the id of a key, as in a signed token; the expiry of an old secret does not apply."""
    async with database.read(workspace_id) as session:
        row = (await session.execute(FIND_BY_ID, {"workspace": workspace_id, "id": key_id})).one_or_none()
    return _caller(row) if row is not None else None


async def token_secret(database: Database, proposed: str) -> str:
    """The secret that signs tokens: the stored one, else the proposed one, which is then stored."""
    async with database.begin(NIL_WORKSPACE) as session:
        return str(await session.scalar(TOKEN_SECRET, {"proposed": proposed}))


async def create_workspace(
    database: Database,
    name: str,
    *,
    rights: Iterable[Right],
    secret: str | None = None,
    workspace_id: UUID | None = None,
) -> Issued:
    """Creates a workspace with its first key; `secret` and `workspace_id` are generated unless given."""
    issued = Issued(workspace_id or uuid7(), uuid7(), secret or new_secret())
    async with database.begin(issued.workspace_id) as session:
        await session.execute(
            CREATE_WORKSPACE,
            {
                "workspace": issued.workspace_id,
                "name": name,
                "key": issued.key_id,
                "key_name": "first key",
                "hash": digest(issued.secret),
                "hint": issued.secret[-4:],
                "rights": [str(right) for right in rights],
            },
        )
    return issued


async def issue(session: Session, key: NewKey) -> Issued:
    """Stores a new key of the workspace."""
    issued = Issued(session.workspace_id, uuid7(), new_secret())
    await session.execute(insert(API_KEY).values(_row(issued, key)))
    return issued


def _row(issued: Issued, key: NewKey) -> dict[str, Any]:
    """The row of a new key."""
    own = {"workspace_id": issued.workspace_id, "id": issued.key_id}
    return own | {"key_hash": digest(issued.secret), "hint": issued.secret[-4:]} | _columns(key)


def _columns(key: NewKey) -> dict[str, Any]:
    """The columns of api_key that a change of the key replaces."""
    columns = {"name": key.name, "rights": [str(right) for right in key.rights], "expires_at": key.expires_at}
    wall = {**asdict(key.wall), "channels": list(key.wall.channels)}
    return columns | wall | {f"default_{name}": value for name, value in asdict(key.defaults).items()}


async def listing(session: Session) -> Sequence[Row[Any]]:
    """Every key of the workspace, oldest first, revoked ones too."""
    query = (
        select(*INFO).where(API_KEY.c.workspace_id == session.workspace_id).order_by(API_KEY.c.created_at, API_KEY.c.id)
    )
    return (await session.execute(query)).all()


async def get(session: Session, key_id: UUID) -> Row[Any] | None:
    """A key of the workspace, revoked or not."""
    query = select(*INFO).where(API_KEY.c.workspace_id == session.workspace_id, API_KEY.c.id == key_id)
    return (await session.execute(query)).one_or_none()


async def change(session: Session, key_id: UUID, key: NewKey) -> None:
    """Replaces name, rights, wall, defaults and expiry of a key. Its secret stays."""
    await _update(session, key_id, **_columns(key))


async def rotate(session: Session, key_id: UUID, old_until: datetime | None) -> str:
    """Gives a key a new secret; the old one stays valid until `old_until` (None: it ends). All hashes are kept, so that
    the first key is recognised by any secret it ever had and not created again."""
    secret = new_secret()
    await _update(
        session,
        key_id,
        key_hash=digest(secret),
        hint=secret[-4:],
        former_key_hashes=func.array_append(API_KEY.c.former_key_hashes, API_KEY.c.key_hash),
        old_key_hash=API_KEY.c.key_hash if old_until is not None else None,
        old_key_until=old_until,
    )
    return secret


async def note_uses(session: Session, uses: Mapping[UUID, datetime]) -> None:
    """Stores when keys were last used."""
    await session.execute(NOTE_USES, {"ids": list(uses), "times": list(uses.values())})


async def revoke(session: Session, key_id: UUID) -> None:
    """Revoking twice keeps the first time."""
    await _update(session, key_id, revoked_at=func.least(API_KEY.c.revoked_at, func.now()))


async def _update(session: Session, key_id: UUID, **values: Any) -> None:
    conditions = API_KEY.c.workspace_id == session.workspace_id, API_KEY.c.id == key_id
    await session.execute(update(API_KEY).where(*conditions).values(values))


async def workspace(session: Session) -> Row[Any]:
    """The `id`, name, settings and age of a workspace."""
    query = select(WORKSPACE, WORKSPACE.c.workspace_id.label("id")).where(
        WORKSPACE.c.workspace_id == session.workspace_id
    )
    return (await session.execute(query)).one()


async def change_workspace(session: Session, *, name: str | None, settings: Mapping[str, Any] | None) -> None:
    """Renames the workspace or replaces its settings."""
    values: dict[str, Any] = {}
    if name is not None:
        values["name"] = name
    if settings is not None:
        values["settings"] = dict(settings)
    if values:
        await session.execute(
            update(WORKSPACE).where(WORKSPACE.c.workspace_id == session.workspace_id).values(**values)
        )


FIRST_WORKSPACE = "default"


async def ensure_admin_key(owner_url: str, key: str) -> bool:
    """Creates `key` with every right in the oldest workspace, which is created if needed. If the database has seen the
    key before, nothing changes: one that was revoked or given fewer rights stays so. Returns whether the key is valid.

    Safe to run at every start and by several processes at once.
    """
    async with rights.owner_transaction(owner_url) as session:
        await session.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('loxodon:bootstrap', 0))"))
        key_hash = digest(key)
        seen = or_(API_KEY.c.key_hash == key_hash, API_KEY.c.former_key_hashes.contains([key_hash]))
        known = (await session.execute(select(API_KEY.c.revoked_at).where(seen))).first()
        if known is not None:
            return known.revoked_at is None
        workspace = await session.scalar(select(WORKSPACE.c.workspace_id).order_by(WORKSPACE.c.created_at).limit(1))
        if workspace is None:
            workspace = uuid7()
            await session.execute(insert(WORKSPACE).values(workspace_id=workspace, name=FIRST_WORKSPACE))
        first = NewKey("first key", EVERY_RIGHT)
        await session.execute(insert(API_KEY).values(_row(Issued(workspace, uuid7(), key), first)))
        return True
