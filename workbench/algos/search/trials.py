"""What every scheduler keeps of its trials: who was started, and which phase each reports next."""

import math
from collections.abc import Sized
from dataclasses import replace

from workbench.core.answers import observed, suggested
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.protocols import Config, Report, Run, Searcher


def comparable(report: Report) -> float:
    """Give the score that a report is compared by: one that is NaN is below all others."""
    return -math.inf if math.isnan(report.score) else report.score


class Trials:
    """Numbers trials, and refuses reports that make no sense.

    Parameters
    ----------
    searcher : Searcher
    limit : int
        Most configurations to take from it; fewer if it has a length that is less.
    """

    def __init__(self, searcher: Searcher, limit: int) -> None:
        self._searcher = searcher
        self._limit = 0
        if not self.grow(limit):
            raise InvalidInput(
                f"{type(searcher).__name__} has no configuration, for its length is 0: len() is how many it can give, "
                "leave it out where there is no end"
            )
        self._due: dict[int, int] = {}  # trial that runs → phase it reports next
        self._resting: dict[int, int] = {}  # trial that waits, held or paused → the same
        self._suggested: dict[int, int] = {}  # trial → number of the suggestion it runs
        self.drawn: list[Config] = []  # from the searcher, in order
        self.configs: list[Config] = []
        self._ahead = False

    def __len__(self) -> int:
        return len(self.configs)

    def grow(self, limit: int) -> int:
        """Let there be more trials; tell how many configurations there can be now."""
        self._limit = min(int(limit), len(self._searcher)) if isinstance(self._searcher, Sized) else int(limit)
        return self._limit

    @property
    def n_left(self) -> int:
        """Configurations still to come."""
        return self._limit - len(self.drawn) + self._ahead

    @property
    def more_to_come(self) -> bool:
        """Whether there is another configuration: it is drawn ahead, for a searcher may run out before its limit."""
        self._ahead = self.draw() is not None
        return self._ahead

    @property
    def n_running(self) -> int:
        """Trials a report may come from."""
        return len(self._due)

    def new(self, slot: int | None = None) -> Run | None:
        """Start the next trial with a fresh configuration; ``None`` when all are started or none is left."""
        return None if self.draw() is None else self.begin(len(self.drawn) - 1, slot)

    def draw(self) -> Config | None:
        """Take the next configuration from the searcher, to begin it later; ``None`` when none is left."""
        if self._ahead:
            self._ahead = False
            return self.drawn[-1]
        if self.n_left <= 0:
            return None
        config = suggested(self._searcher, len(self.drawn))
        if config is None:
            self._limit = len(self.drawn)
            return None
        self.drawn.append(config)
        return config

    def begin(self, suggestion: int, slot: int | None = None) -> Run:
        """Start a trial with a configuration that was drawn, by its number in the order of drawing."""
        self._suggested[len(self)] = suggestion
        return self._start(self.drawn[suggestion], None, 0, slot)

    def again(self, trial: int, slot: int | None = None) -> Run:
        """Start a new trial with the configuration of an earlier one, from the first phase."""
        return self.begin(self._suggested[trial], slot)

    def child(self, config: Config, parent: int, phase: int) -> Run:
        """Start a new trial from the last checkpoint of another."""
        return self._start(config, parent, phase, None)

    def resume(self, trial: int, slot: int | None = None) -> Run:
        """Ask again for a trial that was paused."""
        self.release(trial)
        return Run(trial, self.configs[trial], parent=trial, phase=self._due[trial], slot=slot)

    def rest(self, trial: int) -> None:
        """Note that a trial waits, held or paused: it reports nothing until it is released or resumed."""
        if trial in self._due:
            self._resting[trial] = self._due.pop(trial)

    def release(self, trial: int) -> None:
        """Note that a trial that waited goes on."""
        if trial in self._resting:
            self._due[trial] = self._resting.pop(trial)

    def take(self, report: Report) -> None:
        """Accept a report, or raise `SchedulerError` if its trial is unknown, over, or in another phase.

        Of a trial that waits only an end is accepted: a person may stop it.
        """
        if report.failed:
            self.release(report.trial)
        due = self._due.get(report.trial)
        if due is None or (report.phase != due and not report.failed):
            where = "is not running" if due is None else f"reports phase {due} next"
            raise SchedulerError(
                f"a report of trial {report.trial}, phase {report.phase}, came, but that trial {where}"
            )
        self._due[report.trial] = due + 1
        if report.failed:
            self.end(report.trial)
        suggestion = self._suggested.get(report.trial)
        if suggestion is not None:
            observed(self._searcher, report if suggestion == report.trial else replace(report, trial=suggestion))

    def end(self, trial: int) -> None:
        """Note that a trial was stopped: it reports no more."""
        self._due.pop(trial, None)
        self._resting.pop(trial, None)

    def _start(self, config: Config, parent: int | None, phase: int, slot: int | None) -> Run:
        trial = len(self)
        self.configs.append(config)
        self._due[trial] = phase
        return Run(trial, config, parent, phase, slot)
