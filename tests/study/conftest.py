"""A study on the shared cluster."""

import pytest

from tests.support import SPACE, Deterministic
from workbench import HyperTrick, RandomSearcher, Study


@pytest.fixture
def study_of(client, tmp_path):
    def make(**changes) -> Study:
        settings = {
            "name": "a study",
            "scheduler": HyperTrick(RandomSearcher(SPACE), 8, 3),
            "trainable": Deterministic,
            "db": tmp_path / "kb.db",
            "client": client,
            **changes,
        }
        return Study(**settings)

    return make


def verdicts(run) -> list[tuple]:
    rows = run.frames().decisions[["trial", "phase", "verdict"]]
    return sorted(rows.itertuples(index=False, name=None))
