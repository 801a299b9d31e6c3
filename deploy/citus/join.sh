# Joins the nodes of compose.citus.yaml, then makes the logins on all of them. Running it again changes nothing.
set -e
psql -X -v ON_ERROR_STOP=1 -d "$POSTGRES_DB" <<'SQL'
SELECT citus_set_coordinator_host('coordinator', 5432);
SELECT citus_add_node('node-1', 5432);
SELECT citus_add_node('node-2', 5432);
\i /deploy/logins.sql
SQL
. /deploy/passwords.sh
