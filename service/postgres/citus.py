"""Spreads the tables of workspaces over the nodes of a Citus cluster. docs/citus.md"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, text

from service.domain.scope import NIL_WORKSPACE
from service.postgres.roles import APP, WALLED

IS_CITUS = text("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')")

ALONE = "citus.propagate_set_commands = 'none'"
# Citus repeats a SET LOCAL on each node of the transaction by sending the whole string that it stands in. So the
# settings of a string are made on the coordinator alone, and its last statement sends them. A plan for any values would
# keep the workspace for which it was made (CURRENT_WORKSPACE).
PROPAGATE = (
    "SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL citus.propagate_set_commands = 'local'; "
    "SET LOCAL loxodon.on_nodes = 'on'"
)

REFERENCE = ("workspace", "api_key", "embedding_generation", "token_secret")
"""Small tables that every node has a copy of."""

QUEUE = ("job",)
"""Tables that stay on the coordinator, where a worker claims the jobs of all workspaces."""

# While a shard moves, what is written to it is replicated as the owner of the table, whom row-level security must let
# through, and of logged tables only. The functions of loxodon_owner are still subject to it.
LET_MOVE = text("""
    DO $$
    DECLARE
        command text;
    BEGIN
        FOR command IN
            WITH own AS (
                SELECT relname, relpersistence FROM pg_class WHERE relnamespace = 'public'::regnamespace
                AND relkind IN ('r', 'p') AND relowner = 'loxodon_owner'::regrole
            )
            SELECT format('ALTER TABLE %I OWNER TO loxodon_tables', relname) FROM own
            UNION ALL
            SELECT format('ALTER TABLE %I SET LOGGED', relname) FROM own WHERE relpersistence = 'u'
            UNION ALL
            SELECT format('ALTER STATISTICS %I OWNER TO loxodon_tables', stxname) FROM pg_statistic_ext
            WHERE stxowner = 'loxodon_owner'::regrole
        LOOP
            EXECUTE command;
        END LOOP;
    END $$
""")

# Parents before the tables that refer to them.
UNDISTRIBUTED = text("""
    WITH RECURSIVE tenant AS (
        SELECT c.oid FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'workspace_id'
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
          AND NOT c.relname = ANY (:others)
    ), placed AS (
        SELECT t.oid, 0 AS depth FROM tenant t
        UNION
        SELECT t.oid, p.depth + 1 FROM placed p
        JOIN pg_constraint k ON k.confrelid = p.oid AND k.contype = 'f' AND k.conrelid <> k.confrelid
        JOIN tenant t ON t.oid = k.conrelid
    )
    SELECT p.oid::regclass::text FROM placed p
    WHERE NOT EXISTS (SELECT FROM pg_dist_partition d WHERE d.logicalrelid = p.oid)
    GROUP BY p.oid ORDER BY max(p.depth), 1
""")
MAKE_REFERENCE = text("""
    SELECT create_reference_table(name) FROM unnest(CAST(:names AS text[])) name
    WHERE NOT EXISTS (SELECT FROM pg_dist_partition d WHERE d.logicalrelid = name::regclass)
""")

# Citus needs the workspace of every table that a statement reads, as a value, when it plans the statement. The policy
# of the tenant adds it to each of them, wherever the statement itself leaves it out. The function says that it is
# immutable, so that the planner replaces it by its value; a plan that outlives the transaction finds nothing, because
# the policy compares with the setting itself as well.
CURRENT_WORKSPACE = text("""
    CREATE OR REPLACE FUNCTION current_workspace() RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN nullif(current_setting('loxodon.workspace', true), '')::uuid
""")
GRANT = text(f"GRANT EXECUTE ON FUNCTION current_workspace TO {APP}, {WALLED}")
POLICIES = text("""
    SELECT p.polname AS name, p.polcmd::text AS command, p.polpermissive AS grants,
           ARRAY(SELECT r::regrole::text FROM unnest(p.polroles) r) AS roles,
           pg_get_expr(p.polqual, p.polrelid) AS sees,
           coalesce(pg_get_expr(p.polwithcheck, p.polrelid), pg_get_expr(p.polqual, p.polrelid)) AS writes
    FROM pg_policy p WHERE p.polrelid = CAST(:name AS regclass) ORDER BY p.polname
""")
COMMANDS = {"r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE"}
OF_WORKSPACE = "workspace_id = current_setting('loxodon.workspace')::uuid AND workspace_id = current_workspace()"
OF_OWNER = f"coalesce(current_workspace(), '{NIL_WORKSPACE}') = '{NIL_WORKSPACE}' OR workspace_id = current_workspace()"
# The number of an entry is one of the node's, so that it is no greater than those of transactions that the node still
# runs, and the rows of a statement that reads other tables of the workspace need none from the coordinator.
FEED = """
    CREATE OR REPLACE FUNCTION place_in_feed() RETURNS trigger LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
    BEGIN
        NEW.position := greatest(pg_current_xact_id()::text::bigint, (
            SELECT max(h.position) FROM memory_history h
            WHERE h.workspace_id = NEW.workspace_id AND h.memory_id = NEW.memory_id));
        NEW.seq := nextval('memory_history_seq');
        RETURN NEW;
    END $$;
"""
# Those that have settings; the others are inlined.
FUNCTIONS = text("""
    SELECT p.oid::regprocedure::text FROM pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace AND p.proconfig IS NOT NULL
      AND NOT 'plan_cache_mode=force_custom_plan' = ANY (p.proconfig)
""")


DELEGATED = ("erase_history", "erase_subject", "expire_copies", "rewrite_turn")
"""Functions of the owner whose statements have to run on the node of the workspace, on the connection of the caller's
transaction: on others they would wait for the rows that it has locked."""

DEFINERS = text("""
    SELECT p.proname AS name, pg_get_function_arguments(p.oid) AS arguments, p.pronargs AS arity,
           regexp_replace(pg_get_function_result(p.oid), '^(?!TABLE|SETOF)', 'SETOF ') AS result
    FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef AND p.proname = ANY (:names)
""")
# Citus sends a statement to the node of its workspace only if it reads a table there, so the count of no rows calls the
# function of the owner.
DELEGATE = """
    DROP FUNCTION IF EXISTS {name}_on_node;
    ALTER FUNCTION {name} RENAME TO {name}_on_node;
    CREATE FUNCTION {name}({arguments}) RETURNS {result} LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
    DECLARE
        here constant uuid := current_setting('loxodon.workspace');
    BEGIN
        RETURN QUERY SELECT done.* FROM (
            SELECT count(*) FROM memory WHERE workspace_id = here AND id = '{nil}'
        ) there CROSS JOIN LATERAL {name}_on_node({values}) done;
    END $$;
    GRANT EXECUTE ON FUNCTION {name} TO {callers}
"""

# The policy of the queue, on the coordinator, asks for memories that its transaction may have written, on their node.
ASK_NODE = """
    CREATE OR REPLACE FUNCTION is_outside_on_node(of_table text, of_id uuid) RETURNS boolean LANGUAGE plpgsql STABLE
    SET search_path = public, pg_temp AS $$
    DECLARE
        here constant uuid := current_setting('loxodon.workspace');
        outside boolean;
    BEGIN
        SELECT answer INTO outside FROM (
            SELECT count(*) FROM memory WHERE workspace_id = here AND id = '{nil}'
        ) there CROSS JOIN LATERAL is_outside(of_table, of_id) answer;
        RETURN outside;
    END $$;
    GRANT EXECUTE ON FUNCTION is_outside_on_node TO {callers};
    DO $$
    BEGIN
        EXECUTE (SELECT replace(format('ALTER POLICY wall ON job USING (%s) WITH CHECK (%s)',
                                       pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)),
                                'is_outside(', 'is_outside_on_node(')
                 FROM pg_policy WHERE polrelid = 'job'::regclass AND polname = 'wall');
    END $$
"""

IN_FEED = ("memory_history", "erased_memory")
PLACE = """
    CREATE TRIGGER place_in_feed BEFORE INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION place_in_feed();
    ALTER TABLE {name} ALTER seq SET DEFAULT 0
"""


def is_citus(connection: Connection) -> bool:
    return bool(connection.scalar(IS_CITUS))


def distribute(connection: Connection) -> None:
    """Distributes by workspace what is not distributed yet, as the owner of the schema. All tables are co-located, so
    everything of a workspace is on one node."""
    connection.execute(CURRENT_WORKSPACE)
    connection.execute(GRANT)
    connection.execute(text(FEED))
    connection.execute(LET_MOVE)
    connection.execute(MAKE_REFERENCE, {"names": list(REFERENCE)})
    connection.commit()
    for name in connection.scalars(UNDISTRIBUTED, {"others": [*REFERENCE, *QUEUE]}).all():
        _merge_policies(connection, name)
        connection.execute(text("SELECT create_distributed_table(:name, 'workspace_id')"), {"name": name})
        connection.commit()
        for statement in PLACE.format(name=name).split(";") if name in IN_FEED else ():
            connection.execute(text(statement))
        connection.commit()
    for definer in connection.execute(DEFINERS, {"names": list(DELEGATED)}).all():
        _delegate(connection, definer)
    _run(connection, ASK_NODE.format(nil=NIL_WORKSPACE, callers=f"{APP}, {WALLED}"))
    for function in connection.scalars(FUNCTIONS).all():
        connection.execute(text(f"ALTER FUNCTION {function} SET plan_cache_mode = force_custom_plan"))
    connection.commit()


def _delegate(connection: Connection, definer: Row[Any]) -> None:
    """Lets the node of the workspace run the function."""
    values = ", ".join(f"${number}" for number in range(1, definer.arity + 1))
    sql = DELEGATE.format(**definer._asdict(), values=values, nil=NIL_WORKSPACE, callers=f"{APP}, {WALLED}")
    _run(connection, sql)


def _run(connection: Connection, script: str) -> None:
    raw: Any = connection.connection.dbapi_connection
    raw.run_async(lambda driver: driver.execute(script))


def _merge_policies(connection: Connection, table: str) -> None:
    """Replaces the policies of a table by one for each role and command, because Citus makes a restrictive policy a
    permissive one on the shards."""
    connection.execute(text(f"ALTER POLICY tenant ON {table} USING ({OF_WORKSPACE})"))
    connection.execute(text(f"ALTER POLICY owner ON {table} USING ({OF_OWNER})"))
    policies = [policy for policy in connection.execute(POLICIES, {"name": table}) if policy.name != "owner"]
    for policy in policies:
        connection.execute(text(f"DROP POLICY {policy.name} ON {table}"))
    for role in (APP, WALLED):
        for letter, command in COMMANDS.items():
            own = [each for each in policies if role in each.roles and each.command in ("*", letter)]
            using = f"USING ({_together(own, 'sees')})" if letter != "a" else ""
            check = f"WITH CHECK ({_together(own, 'writes')})" if letter in "aw" else ""
            sql = f"CREATE POLICY {role}_{command.lower()} ON {table} FOR {command} TO {role} {using} {check}"
            connection.execute(text(sql.replace(":", "\\:")))


def _together(policies: Sequence[Row[Any]], condition: str) -> str:
    """The condition of the rows that one of the permissive policies and all of the restrictive ones let through."""
    granted = " OR ".join(f"({getattr(each, condition)})" for each in policies if each.grants)
    return " AND ".join([f"({granted})", *(f"({getattr(each, condition)})" for each in policies if not each.grants)])
