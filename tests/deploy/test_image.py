"""The first steps in the image. `make image-steps` also installs the packages, and runs API and worker in it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.deploy import image
from tests.deploy.image import ROOT

pytestmark = pytest.mark.timeout(300)


@pytest.mark.skipif(not image.can_mount(), reason="needs Linux, root and mounts")
def test_the_image_migrates_without_rights_and_without_writing(tmp_path: Path) -> None:
    here = Path(sys.prefix)
    built = image.build(tmp_path, packages=here)
    assert built.user == "10001"
    with_database = tmp_path / "database"
    with_database.mkdir()
    image.try_out(built, with_database, packages=here, serve=False)


def test_only_pinned_packages_are_installed() -> None:
    steps = image.stages()
    assert list(steps)[-1] == image.TARGET, "docker builds the last one unless told otherwise"
    installs = [text for stage in steps.values() for kind, text in stage if kind == "RUN" and "install " in text]
    pips = [part for text in installs for part in text.split("&&") if "pip install" in part]
    assert len(pips) == 2
    assert all("--require-hashes" in part for part in pips)
    assert not any(
        "bot-brain" in (ROOT / "requirements" / f"{name}.txt").read_text() for name in ("service", "binaries")
    )
    assert any("model_wheel.py /tmp/requirements/model.txt" in text for text in installs)
    assert steps[image.TARGET][0] == ("FROM", "base")
    assert ("COPY", "--from=packages /opt/loxodon /opt/loxodon") in steps[image.TARGET]
