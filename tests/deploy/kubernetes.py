"""Renders deploy/kubernetes with the kubectl that requirements/kubernetes.txt pins, and validates what comes out
strictly: a field that the API does not know is an error. `make render` leaves the output in build/kubernetes, and
brings up to date what kustomize can only read from its own folder: the statements of bootstrap.sql and the alerts.

Kinds of Kubernetes itself are checked against its own schemas, as kubernetes-validate carries them. Those of others
are checked against foreign_kinds.py, which refuses whatever it does not list.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import venv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml  # type: ignore[import-untyped]

from service.postgres.roles import BOOTSTRAP
from tests.deploy.foreign_kinds import SPECS, Schema

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "deploy" / "kubernetes"
RENDERED = ("overlays/small", "overlays/highly-available", "recovery")
VERSIONS = ("1.30", "1.37")
"""The oldest and the newest Kubernetes that the manifests are checked against."""

BUILD = ROOT / "build" / "kubernetes"
TOOLS = BUILD / "tools"
PINNED = ROOT / "requirements" / "kubernetes.txt"

VALIDATE = """
import json, sys
from kubernetes_validate import ValidationError, validate
for document in json.load(sys.stdin):
    for version in sys.argv[1:]:
        try:
            validate(document, version, strict=True)
        except ValidationError as exc:
            place = ".".join(map(str, exc.path))
            print(f"{document['kind']} {document['metadata']['name']}, {version}: {place}: {exc.message[:300]}")
"""

RULE_HEAD = """\
# The alerts of deploy/prometheus/rules.yaml: change them there, `make render` copies them.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: loxodon
spec:
"""

Document = Mapping[str, Any]


class JsonLoader(yaml.CSafeLoader):  # type: ignore[misc]
    """Reads a time as the text that it is for an API server."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (as the base class has them)
        first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":timestamp")]
        for first, known in yaml.CSafeLoader.yaml_implicit_resolvers.items()
    }


def main() -> int:
    install()
    for file, text in copies().items():
        file.write_text(text)
    everything = []
    for folder in RENDERED:
        documents = render(MANIFESTS / folder)
        everything += documents
        file = BUILD / f"{Path(folder).name}.yaml"
        file.write_text(yaml.safe_dump_all(documents, sort_keys=False))
        print(f"{file.relative_to(ROOT)}: {len(documents)} objects")
    wrong = problems(everything)
    print("\n".join(wrong) or f"All are valid, strictly, in Kubernetes {' and '.join(VERSIONS)}.")
    return 1 if wrong else 0


def copies() -> dict[Path, str]:
    """Files of deploy/kubernetes that repeat others, with what has to stand in them."""
    rules = (ROOT / "deploy" / "prometheus" / "rules.yaml").read_text()
    groups = rules[rules.index("groups:") :].splitlines()
    return {
        MANIFESTS / "postgres" / "bootstrap.sql": BOOTSTRAP.read_text(),
        MANIFESTS / "components" / "monitoring" / "prometheus-rule.yaml": RULE_HEAD
        + "".join(f"  {line}".rstrip() + "\n" for line in groups),
    }


def install() -> None:
    """Makes build/kubernetes/tools hold what requirements/kubernetes.txt pins, unless it does."""
    wanted = hashlib.sha256(PINNED.read_bytes()).hexdigest()
    done = TOOLS / "installed"
    if done.exists() and done.read_text() == wanted:
        return
    venv.create(TOOLS, clear=True, with_pip=False)
    pip = (sys.executable, "-m", "pip", "--python", str(TOOLS / "bin" / "python"), "--disable-pip-version-check")
    subprocess.run((*pip, "install", "-qq", "--no-compile", "--require-hashes", "-r", str(PINNED)), check=True)
    done.write_text(wanted)


def render(folder: Path) -> list[Document]:
    """The objects of a kustomization, as `kubectl apply -k` would send them. Raises CalledProcessError."""
    kubectl = TOOLS / "bin" / "kubectl"
    done = subprocess.run((str(kubectl), "kustomize", str(folder)), check=True, stdout=subprocess.PIPE, text=True)
    return list(yaml.load_all(done.stdout, Loader=JsonLoader))


def problems(documents: Iterable[Document]) -> list[str]:
    """A line for each object that an API server would not take as it is written."""
    ours: list[Document] = []
    found: list[str] = []
    for each in documents:
        spec = SPECS.get(f"{each['apiVersion']} {each['kind']}")
        if spec is None:
            ours.append(each)
        else:
            found += _foreign_problems(each, spec)
    command = (str(TOOLS / "bin" / "python"), "-c", VALIDATE, *VERSIONS)
    done = subprocess.run(command, input=json.dumps(ours), stdout=subprocess.PIPE, check=True, text=True)
    return found + done.stdout.splitlines()


def _foreign_problems(document: Document, spec: Schema) -> list[str]:
    name = f"{document['kind']} {document['metadata']['name']}"
    found = [f"{name}: {field} is no field" for field in document.keys() - {"apiVersion", "kind", "metadata", "spec"}]
    for error in jsonschema_rs.Draft202012Validator(spec).iter_errors(document["spec"]):
        found.append(f"{name}: {'.'.join(map(str, error.instance_path))}: {error.message[:300]}")
    return found


if __name__ == "__main__":
    sys.exit(main())
