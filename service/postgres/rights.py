"""The rights that the logins of the service must have, and those they must not.

Row-level security holds only for a login from which neither the owner of the tables nor a superuser can be reached:
`SET ROLE NONE` goes back to the login, and `SET ROLE` to whatever it is a member of, inherited or not. So API and
worker look at all of it before they start (docs/decisions/044-logins.md).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace

import asyncpg  # type: ignore[import-untyped]
from sqlalchemy import Connection, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from service.domain.errors import Misconfigured, StoreUnavailable
from service.kit import postgres_url
from service.postgres.citus import IS_CITUS
from service.postgres.driver_errors import translated_errors
from service.postgres.engine import Access, connect_arguments
from service.postgres.roles import API_LOGIN, APP, LOGINS, MIGRATE_LOGIN, OWNER, URL_VARIABLES, WALLED, WORKER

HINT = "An administrator runs what `loxodon bootstrap-sql` prints"

FORBIDDEN = text(
    """
    WITH mine AS (  -- what the session is, and may use or become by any path: inherited, SET ROLE, ADMIN OPTION
        SELECT r.* FROM pg_roles r
        WHERE pg_has_role(session_user, r.oid, 'MEMBER') OR pg_has_role(current_user, r.oid, 'MEMBER')
    ), found (rank, through, what) AS (
        SELECT 1, rolname, 'is a superuser' FROM mine WHERE rolsuper
        UNION ALL
        SELECT 2, rolname, 'owns the schema' FROM mine WHERE rolname = 'loxodon_owner'
        UNION ALL
        SELECT 3, rolname, 'bypasses row-level security (BYPASSRLS)' FROM mine WHERE rolbypassrls
        UNION ALL
        SELECT 4, rolname, 'may make roles (CREATEROLE)' FROM mine WHERE rolcreaterole
        UNION ALL
        SELECT 5, rolname, 'may copy the whole cluster (REPLICATION)' FROM mine WHERE rolreplication
        UNION ALL
        SELECT 6, m.rolname, 'owns the database' FROM mine m JOIN pg_database d ON d.datdba = m.oid
        WHERE d.datname = current_database()
        UNION ALL
        SELECT 7, rolname, 'is a role of Postgres itself, with rights over all of it' FROM mine
        WHERE rolname LIKE 'pg\\_%'
        UNION ALL
        SELECT 8, rolname, 'sees the jobs of every workspace' FROM mine
        WHERE rolname = 'loxodon_worker' AND :wanted <> 'loxodon_worker'
        UNION ALL
        SELECT 9, m.rolname, format('owns %s', c.oid::regclass) FROM mine m JOIN pg_class c ON c.relowner = m.oid
        WHERE c.relnamespace = 'public'::regnamespace
        UNION ALL
        SELECT 10, m.rolname, format('owns %s', p.oid::regprocedure) FROM mine m JOIN pg_proc p ON p.proowner = m.oid
        WHERE p.pronamespace = 'public'::regnamespace
        UNION ALL
        SELECT 11, rolname, 'may create objects in the schema public, which functions of the owner would call'
        FROM mine WHERE has_schema_privilege(oid, 'public', 'CREATE')
        UNION ALL
        SELECT 12, m.rolname, format('may TRUNCATE %s, or add triggers or foreign keys to it', c.oid::regclass)
        FROM mine m CROSS JOIN pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
          AND has_table_privilege(m.oid, c.oid, 'TRUNCATE, TRIGGER, REFERENCES')
        UNION ALL
        SELECT 13, m.rolname, format('may call %s, which %s may not', p.oid::regprocedure, :wanted)
        FROM mine m CROSS JOIN pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef
          AND has_function_privilege(m.oid, p.oid, 'EXECUTE')
          AND NOT has_function_privilege(to_regrole(:wanted), p.oid, 'EXECUTE')
    )
    SELECT session_user AS login, through, what FROM found
    ORDER BY rank, through NOT IN (session_user, current_user), through LIMIT 1
    """
)
"""Why the session must not serve as `:wanted`: the first reason, and the role that it comes from. No row: it may."""

GRANTED = text("SELECT session_user AS login, coalesce(pg_has_role(to_regrole(:wanted)::oid, 'USAGE'), false) AS yes")

OWNER_LOGIN = text(
    """
    SELECT session_user AS login, r.rolsuper, to_regrole('loxodon_owner') IS NOT NULL
           AND to_regrole('loxodon_app') IS NOT NULL AND to_regrole('loxodon_worker') IS NOT NULL
           AND to_regrole('loxodon_walled') IS NOT NULL AS roles
    FROM pg_roles r WHERE r.rolname = session_user
    """
)

NEEDED = (
    (
        "SELECT pg_has_role('loxodon_owner', 'SET')",
        "The database login {login} may not become loxodon_owner, which owns the schema: GRANT loxodon_owner TO "
        "{login}; or set LOXODON_OWNER_DATABASE_URL to the login loxodon_migrate.",
    ),
    (
        "SELECT pg_has_role('loxodon_worker', 'loxodon_app', 'USAGE')",
        "The role loxodon_worker may not do what loxodon_app may: GRANT loxodon_app TO loxodon_worker;",
    ),
    (
        "SELECT pg_has_role('loxodon_app', 'loxodon_walled', 'SET') "
        "AND NOT pg_has_role('loxodon_app', 'loxodon_walled', 'USAGE')",
        "The role loxodon_app may not become loxodon_walled, or inherits from it: "
        "GRANT loxodon_walled TO loxodon_app WITH INHERIT FALSE, SET TRUE;",
    ),
    (
        "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector')",
        "The database lacks the extension vector: CREATE EXTENSION vector SCHEMA public;",
    ),
    (
        "SELECT extnamespace = 'public'::regnamespace FROM pg_extension WHERE extname = 'vector'",
        "The extension vector is not in the schema public, where functions look for it: "
        "ALTER EXTENSION vector SET SCHEMA public;",
    ),
    (
        "SELECT string_to_array(extversion, '.')::integer[] >= '{0,8}' FROM pg_extension WHERE extname = 'vector'",
        "The extension vector of this database is older than 0.8: ALTER EXTENSION vector UPDATE;",
    ),
    (
        "SELECT has_schema_privilege('loxodon_owner', 'public', 'USAGE') "
        "AND has_schema_privilege('loxodon_owner', 'public', 'CREATE')",
        "The role loxodon_owner may not create tables in the schema public: "
        "GRANT USAGE, CREATE ON SCHEMA public TO loxodon_owner;",
    ),
    (
        "SELECT NOT has_schema_privilege('loxodon_app', 'public', 'CREATE')",
        "Everybody may create objects in the schema public, which functions of the owner would call: "
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC;",
    ),
    (
        "SELECT has_schema_privilege('loxodon_app', 'public', 'USAGE')",
        "The role loxodon_app may not use the schema public: GRANT USAGE ON SCHEMA public TO loxodon_app;",
    ),
    (
        "SELECT has_schema_privilege('loxodon_walled', 'public', 'USAGE')",
        "The role loxodon_walled may not use the schema public: GRANT USAGE ON SCHEMA public TO loxodon_walled;",
    ),
)
"""The rights that migrations need, in this order, and the sentence where one is missing."""


async def find_access(url: str, *, wanted_role: str, pooled: bool) -> Access:
    """How to connect with `url`. Raises Misconfigured for a login that may do more than `wanted_role`, or less."""
    access = Access(url, pooled)
    arguments = {"timeout": 10} | (connect_arguments(access) if pooled else {})
    engine = create_async_engine(url, connect_args=arguments, poolclass=NullPool)
    try:
        with translated_errors(), require_usable(url):
            async with engine.connect() as session:
                await _check(session, wanted_role)
                return replace(access, citus=bool(await session.scalar(IS_CITUS)))
    finally:
        await engine.dispose()


async def _check(session: AsyncConnection, wanted: str) -> None:
    forbidden = (await session.execute(FORBIDDEN, {"wanted": wanted})).one_or_none()
    if forbidden is not None:
        login, through, what = forbidden
        raise Misconfigured(_refusal(login, through, what, wanted))
    login, granted = (await session.execute(GRANTED, {"wanted": wanted})).one()
    if not granted:
        raise Misconfigured(
            f"The database login {login} may not do what {wanted} may: GRANT {wanted} TO {login} WITH INHERIT TRUE; or "
            f"set {URL_VARIABLES[wanted]} to the login {LOGINS[wanted]}."
        )


def _refusal(login: str, through: str, what: str, wanted: str) -> str:
    whose = login if through == login else f"{login} is a member of {through}, which"
    usual = LOGINS[wanted]
    cure = (
        f"set {URL_VARIABLES[wanted]} to the login {usual}, or to another that is a member of {wanted} and of nothing "
        f"else. {HINT}, to make it."
        if login != usual
        else f"take that from it (REVOKE). {usual} is meant to be a member of {wanted} and of nothing else."
    )
    return f"The database login {whose} {what}, so row-level security would not keep workspaces apart: {cure}"


def check_owner(connection: Connection) -> None:
    """Raises StoreUnavailable, with the statement that cures it, for a login that cannot migrate, or is a superuser."""
    login, is_superuser, has_roles = connection.execute(OWNER_LOGIN).one()
    if is_superuser:
        raise StoreUnavailable(
            f"The database login {login} is a superuser, which the service never needs to be: set "
            f"{URL_VARIABLES[OWNER]} to the login {MIGRATE_LOGIN} and DATABASE_URL to {API_LOGIN}. "
            f"{HINT}, to make them."
        )
    if not has_roles:
        raise StoreUnavailable(
            f"The database lacks the roles {OWNER}, {APP}, {WORKER} and {WALLED}. {HINT}, to make them."
        )
    for query, sentence in NEEDED:
        if not connection.scalar(text(query)):
            raise StoreUnavailable(sentence.format(login=login))


@asynccontextmanager
async def owner_transaction(url: str) -> AsyncIterator[AsyncConnection]:
    """Opens a connection and begins a transaction as the owner of the schema. `url`: of a login that may act as it."""
    engine = create_async_engine(url, poolclass=NullPool)
    try:
        async with engine.begin() as session:
            await session.execute(text(f"SET LOCAL ROLE {OWNER}"))
            yield session
    finally:
        await engine.dispose()


REFUSALS = (
    OSError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
)


@contextmanager
def require_usable(url: str) -> Iterator[None]:
    """Within the block a database that is away or refuses the login is a StoreUnavailable that names the URL without
    its password."""
    try:
        yield
    except Exception as exc:
        connecting = not isinstance(exc, DBAPIError) or exc.statement is None
        cause = getattr(getattr(exc, "orig", None), "__cause__", None) or exc
        if not connecting or not isinstance(cause, REFUSALS):
            raise
        parts = make_url(url)
        where = postgres_url.libpq(url, hide_password=True)
        reason = getattr(cause, "verify_message", None)  # of a certificate
        cure = "See DATABASE_URL, or the variable that names this login."
        if isinstance(cause, asyncpg.InsufficientPrivilegeError):
            cure = f"GRANT CONNECT ON DATABASE {parts.database} TO {parts.username};"
        raise StoreUnavailable(
            f"Cannot use the database {where}: {reason or str(cause).splitlines()[0]}. {cure}"
        ) from exc
