-- Roles, logins, extension and rights of Loxodon. An administrator runs this once in the database, as superuser or as
-- its owner with CREATEROLE. Running it again adds what is missing. Passwords: ALTER ROLE loxodon_api PASSWORD '...',
-- and the same for loxodon_jobs and loxodon_migrate, or bootstrap-sql --passwords. docs/postgres.md

-- Roles and logins belong to the cluster, so they may exist already for another database.
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

-- The owner creates tables and functions, the app serves requests, and the worker runs jobs, with the app's rights and
-- a few more.
GRANT loxodon_app TO loxodon_worker;

-- A transaction may take the role of its key's wall (SET LOCAL ROLE), whose restrictions must not apply to the app
-- itself.
GRANT loxodon_walled TO loxodon_app WITH INHERIT FALSE, SET TRUE;

GRANT loxodon_owner TO loxodon_migrate;

GRANT loxodon_app TO loxodon_api;

GRANT loxodon_worker TO loxodon_jobs;

-- The nodes of a Citus cluster connect to each other as the role of a statement, which may be one of these. The last one
-- owns the tables there, because replication must see all rows of a shard that moves.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        ALTER ROLE loxodon_owner LOGIN;
        ALTER ROLE loxodon_walled LOGIN;
        IF to_regrole('loxodon_tables') IS NULL THEN
            CREATE ROLE loxodon_tables LOGIN BYPASSRLS;
        END IF;
        GRANT loxodon_tables TO loxodon_owner;
        GRANT USAGE, CREATE ON SCHEMA public TO loxodon_tables;
    END IF;
END $$;

-- Only the owner may create objects in the schema, because its functions would call what others put there.
DO $$
BEGIN
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO loxodon_migrate, loxodon_api, loxodon_jobs', current_database());
END $$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;

GRANT USAGE, CREATE ON SCHEMA public TO loxodon_owner;

GRANT USAGE ON SCHEMA public TO loxodon_app, loxodon_walled;

CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;

-- Session settings, set here because poolers refuse them at connection start. The cast loads pgvector; before that only
-- a superuser may set its parameters.
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
