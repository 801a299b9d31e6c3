-- The revision of the schema, and the oldest revision of the code that still works with it.
--
-- A migration that expands (adds what older code can ignore) leaves the latter. One after which older code would fail or
-- write wrong data (a dropped or renamed column, a changed function) sets it to its own revision.
-- service/postgres/readiness.py compares it with its own. docs/upgrades.md
CREATE OR REPLACE FUNCTION schema_revision()
RETURNS TABLE (revision integer, oldest_code integer)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT version_num::integer, 1 FROM alembic_version
$$;

GRANT EXECUTE ON FUNCTION schema_revision TO loxodon_app;
