"""Settings of all tests."""

import gc
import signal
from contextlib import nullcontext
from multiprocessing import forkserver, get_context
from pathlib import Path

import pytest
from hypothesis import settings

# An example may take long where others compute too. The same examples every time, so that a change is judged by what it
# changed; `make test-random` draws others.
settings.register_profile("the same", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile("the same")

gc.disable()  # until all tests are collected: what has been imported by then stays

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it for what it begins in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the file that takes longest on its own, then with large ones: begun late they would be waited for.

    By size, files that wait for others and files that compute lie mixed: there is something to compute meanwhile.
    """
    longest = ("browser", "test_dashboard.py")
    sizes = {path: path.stat().st_size for path in {item.path for item in items}}
    items.sort(key=lambda item: (item.path.parts[-2:] != longest, -sizes[item.path], item.path))


def pytest_collection_finish() -> None:
    gc.freeze()  # nor is it looked at again at every full collection
    gc.enable()


@pytest.fixture(scope="session")
def client():
    """Two real worker processes under nannies, shared by the tests; they may be killed, nannies bring them back.

    They fork from a process that has imported torch and what trains with it: each of them, and each that takes the
    place of one that was killed, would spend four seconds of a core on that.
    """
    from workbench.cluster.local import local_client  # half a second, which most tests need not

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")  # which is read when torch is imported
        get_context("forkserver").set_forkserver_preload(["distributed", "workbench.algos.rl.hts.trial"])
        forkserver.ensure_running()
    with local_client(2) as client:
        yield client


@pytest.fixture
def db(tmp_path) -> Path:
    """Where a knowledge base may be."""
    return tmp_path / "kb.db"


@pytest.fixture
def certified(client, tmp_path, monkeypatch):
    """Lets processes that a test starts reach the shared cluster by its address, as TLS is configured elsewhere."""
    names = {"CA_FILE": "tls_ca_file", "CLIENT__KEY": "tls_client_key", "CLIENT__CERT": "tls_client_cert"}
    for name, attribute in names.items():
        path = tmp_path / f"{attribute}.pem"
        path.write_text(getattr(client.security, attribute))
        monkeypatch.setenv(f"DASK_DISTRIBUTED__COMM__TLS__{name}", str(path))


@pytest.fixture
def drawn_once(monkeypatch) -> None:
    """Has each study's figures drawn once in a test, for whoever asks: they take longer than all else."""
    from workbench.study.results import Results

    figures, drawn = Results.figures, {}

    def once(results: Results) -> dict:
        return drawn.get(results.name) or drawn.setdefault(results.name, figures(results))

    monkeypatch.setattr(Results, "figures", once)


@pytest.fixture
def one_cluster(client, monkeypatch):
    """The shared cluster in the place of those that studies would start for themselves."""
    monkeypatch.setattr("workbench.cluster.local.local_client", lambda *_, **__: nullcontext(client))
    return client
