"""Cores and memory as a container or a batch job has them, not as the machine has them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench.core.machine import CORES, cores, cores_a_slot, layout, memory, slots_here, tasks

GIB = 1 << 30


def machine(root: Path, group: str = "0::/", gib: int = 64, **files: str) -> Path:
    """Lay out a machine's files: what is given by a path with ``__`` for ``/`` stands under ``/sys/fs/cgroup``."""
    (root / "proc" / "self").mkdir(parents=True)
    (root / "proc" / "self" / "cgroup").write_text(f"{group}\n")
    (root / "proc" / "meminfo").write_text(f"MemTotal:       {gib << 20} kB\nMemFree:        1 kB\n")
    for name, text in files.items():
        file = root / "sys" / "fs" / "cgroup" / name.replace("__", "/").replace("_dot_", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.fixture(autouse=True)
def sixteen(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))


@pytest.mark.parametrize(
    ("group", "files", "n", "gib"),
    [
        ("0::/", {}, 16, 64),
        ("0::/", {"cpu_dot_max": "max 100000", "memory_dot_max": "max"}, 16, 64),
        ("0::/", {"cpu_dot_max": "400000 100000", "memory_dot_max": str(3 * GIB)}, 4, 3),
        ("0::/job/step", {"job__cpu_dot_max": "250000 100000", "job__step__cpu_dot_max": "max 100000"}, 2, 64),
        ("0::/job/step", {"job__memory_dot_max": str(8 * GIB), "job__step__memory_dot_max": str(9 * GIB)}, 16, 8),
        ("0::/", {"cpu_dot_max": "50000 100000", "memory_dot_max": str(GIB // 2)}, 1, 0.5),
        (
            "4:memory:/job\n3:cpu,cpuacct:/job",
            {
                "cpu__job__cpu_dot_cfs_quota_us": "300000",
                "cpu__job__cpu_dot_cfs_period_us": "100000",
                "memory__job__memory_dot_limit_in_bytes": str(2 * GIB),
            },
            3,
            2,
        ),
        (
            "4:memory:/\n3:cpu,cpuacct:/",
            {
                "cpu__cpu_dot_cfs_quota_us": "-1",
                "cpu__cpu_dot_cfs_period_us": "100000",
                "memory__memory_dot_limit_in_bytes": "9223372036854771712",
            },
            16,
            64,
        ),
    ],
)
def test_what_may_be_used_is_what_the_control_group_leaves(tmp_path, group, files, n, gib) -> None:
    root = machine(tmp_path, group, **files)
    assert cores(root) == n
    assert memory(root) == gib * GIB
    assert slots_here(root=root) == max(1, min(n, int(gib)))


def test_where_no_file_tells_of_memory_the_system_is_asked(tmp_path, monkeypatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 1 << 14, "SC_PHYS_PAGES": 1 << 18}.__getitem__)
    assert (cores(tmp_path), memory(tmp_path), slots_here(root=tmp_path)) == (8, 4 * GIB, 4)


def test_slots_come_in_whole_gangs_and_there_is_one_at_least(tmp_path) -> None:
    root = machine(tmp_path, gib=7)
    assert [slots_here(n, root) for n in (1, 2, 3, 4, 8, 32)] == [7, 6, 6, 4, 8, 32]
    assert [slots_here(n, root, most=5) for n in (1, 2, 3, 4, 8, 32)] == [5, 4, 3, 4, 8, 32]


def test_a_slot_counts_on_its_share_of_the_cores_and_knows_it_in_its_own_process(monkeypatch) -> None:
    monkeypatch.setattr("workbench.core.machine.cores", lambda: 16)
    monkeypatch.setattr("workbench.core.machine.memory", lambda: 24 * GIB)
    assert [cores_a_slot(n) for n in (1, 3, 16, 40)] == [16, 5, 1, 1]
    assert layout(3) == "3 slots with 5 cores each, of the 16 cores and 24.0 GiB that can be used here"
    assert layout(1).startswith("1 slot with 16 cores each")
    assert layout(4, 2) == "2 slots of 2 workers with 4 cores each, of the 16 cores and 24.0 GiB that can be used here"
    assert layout(7, 3).startswith("2 slots of 3 workers with 2 cores each")
    assert layout(7, 3).endswith("; 1 worker left over: take nodes=6 or 9")
    monkeypatch.setenv(CORES, "5")
    assert cores_a_slot() == 5
    monkeypatch.setenv(CORES, "0")
    assert cores_a_slot() == 1
    monkeypatch.setenv(CORES, "many")
    assert cores_a_slot() == 16


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity here")
def test_a_process_bound_to_one_core_has_one() -> None:
    said = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
    said += "from workbench.core.machine import cores; print(cores())"
    assert subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True).stdout == "1\n"


def test_workers_of_a_local_cluster_know_their_share(monkeypatch) -> None:
    from workbench.cluster.local import local_client

    def told() -> dict[str, str | None]:
        return {name: os.environ.get(name) for name in ("WORKBENCH_CORES", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}

    monkeypatch.setattr("workbench.core.machine.cores", lambda: 6)
    monkeypatch.delenv("WORKBENCH_CORES", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("MKL_NUM_THREADS", "7")  # somebody knows better
    with local_client(2) as client:
        assert [*client.run(told).values()] == [
            {"WORKBENCH_CORES": "3", "OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "7"}
        ] * 2


def test_a_cluster_of_another_size_in_the_same_process_has_its_own_share(monkeypatch) -> None:
    from workbench.cluster.local import local_client

    monkeypatch.setattr("workbench.core.machine.cores", lambda: 6)
    monkeypatch.delenv("WORKBENCH_CORES", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for nodes, share in ((2, "3"), (1, "6")):
        with local_client(nodes) as client:
            client.restart_workers(list(client.scheduler_info(n_workers=-1)["workers"]))
            assert set(client.run(lambda: os.environ["OMP_NUM_THREADS"]).values()) == {share}
            assert "WORKBENCH_CORES" not in os.environ, "this process's environment is not the workers'"


def test_threads_count_as_tasks_of_their_user_and_nobody_elses_do(tmp_path) -> None:
    for number, (user, threads) in enumerate([(os.getuid(), 3), (os.getuid() + 1, 50), (os.getuid(), 1)], 1):
        (file := tmp_path / "proc" / str(number) / "status").parent.mkdir(parents=True)
        file.write_text(f"Name:\ta b\nUid:\t{user}\t{user}\t{user}\t{user}\nThreads:\t{threads}\n")
    (tmp_path / "proc" / "4").mkdir()
    (tmp_path / "proc" / "4" / "status").write_text("Name: of a system that tells less\n")
    assert tasks(tmp_path) == 4
    assert tasks() > 0
    assert tasks(tmp_path / "nowhere") == 0
