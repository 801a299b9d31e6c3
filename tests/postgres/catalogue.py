"""The catalogue of a database as text: relations, columns, constraints, indexes, functions, policies and rights."""

from __future__ import annotations

from typing import Any

import asyncpg  # type: ignore[import-untyped]

# Partitions of a day or month are left out: which ones there are depends on the date.
SNAPSHOT = """
    WITH ours AS (
        SELECT c.* FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relname !~ '_[0-9]{6,8}$'
            AND c.relname NOT IN ('alembic_version', 'alembic_version_pkc')
            AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
    ), functions AS (
        SELECT p.* FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
            AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
    )
    SELECT 'relation ' || c.relname AS what,
           concat_ws(' ', c.relkind, c.relpersistence, c.reloptions::text, c.relrowsecurity, c.relforcerowsecurity,
                     pg_get_userbyid(c.relowner), pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid)) AS how
    FROM ours c WHERE c.relkind <> 'i' AND c.relkind <> 'I'
    UNION ALL
    SELECT 'column ' || c.relname || '.' || a.attname,
           concat_ws(' ', a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated, a.attstorage,
                     a.attoptions::text, pg_get_expr(d.adbin, d.adrelid))
    FROM ours c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relkind IN ('r', 'p')
    UNION ALL
    SELECT 'constraint ' || c.relname || ' ' || k.conname, pg_get_constraintdef(k.oid)
    FROM ours c JOIN pg_constraint k ON k.conrelid = c.oid
    UNION ALL
    SELECT 'index ' || c.relname, pg_get_indexdef(c.oid) FROM ours c WHERE c.relkind IN ('i', 'I')
    UNION ALL
    SELECT 'function ' || p.oid::regprocedure, pg_get_functiondef(p.oid) || coalesce(p.proacl::text, '')
    FROM functions p
    UNION ALL
    SELECT 'trigger ' || c.relname || ' ' || t.tgname, pg_get_triggerdef(t.oid)
    FROM ours c JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
    UNION ALL
    SELECT 'policy ' || tablename || ' ' || policyname,
           concat_ws(' ', array_to_string(roles, ','), permissive, cmd, qual, with_check)
    FROM pg_policies WHERE schemaname = 'public' AND tablename !~ '_[0-9]{6,8}$'
    UNION ALL
    SELECT 'grant ' || c.relname || ' ' || pg_get_userbyid(a.grantee),
           string_agg(a.privilege_type, ',' ORDER BY a.privilege_type)
    FROM ours c, aclexplode(c.relacl) a WHERE a.grantee <> c.relowner GROUP BY c.relname, a.grantee
    UNION ALL
    SELECT 'grant ' || c.relname || '.' || t.attname || ' ' || pg_get_userbyid(a.grantee),
           string_agg(a.privilege_type, ',' ORDER BY a.privilege_type)
    FROM ours c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a
    GROUP BY c.relname, t.attname, a.grantee
"""


async def snapshot(connection: asyncpg.Connection[Any]) -> dict[str, str]:
    """By kind and name ("index ix_memory_user") what Postgres says of it."""
    return {row["what"]: row["how"] for row in await connection.fetch(SNAPSHOT)}
