-- The filter keys of a row: hashes of its tags, tag prefixes, categories, words made of columns, and metadata.
--
-- Each is hashed together with the workspace, so what is common in one tenant makes no posting list longer for
-- another. A metadata value is hashed with the last step of its path, at any depth: `a.b` is b inside a, or a key of
-- that name. jsonb_hash agrees with the equality of jsonb, for which 1 is 1.0. With `ranged`, numbers and times also
-- give the leading 6, 12, 16, 20, 24 and 28 bits of their float64 in the order of the values (service/domain/spans.py
-- picks those a range needs); what float64 does not hold stands at its ends or at zero. Loops, because one statement
-- over all three sets is planned for a hundred million rows.
CREATE OR REPLACE FUNCTION memory_marks(
    of_workspace uuid,
    of_tags text[],
    of_prefixes text[],
    of_categories text[],
    of_words text[],
    of_metadata jsonb,
    ranged boolean
)
RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = public, pg_temp
AS $$
DECLARE
    salt constant integer := uuid_hash(of_workspace);
    marks integer[] := '{}';
    word text;
    inside jsonb;
    name text;
    held jsonb;
    single jsonb;
    kind text;
    exact numeric;
    place double precision;
    bits bigint;
    ordered integer;
BEGIN
    FOREACH word IN ARRAY of_tags || of_prefixes || of_words LOOP
        IF word IS NOT NULL THEN
            marks := marks || (hashtext(word) # salt);
        END IF;
    END LOOP;
    FOREACH word IN ARRAY of_categories LOOP
        marks := marks || (hashtext('category:' || word) # salt);
    END LOOP;
    IF of_metadata = '{}' THEN
        RETURN marks;
    END IF;
    FOR inside IN SELECT jsonb_path_query(of_metadata, 'strict $.** ? (@.type() == "object")') LOOP
        FOR name, held IN SELECT split_part(pair.key, '.', -1), pair.value FROM jsonb_each(inside) pair LOOP
            ordered := 0;
            FOR single IN SELECT jsonb_path_query(held, 'lax $[*] ? (@.type() != "object" && @.type() != "array")') LOOP
                marks := marks || (hashtext(name) # jsonb_hash(single) # salt);
                kind := jsonb_typeof(single);
                IF NOT ranged OR kind NOT IN ('number', 'string') THEN
                    CONTINUE;
                ELSIF kind = 'number' THEN
                    exact := single;
                    place := CASE WHEN exact > 1e300 THEN 'infinity' WHEN exact < -1e300 THEN '-infinity'
                                  WHEN abs(exact) < 1e-300 THEN 0 ELSE exact END;
                ELSIF single #>> '{}' LIKE '____-__-__%' THEN
                    kind := 'time';
                    place := iso_seconds(single #>> '{}');
                    CONTINUE WHEN place IS NULL;
                ELSE
                    CONTINUE;
                END IF;
                ordered := ordered + 1;
                bits := ('x' || encode(float8send(place), 'hex'))::bit(64)::bigint;
                bits := CASE WHEN bits < 0 THEN bits # 9223372036854775807 ELSE bits END;
                word := name || ' ' || kind;
                marks := marks || ARRAY[hashtext(word || '6 ' || (bits >> 58)) # salt, hashtext(word || '12 ' || (bits >> 52)) # salt, hashtext(word || '16 ' || (bits >> 48)) # salt, hashtext(word || '20 ' || (bits >> 44)) # salt, hashtext(word || '24 ' || (bits >> 40)) # salt, hashtext(word || '28 ' || (bits >> 36)) # salt];
            END LOOP;
            IF ordered > 1 THEN
                marks := marks || (hashtext(name || ' many') # salt);
            END IF;
        END LOOP;
    END LOOP;
    RETURN marks;
END $$;

REVOKE EXECUTE ON FUNCTION memory_marks(uuid, text[], text[], text[], text[], jsonb, boolean) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION memory_marks(uuid, text[], text[], text[], text[], jsonb, boolean) TO loxodon_app;
