"""What the papers' packages list, gathered: numbers and claims, ours beside them, and experiments, found by name."""

from pathlib import Path
from typing import Any

from workbench.core.errors import unknown
from workbench.core.places import DATA, KEPT
from workbench.paper.ba3c import counterparts as ba3c_counterparts
from workbench.paper.ba3c import experiments as ba3c_experiments
from workbench.paper.ba3c import published as ba3c
from workbench.paper.experiment import Experiment, RecordedTable, run_and_keep
from workbench.paper.ga3c import counterparts as ga3c_counterparts
from workbench.paper.ga3c import experiments as ga3c_experiments
from workbench.paper.ga3c import published as ga3c
from workbench.paper.hts import counterparts as hts_counterparts
from workbench.paper.hts import experiments as hts_experiments
from workbench.paper.hts import published as hts
from workbench.paper.hypertrick import counterparts as hypertrick_counterparts
from workbench.paper.hypertrick import experiments as hypertrick_experiments
from workbench.paper.hypertrick import published as hypertrick
from workbench.paper.numbers import Counterpart, Published
from workbench.paper.pbt import counterparts as pbt_counterparts
from workbench.paper.pbt import experiments as pbt_experiments
from workbench.paper.pbt import published as pbt

PUBLISHED: list[Published] = [
    published for paper in (hypertrick, ga3c, ba3c, pbt, hts) for published in (*paper.NUMBERS, *paper.CLAIMS)
]

EXPERIMENTS: dict[str, Experiment[Any]] = {
    experiment.name: experiment
    for paper in (hypertrick_experiments, ga3c_experiments, hts_experiments, ba3c_experiments, pbt_experiments)
    for experiment in paper.EXPERIMENTS
}

COUNTERPARTS: dict[str, list[Counterpart]] = {
    "HyperTrick": hypertrick_counterparts.COUNTERPARTS,
    "GA3C": ga3c_counterparts.COUNTERPARTS,
    "BA3C": ba3c_counterparts.COUNTERPARTS,
    "PBT": pbt_counterparts.COUNTERPARTS,
    "HTS-RL": hts_counterparts.COUNTERPARTS,
}
"""Paper → what puts ours beside its numbers and claims."""


def planned(name: str, scale: str) -> Experiment[Any]:
    """Find an experiment that is to be run at a scale.

    Raises
    ------
    InvalidInput
        No such experiment or scale.
    """
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    EXPERIMENTS[name].parts(scale)
    return EXPERIMENTS[name]


def reproduce(name: str, scale: str = "minutes", root: str | Path = KEPT, most_parts: int | None = None) -> Path:
    """Run an experiment again and keep it, as `experiment.run_and_keep` does.

    Raises
    ------
    InvalidInput
        No such experiment or scale.
    """
    return run_and_keep(planned(name, scale), scale, root, most_parts)


def recorded(name: str, scale: str | None = None, root: str | Path = DATA) -> RecordedTable:
    """Open a recorded experiment, or run it again at a scale of the reader's choice and open that.

    Parameters
    ----------
    name : str
    scale : {"minutes", "hours", "paper"}, optional
        Without it, what comes with the project is opened. With it, the experiment runs now and is kept in
        ``data/runs/reproduced``, and what comes with the project is left as it is.
    root : path
        Where recordings are.
    """
    if scale is None:
        if name not in EXPERIMENTS and not (Path(root) / name).exists():
            raise unknown("experiment", name, EXPERIMENTS)
        return RecordedTable.open(name, root)
    kept = (KEPT if root == DATA else Path(root)) / "runs" / "reproduced"
    return RecordedTable.open(name, reproduce(name, scale, kept).parent)
