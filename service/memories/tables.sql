-- Memories, the numbers that reads and jobs change, vectors, frequencies of terms, edges between memories, history,
-- decisions and reviews.
--
-- Under row-level security only btree equality and ranges can use an index (their operators are leakproof), so scopes
-- have btree indexes. Only SECURITY DEFINER functions read the GIN indexes below.
--
-- History and audit are partitioned by the time of recording, not by the event's own time: imported conversations are
-- years old and would all land in the DEFAULT partition.

-- Confidences and importance are 0..1, `importance_level` 1..10. `timestamp` is when it was said or happened, the last
-- time if it was said several times; `said_at` has all of them. `hash` is the MD5 of the text; `dedup_key` equals it
-- while the row takes part in deduplication. `version_of`: the row is a past version of that memory, and archived.
CREATE TABLE memory (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    user_id text,
    agent_id text,
    run_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    session_id text,
    content text NOT NULL,
    hash varchar(32) NOT NULL,
    dedup_key varchar(32),
    terms integer[] NOT NULL DEFAULT '{}',
    bm25 sparsevec(1000000000),
    context_terms integer[] NOT NULL DEFAULT '{}',
    context_bm25 sparsevec(1000000000),
    type text NOT NULL,
    type_confidence double precision NOT NULL,
    classification_source text NOT NULL,
    fact_confidence double precision,
    importance double precision NOT NULL,
    importance_level smallint NOT NULL,
    tags text[] NOT NULL DEFAULT '{}',
    tag_prefixes text[] NOT NULL DEFAULT '{}',
    categories text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}'::jsonb,
    "timestamp" timestamptz NOT NULL,
    t_valid timestamptz,
    t_invalid timestamptz,
    temporal_type text,
    valid_until timestamptz,
    temporal_tag text,
    mentions jsonb NOT NULL DEFAULT '[]'::jsonb,
    role varchar(20),
    speaker varchar(200),
    conversation_id uuid,
    turn_index integer,
    summary varchar(240),
    enriched_at timestamptz,
    enrichment_attempts smallint NOT NULL DEFAULT 0,
    embedding_status text NOT NULL,
    archived boolean NOT NULL DEFAULT false,
    version bigint NOT NULL DEFAULT 1,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    expires_at timestamptz,
    review_status varchar(16)
        CONSTRAINT ck_memory_review_status CHECK (review_status IN ('flagged')),
    version_of uuid,
    said_at timestamptz[],
    CONSTRAINT pk_memory PRIMARY KEY (workspace_id, id),
    CONSTRAINT fk_memory_version_of FOREIGN KEY (workspace_id, version_of)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT ck_memory_content CHECK (char_length(content) >= 1),
    CONSTRAINT ck_memory_type CHECK (type IN
        ('Decision', 'Pattern', 'Preference', 'Style', 'Habit', 'Insight', 'Context')),
    CONSTRAINT ck_memory_type_confidence CHECK (type_confidence >= 0 AND type_confidence <= 1),
    CONSTRAINT ck_memory_fact_confidence CHECK (fact_confidence >= 0 AND fact_confidence <= 1),
    CONSTRAINT ck_memory_importance CHECK (importance >= 0 AND importance <= 1),
    CONSTRAINT ck_memory_importance_level CHECK (importance_level >= 1 AND importance_level <= 10),
    CONSTRAINT ck_memory_validity CHECK (t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid),
    CONSTRAINT ck_memory_temporal_type CHECK (temporal_type IN ('persistent', 'temporal')),
    CONSTRAINT ck_memory_temporal_tag CHECK (temporal_tag IN ('current', 'past', 'future')),
    CONSTRAINT ck_memory_embedding_status CHECK (embedding_status IN ('stored', 'queued', 'placeholder')),
    CONSTRAINT ck_memory_enrichment_attempts CHECK (enrichment_attempts >= 0 AND enrichment_attempts <= 3)
);

-- Lists of a scope, newest first, with the id as tie-breaker.
CREATE INDEX ix_memory_user ON memory (workspace_id, user_id, created_at DESC, id) WHERE user_id IS NOT NULL;
CREATE INDEX ix_memory_agent ON memory (workspace_id, agent_id, created_at DESC, id) WHERE agent_id IS NOT NULL;
CREATE INDEX ix_memory_run ON memory (workspace_id, run_id, created_at DESC, id) WHERE run_id IS NOT NULL;
CREATE INDEX ix_memory_shared ON memory (workspace_id, created_at DESC, id)
    WHERE user_id IS NULL AND agent_id IS NULL AND run_id IS NULL;
CREATE INDEX ix_memory_created ON memory (workspace_id, created_at DESC, id);
CREATE INDEX ix_memory_timestamp ON memory (workspace_id, "timestamp" DESC);
CREATE INDEX ix_memory_importance ON memory (workspace_id, importance DESC, "timestamp" DESC);
CREATE INDEX ix_memory_hash ON memory (workspace_id, hash);

-- The past versions of a memory: docs/time.md
CREATE INDEX ix_memory_version_of ON memory (workspace_id, version_of) WHERE version_of IS NOT NULL;

-- Decides a race of two equal adds. Only rows that take part in deduplication have a dedup_key.
-- docs/decisions/011-similarity.md
CREATE UNIQUE INDEX uq_memory_dedup
    ON memory (workspace_id, user_id, agent_id, run_id, channel, dedup_key) NULLS NOT DISTINCT
    WHERE dedup_key IS NOT NULL AND NOT archived;

-- Work for upkeep, and channels.
CREATE INDEX ix_memory_unembedded ON memory (workspace_id, id) WHERE embedding_status <> 'stored';
CREATE INDEX ix_memory_expires ON memory (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX ix_memory_channel ON memory (workspace_id, channel, created_at DESC);
CREATE INDEX ix_memory_user_channel ON memory (workspace_id, user_id, channel) WHERE user_id IS NOT NULL;
-- A user mostly belongs to one workspace. Unaware of that, the planner expects one row per user: then any index will do.
CREATE STATISTICS st_memory_scope (dependencies) ON workspace_id, user_id, agent_id, run_id, channel FROM memory;

-- Terms of a workspace's texts, read by lexical_ids().
CREATE INDEX ix_memory_terms ON memory USING gin (workspace_terms(workspace_id, terms))
    WITH (fastupdate = off) WHERE terms <> '{}';
CREATE INDEX ix_memory_context_terms ON memory USING gin (workspace_terms(workspace_id, context_terms))
    WITH (fastupdate = off) WHERE context_terms <> '{}';

-- BM25 of a scope without reading the table. An index entry has at most 2,704 bytes: besides the longest ids (512
-- bytes) and channel (100 characters of 4 bytes) there is room for 120 terms of 8 bytes. Rows with more terms are found
-- by the _many_terms indexes and read from the table, and so are scopes of a run, which are small. Both are read in the
-- order of their ids, which no other index of a scope provides, so the planner chooses them whatever the statistics
-- say.
CREATE INDEX ix_memory_user_bm25 ON memory (workspace_id, user_id, channel, id)
    INCLUDE (created_at, "timestamp", archived, expires_at, review_status, t_valid, t_invalid, valid_until, agent_id,
             bm25, context_bm25)
    WHERE user_id IS NOT NULL AND cardinality(terms) + cardinality(context_terms) <= 120;
CREATE INDEX ix_memory_agent_bm25 ON memory (workspace_id, agent_id, channel, id)
    INCLUDE (created_at, "timestamp", archived, expires_at, review_status, t_valid, t_invalid, valid_until, user_id,
             bm25, context_bm25)
    WHERE agent_id IS NOT NULL AND cardinality(terms) + cardinality(context_terms) <= 120;
CREATE INDEX ix_memory_shared_bm25 ON memory (workspace_id, channel, id)
    INCLUDE (created_at, "timestamp", archived, expires_at, review_status, t_valid, t_invalid, valid_until, bm25,
             context_bm25)
    WHERE user_id IS NULL AND agent_id IS NULL AND run_id IS NULL
      AND cardinality(terms) + cardinality(context_terms) <= 120;
CREATE INDEX ix_memory_user_many_terms ON memory (workspace_id, user_id, id)
    WHERE user_id IS NOT NULL AND cardinality(terms) + cardinality(context_terms) > 120;
CREATE INDEX ix_memory_agent_many_terms ON memory (workspace_id, agent_id, id)
    WHERE agent_id IS NOT NULL AND cardinality(terms) + cardinality(context_terms) > 120;
CREATE INDEX ix_memory_run_many_terms ON memory (workspace_id, run_id, id)
    WHERE run_id IS NOT NULL AND cardinality(terms) + cardinality(context_terms) > 120;
CREATE INDEX ix_memory_shared_many_terms ON memory (workspace_id, id)
    WHERE user_id IS NULL AND agent_id IS NULL AND run_id IS NULL
      AND cardinality(terms) + cardinality(context_terms) > 120;

-- Names of the speakers in a scope, one step of the index per name.
CREATE INDEX ix_memory_user_speaker ON memory (workspace_id, user_id, speaker, channel)
    WHERE user_id IS NOT NULL AND speaker IS NOT NULL;
CREATE INDEX ix_memory_agent_speaker ON memory (workspace_id, agent_id, speaker, channel)
    WHERE agent_id IS NOT NULL AND speaker IS NOT NULL;
CREATE INDEX ix_memory_run_speaker ON memory (workspace_id, run_id, speaker, channel)
    WHERE run_id IS NOT NULL AND speaker IS NOT NULL;
CREATE INDEX ix_memory_shared_speaker ON memory (workspace_id, speaker, channel)
    WHERE user_id IS NULL AND agent_id IS NULL AND run_id IS NULL AND speaker IS NOT NULL;

-- Filter keys (tags, categories, some columns, metadata values and ranges), read by narrow_ids() and tag_ids().
CREATE INDEX ix_memory_filter_keys ON memory
    USING gin (memory_filter_keys(workspace_id, tags, tag_prefixes, categories,
                                  ARRAY['type ' || type, 'role ' || role, 'speaker ' || speaker,
                                        'session ' || session_id, 'conversation ' || conversation_id::text],
                                  metadata, true))
    WITH (fastupdate = off);

-- Numbers that reads and jobs change. No index but the key, and space in each page for a new version of all its rows,
-- which ageing writes together, so that updates stay HOT. docs/decisions/004-changing-numbers-apart.md
CREATE TABLE memory_stat (
    workspace_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    relevance double precision NOT NULL DEFAULT 1,
    salience double precision NOT NULL DEFAULT 0.5,
    access_count integer NOT NULL DEFAULT 0,
    last_accessed timestamptz NOT NULL,
    base_relevance double precision NOT NULL DEFAULT 1,
    base_salience double precision NOT NULL DEFAULT 0.5,
    base_confidence double precision,
    stale_at timestamptz,
    promoted_at timestamptz,
    seen_in text[],
    confidence double precision,
    confirmed_at timestamptz,
    CONSTRAINT pk_memory_stat PRIMARY KEY (workspace_id, memory_id),
    CONSTRAINT fk_memory_stat_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
) WITH (fillfactor = 50);

-- Separate from the row so that scans stay narrow; with the columns that a search filters by. `binary_embedding` has
-- one bit per component, and is read from the btrees of a scope.
CREATE TABLE memory_vector (
    workspace_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    generation smallint NOT NULL,
    kind varchar(16) NOT NULL CONSTRAINT ck_memory_vector_kind CHECK (kind IN ('text', 'context', 'placeholder')),
    user_id text,
    agent_id text,
    run_id text,
    channel varchar(100) NOT NULL DEFAULT '_global',
    embedding halfvec NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    binary_embedding bit varying GENERATED ALWAYS AS (binary_quantize(embedding)) STORED,
    CONSTRAINT pk_memory_vector PRIMARY KEY (workspace_id, memory_id, generation, kind),
    CONSTRAINT ck_memory_vector_dimension_1 CHECK (generation <> 1 OR vector_dims(embedding) = :dimension),
    CONSTRAINT fk_memory_vector_memory FOREIGN KEY (workspace_id, memory_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
) PARTITION BY HASH (workspace_id);

-- Binary quantised vectors of a scope without reading the table: 20,000 of them fit in some hundred pages.
CREATE INDEX ix_memory_vector_user ON memory_vector (workspace_id, user_id, kind)
    INCLUDE (memory_id, generation, channel, agent_id, run_id, binary_embedding)
    WHERE user_id IS NOT NULL;
CREATE INDEX ix_memory_vector_agent ON memory_vector (workspace_id, agent_id, kind)
    INCLUDE (memory_id, generation, channel, user_id, run_id, binary_embedding)
    WHERE agent_id IS NOT NULL;
CREATE INDEX ix_memory_vector_run ON memory_vector (workspace_id, run_id, kind)
    INCLUDE (memory_id, generation, channel, user_id, agent_id, binary_embedding)
    WHERE run_id IS NOT NULL;
CREATE INDEX ix_memory_vector_shared ON memory_vector (workspace_id, kind)
    INCLUDE (memory_id, generation, channel, binary_embedding)
    WHERE user_id IS NULL AND agent_id IS NULL AND run_id IS NULL;

-- m = 24: with pgvector's 16, 3 of 60 queries among 200,000 vectors of near-equal texts found none of their ten
-- nearest; 32 was no better. ef_construction = 200: with 64, whole clusters could not be reached (recall@10 .96, now
-- .997).
CREATE INDEX ix_memory_vector_hnsw_1 ON memory_vector
    USING hnsw ((embedding::halfvec(:dimension)) halfvec_cosine_ops) WITH (m = 24, ef_construction = 200)
    WHERE generation = 1 AND kind = 'text';

-- The number of texts and contexts of a workspace in which a term occurs, counted by a job. Term 0 is the number of
-- texts; rows of the nil workspace have the sums for terms that several workspaces use.
CREATE TABLE term_stat (
    workspace_id uuid NOT NULL,
    term integer NOT NULL,
    texts integer NOT NULL,
    contexts integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT pk_term_stat PRIMARY KEY (workspace_id, term),
    CONSTRAINT ck_term_stat_counts CHECK (term >= 0 AND texts >= 0 AND contexts >= 0)
);

-- A relation from one memory to another, valid in [t_valid, t_invalid). `strength` 0..1.
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
         'PART_OF', 'MAY_OUTDATE')),
    CONSTRAINT ck_memory_edge_strength CHECK (strength >= 0 AND strength <= 1),
    CONSTRAINT ck_memory_edge_validity CHECK (t_invalid IS NULL OR t_valid IS NULL OR t_valid < t_invalid),
    CONSTRAINT ck_memory_edge_ends CHECK (source_id <> target_id),
    CONSTRAINT fk_memory_edge_source FOREIGN KEY (workspace_id, source_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT fk_memory_edge_target FOREIGN KEY (workspace_id, target_id)
        REFERENCES memory (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX ix_memory_edge_target ON memory_edge (workspace_id, target_id, rel_type, source_id);
CREATE INDEX ix_memory_edge_source_strength ON memory_edge (workspace_id, source_id, strength DESC, target_id);
CREATE INDEX ix_memory_edge_target_strength ON memory_edge (workspace_id, target_id, strength DESC, source_id);

-- Pairs for the upkeep report (service/upkeep/statements/findings.py), in the order in which it reads them.
CREATE INDEX ix_memory_edge_finding ON memory_edge (workspace_id, rel_type, source_id, target_id)
    WHERE rel_type IN ('MAY_OUTDATE', 'CONTRADICTS') OR (rel_type = 'SIMILAR_TO' AND strength >= 0.9);

-- `before` is the memory as it was; the result of the change was the current state in [recorded_at, recorded_to).
CREATE SEQUENCE memory_history_seq;
CREATE TABLE memory_history (
    workspace_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    id uuid NOT NULL,
    seq bigint NOT NULL DEFAULT nextval('memory_history_seq'),
    memory_id uuid NOT NULL,
    event varchar(8) NOT NULL CONSTRAINT ck_memory_history_event CHECK (event IN ('ADD', 'UPDATE', 'DELETE')),
    old_memory text,
    new_memory text,
    before jsonb,
    before_embedding halfvec,
    before_generation smallint,
    is_deleted boolean NOT NULL DEFAULT false,
    user_id text,
    agent_id text,
    run_id text,
    recorded_to timestamptz,
    position bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    CONSTRAINT pk_memory_history PRIMARY KEY (workspace_id, recorded_at, id)
) PARTITION BY RANGE (recorded_at);
CREATE INDEX ix_memory_history_memory ON memory_history (workspace_id, memory_id, recorded_at);
-- The order of the change feed: by the transaction that wrote the entry, or by a later one that had already changed the
-- same memory. Nothing can be added before the oldest running transaction. docs/decisions/074-change-feed.md
CREATE INDEX ix_memory_history_position ON memory_history (workspace_id, position, seq);
-- Changes of a scope since a moment, for reads with as_of. An ADD has no `before` and is not included.
CREATE INDEX ix_memory_history_user ON memory_history (workspace_id, user_id, recorded_at)
    WHERE before IS NOT NULL AND user_id IS NOT NULL;
CREATE INDEX ix_memory_history_agent ON memory_history (workspace_id, agent_id, recorded_at)
    WHERE before IS NOT NULL AND agent_id IS NOT NULL;
CREATE INDEX ix_memory_history_run ON memory_history (workspace_id, run_id, recorded_at)
    WHERE before IS NOT NULL AND run_id IS NOT NULL;
CREATE INDEX ix_memory_history_shared ON memory_history (workspace_id, recorded_at)
    WHERE before IS NOT NULL AND user_id IS NULL AND agent_id IS NULL AND run_id IS NULL;
CREATE INDEX ix_memory_history_recorded ON memory_history USING brin (recorded_at);

-- Memories whose history was erased: the feed says only that they are gone.
CREATE TABLE erased_memory (
    workspace_id uuid NOT NULL,
    position bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    seq bigint NOT NULL DEFAULT nextval('memory_history_seq'),
    memory_id uuid NOT NULL,
    erased_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_erased_memory PRIMARY KEY (workspace_id, position, seq)
);
CREATE INDEX ix_erased_memory_erased ON erased_memory USING brin (erased_at);

-- One action on a memory with its evidence. `ruling_id` is shared by the actions of one decision, undone together.
CREATE TABLE decision (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    memory_id uuid,
    source varchar(16) NOT NULL,
    model text NOT NULL,
    prompt_sha256 varchar(64),
    candidates jsonb NOT NULL DEFAULT '[]'::jsonb,
    reply text,
    verdict jsonb NOT NULL,
    state varchar(16) NOT NULL CONSTRAINT ck_decision_state CHECK (state IN ('applied', 'rejected', 'undone')),
    created_at timestamptz NOT NULL DEFAULT now(),
    user_id text,
    agent_id text,
    run_id text,
    event varchar(8) NOT NULL CONSTRAINT ck_decision_event CHECK (event IN ('ADD', 'UPDATE', 'DELETE', 'NONE')),
    ruling_id uuid,
    history_id uuid,
    undone_at timestamptz,
    undo_history_id uuid,
    CONSTRAINT pk_decision PRIMARY KEY (workspace_id, id)
);
CREATE INDEX ix_decision_memory ON decision (workspace_id, memory_id);
CREATE INDEX ix_decision_ruling ON decision (workspace_id, ruling_id) WHERE ruling_id IS NOT NULL;

-- `contradicts`: the memories that are archived when the flagged one is accepted.
CREATE TABLE review (
    workspace_id uuid NOT NULL,
    id uuid NOT NULL,
    memory_id uuid NOT NULL,
    contradicts uuid[] NOT NULL,
    state varchar(8) NOT NULL DEFAULT 'pending'
        CONSTRAINT ck_review_state CHECK (state IN ('pending', 'accepted', 'rejected')),
    created_at timestamptz NOT NULL DEFAULT now(),
    resolved_at timestamptz,
    CONSTRAINT pk_review PRIMARY KEY (workspace_id, id)
);
CREATE INDEX ix_review_memory ON review (workspace_id, memory_id);
CREATE INDEX ix_review_pending ON review (workspace_id, created_at) WHERE state = 'pending';
