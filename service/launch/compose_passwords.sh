# Gives the logins their passwords: the image of the database runs it after 10-logins.sql, when it makes the cluster.
psql -X -v ON_ERROR_STOP=1 -U "${POSTGRES_USER:-postgres}" -d "$POSTGRES_DB" <<'SQL'
\getenv api LOXODON_API_PASSWORD
\getenv jobs LOXODON_JOBS_PASSWORD
\getenv migrate LOXODON_MIGRATE_PASSWORD
ALTER ROLE loxodon_api PASSWORD :'api';
ALTER ROLE loxodon_jobs PASSWORD :'jobs';
ALTER ROLE loxodon_migrate PASSWORD :'migrate';
SQL
