"""Real clusters need root, Debian's packages and no cluster of one's own: `make test-clusters` sees to it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "recipes"
_NEEDED = ("ip", "nsenter", "sshd", "slurmctld", "slurmd", "munged", "openssl")


def _lacking() -> str:
    if os.geteuid():
        return "network namespaces and the daemons of SLURM and SSH need root"
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if missing := [name for name in _NEEDED if shutil.which(name, path=path) is None]:
        return f"not installed: {', '.join(missing)}; make test-clusters installs them on Debian"
    tried = subprocess.run(["ip", "netns", "add", f"wb{os.getpid()}try"], capture_output=True, text=True)
    if tried.returncode:
        return f"no network namespace can be made here: {tried.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", f"wb{os.getpid()}try"], check=True)
    return ""


def pytest_collection_modifyitems(items) -> None:
    own = [item for item in items if item.path.parent == Path(__file__).parent]  # object stores need no root
    for item in own:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(1800))  # limits are for what hangs: a loaded machine is slow
    if own and (lacking := _lacking()):
        for item in own:
            item.add_marker(pytest.mark.skip(reason=f"real clusters: {lacking}"))


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A home directory in which the workbench is installed as the recipes say, and where commands are given."""
    home = tmp_path / "home"
    (home / "workbench").mkdir(parents=True)
    (home / "workbench" / ".venv").symlink_to(Path(os.environ.get("VIRTUAL_ENV") or ROOT / ".venv").resolve())
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PATH", f"{home}/workbench/.venv/bin:{os.environ['PATH']}:/usr/sbin:/sbin")
    monkeypatch.chdir(home)
    return home
