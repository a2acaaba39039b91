"""The image of the recipe, built from its Dockerfile by buildah, which needs no daemon, and run as a pod runs it.

No registry of images is at hand: in the place of ``python:3.11-slim-bookworm`` stands the same Debian with its own
Python 3.11, made by debootstrap.
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clusters.conftest import RECIPES, ROOT

_NEEDED = ("buildah", "debootstrap", "unshare")
_MISSING = [name for name in _NEEDED if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
pytestmark = [
    pytest.mark.clusters,
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(
        bool(_MISSING), reason=f"not installed: {', '.join(_MISSING)}, Debian's packages of these names"
    ),
]

BASE, IMAGE = "localhost/python:3.11-slim-bookworm", "localhost/workbench:1"
STUDY = """
[study]
name = "pong"
nodes = 1
[space]
learning_rate = {log_uniform = [1e-4, 1e-3]}
[scheduler]
kind = "full"
n_trials = 1
n_phases = 2
[trainable]
kind = "ga3c"
game = "Pong"
n_agents = 2
phase = {frames = 400}
"""
# what the manifest asks of Kubernetes: a root that nobody can write to, a scratch, a user without rights
AS_A_POD = """
set -eu
mount --bind "$0" "$0"
mount -o remount,bind,ro "$0"
mount -t tmpfs none "$0/tmp"
mount -t proc none "$0/proc"
mount --rbind /dev "$0/dev"
cp study.toml "$0/tmp"
exec chroot "$0" setpriv --reuid 1000 --regid 1000 --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs \\
    env -i PATH="$1" HOME=/tmp DASK_DISTRIBUTED__WORKER__DAEMON=False sh -euc "cd /tmp; $2"
"""


def said(*command: str | Path, **settings) -> str:
    told = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=2400, **settings)
    assert told.returncode == 0, f"{command}: {told.stdout[-2000:]} {told.stderr[-4000:]}"
    return told.stdout.strip()


@pytest.fixture(scope="module")
def buildah(tmp_path_factory) -> Iterator[Callable[..., str]]:
    """Run buildah, with a store of this test's own; all of it is removed at the end."""
    there = tmp_path_factory.mktemp("images")
    own = ["buildah", "--root", there / "root", "--runroot", there / "run"]

    def run(*arguments: str | Path) -> str:
        return said(*own, *arguments, env={**os.environ, "BUILDAH_ISOLATION": "chroot", "TMPDIR": str(there)})

    try:
        yield run
    finally:
        run("rm", "--all")
        run("rmi", "--all", "--force")
        subprocess.run(["umount", there / "root" / "overlay"], capture_output=True)


@pytest.fixture(scope="module")
def base(buildah, tmp_path_factory) -> str:
    """Debian of the recipe's release, with Python under the name that the recipe's base has it."""
    rootfs = tmp_path_factory.mktemp("base") / "rootfs"
    said("debootstrap", "--variant=minbase", "--include=python3-venv,ca-certificates", "bookworm", rootfs)
    (rootfs / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, rootfs, "/")
    buildah("commit", "--quiet", "--rm", container, BASE)
    said("rm", "-rf", rootfs)
    return BASE


def of_this_machine(folder: Path) -> list[str]:
    """Let the build reach packages as this machine does: pip's settings, its own wheels, who signs for the network."""
    told = [line.partition("=") for line in said("pip", "config", "list").splitlines()]
    settings = {name.rpartition(".")[2]: value.strip("'") for name, _, value in told}
    (folder / "pip.conf").write_text("".join(["[global]\n", *(f"{k} = {v}\n" for k, v in settings.items())]))
    words = [word for value in settings.values() for word in value.split()]
    indexes = [str(Path(word.removeprefix("file://")).parent) for word in words if word.startswith("file://")]
    places = sorted({place for place in [*words, *indexes] if place.startswith("/") and Path(place).is_dir()})
    mounts = [f"{folder}/pip.conf:/etc/pip.conf", "/etc/ssl/certs:/etc/ssl/certs", *(f"{at}:{at}" for at in places)]
    return [part for mount in mounts for part in ("--volume", f"{mount}:ro")]


def test_the_image_is_built_and_trains_as_a_pod_that_may_do_nothing_else(buildah, base, tmp_path) -> None:
    recipe = RECIPES / "Dockerfile"
    assert f"FROM {base.partition('/')[2]}\n" in recipe.read_text()
    build = ["bud", "--pull-never", "--network", "host", *of_this_machine(tmp_path), "--file", recipe, "--tag", IMAGE]
    buildah(*build, ROOT)
    path = buildah("inspect", "--type", "image", "--format", "{{.OCIv1.Config.Env}}", IMAGE)
    assert buildah("inspect", "--type", "image", "--format", "{{.OCIv1.Config.User}}", IMAGE) == "1000"
    (path,) = [entry.removeprefix("PATH=") for entry in path.strip("[]").split() if entry.startswith("PATH=")]
    root = buildah("mount", buildah("from", "--pull-never", IMAGE))
    held = {entry.name for entry in Path(root, "opt/workbench").iterdir()}
    assert not held & {".git", ".venv", "docs", "tests"}
    (tmp_path / "study.toml").write_text(STUDY)

    def in_a_pod(command: str) -> str:
        return said("unshare", "--mount", "sh", "-c", AS_A_POD, root, path, command, cwd=tmp_path)

    rights = in_a_pod("id -u; grep CapEff /proc/self/status; touch /opt/venv/mine 2>&1 || echo refused").splitlines()
    assert (rights[:2], rights[-1]) == (["1000", "CapEff:\t0000000000000000"], "refused")
    assert "best score" in in_a_pod("workbench run study.toml --quiet")
