-- The revision of the schema, and the oldest revisions of the code that can still read it and write to it.
--
-- A migration that expands (adds what older code can ignore) changes neither. One after which older code would write
-- wrong data sets oldest_writer to its own revision; one that breaks reads of older code (a dropped or renamed column,
-- a changed function) sets both. service/postgres/readiness.py compares them with its own. docs/upgrades.md
CREATE OR REPLACE FUNCTION schema_revision()
RETURNS TABLE (revision integer, oldest_reader integer, oldest_writer integer)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT version_num::integer, 1, 1 FROM alembic_version
$$;

REVOKE EXECUTE ON FUNCTION schema_revision() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION schema_revision() TO loxodon_app;
