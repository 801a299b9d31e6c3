-- Whether a row with these ids and this channel belongs to a subject: it has every id that the subject names, and its
-- channel. Without a SET clause, so that the planner inlines it and uses the indexes. Only for purge_subject().
CREATE OR REPLACE FUNCTION is_of_subject(
    user_id text,
    agent_id text,
    run_id text,
    channel text,
    of_user text,
    of_agent text,
    of_run text,
    of_channel text
)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (of_user IS NULL OR user_id = of_user)
    AND (of_agent IS NULL OR agent_id = of_agent)
    AND (of_run IS NULL OR run_id = of_run)
    AND (of_channel IS NULL OR channel = of_channel);
