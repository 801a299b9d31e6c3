-- Deletes at most `batch_size` rows of a table whose time `since` is at most `until`; returns how many. With SKIP LOCKED
-- and the limit, upkeep never waits for a request, and requests wait for it only briefly. Citus, which cannot choose
-- among the rows of several nodes, deletes those up to the time of the last of a batch.
CREATE OR REPLACE FUNCTION delete_due(of_table text, since text, until timestamptz, batch_size integer)
RETURNS bigint
LANGUAGE plpgsql
SET search_path = public, pg_temp
AS $$
DECLARE
    chosen text := 'ctid = ANY (ARRAY(SELECT ctid FROM %1$I WHERE %2$I <= %3$L LIMIT $1 FOR UPDATE SKIP LOCKED))';
    removed bigint;
BEGIN
    IF to_regclass('pg_dist_partition') IS NOT NULL THEN
        chosen := '%2$I <= %3$L';
        EXECUTE format('SELECT max(due) FROM (SELECT %2$I AS due FROM %1$I WHERE %2$I <= %3$L ORDER BY 1 LIMIT $1) first',
                       of_table, since, until) INTO until USING batch_size;
    END IF;
    EXECUTE format('DELETE FROM %1$I WHERE ' || chosen, of_table, since, until) USING batch_size;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;
