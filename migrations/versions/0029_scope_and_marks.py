"""A middling scope and what its rows are marked with, both by their indexes

`narrow_ids` looked at marks alone and gave up where more rows of the workspace bear them than are few. Of a scope of
20,000 in a million all rows were then read from the table, for 1 % of them: 65 ms. Two bitmaps, of the scope and of the
marks, meet before any row is read.
"""

from __future__ import annotations

from alembic import context, op

from service.db.migrate import script

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

SCOPE = """m.workspace_id = here
            AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
            AND (of_run IS NULL OR m.run_id = of_run) AND (of_channels IS NULL OR m.channel = ANY (of_channels))"""

# The rows of a scope that bear the marks: NULL where these are more than `reach`. Planned for its values, of which what
# is not given falls away. Rows are read from bitmaps alone: to work out the marks of a scope's rows one by one takes
# longer than anything else could.
MEET = """
CREATE FUNCTION scope_marked_ids(of_user text, of_agent text, of_run text, of_channels text[], of_since timestamptz,
                                 of_until timestamptz, all_of integer[], any_of integer[], also_of integer[],
                                 reach integer)
RETURNS uuid[]
LANGUAGE plpgsql STABLE SET search_path = public, pg_temp SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off SET enable_indexscan = off SET enable_indexonlyscan = off SET work_mem = '64MB' AS $$
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
    found uuid[];
BEGIN
    found := ARRAY(
        SELECT m.id FROM memory m WHERE {scope}
            AND (of_since IS NULL OR m."timestamp" >= of_since) AND (of_until IS NULL OR m."timestamp" <= of_until)
            AND (all_of = '{}' OR {marked} @> all_of)
            AND (any_of = '{}' OR {marked} && any_of)
            AND (also_of = '{}' OR {marked} && also_of)
        LIMIT reach + 1
    );
    RETURN CASE WHEN cardinality(found) <= reach THEN found END;
END $$;
CREATE FUNCTION scope_rows(of_user text, of_agent text, of_run text, of_channels text[], most integer) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = public, pg_temp SET plan_cache_mode = force_custom_plan
SET enable_seqscan = off AS $$
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
BEGIN
    RETURN (SELECT count(*) FROM (
        SELECT FROM memory m WHERE {scope}
        LIMIT most + 1
    ) few);
END $$;
REVOKE ALL ON FUNCTION
    scope_marked_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer),
    scope_rows(text, text, text, text[], integer)
    FROM PUBLIC;
"""

# A mark in the index takes a third of what a row of the table does, and all is looked up twice. To count a scope's rows
# takes 0.1 ms per thousand; statistics on its ids are hidden, the table being under row-level security.
LAST = "    RETURN NULL;\nEND $$;"
BRANCH = """    IF num_nonnulls(of_user, of_agent, of_run) > 0 AND marked * least_of <= 1.5 * middling THEN
        scoped := scope_rows(of_user, of_agent, of_run, of_channels, middling);
        IF scoped <= middling AND marked * least_of <= 1.5 * scoped THEN
            RETURN scope_marked_ids(of_user, of_agent, of_run, of_channels, of_since, of_until, all_of, any_of, also_of,
                                    reach);
        END IF;
    END IF;
    RETURN NULL;
END $$;"""
DECLARED = "    middling constant integer := 30000;\n    scoped bigint;\n"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    marked = context.script.get_revision("0025").module.MARKED.replace("{row}", "m.")
    script(MEET.replace("{scope}", SCOPE).replace("{marked}", marked))
    script(_narrow().replace("    seen bigint;", DECLARED + "    seen bigint;").replace(LAST, BRANCH))
    op.execute("INSERT INTO schema_version (version, description) VALUES (29, 'rows of a scope by their marks')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(_narrow())
    script("""
        DROP FUNCTION scope_marked_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[],
                                       integer[], integer);
        DROP FUNCTION scope_rows(text, text, text, text[], integer);
    """)
    op.execute("DELETE FROM schema_version WHERE version = 29")


def _narrow() -> str:
    before = context.script.get_revision("0026").module
    made: str = before._narrow().replace(before.BEFORE, before.NOW)
    return made
