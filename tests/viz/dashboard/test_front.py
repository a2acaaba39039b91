"""The front end's own tests, run by node's own runner: `node --test tests/viz/dashboard/front/*.test.mjs`."""

import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = sorted((Path(__file__).parent / "front").glob("*.test.mjs"))


@pytest.mark.skipif(shutil.which("node") is None, reason="NO NODE: install Debian's package nodejs")
def test_the_front_end_passes_its_own_tests() -> None:
    done = subprocess.run(["node", "--test", *TESTS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(TESTS) == 5
