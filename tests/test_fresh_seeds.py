"""Each random test of the other tiers with the fresh seed that a test of the long tier gets."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from seeds import SEED

HERE = Path(__file__).parent
RANDOM = sorted(
    path.name
    for path in HERE.glob("test_*.py")
    if path != Path(__file__) and re.search(r"^from (seeds|hypothesis) import", path.read_text(), re.MULTILINE)
)


@pytest.mark.long
@pytest.mark.parametrize("file", RANDOM)
def test_random_tests(file: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "fast or full", "-p", "no:cacheprovider", HERE / file]
    environment = {**os.environ, "SPURTLE_SEED": str(SEED)}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
