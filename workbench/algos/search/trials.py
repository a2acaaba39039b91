"""What every scheduler keeps of its trials: who was started, and which phase each reports next."""

from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.protocols import Config, Report, Run, Searcher


def check_size(scheduler: object, **counts: int) -> None:
    """Raise `InvalidInput` unless every count is a whole number of 1 or more."""
    for name, n in counts.items():
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InvalidInput(f"{type(scheduler).__name__} needs a whole number {name} >= 1, got {n!r}")


class Trials:
    """Numbers new trials, and refuses reports that make no sense.

    Parameters
    ----------
    searcher : Searcher
    limit : int
        Most trials to start.
    """

    def __init__(self, searcher: Searcher, limit: int) -> None:
        self._searcher = searcher
        self._limit = limit
        self._due: dict[int, int] = {}  # live trial → phase it reports next
        self._started = 0
        self.configs: dict[int, Config] = {}

    def __len__(self) -> int:
        return self._started

    def new(self) -> Run | None:
        """Start the next trial with a fresh configuration; ``None`` when all are started or none is left."""
        if self._started >= self._limit:
            return None
        config = self._searcher.suggest(self._started)
        if config is None:
            self._limit = self._started
            return None
        trial, self._started = self._started, self._started + 1
        self._due[trial] = 0
        self.configs[trial] = config
        return Run(trial, config)

    def take(self, report: Report) -> None:
        """Accept a report, or raise `SchedulerError` if its trial is unknown, over, or in another phase."""
        due = self._due.get(report.trial)
        if due is None or (report.phase != due and not report.failed):
            where = "is not running" if due is None else f"reports phase {due} next"
            raise SchedulerError(
                f"a report of trial {report.trial}, phase {report.phase}, came, but that trial {where}"
            )
        self._due[report.trial] = due + 1
        if report.failed:
            self.end(report.trial)
        self._searcher.observe(report)

    def end(self, trial: int) -> None:
        """Note that a trial was stopped: it reports no more."""
        self._due.pop(trial, None)
