"""The front end's own tests, as `node --test tests/viz/dashboard/front/*.test.mjs` runs them, but in one process."""

import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = sorted((Path(__file__).parent / "front").glob("*.test.mjs"))


@pytest.mark.skipif(shutil.which("node") is None, reason="NO NODE: install Debian's package nodejs")
def test_the_front_end_passes_its_own_tests() -> None:
    runs = "for (const path of process.argv.slice(1)) await import(path);"
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", runs, *TESTS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(TESTS) == 5
