-- The sparse vector over terms with these entries: of sparse_entry(), separated by commas, in the order of the terms.
-- Without entries it is empty. Neither function has a SET clause, so that the planner inlines them.
CREATE OR REPLACE FUNCTION sparse_vector(entries text)
RETURNS sparsevec
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ('{' || coalesce(entries, '') || '}/1000000000')::sparsevec;

GRANT EXECUTE ON FUNCTION sparse_vector TO loxodon_app, loxodon_walled;
