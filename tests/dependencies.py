"""What the service is made of: `sbom` writes it down, `audit` looks it up in the public list of vulnerabilities.

Both read the files in requirements/ that are installed from, so they name exactly what runs. The audit needs a network;
without one it says that nothing was looked up, and fails unless told that this may happen.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ("service", "binaries", "model")
LOCKED = (
    "dev",
    "binaries",
    "model",
    "pg16",
    "audit",
    "sdk",
    "kubernetes",
    "compat",
    "compat-1",
    "frameworks",
    "console",
)
SBOM = ROOT / "build" / "sbom.cdx.json"
PIN = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?: ;[^\\\n]+)?(?P<hashes>(?: \\\n +--hash=sha256:[0-9a-f]{64})+)$",
    re.MULTILINE,
)
AUDIT = (
    sys.executable,
    "-m",
    "pip_audit",
    "--disable-pip",
    "--require-hashes",
    "--progress-spinner=off",
    "--format=json",
)
NOT_DONE = (
    "The audit was NOT done: the list of vulnerabilities cannot be reached from here. Run `make audit` where it can."
)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=("sbom", "audit"))
    parser.add_argument("--may-be-offline", action="store_true", help="do not fail without a network, only say so")
    given = parser.parse_args()
    if given.what == "sbom":
        SBOM.parent.mkdir(exist_ok=True)
        SBOM.write_text(json.dumps(bill_of_materials(), indent=1) + "\n")
        print(f"{SBOM.relative_to(ROOT)}: {len(bill_of_materials()['components'])} components")
        return 0
    return audit(may_be_offline=given.may_be_offline)


def bill_of_materials() -> dict[str, Any]:
    """A CycloneDX document of what ships, without a date: the same files give the same document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": project["name"],
                "name": project["name"],
                "version": project["version"],
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": [each for name in SHIPPED for each in components(name)],
    }


def components(file: str) -> Iterator[dict[str, Any]]:
    """Each package that a requirement file pins. It has a hash for each platform's wheel."""
    for pin in PIN.finditer((ROOT / "requirements" / f"{file}.txt").read_text()):
        purl = f"pkg:pypi/{re.sub(r'[-_.]+', '-', pin['name']).lower()}@{pin['version']}"
        hashes = re.findall(r"sha256:([0-9a-f]+)", pin["hashes"])
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": pin["name"],
            "version": pin["version"],
            "purl": purl,
            "hashes": [{"alg": "SHA-256", "content": each} for each in hashes],
        }


def audit(*, may_be_offline: bool, command: tuple[str, ...] = AUDIT) -> int:
    """0 when no pinned package has a known vulnerability, 1 when one has, 2 when that cannot be looked up."""
    files = [word for name in LOCKED for word in ("-r", f"requirements/{name}.txt")]
    done = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        looked_up = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(NOT_DONE, file=sys.stderr)
        return 0 if may_be_offline else 2
    found = [each for each in looked_up if each.get("vulns")]
    for each in found:
        for vulnerability in each["vulns"]:
            cure = ", ".join(vulnerability.get("fix_versions", ())) or "none yet"
            print(f"{each['name']} {each['version']}: {vulnerability['id']}, mended in {cure}")
    print(f"{len(looked_up)} packages looked up, {len(found)} with a known vulnerability")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
