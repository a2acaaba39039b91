"""A study on Kubernetes, with Dask's operator installed there: pods that may do nothing but train.

``python kubernetes.py IMAGE PODS CHECKPOINTS``, where the last is an fsspec URL, for pods have no disk in common.
"""

import sys
from typing import Any

from dask_kubernetes.operator import KubeCluster, make_cluster_spec

# --8<-- [start:manifest]
CORES, MEMORY = 2, "4Gi"  # of every pod, and so of every trial


def described(image: str, pods: int) -> dict[str, Any]:
    """Describe the cluster: what the operator is given, restricted as far as pods can be."""
    spec: dict[str, Any] = make_cluster_spec(
        name="study",
        image=image,
        n_workers=pods,
        worker_command=["dask", "worker", "--nthreads", "1", "--nworkers", "1"],
        resources={"requests": {"cpu": str(CORES), "memory": MEMORY}, "limits": {"memory": MEMORY}},
        env={
            "DASK_DISTRIBUTED__WORKER__DAEMON": "False",  # trials may start processes of their own
            "WORKBENCH_CORES": str(CORES),
            "DASK_TEMPORARY_DIRECTORY": "/tmp",
            "HOME": "/tmp",
        },
    )
    for part in ("worker", "scheduler"):
        pod = spec["spec"][part]["spec"]
        pod["automountServiceAccountToken"] = False  # a trial needs nothing of the cluster's own interface
        pod["securityContext"] = {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        pod["volumes"] = [{"name": "scratch", "emptyDir": {}}]
        for container in pod["containers"]:
            container["volumeMounts"] = [{"name": "scratch", "mountPath": "/tmp"}]
            container["securityContext"] = {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
    return spec


# --8<-- [end:manifest]
def main(image: str, pods: str, checkpoints: str) -> None:
    """Run a study of GA3C on so many pods; the cluster goes when it is over."""
    from workbench import GA3C, Budget, HyperTrick, LogUniform, RandomSearcher, Space, Study

    space = Space({"learning_rate": LogUniform(1e-5, 1e-2)})
    trainable = GA3C("Pong", phase=Budget(frames=400_000), torch_threads=CORES)
    with KubeCluster(custom_cluster_spec=described(image, int(pods))) as cluster, cluster.get_client() as client:
        scheduler = HyperTrick(RandomSearcher(space), 16, 4)
        print(Study("pods", scheduler, trainable, client=client, checkpoints=checkpoints).run().results())


if __name__ == "__main__":
    main(*sys.argv[1:])
