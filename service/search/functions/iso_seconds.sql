-- Seconds since 1970 of an ISO 8601 text in the form that filters accept, else NULL. In UTC unless it has a zone.
CREATE OR REPLACE FUNCTION iso_seconds(of_text text)
RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = public, pg_temp
SET TimeZone = 'UTC'
AS $$
BEGIN
    IF of_text ~ '^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)?)?$'
            AND pg_input_is_valid(of_text, 'timestamptz') THEN
        RETURN extract(epoch FROM of_text::timestamptz);
    END IF;
    RETURN NULL;
END $$;

GRANT EXECUTE ON FUNCTION iso_seconds TO loxodon_app, loxodon_walled;
