"""What Kubernetes would be given: the recipe's manifest, the pods that Dask's operator makes of it, and the image.

No cluster was at hand: nothing here was run on one.
"""

import copy
import json
import runpy
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "docs" / "recipes"

HADOLINT = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or "hadolint"

pytestmark = pytest.mark.clusters


@pytest.fixture(scope="module")
def manifest() -> dict:
    pytest.importorskip("dask_kubernetes")
    return runpy.run_path(str(RECIPES / "kubernetes.py"))["described"]("registry.example.org/workbench:1", 8)


def closed(schema):
    """Allow no field that a schema does not name, as the API server's strict validation does."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: closed(part) for key, part in schema.items()}
    free = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if isinstance(schema.get("properties"), dict) and not free:
        strict["additionalProperties"] = False
    return strict


def errors(manifest: dict) -> list[str]:
    """What the operator's own definition of a cluster has against a manifest."""
    from jsonschema import Draft202012Validator

    crds = files("dask_kubernetes") / "operator/deployment/helm/dask-kubernetes-operator/crds/daskcluster.yaml"
    version = next(v for v in yaml.safe_load(crds.read_text())["spec"]["versions"] if v["name"] == "v1")
    schema = version["schema"]["openAPIV3Schema"]
    envelope = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    schema = {**schema, "properties": {**envelope, **schema["properties"]}}
    found = Draft202012Validator(closed(schema)).iter_errors(json.loads(json.dumps(manifest)))
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}"[:300] for e in found]


def test_the_manifest_is_what_the_operator_takes(manifest) -> None:
    assert (manifest["apiVersion"], manifest["kind"]) == ("kubernetes.dask.org/v1", "DaskCluster")
    assert errors(manifest) == []


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        (("worker", "spec"), "securitycontext", {}),
        (("worker", "spec", "containers", 0), "resource", {}),
        (("worker",), "replicas", "eight"),
        (("scheduler", "spec", "containers", 0, "ports", 0), "containerPort", "8786"),
        (("scheduler", "spec", "securityContext"), "runAsNonRoot", "yes"),
    ],
)
def test_a_field_that_is_misspelt_or_of_another_kind_would_be_found(manifest, path, name, value) -> None:
    spoiled = copy.deepcopy(manifest)
    part = spoiled["spec"]
    for step in path:
        part = part[step]
    part[name] = value
    assert len(errors(spoiled)) == 1


@pytest.fixture(scope="module")
def deployments(manifest) -> dict[str, dict]:
    """What the operator makes of the manifest, by its own functions."""
    from dask_kubernetes.operator.controller import controller

    spec = manifest["spec"]
    about = {"annotations": {}, "labels": {}}
    worker = controller.build_worker_deployment_spec(
        worker_group_name="study-default",
        namespace="rl",
        cluster_name="study",
        uuid="0123456789",
        pod_spec=copy.deepcopy(spec["worker"]["spec"]),
        **about,
    )
    scheduler = controller.build_scheduler_deployment_spec("study", copy.deepcopy(spec["scheduler"]["spec"]), **about)
    return {"worker": worker, "scheduler": scheduler}


@pytest.mark.parametrize("part", ["worker", "scheduler"])
def test_the_pods_are_valid_and_hold_to_the_restricted_standard(deployments, part) -> None:
    """Kubernetes' Pod Security Standards, "restricted"; and what a pod takes is bounded."""
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    deployment = json.loads(json.dumps(deployments[part]))
    kubernetes_validate.validate(deployment, "1.30", strict=True)
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert all(set(volume) == {"name", "emptyDir"} for volume in pod["volumes"])
    for container in pod["containers"]:
        own = container["securityContext"]
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert own["readOnlyRootFilesystem"] is True
        assert container["resources"]["requests"] == {"cpu": "2", "memory": "4Gi"}
        assert container["resources"]["limits"] == {"memory": "4Gi"}  # of cores none: bursts cost nobody anything
        assert not any("hostPort" in port for port in container["ports"])


def test_a_worker_is_one_slot_under_a_nanny_and_knows_its_scheduler(deployments) -> None:
    (container,) = deployments["worker"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][:6] == ["dask", "worker", "--nthreads", "1", "--nworkers", "1"]
    assert "--no-nanny" not in container["args"]
    env = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert env["DASK_SCHEDULER_ADDRESS"] == "tcp://study-scheduler.rl.svc.cluster.local:8786"
    assert env["DASK_DISTRIBUTED__WORKER__DAEMON"] == "False"
    assert env["WORKBENCH_CORES"] == "2"


def test_the_dockerfile_is_clean_to_its_linter() -> None:
    said = subprocess.run([HADOLINT, str(RECIPES / "Dockerfile")], capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (0, "")


def test_the_linter_would_find_what_is_wrong(tmp_path) -> None:
    bad = (RECIPES / "Dockerfile").read_text().replace("python:3.11-slim-bookworm", "python:latest")
    (tmp_path / "Dockerfile").write_text(bad)
    said = subprocess.run([HADOLINT, str(tmp_path / "Dockerfile")], capture_output=True, text=True)
    assert "DL3007" in said.stdout
