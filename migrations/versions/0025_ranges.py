"""Few rows of a large scope by ranges of numbers and times in metadata, by columns, and by two conditions at once

A range of a number in `metadata` that let .1 % of a million rows through read them all, 1.4 s. Numbers and times in
metadata now bear six more marks each, their sort order cut off after more and more bits (service/domain/spans.py says
which of them a range needs). A few columns that questions name are marks as well: equality on them was no better off.
A store takes 0.05 ms longer for each number, 0.01 ms without.

`narrow_ids` begins with the condition that ANALYZE knows to be the narrowest, walks through all of them together where
that one alone leaves too many, and looks at the time of the rows it finds.
"""

from __future__ import annotations

from alembic import context, op

from service.db.migrate import script

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

# A moment in the form that filters take for one, else NULL. Sessions are in UTC, whoever indexes need not be.
SECONDS = """
CREATE FUNCTION iso_seconds(of_text text) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = public, pg_temp SET timezone = 'UTC' AS $$
BEGIN
    IF of_text ~ '^\\d{4}-\\d\\d-\\d\\d([T ]\\d\\d:\\d\\d(:\\d\\d(\\.\\d{1,6})?)?(Z|[+-]\\d\\d:?\\d\\d)?)?$'
            AND pg_input_is_valid(of_text, 'timestamptz') THEN
        RETURN extract(epoch FROM of_text::timestamptz);
    END IF;
    RETURN NULL;
END $$;
"""

# As in 0022, and: words made of columns, and where `ranged` asks for it the bits of the float64 of numbers and times,
# in the order of the values; of the two halves of those bits the negative one runs backwards. What float64 does not
# hold stands at its ends or at zero. A question asks for the marks of equal values alone.
MARKS = """
CREATE FUNCTION memory_marks(of_workspace uuid, of_tags text[], of_prefixes text[], of_categories text[],
                             of_words text[], of_metadata jsonb, ranged boolean) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = public, pg_temp AS $$
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
                marks := marks || ARRAY[{cut}];
            END LOOP;
            IF ordered > 1 THEN
                marks := marks || (hashtext(name || ' many') # salt);
            END IF;
        END LOOP;
    END LOOP;
    RETURN marks;
END $$;
"""
CUT = ", ".join(f"hashtext(word || '{kept} ' || (bits >> {64 - kept})) # salt" for kept in (6, 12, 16, 20, 24, 28))

MARKED = """memory_marks({row}workspace_id, {row}tags, {row}tag_prefixes, {row}categories,
                             ARRAY['type ' || {row}type, 'role ' || {row}role, 'speaker ' || {row}speaker,
                                   'session ' || {row}session_id, 'conversation ' || {row}conversation_id::text],
                             {row}metadata, true)"""

INDEX = """
DROP INDEX ix_memory_marks;
CREATE INDEX ix_memory_marks ON memory USING gin ({marked}) WITH (fastupdate = off);
ANALYZE memory;
"""

# Rows with all of `all_of`, one of `any_of` and one of `also_of`, each of which may be empty, and of those the ones of
# the scope between two moments. NULL: too many are marked so, and nothing is known: more than `reach` of the workspace,
# or where a time is asked for ten times that, of which it leaves too many. What ANALYZE knows of the frequent marks
# says so without a walk through half of the index. One group of marks alone is enough where it leaves few: to hold
# hundreds of marks of a wide range against each row of a narrow one takes longer than to read the rows. contains
# implies overlaps, hence `all_of` stands for a group that is empty. Where the bitmap did not fit, the marks of whole
# pages would be computed again, hence work_mem.
NARROW = """
CREATE FUNCTION narrow_ids(of_user text, of_agent text, of_run text, of_channels text[], of_since timestamptz,
                           of_until timestamptz, all_of integer[], any_of integer[], also_of integer[], reach integer)
RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = public, pg_temp SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET work_mem = '64MB' AS $$
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
    deep integer := CASE WHEN of_since IS NULL AND of_until IS NULL THEN reach ELSE 10 * reach END;
    frequent integer[];
    shares real[];
    marked real := (SELECT c.reltuples FROM pg_class c WHERE c.oid = 'ix_memory_marks'::regclass);
    of_all real;
    of_any real;
    of_also real;
    least_of real;
    seen bigint;
    found uuid[];
BEGIN
    SELECT s.most_common_elems::text::integer[], s.most_common_elem_freqs INTO frequent, shares
    FROM pg_stats s WHERE s.schemaname = 'public' AND s.tablename = 'ix_memory_marks';
    of_all := (SELECT min(coalesce(shares[array_position(frequent, mark)], 0)) FROM unnest(all_of) mark);
    of_any := (SELECT sum(coalesce(shares[array_position(frequent, mark)], 0)) FROM unnest(any_of) mark);
    of_also := (SELECT sum(coalesce(shares[array_position(frequent, mark)], 0)) FROM unnest(also_of) mark);
    least_of := least(of_all, of_any, of_also);
    IF marked * least_of <= 2 * deep THEN
        IF least_of = of_all THEN
            {met_all}
        ELSIF least_of = of_any THEN
            {met_any}
        ELSE
            {met_also}
        END IF;
        IF seen <= deep AND cardinality(found) <= reach THEN
            RETURN found;
        END IF;
    END IF;
    IF num_nonnulls(of_all, of_any, of_also) > 1 AND marked * least_of <= 10 * deep
            AND marked * coalesce(of_all, 1) * coalesce(of_any, 1) * coalesce(of_also, 1) <= 2 * deep THEN
        {met_each}
        IF seen <= deep AND cardinality(found) <= reach THEN
            RETURN found;
        END IF;
    END IF;
    RETURN NULL;
END $$;
"""

MET = """WITH met AS MATERIALIZED (
                SELECT m.id, m.workspace_id = here
                    AND (of_user IS NULL OR m.user_id = of_user) AND (of_agent IS NULL OR m.agent_id = of_agent)
                    AND (of_run IS NULL OR m.run_id = of_run)
                    AND (of_channels IS NULL OR m.channel = ANY (of_channels))
                    AND (of_since IS NULL OR m."timestamp" >= of_since)
                    AND (of_until IS NULL OR m."timestamp" <= of_until) AS inside
                FROM memory m WHERE {borne}
                LIMIT deep + 1
            )
            SELECT count(*), coalesce(array_agg(met.id) FILTER (WHERE met.inside), '{}') INTO seen, found FROM met;"""

TAGGED = "memory_marks(here, prefixes, '{}', '{}', '{}', '{}', false)"

RIGHTS = """
REVOKE EXECUTE ON FUNCTION iso_seconds(text), memory_marks(uuid, text[], text[], text[], text[], jsonb, boolean),
    narrow_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION iso_seconds(text), memory_marks(uuid, text[], text[], text[], text[], jsonb, boolean),
    narrow_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[], integer)
    TO loxodon_app;
"""

FORMER = """
DROP FUNCTION narrow_ids(text, text, text, text[], integer[], integer[], integer);
DROP FUNCTION memory_marks(uuid, text[], text[], text[], jsonb);
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    marked = MARKED.replace("{row}", "m.")
    tags = context.script.get_revision("0022").module.TAGS
    for block in (
        SECONDS,
        MARKS.replace("{cut}", CUT),
        INDEX.replace("{marked}", MARKED.replace("{row}", "")),
        _narrow(marked),
        tags.replace("{keyed}", TAGGED).replace("{indexed}", f"{marked} && keyed"),
        FORMER,
        RIGHTS,
    ):
        script(block)
    op.execute("INSERT INTO schema_version (version, description) VALUES (25, 'rows by ranges and columns')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    before = context.script.get_revision("0022").module
    tagged = before.TAGS.replace("{keyed}", "memory_marks(here, prefixes, '{}', '{}', '{}')")
    script("DROP INDEX ix_memory_marks")
    for block in (
        before.MARKS,
        before.INDEX.replace("DROP INDEX ix_memory_tag_prefixes;", ""),
        before.NARROW,
        tagged.replace("{indexed}", before.BY_MARKS),
        before.RIGHTS,
    ):
        script(block)
    script("""
        DROP FUNCTION narrow_ids(text, text, text, text[], timestamptz, timestamptz, integer[], integer[], integer[],
                                 integer);
        DROP FUNCTION memory_marks(uuid, text[], text[], text[], text[], jsonb, boolean);
        DROP FUNCTION iso_seconds(text);
        DELETE FROM schema_version WHERE version = 25
    """)


def _narrow(marked: str) -> str:
    borne = {
        "all": f"{marked} @> all_of",
        "any": f"{marked} && any_of",
        "also": f"{marked} && also_of",
        "each": f"{marked} @> all_of AND {marked} && coalesce(nullif(any_of, '{{}}'), all_of)\n"
        f"                    AND {marked} && coalesce(nullif(also_of, '{{}}'), nullif(any_of, '{{}}'), all_of)",
    }
    shape = NARROW
    for name, condition in borne.items():
        shape = shape.replace(f"{{met_{name}}}", MET.replace("{borne}", condition))
    return shape
