-- The filter keys of a row: hashes of its tags, tag prefixes, categories, `words` from columns, and metadata.
--
-- Each is hashed together with the workspace, so that common values of one tenant do not lengthen posting lists of
-- another. A metadata value is hashed with the last step of its path, at any depth: `a.b` is b inside a, or a key of
-- that name. jsonb_hash agrees with jsonb's equality, for which 1 equals 1.0.
--
-- With `with_ranges`, numbers and times also give the leading 6, 12, 16, 20, 24 and 28 bits of their float64 in the
-- order of the values, which for negative numbers are reversed (service/search/indexed_conditions.py picks the ones
-- that a range needs). Numbers beyond float64 count as infinite or zero.
--
-- Loops are used because one statement over all three sets would be planned for a hundred million rows. Keys are
-- appended one by one, which is done in place; appending an array would copy all keys.
CREATE OR REPLACE FUNCTION memory_filter_keys(
    of_workspace uuid,
    tags text[],
    tag_prefixes text[],
    categories text[],
    words text[],
    metadata jsonb,
    with_ranges boolean
)
RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = public, pg_temp
AS $$
DECLARE
    salt constant integer := uuid_hash(of_workspace);
    keys integer[] := '{}';
    word text;
    object jsonb;
    name text;
    value jsonb;
    scalar jsonb;
    kind text;
    exact_number numeric;
    number double precision;
    bits bigint;
    range_values integer;
BEGIN
    FOREACH word IN ARRAY tags || tag_prefixes || words LOOP
        IF word IS NOT NULL THEN
            keys := keys || (hashtext(word) # salt);
        END IF;
    END LOOP;
    FOREACH word IN ARRAY categories LOOP
        keys := keys || (hashtext('category:' || word) # salt);
    END LOOP;
    IF metadata = '{}' THEN
        RETURN keys;
    END IF;
    FOR object IN SELECT jsonb_path_query(metadata, 'strict $.** ? (@.type() == "object")') LOOP
        FOR name, value IN SELECT split_part(pair.key, '.', -1), pair.value FROM jsonb_each(object) pair LOOP
            range_values := 0;
            FOR scalar IN
                SELECT jsonb_path_query(value, 'lax $[*] ? (@.type() != "object" && @.type() != "array")')
            LOOP
                keys := keys || (hashtext(name) # jsonb_hash(scalar) # salt);
                kind := jsonb_typeof(scalar);
                IF NOT with_ranges OR kind NOT IN ('number', 'string') THEN
                    CONTINUE;
                ELSIF kind = 'number' THEN
                    exact_number := scalar;
                    number := CASE WHEN exact_number > 1e300 THEN 'infinity' WHEN exact_number < -1e300 THEN '-infinity'
                                  WHEN abs(exact_number) < 1e-300 THEN 0 ELSE exact_number END;
                ELSIF scalar #>> '{}' LIKE '____-__-__%' THEN
                    kind := 'time';
                    number := iso_seconds(scalar #>> '{}');
                    CONTINUE WHEN number IS NULL;
                ELSE
                    CONTINUE;
                END IF;
                range_values := range_values + 1;
                bits := ('x' || encode(float8send(number), 'hex'))::bit(64)::bigint;
                bits := CASE WHEN bits < 0 THEN bits # 9223372036854775807 ELSE bits END;
                word := name || ' ' || kind;
                keys := keys || (hashtext(word || '6 ' || (bits >> 58)) # salt);
                keys := keys || (hashtext(word || '12 ' || (bits >> 52)) # salt);
                keys := keys || (hashtext(word || '16 ' || (bits >> 48)) # salt);
                keys := keys || (hashtext(word || '20 ' || (bits >> 44)) # salt);
                keys := keys || (hashtext(word || '24 ' || (bits >> 40)) # salt);
                keys := keys || (hashtext(word || '28 ' || (bits >> 36)) # salt);
            END LOOP;
            IF range_values > 1 THEN
                keys := keys || (hashtext(name || ' many') # salt);
            END IF;
        END LOOP;
    END LOOP;
    RETURN keys;
END $$;

GRANT EXECUTE ON FUNCTION memory_filter_keys TO loxodon_app, loxodon_walled;
