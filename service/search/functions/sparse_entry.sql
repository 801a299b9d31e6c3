-- The weight of a term as an entry of a sparse vector: its indexes begin at 1 in SQL, at 0 in the driver.
CREATE OR REPLACE FUNCTION sparse_entry(term integer, weight double precision)
RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (term + 1)::text || ':' || weight::text;

GRANT EXECUTE ON FUNCTION sparse_entry TO loxodon_app, loxodon_walled;
