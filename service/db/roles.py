"""The three database roles, the settings of their sessions, and which roles may not serve requests.

`loxodon_owner` owns the schema and its SECURITY DEFINER functions, `loxodon_app` serves requests under row-level
security, `loxodon_worker` is the app with the few functions that upkeep needs. Roles are cluster-wide: they are made
when absent and never dropped, because another database of the cluster may use them.
docs/decisions/002-row-level-security.md
"""

from __future__ import annotations

from sqlalchemy import Connection, text

OWNER, APP, WORKER = "loxodon_owner", "loxodon_app", "loxodon_worker"

SESSION_SETTINGS = {
    # a generic plan, made after twelve small users, made a big user's search 50 times slower
    "plan_cache_mode": "force_custom_plan",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "random_page_cost": "1.1",  # for SSDs; under the default of 4 the planner sorts instead of reading an index
    "timezone": "UTC",
    "idle_in_transaction_session_timeout": "60s",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.ef_search": "400",
    "hnsw.max_scan_tuples": "10000",
}
"""Settings of every session. The roles have them too, for poolers that refuse start-up settings."""

CREATE = """
DO $$
DECLARE
    wanted text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('loxodon:roles', 0));
    FOREACH wanted IN ARRAY ARRAY['loxodon_owner', 'loxodon_app', 'loxodon_worker'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE', wanted);
        END IF;
    END LOOP;
    IF NOT pg_has_role('loxodon_worker', 'loxodon_app', 'MEMBER') THEN
        GRANT loxodon_app TO loxodon_worker;
    END IF;
    -- From Postgres 16 on the creator of a role administers it but may not become it, and a login that both migrates
    -- and serves has to become all three.
    FOREACH wanted IN ARRAY ARRAY['loxodon_owner', 'loxodon_app', 'loxodon_worker'] LOOP
        IF NOT pg_has_role(wanted, 'SET') AND pg_has_role(wanted, 'MEMBER WITH ADMIN OPTION') THEN
            EXECUTE format('GRANT %I TO %I', wanted, current_user);
        END IF;
    END LOOP;
END $$
"""

SCHEMA = """
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN
        CREATE EXTENSION vector;
    END IF;
    IF NOT has_schema_privilege('loxodon_owner', 'public', 'CREATE') THEN
        GRANT USAGE, CREATE ON SCHEMA public TO loxodon_owner;
    END IF;
    IF NOT has_schema_privilege('loxodon_app', 'public', 'USAGE') THEN
        GRANT USAGE ON SCHEMA public TO loxodon_app;
    END IF;
END $$
"""

FORBIDDEN = """
SELECT CASE
    WHEN r.rolsuper THEN 'is a superuser'
    WHEN r.rolbypassrls THEN 'bypasses row-level security'
    WHEN EXISTS (SELECT FROM pg_class c WHERE c.relowner = r.oid AND c.relnamespace = 'public'::regnamespace
                 AND c.relkind IN ('r', 'p')) THEN 'owns tables'
    WHEN pg_has_role(r.oid, to_regrole('loxodon_owner')::oid, 'USAGE') THEN 'inherits the owner role'
    END
FROM pg_roles r WHERE r.rolname = current_user
"""
"""Why the current role must not serve requests, or NULL. No policy applies to these."""


MAY_TAKE = "SELECT coalesce(pg_has_role(to_regrole(:wanted)::oid, 'SET'), true)"
"""Whether the current role may become another one; true while there is no such role, an error of its own."""


def prepare(connection: Connection) -> None:
    """Makes roles, extension and rights that are missing. Needs to be the database's owner, with CREATEROLE unless the
    roles exist."""
    connection.execute(text(CREATE))
    connection.execute(text(SCHEMA))
    if connection.scalar(text("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")):
        for role in (APP, WORKER):
            for name, value in SESSION_SETTINGS.items():
                connection.execute(text(f"ALTER ROLE {role} SET {name} = '{value}'"))
