"""Turns that are found by meaning and by words, their log, and what is known of a user

A turn carries the scope of its conversation (`run_id` is the conversation's external id), so that one condition serves
memories and turns. Its vector stands apart, partitioned and indexed like those of memories. The log is append-only,
partitioned by the time of recording; its vector is the turn's. Turns that are there already take words and vector from
the memory with the same text.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

from service.db.migrate import script

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE conversation
    ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    ADD COLUMN version bigint NOT NULL DEFAULT 1,
    ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now();
CREATE INDEX ix_conversation_user ON conversation (workspace_id, user_id, created_at) WHERE user_id IS NOT NULL;
CREATE INDEX ix_conversation_agent ON conversation (workspace_id, agent_id, created_at) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_conversation_external ON conversation (workspace_id, external_id);
ALTER TABLE turn
    ADD COLUMN agent_id text, ADD COLUMN run_id text,
    ADD COLUMN token_count integer CONSTRAINT ck_turn_token_count CHECK (token_count >= 0),
    ADD COLUMN model varchar(100),
    ADD COLUMN metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    ADD COLUMN terms integer[] NOT NULL DEFAULT '{}'::integer[],
    ADD COLUMN bm25 sparsevec(1000000000),
    ADD CONSTRAINT ck_turn_turn_index CHECK (turn_index >= 0);
CREATE INDEX ix_turn_agent ON turn (workspace_id, agent_id, "timestamp" DESC) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_turn_run ON turn (workspace_id, run_id, "timestamp" DESC) WHERE run_id IS NOT NULL;
UPDATE turn t SET agent_id = c.agent_id, run_id = c.external_id FROM conversation c
WHERE c.workspace_id = t.workspace_id AND c.id = t.conversation_id;
UPDATE turn t SET terms = m.terms, bm25 = m.bm25 FROM memory_source s, memory m
WHERE s.workspace_id = t.workspace_id AND s.turn_id = t.id AND m.workspace_id = s.workspace_id AND m.id = s.memory_id
  AND m.content = t.content;
"""

VECTORS = """
CREATE TABLE turn_vector (
    workspace_id uuid NOT NULL,
    turn_id uuid NOT NULL,
    generation smallint NOT NULL,
    user_id text,
    agent_id text,
    run_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    embedding halfvec NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_turn_vector PRIMARY KEY (workspace_id, turn_id, generation),
    CONSTRAINT fk_turn_vector_turn FOREIGN KEY (workspace_id, turn_id)
        REFERENCES turn (workspace_id, id) ON DELETE CASCADE
) PARTITION BY HASH (workspace_id);
"""

PARTITION = """
CREATE TABLE turn_vector_p{number} PARTITION OF turn_vector
    FOR VALUES WITH (MODULUS {modulus}, REMAINDER {number});
ALTER TABLE turn_vector_p{number} ALTER COLUMN embedding SET STORAGE MAIN;
SELECT protect('turn_vector_p{number}');
"""

FIRST_GENERATION = """
ALTER TABLE turn_vector ADD CONSTRAINT ck_turn_vector_dimension_1
    CHECK (generation <> 1 OR vector_dims(embedding) = {dimension});
CREATE INDEX ix_turn_vector_hnsw_1 ON turn_vector
    USING hnsw ((embedding::halfvec({dimension})) halfvec_cosine_ops) WHERE generation = 1;
CREATE INDEX ix_turn_vector_user ON turn_vector (workspace_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX ix_turn_vector_agent ON turn_vector (workspace_id, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_turn_vector_run ON turn_vector (workspace_id, run_id) WHERE run_id IS NOT NULL;
INSERT INTO turn_vector (workspace_id, turn_id, generation, user_id, agent_id, run_id, channel, embedding)
SELECT DISTINCT ON (t.workspace_id, t.id) t.workspace_id, t.id, v.generation, t.user_id, t.agent_id, t.run_id,
       t.channel, v.embedding
FROM turn t
JOIN memory_source s ON s.workspace_id = t.workspace_id AND s.turn_id = t.id
JOIN memory m ON m.workspace_id = s.workspace_id AND m.id = s.memory_id AND m.content = t.content
JOIN memory_vector v ON v.workspace_id = m.workspace_id AND v.memory_id = m.id AND v.kind = 'text'
    AND v.generation = 1;
"""

LOG = """
CREATE TABLE conversation_log (
    workspace_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    turn_id uuid NOT NULL,
    turn_index integer NOT NULL,
    "timestamp" timestamptz NOT NULL,
    role varchar(20) NOT NULL,
    content text NOT NULL,
    content_hash varchar(64) NOT NULL,
    token_count integer,
    model varchar(100),
    channel varchar(100) NOT NULL DEFAULT '_global',
    metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    user_id text,
    agent_id text,
    run_id text,
    CONSTRAINT pk_conversation_log PRIMARY KEY (workspace_id, recorded_at, id)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX ix_conversation_log_conversation ON conversation_log (workspace_id, conversation_id, turn_index);
CREATE INDEX ix_conversation_log_channel ON conversation_log (workspace_id, channel, "timestamp");
CREATE INDEX ix_conversation_log_user ON conversation_log (workspace_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX ix_conversation_log_recorded ON conversation_log USING brin (recorded_at);
CREATE INDEX ix_conversation_log_timestamp ON conversation_log USING brin ("timestamp");
CREATE TABLE conversation_log_default PARTITION OF conversation_log DEFAULT;
INSERT INTO partitioned_table VALUES ('conversation_log', 'month');
"""

PROFILE = """
CREATE TABLE user_profile (
    workspace_id uuid NOT NULL,
    user_id text NOT NULL,
    preferences jsonb NOT NULL DEFAULT '{}'::jsonb,
    expertise_areas jsonb NOT NULL DEFAULT '[]'::jsonb,
    communication_style jsonb NOT NULL DEFAULT '{}'::jsonb,
    metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_user_profile PRIMARY KEY (workspace_id, user_id),
    CONSTRAINT ck_user_profile_preferences CHECK (jsonb_typeof(preferences) = 'object'),
    CONSTRAINT ck_user_profile_expertise_areas CHECK (jsonb_typeof(expertise_areas) = 'array'),
    CONSTRAINT ck_user_profile_communication_style CHECK (jsonb_typeof(communication_style) = 'object'),
    CONSTRAINT ck_user_profile_metadata CHECK (jsonb_typeof(metadata) = 'object')
);
"""

# Both repeat the wall in their bodies. purge_episodes runs before purge_subject, which removes the sources by which a
# memory's turns are found; of a memory that is gone only history knows them, or its texts, when the turns went first.
ERASURE = """
CREATE FUNCTION erase_conversation_log(until timestamptz, batch integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    removed bigint;
BEGIN
    DELETE FROM conversation_log l USING (
        SELECT workspace_id, recorded_at, id FROM conversation_log
        WHERE workspace_id = current_setting('loxodon.workspace')::uuid AND recorded_at <= until
        LIMIT batch
    ) old
    WHERE l.workspace_id = old.workspace_id AND l.recorded_at = old.recorded_at AND l.id = old.id;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;
CREATE FUNCTION purge_episodes(of_user text, of_agent text, of_run text, of_channel text, of_memory uuid)
RETURNS TABLE (name text, affected bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
    here uuid := current_setting('loxodon.workspace')::uuid;
    turns uuid[];
BEGIN
    IF of_memory IS NULL AND of_user IS NULL AND of_agent IS NULL AND of_run IS NULL THEN
        RAISE EXCEPTION 'a subject is a user, an agent, a run or a memory';
    END IF;
    SELECT coalesce(array_agg(id), '{}') INTO turns FROM (
        SELECT s.turn_id AS id FROM memory_source s WHERE s.workspace_id = here AND s.memory_id = of_memory
        UNION
        SELECT (was ->> 'turn_id')::uuid FROM memory_history h
            CROSS JOIN LATERAL jsonb_array_elements(coalesce(h.before -> 'sources', '[]')) was
        WHERE h.workspace_id = here AND h.memory_id = of_memory
        UNION
        SELECT t.id FROM turn t
        WHERE of_memory IS NULL AND t.workspace_id = here AND (of_user IS NULL OR t.user_id = of_user)
          AND (of_agent IS NULL OR t.agent_id = of_agent) AND (of_run IS NULL OR t.run_id = of_run)
          AND (of_channel IS NULL OR t.channel = of_channel)
    ) said;
    name := 'conversation_log';
    DELETE FROM conversation_log l WHERE l.workspace_id = here AND (l.turn_id = ANY (turns) OR EXISTS (
        SELECT FROM memory_history h WHERE h.workspace_id = here AND h.memory_id = of_memory
          AND h.user_id IS NOT DISTINCT FROM l.user_id AND h.agent_id IS NOT DISTINCT FROM l.agent_id
          AND l.content_hash IN (encode(sha256(convert_to(h.old_memory, 'UTF8')), 'hex'),
                                 encode(sha256(convert_to(h.new_memory, 'UTF8')), 'hex'))
        ) OR (of_memory IS NULL
        AND (of_user IS NULL OR l.user_id = of_user) AND (of_agent IS NULL OR l.agent_id = of_agent)
        AND (of_run IS NULL OR l.run_id = of_run) AND (of_channel IS NULL OR l.channel = of_channel)));
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    name := 'turn_vector';
    DELETE FROM turn_vector v WHERE v.workspace_id = here AND v.turn_id = ANY (turns);
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
    DELETE FROM turn t WHERE of_memory IS NULL AND t.workspace_id = here AND t.id = ANY (turns)
        AND NOT EXISTS (SELECT FROM memory_source s WHERE s.workspace_id = here AND s.turn_id = t.id);
    name := 'user_profile';
    DELETE FROM user_profile p WHERE p.workspace_id = here AND of_memory IS NULL AND p.user_id = of_user
        AND of_agent IS NULL AND of_run IS NULL AND of_channel IS NULL;
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN NEXT;
END $$;
REVOKE EXECUTE ON FUNCTION erase_conversation_log(timestamptz, integer),
    purge_episodes(text, text, text, text, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_conversation_log(timestamptz, integer),
    purge_episodes(text, text, text, text, uuid) TO loxodon_app;
"""

WALL = """
SELECT protect('turn_vector'), protect('conversation_log'), protect('conversation_log_default'),
       protect('user_profile');
GRANT SELECT, INSERT, UPDATE, DELETE ON turn_vector, user_profile TO loxodon_app;
GRANT SELECT, INSERT ON conversation_log TO loxodon_app;
SELECT ensure_partitions(now() + interval '7 days');
"""


# As the vectors of memories are: what was chosen at the first migration counts, whatever the settings say today.
CHOSEN = text("""
    SELECT (SELECT count(*) FROM pg_inherits WHERE inhparent = 'memory_vector'::regclass) AS partitions,
           (SELECT substring(pg_get_constraintdef(oid) FROM '= ([0-9]+)\\)+$') FROM pg_constraint
            WHERE conname = 'ck_memory_vector_dimension_1' AND conrelid = 'memory_vector'::regclass) AS dimension
""")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    chosen = op.get_bind().execute(CHOSEN).one()
    script(COLUMNS)
    script(VECTORS)
    for number in range(chosen.partitions):
        script(PARTITION.format(number=number, modulus=chosen.partitions))
    script(FIRST_GENERATION.format(dimension=chosen.dimension))
    for block in (LOG, PROFILE, ERASURE, WALL):
        script(block)
    op.execute("INSERT INTO schema_version (version, description) VALUES (15, 'episodes and profiles')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP FUNCTION purge_episodes(text, text, text, text, uuid)")
    op.execute("DROP FUNCTION erase_conversation_log(timestamptz, integer)")
    op.execute("DELETE FROM partitioned_table WHERE name = 'conversation_log'")
    op.execute("DROP TABLE user_profile, conversation_log, turn_vector")
    script("""
        ALTER TABLE turn DROP CONSTRAINT ck_turn_turn_index, DROP COLUMN agent_id, DROP COLUMN run_id,
            DROP COLUMN token_count, DROP COLUMN model, DROP COLUMN metadata, DROP COLUMN terms, DROP COLUMN bm25;
        DROP INDEX ix_conversation_user, ix_conversation_agent, ix_conversation_external;
        ALTER TABLE conversation DROP COLUMN metadata, DROP COLUMN version, DROP COLUMN updated_at;
    """)
    op.execute("DELETE FROM schema_version WHERE version = 15")
