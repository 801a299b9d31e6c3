-- Which migrations were applied, and when. migrations/env.py writes them; alembic_version keeps only the last.

CREATE TABLE migration (
    revision text CONSTRAINT pk_migration PRIMARY KEY,
    description text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
CREATE VIEW schema_version WITH (security_invoker = true) AS
    SELECT revision::integer AS version, description, applied_at FROM migration;
