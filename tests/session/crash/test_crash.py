"""Processes that are killed at any moment leave nothing half done: a short campaign on each store (`make crash`)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ...effort import by_profile
from .places import PLACES

ROOT = Path(__file__).resolve().parents[3]
SOURCES = sorted(path.parents[1] for path in ROOT.glob("*/gotato_*/__init__.py"))
KILLS = int(os.environ.get("CRASH_KILLS", by_profile(dev="30", ci="150", nightly="1000")))
SEED = os.environ.get("CRASH_SEED", "7")


@pytest.mark.timeout(max(120, KILLS))
@pytest.mark.parametrize("store", sorted(PLACES))
def test_a_killed_process_leaves_nothing_half_done(store: str, tmp_path: Path) -> None:
    """It opens; what was acknowledged is there, the rest whole or not at all; the work ends without paying twice."""
    command = [sys.executable, "-m", "tests.session.crash", "--store", store, "--kills", str(KILLS), "--seed", SEED]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *map(str, SOURCES)]), "PYTHONUTF8": "1"}
    done = subprocess.run(
        [*command, "--folder", str(tmp_path / "places")], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{store}: {KILLS} processes" in done.stdout
