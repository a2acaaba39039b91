"""GPUs handed out to the workers of the local cluster: what the processes see."""

import math
import os

import dask
import numpy as np
import pytest

from tests.cluster.gang import Gang
from tests.support import SPACE, Deterministic
from workbench import FullRuns, RandomSearcher, Study
from workbench.cluster.gpus import check_share, gpus_for
from workbench.cluster.local import local_client
from workbench.core.errors import InvalidInput


@pytest.fixture(autouse=True)
def nothing_read_of_gpus():
    """Dask reads the real ones' load where it can: those named here are not there."""
    with dask.config.set({"distributed.diagnostics.nvml": False}):
        yield


def seen() -> str | None:
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def test_every_worker_sees_gpus_of_its_own_also_one_that_was_replaced(monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    with local_client(2, gpus_per_slot=2) as client:
        first = client.run(seen)
        assert sorted(first.values()) == ["4,5", "6,7"]
        client.restart_workers(list(first)[:1])
        assert sorted(client.run(seen).values()) == ["4,5", "6,7"]
        with pytest.raises(InvalidInput, match="with gpus_per_slot = 2 there can be 2 nodes here, not 3"):
            client.cluster.scale(3)
    assert seen() == "4,5,6,7"


def test_a_gpu_is_shared_where_each_takes_a_part(monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with local_client(2, gpus_per_slot=0.5) as client:
        assert list(client.run(seen).values()) == ["3", "3"]


def test_too_few_gpus_are_refused_before_anything_is_written(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(InvalidInput, match="only 1 GPU can be seen here, too few for 2 nodes with 1 each"):
        Study("a", FullRuns(RandomSearcher(SPACE), 1, 1), Deterministic, tmp_path / "kb.db", 2, gpus_per_slot=1).start()
    study = Study("a", FullRuns(RandomSearcher(SPACE), 1, 1), Deterministic, tmp_path / "kb.db", gpus_per_slot=1)
    assert study.nodes == 1  # not told how many, it takes what the GPUs suffice for
    assert list(tmp_path.iterdir()) == []
    assert gpus_for(2, 0.5) == ["0"]
    assert gpus_for(8, None) == []
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert gpus_for(4, 0.4) == ["0", "1"]
    with pytest.raises(InvalidInput, match=r"too few for 5 nodes with 0\.4 each"):  # what is left of each is too little
        gpus_for(5, 0.4)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 0, -1, 1")
    assert gpus_for(2, 1) == ["2", "0"]  # CUDA sees nothing behind a number below 0
    for none in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", none)
        with pytest.raises(InvalidInput, match="no GPU can be seen here"):
            gpus_for(1, 1)
    for wrong in (1.5, 0, -1, True, "1", math.nan, math.inf):
        with pytest.raises(InvalidInput, match=rf"whole number >= 1, or a share of one GPU below 1, got {wrong!r}"):
            check_share(wrong)
    for share in (0.5, 1, 2.0, np.float32(0.5), np.int64(3)):
        check_share(share)


def test_who_is_not_told_how_many_takes_whole_gangs_of_those_that_the_gpus_suffice_for(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    monkeypatch.setattr("workbench.core.machine.cores", lambda *_: 8)
    study = Study("a", FullRuns(RandomSearcher(SPACE), 1, 1), Gang(2), tmp_path / "kb.db", gpus_per_slot=1)
    assert study.nodes == 2
    assert study.layout.startswith("1 slot of 2 workers with 4 cores each, ")
    with pytest.raises(InvalidInput, match="only 3 GPUs can be seen here, too few for 4 nodes with 1 each"):
        Study("a", FullRuns(RandomSearcher(SPACE), 1, 1), Gang(4), tmp_path / "kb.db", gpus_per_slot=1).start()
