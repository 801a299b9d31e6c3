"""What leads from one memory to another, when memories end by themselves, and how a workspace starts anew

Edges are adjacency rows, found from both ends, and go with either memory. The functions of upkeep and reset are the
only ones that see expired rows of all workspaces, or may delete history: the application itself cannot.
"""

from __future__ import annotations

from alembic import op

from service.db.migrate import script

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

EDGES = """
CREATE TABLE memory_edge (
    workspace_id uuid NOT NULL,
    source_id uuid NOT NULL,
    rel_type varchar(32) NOT NULL,
    target_id uuid NOT NULL,
    strength double precision NOT NULL DEFAULT 1,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    t_valid timestamptz,
    t_invalid timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_memory_edge PRIMARY KEY (workspace_id, source_id, rel_type, target_id),
    CONSTRAINT ck_memory_edge_rel_type CHECK (rel_type IN
        ('OCCURRED_BEFORE', 'SIMILAR_TO', 'EXEMPLIFIES', 'INVALIDATED_BY', 'DERIVED_FROM', 'PREFERS_OVER',
         'EVOLVED_INTO', 'SUPERSEDES', 'PROMOTED_FROM', 'RELATES_TO', 'LEADS_TO', 'CONTRADICTS', 'REINFORCES',
         'PART_OF')),
    CONSTRAINT ck_memory_edge_strength CHECK (strength >= 0 AND strength <= 1),
    CONSTRAINT ck_memory_edge_validity CHECK (t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid),
    CONSTRAINT ck_memory_edge_ends CHECK (source_id <> target_id),
    CONSTRAINT fk_memory_edge_source FOREIGN KEY (workspace_id, source_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_memory_edge_target FOREIGN KEY (workspace_id, target_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_memory_edge_target ON memory_edge (workspace_id, target_id, rel_type, source_id);
"""

ENDS = """
ALTER TABLE memory ADD COLUMN expires_at timestamptz;
CREATE INDEX ix_memory_expires ON memory (expires_at) WHERE expires_at IS NOT NULL;
ALTER TABLE operation ADD COLUMN progress jsonb;
"""

# find_outlived: a workspace's own memory_retention_days wins over the service's; NULL or absent keeps for ever.
FUNCTIONS = """
CREATE FUNCTION find_outlived(at timestamptz, retention_days integer, wanted integer)
RETURNS TABLE (workspace_id uuid, memory_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
    (SELECT m.workspace_id, m.id FROM memory m WHERE m.expires_at <= at LIMIT wanted)
    UNION
    SELECT kept.workspace_id, old.id
    FROM (
        SELECT w.workspace_id, CASE WHEN w.settings ? 'memory_retention_days'
            THEN (w.settings ->> 'memory_retention_days')::integer ELSE retention_days END AS days
        FROM workspace w
    ) kept CROSS JOIN LATERAL (
        SELECT m.id FROM memory m
        WHERE m.workspace_id = kept.workspace_id AND m.created_at < at - make_interval(days => kept.days)
        ORDER BY m.created_at LIMIT wanted
    ) old
    WHERE kept.days IS NOT NULL
    LIMIT wanted
$$;
CREATE FUNCTION erase_history(until timestamptz, batch integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
    removed bigint;
BEGIN
    -- repeats the wall in its body: a SECURITY DEFINER function reads past the policy
    DELETE FROM memory_history h USING (
        SELECT workspace_id, recorded_at, id FROM memory_history
        WHERE workspace_id = current_setting('loxodon.workspace')::uuid AND recorded_at <= until
        LIMIT batch
    ) old
    WHERE h.workspace_id = old.workspace_id AND h.recorded_at = old.recorded_at AND h.id = old.id;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END $$;
REVOKE EXECUTE ON FUNCTION find_outlived(timestamptz, integer, integer), erase_history(timestamptz, integer)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_outlived(timestamptz, integer, integer) TO loxodon_worker;
GRANT EXECUTE ON FUNCTION erase_history(timestamptz, integer) TO loxodon_app;
"""

WALL = """
SELECT protect('memory_edge');
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_edge TO loxodon_app;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for block in (EDGES, ENDS, FUNCTIONS, WALL):
        script(block)
    op.execute("INSERT INTO schema_version (version, description) VALUES (10, 'edges and ends')")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP FUNCTION erase_history(timestamptz, integer), find_outlived(timestamptz, integer, integer)")
    op.execute("ALTER TABLE operation DROP COLUMN progress")
    op.execute("DROP INDEX ix_memory_expires")
    op.execute("ALTER TABLE memory DROP COLUMN expires_at")
    op.execute("DROP TABLE memory_edge")
    op.execute("DELETE FROM schema_version WHERE version = 10")
