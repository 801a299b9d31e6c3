-- Working memory.

-- UNLOGGED: writes produce no WAL; the table is empty after a crash, a failover or a restore.
CREATE SEQUENCE working_item_seq;
CREATE UNLOGGED TABLE working_item (
    workspace_id uuid NOT NULL,
    session_id uuid NOT NULL,
    kind varchar(8) NOT NULL
        CONSTRAINT ck_working_item_kind CHECK (kind IN ('turn', 'item', 'thought', 'goal')),
    key text NOT NULL,
    user_id text,
    agent_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    conversation_id text NOT NULL,
    turn_id uuid,
    value jsonb NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('working_item_seq'),
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    CONSTRAINT pk_working_item PRIMARY KEY (workspace_id, session_id, kind, key),
    CONSTRAINT fk_working_item_turn FOREIGN KEY (workspace_id, turn_id)
        REFERENCES turn (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_working_item_turn ON working_item (workspace_id, turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX ix_working_item_expires ON working_item (expires_at);
