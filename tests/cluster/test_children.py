"""Processes that a trial starts: they begin as they would where its code is called directly."""

import multiprocessing
import subprocess
import sys
from multiprocessing import get_all_start_methods, get_start_method, set_start_method

import pytest

from tests.support import FROM_HERE
from workbench import FullRuns, RandomSearcher, Space, Study, Uniform
from workbench.cluster.children import chosen_method, start_by

SPACE = Space({"x": Uniform(0, 1)})


@pytest.fixture
def method():
    """Let the test choose how processes begin; afterwards they begin as before."""
    before = get_start_method(allow_none=True)
    yield lambda name: set_start_method(name, force=True)
    set_start_method(before, force=True)


@pytest.mark.skipif(get_all_start_methods()[0] != "fork", reason="spawned processes do not know what a cell defines")
def test_a_data_loader_reads_a_data_set_of_the_script_or_cell(client, db) -> None:
    from torch.utils.data import DataLoader, Dataset

    class Mine(Dataset):  # no worker can import it
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return float(index)

    def train(config):
        for _ in range(2):
            yield sum(float(batch.sum()) for batch in DataLoader(Mine(), batch_size=2, num_workers=1))

    run = Study("loads", FullRuns(RandomSearcher(SPACE), 1, 2), train, db, client=client, max_retries=0).run()
    assert run.frames().phases["score"].tolist() == [28.0, 28.0]


def chooses(config):
    """Choose a method of its own; in one process a second choice would be refused."""
    multiprocessing.set_start_method("spawn")
    yield 1.0


def begins_by(config):
    yield float(get_all_start_methods().index(get_start_method()))


def test_they_begin_as_the_script_has_chosen_and_what_a_trial_chooses_is_for_itself(client, db, method) -> None:
    def scores(name, train, n_trials):
        study = Study(name, FullRuns(RandomSearcher(SPACE), n_trials, 1), train, db, client=client, max_retries=0)
        return study.run().frames().phases["score"].tolist()

    method("forkserver")
    assert scores("chosen", begins_by, 1) == [float(get_all_start_methods().index("forkserver"))]
    method(None)
    assert scores("chooses", chooses, 3) == [1.0] * 3
    assert scores("default", begins_by, 3) == [0.0] * 3


def test_what_is_python_s_own_choice_is_no_choice(method) -> None:
    method(None)
    assert chosen_method() is None
    multiprocessing.get_context()  # from here on there is a method, though nobody has chosen one
    assert chosen_method() is None
    method("spawn")
    assert chosen_method() == "spawn"
    code = "from multiprocessing import *; from workbench.cluster.children import chosen_method as f\n"
    code += "if __name__ == '__main__':\n    with get_context('spawn').Pool(1) as pool: print(pool.apply(f))"
    done = subprocess.run([sys.executable, "-c", code], env=FROM_HERE, capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"


def test_the_driver_s_own_process_keeps_its_method(method) -> None:
    """There are workers in its threads, of `LocalCluster(processes=False)`."""
    method("spawn")
    start_by(None)
    assert get_start_method() == "spawn"
