"""Exports to tools that want packages of their own: each is installed as a user would have it, and reads the study."""

import json
import os
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.study.test_export import db, trials_of  # noqa: F401  the study that is exported there

pytestmark = pytest.mark.slow

# A file of offline runs is a log of LevelDB's that holds records of wandb's protocol.
READ_WANDB = """
import json, struct, sys
from pathlib import Path
from wandb.proto.wandb_internal_pb2 import Record

def records(data):
    at, parts = 7, b""
    while at + 7 <= len(data):
        if (left := 32768 - at % 32768) < 7:
            at += left
        size, kind = struct.unpack("<HB", data[at + 4 : at + 7])
        parts += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):
            yield Record.FromString(parts)
            parts = b""

found = {}
for file in sorted(Path(sys.argv[1]).glob("wandb/offline-run-*/*.wandb")):
    run = {"history": []}
    for record in records(file.read_bytes()):
        if record.HasField("run"):
            run["name"], run["group"] = record.run.display_name, record.run.run_group
            run["config"] = {item.key: json.loads(item.value_json) for item in record.run.config.update}
        if record.HasField("history"):
            items = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
            run["history"].append(items)
        if record.HasField("exit"):
            run["exit"] = record.exit.exit_code
    found[run["name"]] = run
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory) -> Path:
    """Give a folder with the packages that exports need and the lock has not."""
    folder = tmp_path_factory.mktemp("packages")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", folder, "wandb>=0.31", "mlflow-skinny>=3.17"], check=True, stderr=subprocess.PIPE)
    return folder


def ours(packages: Path, *command: str) -> str:
    """Run Python with our packages and those."""
    env = {**os.environ, "PYTHONPATH": f"{Path.cwd()}:{packages}"}
    return subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, check=True).stdout


def test_weights_and_biases_has_a_run_a_trial(packages, db) -> None:  # noqa: F811
    to = db.parent / "wandb"
    for _ in range(2):  # the second replaces the first
        ours(packages, "-m", "workbench", "export", "exported", "--to", "wandb", "--out", to, "--db", db)
    found, frames = json.loads(ours(packages, "-c", READ_WANDB, str(to))), trials_of(db)
    assert sorted(found) == sorted(f"trial {n}" for n in frames.trials["trial"])
    for trial, rows in frames.phases.groupby("trial"):
        run = found[f"trial {trial}"]
        ends = [point for point in run["history"] if "phase" in point]
        assert [(p["phase"], p["score"]) for p in ends] == list(zip(rows["phase"], rows["score"], strict=True))
        row = frames.trials.set_index("trial").loc[trial]
        assert (run["group"], run["config"]["lr"], run["exit"]) == ("exported", row["lr"], 0)


def test_what_is_skipped_without_mlflow_passes_with_it(packages) -> None:
    said = ours(
        packages,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/study/test_export.py",
        "-k",
        "mlflow or callbacks",
    )
    assert " passed" in said.splitlines()[-1]
    assert "skipped" not in said


@contextmanager
def mlflow_server(folder: Path):
    """Serve an MLflow of its own environment on loopback."""
    python = folder / "env" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "mlflow>=3.17"], check=True, stderr=subprocess.PIPE)
    store = f"sqlite:///{folder / 'served.db'}"
    command = [python, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", "0", "--backend-store-uri", store]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield address_of(server)
        finally:
            server.terminate()


def address_of(server) -> str:
    for line in server.stdout:
        if "http://127.0.0.1:" in line:
            return "http://127.0.0.1:" + line.rpartition("http://127.0.0.1:")[2].split()[0].strip("/")
    raise AssertionError("the server said no address")


def test_a_server_of_mlflows_has_a_run_a_trial(packages, db, tmp_path) -> None:  # noqa: F811
    with mlflow_server(tmp_path) as server:
        for _ in range(2):
            ours(packages, "-m", "workbench", "export", "exported", "--to", "mlflow", "--out", server, "--db", db)
        told = asked(server, "experiments/get-by-name?experiment_name=exported")["experiment"]
        runs = asked(server, "runs/search", {"experiment_ids": [told["experiment_id"]]})["runs"]
        found = {named(run["data"]["tags"])["trial"]: run for run in runs}
        frames = trials_of(db)
        assert sorted(map(int, found)) == frames.trials["trial"].tolist()
        for row in frames.trials.to_dict("records"):
            run = found[str(row["trial"])]
            assert named(run["data"]["metrics"])["score"] == row["last_score"]
            history = f"metrics/get-history?run_id={run['info']['run_id']}&metric_key=score"
            assert len(asked(server, history)["metrics"]) == row["phases"]


def asked(server: str, what: str, data: dict | None = None) -> dict:
    body = None if data is None else json.dumps(data).encode()
    request = urllib.request.Request(f"{server}/api/2.0/mlflow/{what}", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def named(items: list[dict]) -> dict:
    return {item["key"]: item["value"] for item in items}
