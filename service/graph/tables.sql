-- Entities, their aliases and vectors, the memories that name them, and relations with evidence.

-- `name_key` is the casefolded name, unique for user and channel; `salience` 0..1.
CREATE TABLE entity (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    name text NOT NULL,
    name_key text NOT NULL,
    type text NOT NULL,
    description text,
    extracted_by varchar(16) NOT NULL,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    first_seen timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    salience double precision NOT NULL DEFAULT 0.5
        CONSTRAINT ck_entity_salience CHECK (salience >= 0 AND salience <= 1),
    base_salience double precision NOT NULL DEFAULT 0.5,
    access_count integer NOT NULL DEFAULT 0,
    last_accessed timestamptz,
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_entity_workspace_id_user_id_channel_name_key
        UNIQUE NULLS NOT DISTINCT (workspace_id, user_id, channel, name_key)
);
CREATE INDEX ix_entity_name ON entity (workspace_id, name_key);
CREATE INDEX ix_entity_channel ON entity (workspace_id, channel, name_key);

-- An alias of an entity. The casefolded `alias_key` belongs to one entity of a user and channel. `named_by`: for a name
-- that came with a merge, the memories that named the merged entity; the alias is erased when all of them are.
CREATE TABLE entity_alias (
    workspace_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    alias_key text NOT NULL,
    alias text NOT NULL,
    user_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    named_by uuid[],
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity_alias PRIMARY KEY (workspace_id, entity_id, alias_key),
    CONSTRAINT uq_entity_alias_workspace_id_user_id_channel_alias_key
        UNIQUE NULLS NOT DISTINCT (workspace_id, user_id, channel, alias_key),
    CONSTRAINT fk_entity_alias_entity FOREIGN KEY (workspace_id, entity_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_alias_key ON entity_alias (workspace_id, alias_key);

CREATE TABLE entity_vector (
    workspace_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    generation smallint NOT NULL,
    embedding halfvec NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity_vector PRIMARY KEY (workspace_id, entity_id, generation),
    CONSTRAINT fk_entity_vector_entity FOREIGN KEY (workspace_id, entity_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_vector_hnsw_1 ON entity_vector
    USING hnsw ((embedding::halfvec(:dimension)) halfvec_cosine_ops)
    WHERE generation = 1;

CREATE TABLE memory_entity (
    workspace_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    extracted_by varchar(16) NOT NULL DEFAULT 'rules',
    CONSTRAINT pk_memory_entity PRIMARY KEY (workspace_id, memory_id, entity_id),
    CONSTRAINT fk_memory_entity_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_memory_entity_entity FOREIGN KEY (workspace_id, entity_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_memory_entity_entity ON memory_entity (workspace_id, entity_id);

-- Valid in [t_valid, t_invalid). `strength` and `confidence` 0..1.
CREATE TABLE entity_edge (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    source_id uuid NOT NULL,
    rel_type varchar(64) NOT NULL,
    label varchar(200) NOT NULL,
    target_id uuid NOT NULL,
    strength double precision NOT NULL DEFAULT 1,
    confidence double precision NOT NULL DEFAULT 1,
    properties jsonb NOT NULL DEFAULT '{}'::jsonb,
    t_valid timestamptz,
    t_invalid timestamptz,
    extracted_by varchar(16) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity_edge PRIMARY KEY (workspace_id, id),
    CONSTRAINT uq_entity_edge_workspace_id_source_id_target_id_rel_type
        UNIQUE (workspace_id, source_id, target_id, rel_type),
    CONSTRAINT ck_entity_edge_strength CHECK (strength >= 0 AND strength <= 1),
    CONSTRAINT ck_entity_edge_confidence CHECK (confidence >= 0 AND confidence <= 1),
    CONSTRAINT ck_entity_edge_validity CHECK (t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid),
    CONSTRAINT ck_entity_edge_ends CHECK (source_id <> target_id),
    CONSTRAINT fk_entity_edge_source FOREIGN KEY (workspace_id, source_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_entity_edge_target FOREIGN KEY (workspace_id, target_id)
        REFERENCES entity (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_edge_source ON entity_edge (workspace_id, source_id, strength DESC, target_id);
CREATE INDEX ix_entity_edge_target ON entity_edge (workspace_id, target_id, strength DESC, source_id);
CREATE INDEX ix_entity_edge_source_type ON entity_edge (workspace_id, source_id, rel_type, strength DESC, target_id);
CREATE INDEX ix_entity_edge_target_type ON entity_edge (workspace_id, target_id, rel_type, strength DESC, source_id);

-- The memories that state a relation. Deleting the last of them deletes the relation (trigger drop_unsupported_edge).
CREATE TABLE entity_edge_source (
    workspace_id uuid NOT NULL,
    edge_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    extracted_by varchar(16) NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_entity_edge_source PRIMARY KEY (workspace_id, edge_id, memory_id),
    CONSTRAINT fk_entity_edge_source_entity_edge FOREIGN KEY (workspace_id, edge_id)
        REFERENCES entity_edge (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_entity_edge_source_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_entity_edge_source_memory ON entity_edge_source (workspace_id, memory_id);
