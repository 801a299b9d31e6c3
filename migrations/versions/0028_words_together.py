"""Frequent words open candidates together

A question of frequent words only opened the rows with the rarest of them: with a word of 4 % of a million texts the
first 20,000 that its index gave, the oldest, stood for the rest, and to read them took 50 to 80 ms. Best by BM25 are
rows with several of the words. They are found by the index alone, a tenth as many, and none is left out for its age.
Where too few rows have two of them, the rarest opens as before.
"""

from __future__ import annotations

from alembic import context, op

from service.db.migrate import script

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

BEFORE = "text, text, text, text[], boolean, integer[], sparsevec, integer, integer"
NOW = "text, text, text, text[], boolean, integer[], integer[], sparsevec, integer, integer, integer"

# `reach` bounds the work where even the rarest word is frequent: the rows met first stand for the rest.
MET = """ARRAY(
            SELECT met.id FROM (
                SELECT m.workspace_id, m.id, m.{weights} <#> asked AS distance FROM memory m
                WHERE workspace_terms(m.workspace_id, m.{terms}) && opened{together} AND m.{terms} <> '{{}}'
                  AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
                  AND (of_run IS NULL OR m.run_id = of_run) AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                LIMIT reach
            ) met WHERE met.workspace_id = here AND met.distance < 0 ORDER BY met.distance, met.id LIMIT wanted)"""

# Rows with one of `opening`; where `beside` is given, with one of these as well, unless those are fewer than `few`.
LEXICAL = """
CREATE FUNCTION lexical_ids(of_user text, of_agent text, of_run text, of_channels text[], in_context boolean,
                            opening integer[], beside integer[], asked sparsevec, reach integer, wanted integer,
                            few integer)
RETURNS TABLE (id uuid)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
    opened integer[] := workspace_terms(here, opening);
    others integer[] := workspace_terms(here, beside);
    found uuid[] := '{{}}';
BEGIN
    IF in_context THEN
        IF others IS NOT NULL THEN
            found := {contexts_together};
        END IF;
        IF others IS NULL OR cardinality(found) < few THEN
            found := {contexts};
        END IF;
    ELSE
        IF others IS NOT NULL THEN
            found := {texts_together};
        END IF;
        IF others IS NULL OR cardinality(found) < few THEN
            found := {texts};
        END IF;
    END IF;
    RETURN QUERY SELECT ids.id FROM unnest(found) WITH ORDINALITY AS ids (id, place) ORDER BY ids.place;
END $$;
REVOKE EXECUTE ON FUNCTION lexical_ids({now}) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lexical_ids({now}) TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    found = {}
    for name, terms, weights in (("texts", "terms", "bm25"), ("contexts", "context_terms", "context_bm25")):
        together = f"\n                  AND workspace_terms(m.workspace_id, m.{terms}) && others"
        found[name] = MET.format(terms=terms, weights=weights, together="")
        found[f"{name}_together"] = MET.format(terms=terms, weights=weights, together=together)
    script(f"DROP FUNCTION lexical_ids({BEFORE}); {LEXICAL.format(now=NOW, **found)}")
    op.execute("INSERT INTO schema_version (version, description) VALUES (28, 'frequent words open together')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    candidates = context.script.get_revision("0017").module
    script(f"DROP FUNCTION lexical_ids({NOW}); {candidates.LEXICAL}")
    script(f"""
        REVOKE EXECUTE ON FUNCTION lexical_ids({BEFORE}) FROM PUBLIC;
        GRANT EXECUTE ON FUNCTION lexical_ids({BEFORE}) TO loxodon_app;
    """)
    op.execute("DELETE FROM schema_version WHERE version = 28")
