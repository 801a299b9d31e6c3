"""Row-level security of every table, partition and function in the catalogue, new ones included."""

from __future__ import annotations

from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from service.postgres.roles import APP, LOGINS, WALLED, WORKER

RELATIONS = """
    SELECT c.relname, c.relkind::text AS kind, c.relispartition,
           c.relrowsecurity AND c.relforcerowsecurity AS protected,
           coalesce('security_invoker=true' = ANY (c.reloptions) OR 'security_invoker=on' = ANY (c.reloptions), false)
               AS invoker,
           (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid) AS policies,
           EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'workspace_id') AS tenanted,
           array(SELECT r FROM unnest($1::text[]) r WHERE
               has_table_privilege(r, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
               OR has_any_column_privilege(r, c.oid, 'SELECT, INSERT, UPDATE, REFERENCES')) AS holders
    FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
FUNCTIONS = """
    SELECT p.proname, p.prosecdef, p.proconfig, p.oid::regprocedure::text AS signature,
           pg_get_userbyid(p.proowner) AS owner,
           array(SELECT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(a.grantee) END
                 FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a ORDER BY 1) AS callers
    FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
    ORDER BY 1
"""
GLOBAL = {"embedding_generation", "schedule"}
"""Tables of no workspace: read by all, written by the owner or the worker."""


async def test_app_and_worker_have_no_right_without_row_level_security(superuser: asyncpg.Connection[Any]) -> None:
    seen = 0
    for relation in await superuser.fetch(RELATIONS, [APP, WORKER, WALLED]):
        if not relation["holders"]:
            continue
        seen += 1
        assert relation["kind"] in ("r", "p", "v"), f"{relation['relname']}: policies do not apply to this kind"
        assert relation["protected"] or relation["invoker"], relation["relname"]
        assert not relation["relispartition"], f"{relation['relname']}: rights stand on parents only"
        assert relation["tenanted"] or relation["relname"] in GLOBAL, relation["relname"]
    assert seen > 15


async def test_every_table_of_a_workspace_and_its_partitions_have_policies(superuser: asyncpg.Connection[Any]) -> None:
    partitions = 0
    for relation in await superuser.fetch(RELATIONS, [APP, WORKER, WALLED]):
        if relation["tenanted"] and relation["kind"] in ("r", "p"):
            assert relation["protected"], relation["relname"]
            assert relation["policies"] >= 2, relation["relname"]
            partitions += relation["relispartition"]
    assert partitions > 8


async def test_public_holds_nothing(superuser: asyncpg.Connection[Any]) -> None:
    granted = await superuser.fetch("""
        SELECT c.relname FROM pg_class c, aclexplode(c.relacl) a
        WHERE c.relnamespace = 'public'::regnamespace AND a.grantee = 0
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
    """)
    assert granted == []
    of_tables = "SELECT FROM pg_default_acl WHERE defaclobjtype <> 'f'"
    assert not await superuser.fetch(of_tables), "default privileges would open partitions"
    assert not await superuser.fetchval("SELECT has_schema_privilege($1, 'public', 'CREATE')", APP)
    assert not await superuser.fetchval("SELECT has_schema_privilege($1, 'public', 'CREATE')", WORKER)


async def test_a_forgotten_workspace_is_an_error(superuser: asyncpg.Connection[Any]) -> None:
    """The policies read the setting without missing_ok and without NULLIF."""
    policies = await superuser.fetch("SELECT tablename, qual, with_check FROM pg_policies WHERE policyname = 'tenant'")
    wanted = "(workspace_id = (current_setting('loxodon.workspace'::text))::uuid)"
    assert {(policy["qual"], policy["with_check"]) for policy in policies} == {(wanted, None)}
    assert len(policies) > 15


async def test_app_and_worker_cannot_bypass_row_level_security(superuser: asyncpg.Connection[Any]) -> None:
    roles = await superuser.fetch(
        """
        SELECT rolname, rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb AS mighty,
               pg_has_role(oid, 'loxodon_owner', 'MEMBER') AS owner
        FROM pg_roles WHERE rolname = ANY ($1)
    """,
        [APP, WORKER, WALLED],
    )
    assert len(roles) == 3
    assert not any(role["mighty"] or role["owner"] for role in roles)
    owned = await superuser.fetch(
        "SELECT relname FROM pg_class WHERE pg_get_userbyid(relowner) = ANY ($1)", [APP, WORKER, WALLED]
    )
    assert owned == []


async def test_definer_functions_have_a_fixed_path_and_no_public_caller(superuser: asyncpg.Connection[Any]) -> None:
    functions = await superuser.fetch(FUNCTIONS)
    for function in functions:
        if function["proname"] not in INLINED:
            assert "search_path=public, pg_temp" in (function["proconfig"] or []), function["signature"]
        assert "PUBLIC" not in function["callers"], function["signature"]
        assert function["owner"] == "loxodon_owner", function["signature"]
    assert len(functions) >= 12


BEHIND_A_WALL = {APP, WALLED}
INLINED = {"is_in_scope", "is_of_subject", "sparse_entry", "sparse_vector"}
"""Parsed when they are made, so that no path matters."""


async def test_no_definer_function_of_the_app_takes_a_workspace(superuser: asyncpg.Connection[Any]) -> None:
    """Which one it works in is what its transaction says. The one exception makes a workspace that is not there yet."""
    found = await superuser.fetch("""
        SELECT p.proname FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef
          AND has_function_privilege('loxodon_app', p.oid, 'EXECUTE')
          AND array_to_string(p.proargnames[:p.pronargs], ' ') LIKE '%workspace%'
    """)
    assert [each["proname"] for each in found] == ["create_workspace"]


async def test_the_logins_hold_nothing_of_their_own(superuser: asyncpg.Connection[Any]) -> None:
    """All they may do is what their role may, so the lists of these are the whole of it; they may only connect."""
    granted = await superuser.fetch(
        """
        SELECT DISTINCT d.classid::regclass::text AS what FROM pg_shdepend d
        WHERE d.dbid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
          AND d.refclassid = 'pg_authid'::regclass AND d.refobjid = ANY (SELECT r::regrole FROM unnest($1::text[]) r)
        """,
        list(LOGINS.values()),
    )
    assert {each["what"] for each in granted} <= {"pg_database", "pg_auth_members", "pg_db_role_setting"}


CALLERS = {
    "claim_jobs": {WORKER},
    "clean_up": {WORKER},
    "copies_outside": set(),
    "count_common_terms": {WORKER},
    "measure_queue": {APP},
    "create_workspace": {APP},
    "delete_due": set(),
    "drop_partitions": {WORKER},
    "drop_unsupported_edge": set(),
    "ensure_partitions": {WORKER},
    "erase_history": {APP},
    "erase_jobs": BEHIND_A_WALL,
    "erase_subject": BEHIND_A_WALL,
    "expire_copies": BEHIND_A_WALL,
    "expire_leases": set(),
    "fail_operation": set(),
    "refuse_unanswered": set(),
    "find_api_key": {APP},
    "find_large_workspaces": {WORKER},
    "find_outlived": {WORKER},
    "activate_generation": {WORKER},
    "archive_turns": set(),
    "find_webhooks": {WORKER},
    "find_workspaces": {WORKER},
    "find_due_workspaces": {WORKER},
    "find_unembedded": {WORKER},
    "has_memories": set(),
    "has_work": set(),
    "in_wall": set(),
    "is_in_scope": set(),
    "is_of_subject": set(),
    "is_outside": BEHIND_A_WALL,
    "iso_seconds": BEHIND_A_WALL,
    "lexical_ids": BEHIND_A_WALL,
    "make_partition": set(),
    "measure_upkeep": {APP},
    "memory_filter_keys": BEHIND_A_WALL,
    "open_reservations": BEHIND_A_WALL,
    "narrow_ids": BEHIND_A_WALL,
    "protect": set(),
    "purge_subject": BEHIND_A_WALL,
    "rewrite_turn": BEHIND_A_WALL,
    "ids_with_keys": set(),
    "count_scope_rows": set(),
    "schema_revision": {APP},
    "sparse_entry": BEHIND_A_WALL,
    "sparse_vector": BEHIND_A_WALL,
    "sweep_working": {WORKER},
    "tag_ids": BEHIND_A_WALL,
    "token_secret": {APP},
    "workspace_terms": BEHIND_A_WALL,
}
"""Who may call which function. A new one belongs here, and what it reveals into test_definers.py."""


async def test_each_function_has_the_callers_it_needs(superuser: asyncpg.Connection[Any]) -> None:
    found = {
        function["proname"]: set(function["callers"]) - {"loxodon_owner"}
        for function in await superuser.fetch(FUNCTIONS)
    }
    assert {name: callers for name, callers in found.items() if CALLERS.get(name) != callers} == {}
    assert CALLERS.keys() - found.keys() == set()


@pytest.mark.parametrize("role", [APP, WORKER, WALLED])
async def test_a_partition_cannot_be_read_by_its_name(superuser: asyncpg.Connection[Any], role: str) -> None:
    names = await superuser.fetch("SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'")
    async with superuser.transaction():
        await superuser.execute(f"SET LOCAL ROLE {role}; SET LOCAL loxodon.workspace = '{'0' * 32}'")
        for name in names:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                async with superuser.transaction():
                    await superuser.fetch(f"SELECT * FROM {name['relname']} LIMIT 1")
