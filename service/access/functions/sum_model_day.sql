-- What all workspaces together spent on the language model on a day.
CREATE OR REPLACE FUNCTION sum_model_day(of_day date)
RETURNS TABLE (calls bigint, prompt_tokens bigint, completion_tokens bigint, cost double precision)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
    SELECT coalesce(sum(d.calls), 0)::bigint, coalesce(sum(d.prompt_tokens), 0)::bigint,
           coalesce(sum(d.completion_tokens), 0)::bigint, coalesce(sum(d.cost), 0)
    FROM model_day d WHERE d.day = of_day
$$;

REVOKE EXECUTE ON FUNCTION sum_model_day(date) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION sum_model_day(date) TO loxodon_app;
