-- Rows whose foreign keys lead nowhere, or to another workspace: a restore or a superuser can go past the constraints.
-- `id` has the name of the constraint and its columns. Unlogged tables are left out on a standby, which has none of them.
CREATE OR REPLACE FUNCTION find_broken_references()
RETURNS TABLE (workspace_id uuid, id text)
LANGUAGE plpgsql STABLE
SET search_path = public, pg_temp
AS $$
DECLARE
    key record;
BEGIN
    FOR key IN
        SELECT k.conname AS name, k.conrelid::regclass AS child, k.confrelid::regclass AS parent,
               string_agg(format('p.%I = r.%I', there.attname, here.attname), ' AND ') AS is_met,
               string_agg(format('r.%I IS NOT NULL', here.attname), ' AND ') AS is_set,
               string_agg(format('r.%I', here.attname), ', ') FILTER (WHERE here.attname <> 'workspace_id') AS columns
        FROM pg_constraint k
        CROSS JOIN LATERAL unnest(k.conkey, k.confkey) AS pair (child_column, parent_column)
        JOIN pg_attribute here ON here.attrelid = k.conrelid AND here.attnum = pair.child_column
        JOIN pg_attribute there ON there.attrelid = k.confrelid AND there.attnum = pair.parent_column
        JOIN pg_class c ON c.oid = k.conrelid
        WHERE k.contype = 'f' AND k.connamespace = 'public'::regnamespace AND k.conparentid = 0
          AND (c.relpersistence = 'p' OR NOT pg_is_in_recovery())
        GROUP BY k.conname, k.conrelid, k.confrelid
    LOOP
        RETURN QUERY EXECUTE format(
            'SELECT r.workspace_id, concat_ws('' '', %L, %s) FROM %s r '
            'WHERE %s AND NOT EXISTS (SELECT FROM %s p WHERE %s)',
            key.name, coalesce(key.columns, 'r.workspace_id'), key.child, key.is_set, key.parent, key.is_met);
    END LOOP;
END $$;

REVOKE EXECUTE ON FUNCTION find_broken_references() FROM PUBLIC;
