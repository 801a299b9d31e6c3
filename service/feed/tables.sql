-- Webhooks and their deliveries.

-- Where changes are sent. `position` and `seq`: the place in the change feed up to which deliveries exist.
CREATE TABLE webhook (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    url text NOT NULL,
    description text,
    events text[] NOT NULL DEFAULT '{}',
    enabled boolean NOT NULL DEFAULT true,
    disabled_reason text,
    secret text NOT NULL,
    position bigint NOT NULL,
    seq bigint NOT NULL,
    failures integer NOT NULL DEFAULT 0,
    failing_since timestamptz,
    retry_at timestamptz,
    busy_until timestamptz,
    delivered_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_webhook PRIMARY KEY (workspace_id, id)
);

-- A change to send, and the outcome; its text is read from history when it is sent.
CREATE TABLE webhook_delivery (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    position bigint NOT NULL,
    seq bigint NOT NULL,
    event varchar(20) NOT NULL,
    memory_id uuid NOT NULL,
    state varchar(9) NOT NULL DEFAULT 'waiting' CONSTRAINT ck_webhook_delivery_state
        CHECK (state IN ('waiting', 'delivered', 'dead', 'dropped')),
    attempts integer NOT NULL DEFAULT 0,
    status integer,
    error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    attempted_at timestamptz,
    finished_at timestamptz,
    CONSTRAINT pk_webhook_delivery PRIMARY KEY (workspace_id, id),
    CONSTRAINT fk_webhook_delivery_webhook_id_webhook FOREIGN KEY (workspace_id, webhook_id)
        REFERENCES webhook (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_webhook_delivery_webhook ON webhook_delivery (workspace_id, webhook_id, id);
CREATE INDEX ix_webhook_delivery_waiting ON webhook_delivery (workspace_id, webhook_id, attempted_at NULLS FIRST, id)
    WHERE state = 'waiting';
CREATE INDEX ix_webhook_delivery_finished ON webhook_delivery (finished_at) WHERE finished_at IS NOT NULL;
