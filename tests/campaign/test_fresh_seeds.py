"""Run of each file of random tests of the other tiers with the fresh seed of the long tier."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.seeds import SEED

RANDOM = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "tests").rglob("test_*.py")
    if path != Path(__file__)
    and re.search(r"^from (tests\.support\.seeds|hypothesis) import", path.read_text(), re.MULTILINE)
)


@pytest.mark.long
@pytest.mark.parametrize("file", RANDOM)
def test_random_tests(file: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "fast or full", "-p", "no:cacheprovider", ROOT / file]
    environment = {**os.environ, "SPURTLE_SEED": str(SEED)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
