"""Hosts on which scheduler and workers are started by hand, as the recipes say; one of them has two GPUs."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from distributed import Client
from distributed.security import Security

from tests.clusters.conftest import RECIPES
from tests.clusters.processes import processes
from tests.clusters.test_slurm import events_of, run_out, write_study
from workbench.core.protocols import Kind
from workbench.paper.ba3c.virtual_hosts import hosts

pytestmark = pytest.mark.clusters


def test_a_study_runs_on_hosts_that_were_started_by_hand(home, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("USER", "root")
    subprocess.run(["bash", RECIPES / "keys.sh"], check=True, capture_output=True)
    cert, key = str(home / "keys" / "cert.pem"), str(home / "keys" / "key.pem")
    for name, file in {"CA_FILE": cert, "CLIENT__CERT": cert, "CLIENT__KEY": key}.items():
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{name}", file)
    with hosts(["head", "n1", "n2"]) as (head, n1, n2), processes(tmp_path) as started, head.entered():
        started.start("head", head.command(str(RECIPES / "head.sh")))
        node = RECIPES / "node.sh"
        for host, gpu in ((n1, ""), (n2, "0"), (n2, "1")):
            env = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu}
            line = f"hostname {host.name}; exec {node} {head.address} 2"
            started.start(f"{host.name}{gpu}", host.command("unshare", "--uts", "bash", "-c", line), env=env)
        where = f"tls://{head.address}:8786"
        security = Security(tls_ca_file=cert, tls_client_cert=cert, tls_client_key=key, require_encryption=True)
        with Client(where, security=security, timeout=300, set_as_default=False) as client:
            client.wait_for_workers(6, timeout=300)
            names = {worker["name"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()}
        assert names == {f"{name}-{k}" for name in ("n1", "n2-gpu0", "n2-gpu1") for k in (0, 1)}
        write_study("by-hand", 6, 1, steps=40)
        command = [sys.executable, "-m", "workbench", "run", "study.toml", "--db", "kb.db", "--quiet"]
        told = subprocess.run([*command, "--cluster", where], capture_output=True, text=True, timeout=600, check=False)
        assert told.returncode == 0, run_out(told)
    sees = {process: gpu for *_, process, gpu in (line.split(" ") for line in Path("steps").read_text().splitlines())}
    assert Counter(sees.values()) == {"": 2, "0": 2, "1": 2}
    assert not [e for e in events_of("by-hand") if e.kind is Kind.PHASE_FAILED]
