"""The page on reliability counts this suite."""

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_the_page_on_reliability_counts_the_attempts_and_names_every_file() -> None:
    text = (HERE.parents[1] / "docs" / "reliability.md").read_text()
    files = sorted(path for path in HERE.glob("test_*.py") if path.name != Path(__file__).name)
    n_tests = sum(len(re.findall(r"^def test_", path.read_text(), re.MULTILINE)) for path in files)
    (counted,) = re.findall(r"suite `tests/hostile/`: (\d+) tests", text)
    assert int(counted) == n_tests
    assert [path.name for path in files if f"`{path.name}`" not in text] == []


def test_every_test_that_the_page_on_security_names_is_there() -> None:
    text = (HERE.parents[1] / "docs" / "security.md").read_text()
    named = re.findall(r"`([\w/]+(?:\.py)?)`", "".join(re.findall(r"\|[^|]*\|$|\([^)]*\)", text, re.MULTILINE)))
    paths = [name for name in named if "/" in name]
    assert len(paths) > 15
    assert [name for name in paths if not (HERE.parent / name).exists()] == []
