"""A phase of a trial: where it began, how far it has come, and when it is over."""

from collections.abc import Mapping
from typing import Any

from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput


class Phase:
    """What has been used of a phase; it is over when its budget is spent and enough games have ended in it.

    A trial's counters only grow: ``steps``, ``updates`` and ``episodes`` since it began, and ``seconds`` since its
    phase did. `counted` are these as they are now. The rule is told in `Settings`.

    Parameters
    ----------
    budget : Budget
    min_games : int
    longest_wait : int
        Frames in which the longest game of every agent would have fitted.
    game : str
        Its name, for the error.
    cure : str
        What to set where games do not end, for the error.
    frames_per_step : int

    Attributes
    ----------
    before : dict
        The counters where the phase began; of one that was cut short, ``seconds`` are those it had used, below 0.
    """

    def __init__(
        self, budget: Budget, min_games: int, longest_wait: int, game: str, cure: str, frames_per_step: int = 1
    ) -> None:
        self.budget, self.min_games, self.longest_wait = budget, min_games, longest_wait
        self._game, self._cure, self._frames_per_step = game, cure, frames_per_step
        self.before: dict[str, float] = {"episodes": 0, "steps": 0, "updates": 0, "seconds": 0.0}
        self._last_end = (0.0, 0.0)  # games ended in this phase, and the frames at which the last was seen to have
        self._under_way = False
        self._cut_short: dict[str, float] | None = None  # where the phase began that is to be gone on with

    def begin(self, counted: Mapping[str, float]) -> None:
        """Begin another phase, or go on, in environments that begin anew, with one that was cut short."""
        self.before, self._cut_short = self._cut_short or dict(counted), None
        used = self.used(counted)
        self._last_end, self._under_way = (used["episodes"], used["frames"]), True

    def end(self) -> None:
        """Note that the phase has ended, and was not cut short."""
        self._under_way = False

    def used(self, counted: Mapping[str, float]) -> dict[str, float]:
        """Give what has been used of the phase: ``frames``, ``episodes``, ``updates``, ``seconds``."""
        used = {name: counted[name] - self.before[name] for name in ("episodes", "updates", "seconds")}
        return used | {"frames": (counted["steps"] - self.before["steps"]) * self._frames_per_step}

    def over(self, counted: Mapping[str, float]) -> bool:
        """Tell whether the phase is over; any thread may ask.

        Raises
        ------
        InvalidInput
            No game has ended for longer than all agents' longest games together: there is no use in waiting on.
        """
        used = self.used(counted)
        games, frames = used["episodes"], used["frames"]
        if games != self._last_end[0]:
            self._last_end = (games, frames)
        spent, waited = self.budget.spent(used), frames - self._last_end[1]
        if (spent or self.budget.unit == "episodes") and waited > self.longest_wait:
            raise InvalidInput(
                f"no game of {self._game} has ended in {int(waited)} frames, and a score is of whole games: "
                f"{self._cure}"
            )
        return spent and games >= self.min_games

    def state_dict(self, seconds: float) -> dict[str, Any] | None:
        """Say where the phase began that was cut short, after so many `seconds`; ``None`` between phases."""
        if self._under_way:
            return {**self.before, "seconds": self.before["seconds"] - seconds}
        return self._cut_short  # saved again before it went on

    def load_state_dict(self, state: dict[str, Any] | None) -> None:
        """Have `begin` go on with what `state_dict` gave."""
        self._under_way, self._cut_short = False, state
