-- The revision of the schema, and the oldest revision of the code that can still read it.
--
-- A migration that older code cannot read past (a dropped or renamed column, a changed function) puts its own revision
-- in place of oldest_reader; one that only adds leaves it. service/db/readiness.py compares both with its own.
CREATE OR REPLACE FUNCTION schema_revision()
RETURNS TABLE (revision integer, oldest_reader integer)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT version_num::integer, 1 FROM alembic_version
$$;

REVOKE EXECUTE ON FUNCTION schema_revision() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION schema_revision() TO loxodon_app;
