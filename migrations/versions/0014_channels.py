"""Finished operations do not stay for ever, and a channel is found by an index

`clean_up` takes operations along after as many days as jobs. The channel indexes are those of R1.22: a listing of
channels and a search of one channel across users start from them. Entities and conversations of a user and a channel
have theirs already (uq_entity_…, ix_conversation_channel).
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

CLEAN_UP = """
CREATE OR REPLACE FUNCTION clean_up(at timestamptz, job_days integer, embedding_days integer, batch integer)
RETURNS TABLE (name text, removed bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    target record;
BEGIN
    FOR target IN SELECT * FROM (VALUES
        ('idempotency', 'expires_at', at),
        ('llm_cache', 'expires_at', at),
        ('embedding_cache', 'created_at', at - make_interval(days => embedding_days)),
        {operation}('job', 'finished_at', at - make_interval(days => job_days)),
        ('job_run', 'finished_at', at - make_interval(days => job_days))
    ) AS old (relation, since, before) LOOP
        name := target.relation;
        EXECUTE format('DELETE FROM %1$I WHERE ctid = ANY (ARRAY('
                       'SELECT ctid FROM %1$I WHERE %2$I < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))',
                       target.relation, target.since)
        USING target.before, batch;
        GET DIAGNOSTICS removed = ROW_COUNT;
        RETURN NEXT;
    END LOOP;
END $$;
"""

OPERATION = "('operation', 'finished_at', at - make_interval(days => job_days)),\n        "

INDEXES = """
CREATE INDEX ix_operation_finished ON operation (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX ix_memory_channel ON memory (workspace_id, channel, created_at DESC);
CREATE INDEX ix_memory_user_channel ON memory (workspace_id, user_id, channel) WHERE user_id IS NOT NULL;
CREATE INDEX ix_conversation_of_channel ON conversation (workspace_id, channel);
CREATE INDEX ix_turn_channel ON turn (workspace_id, channel);
CREATE INDEX ix_entity_channel ON entity (workspace_id, channel);
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    script(CLEAN_UP.replace("{operation}", OPERATION))
    script(INDEXES)
    op.execute("INSERT INTO schema_version (version, description) VALUES (14, 'channel indexes, operations expire')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(
        "DROP INDEX ix_operation_finished, ix_memory_channel, ix_memory_user_channel, ix_conversation_of_channel, "
        "ix_turn_channel, ix_entity_channel"
    )
    script(CLEAN_UP.replace("{operation}", ""))
    op.execute("DELETE FROM schema_version WHERE version = 14")
