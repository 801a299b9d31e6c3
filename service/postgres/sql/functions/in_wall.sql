-- Whether a row with these ids and channel is inside the wall of the transaction; true if it has none. For functions of
-- the owner, to whom policies do not apply; the policies of walls.sql say the same in a form that costs less per row.
-- `or_shared`: rows that belong to the whole workspace count as inside. `is_run`: whether a conversation is a run's; a
-- session of a run's name is inside only if the wall has its user.
CREATE OR REPLACE FUNCTION in_wall(
    of_user text,
    of_agent text,
    of_run text,
    of_channel text,
    or_shared boolean DEFAULT false,
    is_run boolean DEFAULT true
)
RETURNS boolean
LANGUAGE sql STABLE
SET search_path = public, pg_temp
AS $$
    SELECT (or_shared AND num_nonnulls(of_user, of_agent, of_run) = 0
            OR (wall.user_id IS NULL OR wall.user_id IS NOT DISTINCT FROM of_user)
                AND (wall.agent_id IS NULL OR wall.agent_id IS NOT DISTINCT FROM of_agent)
                AND (wall.run_id IS NULL
                     OR wall.run_id IS NOT DISTINCT FROM of_run AND (is_run OR wall.user_id IS NOT NULL)))
        AND (wall.channels IS NULL OR of_channel IS NOT NULL AND of_channel = ANY (wall.channels))
    FROM (SELECT nullif(current_setting('loxodon.wall_user_id', true), '') AS user_id,
                 nullif(current_setting('loxodon.wall_agent_id', true), '') AS agent_id,
                 nullif(current_setting('loxodon.wall_run_id', true), '') AS run_id,
                 nullif(current_setting('loxodon.wall_channels', true), '')::text[] AS channels) wall
$$;
