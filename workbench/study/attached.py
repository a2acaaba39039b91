"""A study seen through its knowledge base: whoever drives it, wherever, this process can look, wait and ask."""

import asyncio
import os
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from workbench.core.errors import StudyError
from workbench.core.places import db_path
from workbench.core.protocols import BEGUN, TURNS, Kind
from workbench.study.progress import FollowedProgress, Progress, in_a_notebook

if TYPE_CHECKING:
    import pandas as pd

    from workbench.knowledge import Controls, Frames
    from workbench.study.results import Results
    from workbench.viz.dashboard import Dashboard

_LOOK_S = 0.2


class AttachedStudy:
    """A study in a process of its own, or anybody's: found by its name, read from its log.

    Nothing done to this object, its kernel or its dashboards touches the study, except what it is asked: `stop` and
    `controls`.

    Parameters
    ----------
    db : path
        The knowledge base.
    name : str
        The study.

    Raises
    ------
    DatabaseError, StudyError
        There is no such file, or no such study in it.

    Examples
    --------
    >>> run = Study("night", HyperTrick(...), GA3C("Pong", ...)).launch()  # doctest: +SKIP
    >>> run = AttachedStudy("data/runs/workbench.db", "night")  # after a restart of the kernel  # doctest: +SKIP
    >>> run.follow()  # doctest: +SKIP
    """

    def __init__(self, db: str | Path, name: str) -> None:
        from workbench.knowledge import KnowledgeBase

        self.db = db_path(db).absolute()
        self.name = name
        with KnowledgeBase(self.db) as kb:
            self._followed = FollowedProgress(kb[name])

    # -- waiting and stopping ---------------------------------------------------------------------------------

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nobody drives the study, at most `timeout` seconds; tell whether it is so.

        Raises
        ------
        StudyError
            It was ended by an error, or its driver died without a word.
        """
        until = None if timeout is None else time.monotonic() + timeout
        while self.running:
            if until is not None and time.monotonic() >= until:
                return False
            time.sleep(_LOOK_S)
        self._raise_what_ended_it()
        return True

    def stop(self) -> None:
        """Ask the study to end now; phases under way are lost, everything reported is kept. It can be resumed.

        Its driver hears it within a second, wherever it is; the process lives on if it does more than drive the study.

        Raises
        ------
        StudyError
            The request cannot be written beside the knowledge base.
        """
        from workbench.knowledge import driver_of

        if driver_of(self.db, self.name) is not None:
            self.controls.stop_study()

    @property
    def running(self) -> bool:
        """Whether the study is being driven."""
        from workbench.knowledge import driver_of

        return driver_of(self.db, self.name) is not None

    @property
    def controls(self) -> "Controls":
        """Stop, pause, resume, extend or clone a trial; pause the study; scale its cluster."""
        from workbench.knowledge import Controls

        return Controls(self.db, self.name)

    def __await__(self) -> Generator[Any, None, "AttachedStudy"]:
        async def over() -> "AttachedStudy":
            while not self.wait(0):  # in no thread, which could not be cancelled
                await asyncio.sleep(_LOOK_S)
            return self

        return over().__await__()

    # -- looking ----------------------------------------------------------------------------------------------

    @property
    def progress(self) -> Progress:
        """How far the study is, as its log tells."""
        from workbench.knowledge import KnowledgeBase
        from workbench.knowledge.schema import database_errors

        driven = self.running  # before its events are read, the last of which may be to come
        with KnowledgeBase(self.db) as kb:
            study = kb[self.name]
            try:
                with database_errors(self.db):
                    self._followed.look(study)
            except StudyError:  # another has taken its place
                self._followed = FollowedProgress(study)
                return self.progress
        progress = self._followed.progress
        driven = driven or self.running  # by one that has come meanwhile
        progress.go_on(driven=driven, in_real_time=not study.spec.get("simulated"))
        return progress

    def frames(self) -> "Frames":
        """Read the study's frames as they stand now."""
        from workbench.knowledge import KnowledgeBase

        with KnowledgeBase(self.db) as kb:
            return kb[self.name].frames()

    @property
    def trials(self) -> "pd.DataFrame":
        """One row a trial; see `Frames.trials`."""
        return self.frames().trials

    def results(self) -> "Results":
        """Sum up the study as it stands now: numbers, figures, report."""
        from workbench.study.results import Results

        return Results.open(self.db, self.name)

    @property
    def best_checkpoint(self) -> str | None:
        """Where the weights of `Results.best_config` are, a directory or a URL; ``None`` before the first score.

        Of all phases of its seeds, those of fresh seeds left out, it is that of the best score, also where a person let
        a trial run on: this checkpoint of a trial is kept, others than the newest are not. `Results.best_score` may be
        lower, for it is of the study's own last phase.

        ``workbench evaluate`` plays games with it; a trainable's `load` takes it.
        """
        from workbench.study.results import best_checkpoint

        return best_checkpoint(self.db, self.name)

    def dashboard(self) -> "Dashboard":
        """Open the live view of this study; it only reads the log."""
        from workbench.viz.dashboard import Dashboard

        return Dashboard(self.db, self.name)

    def report(self, path: str | Path | None = None) -> Path:
        """Write the HTML report, by default beside the knowledge base; return where it is. See `Results`."""
        return self.results().write_report(path)

    def follow(self, every_s: float | None = None, out: IO[str] | None = None) -> "AttachedStudy":
        """Show how far the study is until it is over; raises what ended it badly.

        In a notebook bars are drawn anew every second, on a terminal a line replaces the last; elsewhere, or to a file
        `out`, a line comes every ten seconds. An interrupt ends the following, not the study.
        """
        if out is None and in_a_notebook():
            return self._follow_in_a_cell(1.0 if every_s is None else every_s)
        out = sys.stdout if out is None else out
        terminal = out.isatty()
        over = False
        while not over:
            over = self.wait((1.0 if terminal else 10.0) if every_s is None else every_s)
            line = str(self.progress)
            out.write("\x1b[J" * terminal + line + (_back(line, out) if terminal and not over else "\n"))
            out.flush()
        _tell_failures(self.trials, out)
        return self

    def _follow_in_a_cell(self, every_s: float) -> "AttachedStudy":
        from IPython.display import display

        shown = display(self.progress, display_id=True)  # type: ignore[no-untyped-call]
        over = False
        while not over:
            try:
                over = self.wait(every_s)
            finally:
                shown.update(self.progress)
        _tell_failures(self.trials, sys.stdout)
        return self

    def __repr__(self) -> str:
        return f"{self.name}: {self.progress.state} · {self.progress}{self._note()}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"{self.results()._repr_html_()}<p>{escape(self._note().removeprefix(' · '))}</p>"

    def _note(self) -> str:
        """What whoever looks at the study should know about its driver."""
        if self.running:
            return " · driven by a process of its own"
        if self.progress.state == "abandoned":
            return " · its driver died without a word: resume it"
        return ""

    def _raise_what_ended_it(self) -> None:
        from workbench.knowledge import KnowledgeBase
        from workbench.knowledge.lock import written_by_last_driver

        with KnowledgeBase(self.db) as kb:
            last = next(reversed(kb[self.name].events(*TURNS)), None)
        if last is not None and last.kind is Kind.STUDY_INTERRUPTED and "error" in last.data:
            raise StudyError(f"study {self.name!r} stopped: {last.data['error']}")
        if last is None or last.kind in BEGUN:
            said = written_by_last_driver(self.db, self.name)
            where = f"; what it wrote stands in {said}" if said else ""
            raise StudyError(f"the driver of study {self.name!r} died without a word: resume it{where}")


def _back(line: str, out: IO[str]) -> str:
    """Lead back to where a line began on a terminal, on which it takes several rows if it is longer than those."""
    try:
        columns = os.get_terminal_size(out.fileno()).columns
    except OSError:  # it calls itself one, and has no file
        columns = 0
    above = (len(line) - 1) // columns if columns else 0
    return "\r" + f"\x1b[{above}A" * (above > 0)


def _tell_failures(trials: "pd.DataFrame", out: IO[str]) -> None:
    from workbench.analysis import failure_lines

    out.writelines(f"failed: {line}\n" for line in failure_lines(trials))
    out.flush()
