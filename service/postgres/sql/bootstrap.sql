-- Roles, logins, extension and rights of Loxodon, for an administrator of the database to run once, in it. Superuser, or
-- its owner with CREATEROLE. May be run again: it adds what is missing. Passwords: ALTER ROLE loxodon_api PASSWORD '...',
-- and the same for loxodon_jobs and loxodon_migrate, or bootstrap-sql --passwords. docs/postgres.md

-- Roles and logins belong to the cluster, so another database of it may have them already.
DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['loxodon_owner', 'loxodon_app', 'loxodon_worker', 'loxodon_walled'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
        END IF;
    END LOOP;
    FOREACH wanted IN ARRAY ARRAY['loxodon_migrate', 'loxodon_api', 'loxodon_jobs'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', wanted);
        END IF;
    END LOOP;
END $$;

-- The owner makes tables and functions, the app serves requests, the worker does jobs: the app, and a little more.
GRANT loxodon_app TO loxodon_worker;

-- A transaction may go behind the wall of its key (SET LOCAL ROLE). What holds there must not hold for the app itself.
GRANT loxodon_walled TO loxodon_app WITH INHERIT FALSE, SET TRUE;

GRANT loxodon_owner TO loxodon_migrate;

GRANT loxodon_app TO loxodon_api;

GRANT loxodon_worker TO loxodon_jobs;

-- Only the owner may create anything in the schema: what another could put there, its functions would call.
DO $$
BEGIN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO loxodon_migrate, loxodon_api, loxodon_jobs', current_database());
END $$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;

GRANT USAGE, CREATE ON SCHEMA public TO loxodon_owner;

GRANT USAGE ON SCHEMA public TO loxodon_app, loxodon_walled;

CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;

-- The settings of every session, for poolers that refuse them at the start of one. The cast loads pgvector, without
-- which only a superuser may name its settings.
DO $$
DECLARE
    login text;
BEGIN
    PERFORM '[0]'::vector;
    FOREACH login IN ARRAY ARRAY['loxodon_api', 'loxodon_jobs'] LOOP
        EXECUTE format('ALTER ROLE %I SET plan_cache_mode = force_custom_plan', login);
        EXECUTE format('ALTER ROLE %I SET jit = off', login);
        EXECUTE format('ALTER ROLE %I SET max_parallel_workers_per_gather = 0', login);
        EXECUTE format('ALTER ROLE %I SET random_page_cost = 1.1', login);
        EXECUTE format('ALTER ROLE %I SET timezone = ''UTC''', login);
        EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = ''60s''', login);
        EXECUTE format('ALTER ROLE %I SET hnsw.iterative_scan = relaxed_order', login);
        EXECUTE format('ALTER ROLE %I SET hnsw.ef_search = 400', login);
        EXECUTE format('ALTER ROLE %I SET hnsw.max_scan_tuples = 10000', login);
    END LOOP;
END $$;
