-- Workspaces and their API keys.

CREATE TABLE workspace (
    workspace_id uuid CONSTRAINT pk_workspace PRIMARY KEY,
    name varchar(200) NOT NULL,
    settings jsonb NOT NULL DEFAULT '{}'::jsonb,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_key (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    name varchar(200) NOT NULL,
    key_hash varchar(64) NOT NULL,
    hint varchar(16) NOT NULL,
    rights text[] NOT NULL,
    user_id text,
    agent_id text,
    run_id text,
    channel varchar(100),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    CONSTRAINT pk_api_key PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_api_key_key_hash UNIQUE (key_hash),
    CONSTRAINT fk_api_key_workspace FOREIGN KEY (workspace_id) REFERENCES workspace (workspace_id) ON DELETE CASCADE
);
