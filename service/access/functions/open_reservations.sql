-- The reservations of tokens that end after `at_s`, and the tokens that they hold. A function, because Citus allows no
-- subquery in an INSERT.
CREATE OR REPLACE FUNCTION open_reservations(INOUT held jsonb, at_s float8, OUT tokens bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = public, pg_temp
AS $$
    SELECT coalesce(jsonb_object_agg(key, value), '{}'), coalesce(sum((value ->> 0)::bigint), 0)::bigint
    FROM jsonb_each(held) WHERE (value ->> 1)::float8 > at_s
$$;

GRANT EXECUTE ON FUNCTION open_reservations TO loxodon_app, loxodon_walled;
