-- The cut-over: once committed, searches use the vectors of this generation. Returns false and changes nothing unless
-- the generation is being built: somebody may have rolled back. docs/decisions/065-re-embedding.md
CREATE OR REPLACE FUNCTION activate_generation(wanted integer)
RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp
AS $$
BEGIN
    PERFORM FROM embedding_generation g ORDER BY g.generation FOR UPDATE;
    IF NOT EXISTS (SELECT FROM embedding_generation g WHERE g.generation = wanted AND g.state = 'building') THEN
        RETURN false;
    END IF;
    UPDATE embedding_generation SET state = 'retired' WHERE state = 'active';
    UPDATE embedding_generation SET state = 'active', activated_at = now() WHERE generation = wanted;
    RETURN true;
END $$;

GRANT EXECUTE ON FUNCTION activate_generation TO loxodon_worker;
