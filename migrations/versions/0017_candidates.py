"""Candidates of large scopes: words and tags by index

Under row-level security no GIN index is used: its operators are not leakproof (A2). These two functions read past
the policy, repeat the workspace in their body and return ids alone; whoever calls them joins the ids back under the
policy. The indexed values are hashed together with the workspace, so a word that is common in one tenant's texts makes
no posting list longer for another. Plans are generic and cannot scan sequentially: with the optional scope columns as
parameters only the GIN index is left to begin with.

`term_stat` holds how many texts of a workspace a word stands in, counted by a job. The row of term 0 is the number of
texts, and the rows of the nil workspace are those of all workspaces together, of words that several of them use.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

# A hash per value: what collides is thrown out by the comparison of the values themselves.
KEYED = """
CREATE FUNCTION workspace_terms(of_workspace uuid, of_terms integer[]) RETURNS integer[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = public, pg_temp AS $$
    SELECT array_agg(term # uuid_hash(of_workspace)) FROM unnest(of_terms) term
$$;
CREATE FUNCTION workspace_words(of_workspace uuid, of_words text[]) RETURNS integer[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = public, pg_temp AS $$
    SELECT array_agg(hashtext(word) # uuid_hash(of_workspace)) FROM unnest(of_words) word
$$;
"""

INDEXES = """
CREATE INDEX ix_memory_terms ON memory USING gin (workspace_terms(workspace_id, terms))
    WITH (fastupdate = off) WHERE terms <> '{}';
CREATE INDEX ix_memory_context_terms ON memory USING gin (workspace_terms(workspace_id, context_terms))
    WITH (fastupdate = off) WHERE context_terms <> '{}';
CREATE INDEX ix_memory_tag_prefixes ON memory USING gin (workspace_words(workspace_id, tag_prefixes))
    WITH (fastupdate = off) WHERE tag_prefixes <> '{}';
"""

STAT = """
CREATE TABLE term_stat (
    workspace_id uuid NOT NULL,
    term integer NOT NULL,
    texts integer NOT NULL,
    contexts integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_term_stat PRIMARY KEY (workspace_id, term),
    CONSTRAINT ck_term_stat_counts CHECK (term >= 0 AND texts >= 0 AND contexts >= 0)
);
SELECT protect('term_stat');
CREATE POLICY common ON term_stat FOR SELECT TO loxodon_app
    USING (workspace_id = '00000000-0000-0000-0000-000000000000');
GRANT SELECT, INSERT, UPDATE, DELETE ON term_stat TO loxodon_app;
"""

# `reach` bounds the work where every word of a question is frequent: the rows met first stand for the rest.
LEXICAL = """
CREATE FUNCTION lexical_ids(of_user text, of_agent text, of_run text, of_channels text[], in_context boolean,
                            opening integer[], asked sparsevec, reach integer, wanted integer)
RETURNS TABLE (id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
    keyed integer[] := workspace_terms(here, opening);
BEGIN
    IF in_context THEN
        RETURN QUERY
        WITH met AS MATERIALIZED (
            SELECT m.workspace_id, m.id, m.context_bm25 <#> asked AS distance FROM memory m
            WHERE workspace_terms(m.workspace_id, m.context_terms) && keyed AND m.context_terms <> '{}'
              AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
              AND (of_run IS NULL OR m.run_id = of_run) AND (of_channels IS NULL OR m.channel = ANY (of_channels))
            LIMIT reach
        )
        SELECT met.id FROM met WHERE met.workspace_id = here AND met.distance < 0
        ORDER BY met.distance, met.id LIMIT wanted;
    ELSE
        RETURN QUERY
        WITH met AS MATERIALIZED (
            SELECT m.workspace_id, m.id, m.bm25 <#> asked AS distance FROM memory m
            WHERE workspace_terms(m.workspace_id, m.terms) && keyed AND m.terms <> '{}'
              AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
              AND (of_run IS NULL OR m.run_id = of_run) AND (of_channels IS NULL OR m.channel = ANY (of_channels))
            LIMIT reach
        )
        SELECT met.id FROM met WHERE met.workspace_id = here AND met.distance < 0
        ORDER BY met.distance, met.id LIMIT wanted;
    END IF;
END $$;
"""

TAGS = """
CREATE FUNCTION tag_ids(of_user text, of_agent text, of_run text, of_channels text[], prefixes text[], reach integer,
                        wanted integer)
RETURNS TABLE (id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
    keyed integer[] := workspace_words(here, prefixes);
BEGIN
    RETURN QUERY
    WITH met AS MATERIALIZED (
        SELECT m.workspace_id, m.id, m.created_at FROM memory m
        WHERE workspace_words(m.workspace_id, m.tag_prefixes) && keyed AND m.tag_prefixes <> '{}'
          AND m.tag_prefixes && prefixes
          AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
          AND (of_run IS NULL OR m.run_id = of_run) AND (of_channels IS NULL OR m.channel = ANY (of_channels))
        LIMIT reach
    )
    SELECT met.id FROM met WHERE met.workspace_id = here ORDER BY met.created_at DESC, met.id LIMIT wanted;
END $$;
"""

# Large workspaces only: below, frequencies are counted in the search itself.
LARGE = """
CREATE FUNCTION find_large_workspaces(minimum integer) RETURNS TABLE (workspace_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    SELECT w.workspace_id FROM workspace w
    WHERE (SELECT count(*) FROM (SELECT FROM memory m WHERE m.workspace_id = w.workspace_id LIMIT minimum) few)
          >= minimum
    ORDER BY w.workspace_id
$$;
CREATE FUNCTION count_common_terms(least_workspaces integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    nil constant uuid := '00000000-0000-0000-0000-000000000000';
    made bigint;
BEGIN
    DELETE FROM term_stat t WHERE t.workspace_id = nil OR NOT EXISTS
        (SELECT FROM workspace w WHERE w.workspace_id = t.workspace_id);
    -- a word of one or two tenants must not be seen in another one's scores
    INSERT INTO term_stat (workspace_id, term, texts, contexts)
    SELECT nil, t.term, least(sum(t.texts), 2147483647), least(sum(t.contexts), 2147483647)
    FROM term_stat t GROUP BY t.term HAVING t.term = 0 OR count(*) >= least_workspaces;
    GET DIAGNOSTICS made = ROW_COUNT;
    RETURN made;
END $$;
"""

RIGHTS = """
REVOKE EXECUTE ON FUNCTION workspace_terms(uuid, integer[]), workspace_words(uuid, text[]),
    lexical_ids(text, text, text, text[], boolean, integer[], sparsevec, integer, integer),
    tag_ids(text, text, text, text[], text[], integer, integer),
    find_large_workspaces(integer), count_common_terms(integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION workspace_terms(uuid, integer[]), workspace_words(uuid, text[]),
    lexical_ids(text, text, text, text[], boolean, integer[], sparsevec, integer, integer),
    tag_ids(text, text, text, text[], text[], integer, integer)
    TO loxodon_app;
GRANT EXECUTE ON FUNCTION find_large_workspaces(integer), count_common_terms(integer) TO loxodon_worker;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for block in (KEYED, INDEXES, STAT, LEXICAL, TAGS, LARGE, RIGHTS):
        script(block)
    op.execute("INSERT INTO schema_version (version, description) VALUES (17, 'candidates of large scopes')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script("""
        DROP FUNCTION count_common_terms(integer), find_large_workspaces(integer),
            tag_ids(text, text, text, text[], text[], integer, integer),
            lexical_ids(text, text, text, text[], boolean, integer[], sparsevec, integer, integer);
        DROP TABLE term_stat;
        DROP INDEX ix_memory_tag_prefixes, ix_memory_context_terms, ix_memory_terms;
        DROP FUNCTION workspace_words(uuid, text[]), workspace_terms(uuid, integer[]);
    """)
    op.execute("DELETE FROM schema_version WHERE version = 17")
