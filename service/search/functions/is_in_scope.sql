-- Whether a memory with these ids is in a scope: it has every given id, or with `match_any` one of them; with
-- `with_shared` also if it has none (service/postgres/scopes.py, readable). It has no SET clauses, so that the planner
-- can inline it and use the indexes of a scope. Only for functions of the owner.
CREATE OR REPLACE FUNCTION is_in_scope(
    user_id text,
    agent_id text,
    run_id text,
    of_user text,
    of_agent text,
    of_run text,
    match_any boolean,
    with_shared boolean
)
RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (NOT match_any
        AND (of_user IS NULL OR user_id = of_user)
        AND (of_agent IS NULL OR agent_id = of_agent)
        AND (of_run IS NULL OR run_id = of_run)
        AND NOT (with_shared AND of_user IS NULL AND of_agent IS NULL AND of_run IS NULL))
    OR (match_any AND (user_id = of_user OR agent_id = of_agent OR run_id = of_run))
    OR (with_shared AND user_id IS NULL AND agent_id IS NULL AND run_id IS NULL);
