"""Several studies side by side: numbers, figures, files."""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from html import escape
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.core.aim import MODES, check_one_mode
from workbench.core.showing import LUCKIEST, four_digits, titled
from workbench.knowledge import KnowledgeBase
from workbench.knowledge.sheets import write_frame
from workbench.study.results import Results

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.analysis import Importance

_COLUMNS = ["study", "state", "trials", "phases", "best_score", "time_to_best_s", "wall_s", "occupancy", "alpha"]


class Explorer:
    """Studies compared: learning curves, survival, importance, time to best; and each one's trials and lineage.

    Reads the log once, when it is made. Scores of studies are comparable only if their trials learn the same thing,
    which is for whoever compares them to know.

    Parameters
    ----------
    db : path
        The knowledge base.
    *names : str
        The studies; all, if none is named: of those that minimise and those that maximise the more, with a warning.

    Raises
    ------
    InvalidInput
        Of the studies that were named one minimises and another maximises.
    DatabaseError, StudyError
        There is no such file, or no such study in it.

    Examples
    --------
    >>> Explorer("data/runs/workbench.db", "monday", "tuesday").figures()["survival"]  # doctest: +SKIP
    """

    def __init__(self, db: str | Path, *names: str) -> None:
        with KnowledgeBase(db) as kb:
            studies = {name: kb[name] for name in (names or kb)}
            at = kb.path.absolute()
            results = {
                name: Results(name, study.spec, study.frames(), at, study.identity) for name, study in studies.items()
            }
        self.results: Mapping[str, Results] = _of_one_mode(results) if names else _most_of_one_mode(results)

    @classmethod
    def of_recordings(cls, *folders: str | Path) -> "Explorer":
        """Compare studies that were recorded to folders (`workbench record`); those of one name go by their folders."""
        explorer = cls.__new__(cls)
        every = [(str(folder), Results.of_recording(folder)) for folder in folders]
        names = [results.name for _, results in every]
        explorer.results = _of_one_mode(
            {results.name if names.count(results.name) == 1 else folder: results for folder, results in every}
        )
        return explorer

    @cached_property
    def table(self) -> "pd.DataFrame":
        """One row a study: study, state, trials, phases, best_score, time_to_best_s, wall_s, occupancy, alpha.

        The best score is that of the luckiest phase, and shown as such: see `Results.best_score`.
        """
        import pandas as pd

        rows = []
        for name, results in self.results.items():
            summary = results.summary
            row = {"study": name, "state": results.frames.state, "time_to_best_s": summary["best_at_s"]}
            rows.append(row | {key: summary[key] for key in _COLUMNS if key in summary})
        return pd.DataFrame(rows, columns=_COLUMNS)

    @cached_property
    def importance(self) -> "Mapping[str, Importance]":
        """By study: which hyperparameters its scores follow; takes some seconds a study the first time."""
        return {name: results.importance() for name, results in self.results.items()}

    def figures(self) -> "dict[str, go.Figure]":
        """Draw best score, time to best, learning curves, survival and importance, all studies in each.

        Then of every study its trials as parallel coordinates and, where trials went on from others' weights, the
        population's figures, its members' lineage among them; their names end in ``: `` and the study's.
        """
        from workbench import analysis
        from workbench.study.drawn import curves_of
        from workbench.viz import figures

        titles = self._titles
        frames = {titles[name]: results.frames for name, results in self.results.items()}
        best = {name: analysis.best_so_far(f.searched, f.aim.mode) for name, f in frames.items()}
        until = {name: f.wall_s for name, f in frames.items()}
        survival = {
            name: analysis.survival(analysis.searching(f.trials), f.searched, f.decisions) for name, f in frames.items()
        }
        curves = {name: curves_of(f, len(frames)) for name, f in frames.items()}
        tables = {titles[name]: importance.table for name, importance in self.importance.items()}
        words = {titles[name]: str(importance) for name, importance in self.importance.items()}
        return {
            "best so far": figures.compare_best(best, until),
            "time to best": figures.compare_time_to_best(best, until),
            "learning curves": figures.compare_curves(curves),
            "survival": figures.compare_survival(survival),
            "importance": figures.compare_importance(tables, words),
            **{f"{what}: {titles[name]}": fig for name in titles for what, fig in self._own_figures(name).items()},
        }

    def write(self, folder: str | Path, kinds: str | Sequence[str] = ("html",)) -> list[Path]:
        """Write every figure (html, png, svg) and the table (CSV) into a folder; returns the files.

        Raises
        ------
        InvalidInput
            `kinds` names another kind of file, or pictures where nothing can draw them.
        """
        from workbench.viz.figures import write_figure
        from workbench.viz.figures.export import check_kind

        kinds = [kinds] if isinstance(kinds, str) else kinds
        for kind in kinds:
            check_kind(kind)  # before anything is written
        target = Path(folder)
        write_frame(self._shown, target / "studies.csv")
        files = [target / "studies.csv"]
        figures = self.figures()
        for stem, fig in zip(_file_names(figures), figures.values(), strict=True):
            files += [write_figure(fig, target / f"{stem}.{kind}") for kind in kinds]
        return files

    def _own_figures(self, name: str) -> "dict[str, go.Figure]":
        """Draw what cannot be drawn of several studies in one."""
        from workbench.analysis import searching
        from workbench.study.drawn import population_of
        from workbench.viz import figures

        results = self.results[name]
        f = results.frames
        parallel = figures.parallel_coordinates(searching(f.trials), f.hyperparameters, f.aim.mode)
        drawn = {"parallel coordinates": parallel}
        drawn |= population_of(results)
        for fig in drawn.values():
            fig.update_layout(title_text=f"{fig.layout.title.text}: {escape(self._titles[name], quote=False)}")
        return drawn

    @property
    def _shown(self) -> "pd.DataFrame":
        return self.table.assign(study=[*self._titles.values()])

    @property
    def _titles(self) -> dict[str, str]:
        return {name: titled(name, results.spec) for name, results in self.results.items()}

    def __repr__(self) -> str:
        return self._shown.rename(columns=LUCKIEST).to_string(index=False, float_format=four_digits)

    def _repr_html_(self) -> str:
        return str(self._shown.rename(columns=LUCKIEST).to_html(index=False, float_format=four_digits))


def _of_one_mode(results: Mapping[str, Results]) -> Mapping[str, Results]:
    check_one_mode({name: one.frames.aim for name, one in results.items()})
    return results


def _most_of_one_mode(results: Mapping[str, Results]) -> Mapping[str, Results]:
    """Leave out, with a word, the fewer of the studies that minimise and those that maximise."""
    modes = [one.frames.aim.mode for one in results.values()]
    usual = max(MODES, key=modes.count)
    others = [name for name, mode in zip(results, modes, strict=True) if mode != usual]
    if others:
        said = f"left out, as the others are {usual}imised: {', '.join(others)}; name them to compare them"
        warnings.warn(said, stacklevel=3)
    return {name: one for name, one in results.items() if name not in others}


def _file_names(figures: Iterable[str]) -> list[str]:
    """Name a file after each figure; one whose name is taken, as of studies called alike, gets a number."""
    names: list[str] = []
    taken: set[str] = set()  # in one case: some file systems know no other
    for figure in figures:
        stem = re.sub(r"[^\w.-]+", "-", figure).strip("-")[:120]
        name = next(n for n in chain([stem], (f"{stem}-{i}" for i in count(2))) if n.casefold() not in taken)
        taken.add(name.casefold())
        names.append(name)
    return names
