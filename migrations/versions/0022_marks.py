"""Few rows of a large scope by what they are marked with: tags, categories, values in metadata

Under row-level security no GIN index is used (A2), so a condition on metadata that let few rows through read the whole
scope, 1.4 s for a million rows. One index over all that a row is marked with takes the place of that over tag prefixes
and serves `tag_ids` too. As in 0017 the marks are hashed together with the workspace, and a function past the policy
gives the ids alone; what collides, and what the conditions say beyond, is settled by whoever joins them back.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

# A value in metadata is hashed with the last step of its path, at any depth: `a.b` is b inside a, or a key of that
# name. jsonb_hash agrees with the equality of jsonb, for which 1 is 1.0. Loops, because one statement over all three
# sets is planned for a hundred million rows.
MARKS = """
CREATE FUNCTION memory_marks(of_workspace uuid, of_tags text[], of_prefixes text[], of_categories text[],
                             of_metadata jsonb) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = public, pg_temp AS $$
DECLARE
    salt constant integer := uuid_hash(of_workspace);
    marks integer[] := '{}';
    word text;
    inside jsonb;
    name text;
    held jsonb;
    single jsonb;
BEGIN
    FOREACH word IN ARRAY of_tags || of_prefixes LOOP
        marks := marks || (hashtext(word) # salt);
    END LOOP;
    FOREACH word IN ARRAY of_categories LOOP
        marks := marks || (hashtext('category:' || word) # salt);
    END LOOP;
    IF of_metadata = '{}' THEN
        RETURN marks;
    END IF;
    FOR inside IN SELECT jsonb_path_query(of_metadata, 'strict $.** ? (@.type() == "object")') LOOP
        FOR name, held IN SELECT pair.key, pair.value FROM jsonb_each(inside) pair LOOP
            FOR single IN SELECT jsonb_path_query(held, 'lax $[*] ? (@.type() != "object" && @.type() != "array")') LOOP
                marks := marks || (hashtext(split_part(name, '.', -1)) # jsonb_hash(single) # salt);
            END LOOP;
        END LOOP;
    END LOOP;
    RETURN marks;
END $$;
"""

INDEX = """
CREATE INDEX ix_memory_marks ON memory
    USING gin (memory_marks(workspace_id, tags, tag_prefixes, categories, metadata)) WITH (fastupdate = off)
    WHERE tags <> '{}' OR tag_prefixes <> '{}' OR categories <> '{}' OR metadata <> '{}';
DROP INDEX ix_memory_tag_prefixes;
ANALYZE memory;
"""

# Rows with all of `all_of` and one of `any_of`, either of which may be empty; contains implies overlaps, hence any_of
# becomes all_of where it is empty. NULL: more than `reach` rows of the workspace are marked so, and nothing is known.
# What ANALYZE knows of the frequent marks says so without a walk through half of the index. Where the bitmap did not
# fit, the marks of whole pages would be computed again, hence work_mem.
NARROW = """
CREATE FUNCTION narrow_ids(of_user text, of_agent text, of_run text, of_channels text[], all_of integer[],
                           any_of integer[], reach integer) RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET work_mem = '64MB' AS $$
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
    either integer[] := coalesce(nullif(any_of, '{}'), all_of);
    frequent integer[];
    shares real[];
    marked real := (SELECT c.reltuples FROM pg_class c WHERE c.oid = 'ix_memory_marks'::regclass);
BEGIN
    SELECT s.most_common_elems::text::integer[], s.most_common_elem_freqs INTO frequent, shares
    FROM pg_stats s WHERE s.schemaname = 'public' AND s.tablename = 'ix_memory_marks';
    IF marked * least((SELECT min(coalesce(shares[array_position(frequent, mark)], 0)) FROM unnest(all_of) mark),
                      (SELECT sum(coalesce(shares[array_position(frequent, mark)], 0)) FROM unnest(any_of) mark))
       > 2 * reach THEN
        RETURN NULL;
    END IF;
    RETURN (
        WITH met AS MATERIALIZED (
            SELECT m.id, m.workspace_id = here
                AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
                AND (of_run IS NULL OR m.run_id = of_run)
                AND (of_channels IS NULL OR m.channel = ANY (of_channels)) AS inside
            FROM memory m
            WHERE memory_marks(m.workspace_id, m.tags, m.tag_prefixes, m.categories, m.metadata) @> all_of
              AND memory_marks(m.workspace_id, m.tags, m.tag_prefixes, m.categories, m.metadata) && either
              AND (m.tags <> '{}' OR m.tag_prefixes <> '{}' OR m.categories <> '{}' OR m.metadata <> '{}')
            LIMIT reach + 1
        )
        SELECT CASE WHEN count(*) <= reach THEN coalesce(array_agg(met.id) FILTER (WHERE met.inside), '{}') END
        FROM met
    );
END $$;
"""

TAGS = """
CREATE OR REPLACE FUNCTION tag_ids(of_user text, of_agent text, of_run text, of_channels text[], prefixes text[],
                                   reach integer, wanted integer)
RETURNS TABLE (id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
    keyed integer[] := {keyed};
BEGIN
    RETURN QUERY
    WITH met AS MATERIALIZED (
        SELECT m.workspace_id, m.id, m.created_at FROM memory m
        WHERE {indexed}
          AND m.tag_prefixes && prefixes
          AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
          AND (of_run IS NULL OR m.run_id = of_run) AND (of_channels IS NULL OR m.channel = ANY (of_channels))
        LIMIT reach
    )
    SELECT met.id FROM met WHERE met.workspace_id = here ORDER BY met.created_at DESC, met.id LIMIT wanted;
END $$;
"""

BY_MARKS = """memory_marks(m.workspace_id, m.tags, m.tag_prefixes, m.categories, m.metadata) && keyed
          AND (m.tags <> '{}' OR m.tag_prefixes <> '{}' OR m.categories <> '{}' OR m.metadata <> '{}')"""
BY_PREFIXES = "workspace_words(m.workspace_id, m.tag_prefixes) && keyed AND m.tag_prefixes <> '{}'"

RIGHTS = """
REVOKE EXECUTE ON FUNCTION memory_marks(uuid, text[], text[], text[], jsonb),
    narrow_ids(text, text, text, text[], integer[], integer[], integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION memory_marks(uuid, text[], text[], text[], jsonb),
    narrow_ids(text, text, text, text[], integer[], integer[], integer) TO loxodon_app;
"""

# as in 0017
WORDS = """
CREATE FUNCTION workspace_words(of_workspace uuid, of_words text[]) RETURNS integer[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = public, pg_temp AS $$
    SELECT array_agg(hashtext(word) # uuid_hash(of_workspace)) FROM unnest(of_words) word
$$;
REVOKE EXECUTE ON FUNCTION workspace_words(uuid, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION workspace_words(uuid, text[]) TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    tags = _tags(keyed="memory_marks(here, prefixes, '{}', '{}', '{}')", indexed=BY_MARKS)
    for block in (MARKS, INDEX, NARROW, tags, RIGHTS):
        script(block)
    op.execute("DROP FUNCTION workspace_words(uuid, text[])")
    op.execute("INSERT INTO schema_version (version, description) VALUES (22, 'rows by their marks')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(WORDS)
    script("""
        CREATE INDEX ix_memory_tag_prefixes ON memory USING gin (workspace_words(workspace_id, tag_prefixes))
            WITH (fastupdate = off) WHERE tag_prefixes <> '{}';
        DROP FUNCTION narrow_ids(text, text, text, text[], integer[], integer[], integer);
        DROP INDEX ix_memory_marks;
    """)
    script(_tags(keyed="workspace_words(here, prefixes)", indexed=BY_PREFIXES))
    op.execute("DROP FUNCTION memory_marks(uuid, text[], text[], text[], jsonb)")
    op.execute("DELETE FROM schema_version WHERE version = 22")


def _tags(*, keyed: str, indexed: str) -> str:
    return TAGS.replace("{keyed}", keyed).replace("{indexed}", indexed)
