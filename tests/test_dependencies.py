"""The list of what ships is complete, and an audit that could not look anything up does not pass for one."""

from __future__ import annotations

import json
import re
import sys

import pytest

from tests import dependencies


def test_every_pin_is_in_the_bill_of_materials() -> None:
    found = {(each["name"], each["version"]) for each in dependencies.bill_of_materials()["components"]}
    lines = [
        line
        for name in dependencies.SHIPPED
        for line in (dependencies.ROOT / "requirements" / f"{name}.txt").read_text().splitlines()
    ]
    pinned = {tuple(re.split(r"==| ", line)[:2]) for line in lines if "==" in line}
    assert found == pinned
    assert len(found) > 40


def test_the_bill_of_materials_is_what_tools_read() -> None:
    bill = dependencies.bill_of_materials()
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    references = [each["bom-ref"] for each in bill["components"]]
    assert len(set(references)) == len(references)
    for each in bill["components"]:
        assert re.fullmatch(r"pkg:pypi/[a-z0-9-]+@[\w.]+", each["purl"]), each["purl"]
        assert each["hashes"]


def answering(text: str, code: int = 0) -> tuple[str, ...]:
    return (sys.executable, "-c", f"import sys; print({text!r}); sys.exit({code})")


def test_an_audit_without_a_network_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    silent = answering("", 1)
    assert dependencies.audit(may_be_offline=False, command=silent) == 2
    assert dependencies.audit(may_be_offline=True, command=silent) == 0
    assert capsys.readouterr().err.count("NOT done") == 2


def test_a_vulnerability_fails_the_audit(capsys: pytest.CaptureFixture[str]) -> None:
    vulnerable = {"name": "old", "version": "1.0", "vulns": [{"id": "CVE-1", "fix_versions": ["1.1"]}]}
    report = {"dependencies": [vulnerable, {"name": "good", "version": "2.0", "vulns": []}]}
    for may_be_offline in (True, False):
        assert dependencies.audit(may_be_offline=may_be_offline, command=answering(json.dumps(report), 1)) == 1
    assert "old 1.0: CVE-1, mended in 1.1" in capsys.readouterr().out
    good = {"dependencies": [{"name": "good", "version": "2.0", "vulns": []}]}
    assert dependencies.audit(may_be_offline=False, command=answering(json.dumps(good))) == 0


def test_what_is_audited_is_all_that_is_installed() -> None:
    files = {path.stem for path in (dependencies.ROOT / "requirements").glob("*.txt")}
    assert files - set(dependencies.LOCKED) == {"service"}, "dev.txt pins everything of service.txt too"


def test_the_tests_run_with_what_ships() -> None:
    """Each package that service.txt pins stands in dev.txt with the same hashes."""
    service, dev = ((dependencies.ROOT / "requirements" / name).read_text() for name in ("service.txt", "dev.txt"))
    packages = [each for each in re.split(r"\n(?=\S)", service.strip()) if not each.startswith("#")]
    assert [each.split()[0] for each in packages if each not in dev] == []
