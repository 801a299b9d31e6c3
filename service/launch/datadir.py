"""Is the data folder there, and ours to write?"""

from __future__ import annotations

import os
from pathlib import Path

from service.launch.problems import LaunchError


def prepare(data_dir: Path) -> None:
    """Make the folder when it is missing. Raises LaunchError naming LOXODON_DATA_DIR when that cannot be.

    Root's lets others pass through but not look: Postgres may have to run as nobody inside (account.py).
    """
    mode = 0o711 if os.geteuid() == 0 else 0o700
    try:
        data_dir.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as exc:
        raise LaunchError(
            f"Cannot make the data folder {data_dir}: {exc.strerror}. Set LOXODON_DATA_DIR to a folder of yours."
        ) from exc
    if not os.access(data_dir, os.R_OK | os.W_OK | os.X_OK):
        raise LaunchError(f"You may not write into {data_dir}. Set LOXODON_DATA_DIR to a folder of yours.")
