"""How is the cluster folder made, and is the one we found ours to open?"""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from service.launch.account import Account
from service.launch.binaries import call, major_version, tail
from service.launch.leash import leashed
from service.launch.problems import LaunchError

# trust is for the socket only, whose folder is 700; nobody has a password, so nobody comes in by TCP
ACCESS = ("-U", "postgres", "--auth-local=trust", "--auth-host=scram-sha-256")


def ensure_cluster(binaries: Path, cluster: Path, account: Account, *, sync: bool = True) -> None:
    """Make the cluster when it is missing. Raises LaunchError when it was made by another major version."""
    major = major_version(binaries)
    if not cluster.exists():
        _make(binaries, cluster, account, major, sync=sync)
    written = (cluster / "PG_VERSION").read_text().strip()
    if written != str(major):
        raise LaunchError(
            f"{cluster} was made by Postgres {written}, the installed one is {major}.\n"
            "Dump it with the old version and restore it, or set LOXODON_DATA_DIR to a new folder."
        )


def _make(binaries: Path, cluster: Path, account: Account, major: int, *, sync: bool) -> None:
    """Make it beside its place and rename: a killed initdb leaves nothing that looks finished."""
    fresh = cluster.with_name(cluster.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(mode=0o700)
    account.own(fresh)
    command = [*account.prefix, str(binaries / "initdb"), "-D", str(fresh), *ACCESS, "--encoding=UTF8"]
    command += ["--data-checksums", *([] if sync else ["--no-sync"])]
    for locale in _locales(major):
        done = call(leashed([*command, *locale], signal.SIGTERM, uid=account.uid, gid=account.gid))
        if done.returncode == 0:
            fresh.rename(cluster)
            return
    raise LaunchError(f"initdb failed for {cluster}:\n{tail(done.stderr or done.stdout)}")


def _locales(major: int) -> list[list[str]]:
    """Returns initdb's locale flags to try in order: code-point order always, Unicode's letters where possible."""
    if major >= 17:
        return [["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]]
    return [["--locale=C", "--lc-ctype=C.UTF-8"], ["--locale=C"]]
