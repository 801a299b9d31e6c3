"""The logins of the embedded cluster: their passwords, kept inside it, and how they are made.

They are made by a single-user server, before the real one starts, so nobody ever connects as superuser: the access file
written here refuses it.
docs/decisions/044-logins.md

    <data_dir>/postgres/logins.json    the passwords, mode 600
    <data_dir>/postgres/pg_hba.conf    passwords for everyone, the superuser refused
"""

from __future__ import annotations

import hashlib
import json
import secrets
import signal
from collections.abc import Mapping
from pathlib import Path

from service.launch.accounts import Account
from service.launch.binaries import call, tail
from service.launch.data_dir import write_private
from service.launch.parent_death import end_with_parent
from service.launch.problems import LaunchError
from service.postgres.roles import bootstrap_sql, new_passwords

BACKUP_LOGIN = "loxodon_backup"
# Copies the whole cluster, and may read no table. A Postgres of one's own has its own way to make backups.
BACKUP_SQL = f"""
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{BACKUP_LOGIN}') THEN
        CREATE ROLE {BACKUP_LOGIN} LOGIN REPLICATION;
    END IF;
END $$;

ALTER ROLE {BACKUP_LOGIN} PASSWORD '%s';
"""

FILE = "logins.json"
MADE = "made"  # the fingerprint of the statements that made them
ACCESS = """\
# Written by Loxodon when it made its logins. The server listens on a socket only.
local  all          postgres        reject
local  all          all             scram-sha-256
local  replication  loxodon_backup  scram-sha-256
"""


def ensure_logins(binaries: Path, cluster: Path, database: str, account: Account) -> Mapping[str, str]:
    """The password of each login, that of backups among them. Makes the database and the logins where they are
    missing, or were made by an earlier version. The cluster's server must not run."""
    fingerprint = hashlib.sha256((bootstrap_sql() + BACKUP_SQL + ACCESS).encode()).hexdigest()
    kept = _read(cluster / FILE)
    if kept.pop(MADE, None) == fingerprint:
        return kept
    passwords, backup = new_passwords(), secrets.token_urlsafe(24)
    _single_user(binaries, cluster, "postgres", f"CREATE DATABASE {database};\n\n", account, may_fail=True)
    _single_user(binaries, cluster, database, f"{bootstrap_sql(passwords)}\n{BACKUP_SQL % backup}", account)
    passwords[BACKUP_LOGIN] = backup
    write_private(cluster / "pg_hba.conf", ACCESS, account)
    write_private(cluster / FILE, json.dumps({**passwords, MADE: fingerprint}, indent=1), account)
    return passwords


def passwords(cluster: Path) -> Mapping[str, str]:
    """The password of each login, read from the cluster's folder; empty if the logins were never made."""
    return {login: word for login, word in _read(cluster / FILE).items() if login != MADE}


def _single_user(
    binaries: Path, cluster: Path, database: str, sql: str, account: Account, *, may_fail: bool = False
) -> None:
    """Runs statements in a single-user server; each ends with a semicolon and an empty line. `may_fail`: a failing
    statement does not stop the others, because they may have run before."""
    command = [*account.prefix, str(binaries / "postgres"), "--single", "-j", "-D", str(cluster)]
    command += ["-c", f"exit_on_error={'off' if may_fail else 'on'}", database]
    done = call(end_with_parent(command, signal.SIGTERM, uid=account.uid, gid=account.gid), given=sql)
    if done.returncode != 0:
        raise LaunchError(f"The logins of {cluster} could not be made:\n{tail(done.stderr)}")


def _read(path: Path) -> dict[str, str]:
    try:
        stored = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    return {str(name): str(word) for name, word in stored.items()} if isinstance(stored, dict) else {}
