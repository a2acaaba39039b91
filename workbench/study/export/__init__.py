"""Studies for other tools (Optuna, TensorBoard, MLflow, Weights & Biases, CSV); written once, or as a callback."""

from importlib import import_module
from pathlib import Path

from workbench.core.errors import unknown
from workbench.core.places import beside
from workbench.knowledge import KnowledgeBase, RecordedStudy
from workbench.study.export.exporter import RUN_FOLDERS, Exporter, nothing_left, whole_in_folder, whole_log, writing

_EXPORTERS = {
    "optuna": "OptunaExport",
    "tensorboard": "TensorBoardExport",
    "mlflow": "MLflowExport",
    "wandb": "WandbExport",
}
FORMATS = (*_EXPORTERS, "csv")


def export(db: str | Path, name: str, to: str, out: str | Path | None = None) -> str:
    """Write a study, running or over, for another tool; what an earlier export left there is replaced.

    Parameters
    ----------
    db, name
        The study.
    to : str
        ``optuna``, ``tensorboard``, ``mlflow``, ``wandb`` (offline) or ``csv``.
    out : path or str, optional
        Where to: for ``optuna`` and ``mlflow`` a file or the URL of a storage or a server, else a folder, which is
        empty, missing or an earlier export of the study; by default beside the knowledge base.

    Returns
    -------
    str
        Where it is.

    Raises
    ------
    DatabaseError, StudyError
        There is no such file, or no such study in it.
    InvalidInput
        There is no such format, its package is not installed, or the place holds something else or cannot be opened.
    """
    if to not in FORMATS:
        raise unknown("format", to, FORMATS)
    place = default_place(db, name, to) if out is None else str(out)
    with KnowledgeBase(db) as kb:
        study = kb[name]
        if to == "csv":
            with whole_in_folder(place, name, study.identity) as part:
                study.frames().export(part)
        elif to == "tensorboard":
            with whole_in_folder(place, name, study.identity, RUN_FOLDERS) as part:
                _tell(exporter_of(to, part), study)
        else:
            exporter = exporter_of(to, place)
            with nothing_left(place):
                _tell(exporter, study)
    return place


def _tell(exporter: Exporter, study: RecordedStudy) -> None:
    exporter.open(study.name, study.spec, study.created_unix, study.identity)
    try:
        exporter(whole_log(study))
    finally:
        with writing(exporter.place):
            exporter.close()


def exporter_of(to: str, place: str | Path) -> Exporter:
    """Make an exporter by its name, one of `FORMATS` but ``csv``; its module is imported only when it is asked for."""
    if to not in _EXPORTERS:
        raise unknown("exporter", to, _EXPORTERS)
    exporter: Exporter = getattr(import_module(f"workbench.study.export.{to}"), _EXPORTERS[to])(str(place))
    return exporter


def default_place(db: str | Path, name: str, to: str) -> str:
    """Name the place beside the knowledge base where an export goes."""
    return str(beside(db, f"{name}.{to}{'.db' if to in ('optuna', 'mlflow') else ''}"))


__all__ = ["FORMATS", "Exporter", "export", "exporter_of"]
