"""A study on a cluster that speaks TLS only: the executor's own connection uses the client's security."""

import shutil
import subprocess

import pytest
from distributed import Client, LocalCluster
from distributed.security import Security

from tests.support import SPACE, Deterministic
from workbench.algos.search import HyperTrick, RandomSearcher
from workbench.study.study import Study


@pytest.fixture
def security(tmp_path) -> Security:
    """One self-signed certificate for all: what is tested is not Dask's TLS but that it is used."""
    if shutil.which("openssl") is None:
        pytest.skip("making a certificate needs openssl")
    key, cert = str(tmp_path / "key.pem"), str(tmp_path / "cert.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*command, "-keyout", key, "-out", cert], check=True, capture_output=True)
    roles = {
        f"tls_{role}_{what}": path
        for role in ("client", "scheduler", "worker")
        for what, path in (("cert", cert), ("key", key))
    }
    return Security(tls_ca_file=cert, require_encryption=True, **roles)


def test_a_study_over_tls(tmp_path, security) -> None:
    scheduler = HyperTrick(RandomSearcher(SPACE), n_trials=3, n_phases=2)
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="tls://127.0.0.1",
            dashboard_address=None,
            security=security,
        ) as cluster,
        Client(cluster, security=security, set_as_default=False) as client,
    ):
        assert client.scheduler.address.startswith("tls://")
        with pytest.raises(Exception, match=r"TLS|ssl_context"):
            Client(cluster.scheduler_address, set_as_default=False, timeout=5)
        run = Study("over-tls", scheduler, Deterministic, db=tmp_path / "kb.db", client=client).run()
    phases = run.frames().phases
    assert phases["score"].notna().all()
    assert len(phases) >= 4
