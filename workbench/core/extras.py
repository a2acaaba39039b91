"""Packages that not every study needs: where one is missing, which extra of this project installs it."""

_EXTRAS = {
    "asyncssh": "clusters",
    "dask_jobqueue": "clusters",
    "imageio_ffmpeg": "video",
    "mlflow": "export",
    "optuna": "optuna",
    "s3fs": "s3",
    "sb3_contrib": "sb3",
    "smac": "smac",
    "stable_baselines3": "sb3",
    "tensorboard": "export",
    "wandb": "export",
}


def how_to_get(module: str) -> str:
    """Say how to install a package, named as it is imported.

    >>> how_to_get("dask_jobqueue")
    "pip install 'rl-workbench[clusters]'"
    """
    return f"pip install 'rl-workbench[{_EXTRAS[module]}]'"


def what_is_missing(err: BaseException | None) -> str:
    """Say, to be put behind an error's words, how to install the package that it came of; nothing of another error."""
    while err is not None:
        if isinstance(err, ModuleNotFoundError) and err.name in _EXTRAS:
            return f": {how_to_get(err.name)}"
        err = err.__cause__ or err.__context__
    return ""
