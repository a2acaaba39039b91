"""Automatic dynamic adjustment of the number of agents, predictors and trainers (GA3C, Sec. 4.3)."""

from typing import NamedTuple

import numpy as np

from workbench.algos.rl.meter import Reading


class Mix(NamedTuple):
    """How many of each kind work: N_A (groups of agents, or single ones), N_P and N_T (threads) of the paper."""

    groups: int
    predictors: int
    trainers: int


class Adjuster:
    """Random walk over mixes: change one number by ±1, keep the change if training got faster.

    There is no clock here: `Adjustment` calls `tell` at the end of each stretch of time. A change that is refused
    is followed by a stretch with the old mix, which measures it anew: the rate itself drifts, with the game and with
    the machine's other load, and a lucky measurement would otherwise stand for ever.

    Parameters
    ----------
    start : Mix
    generator : numpy.random.Generator
    most : int
        Upper bound of each number; the lower one is 1.

    Attributes
    ----------
    mix : Mix
        What works now.
    kept : Mix
        The last mix that was kept.
    """

    def __init__(self, start: Mix, generator: np.random.Generator, most: int) -> None:
        self._generator, self._most = generator, most
        self._rate = 0.0  # of the kept mix
        self.begin(start)

    def begin(self, start: Mix) -> Mix:
        """Walk on from a mix, as far as it is within bounds; return it. It is measured first."""
        self.mix = self.kept = Mix(*(min(number, self._most) for number in start))
        return self.mix

    def tell(self, rate: float) -> Mix:
        """Take the rate measured with `mix`, in experiences trained on a second; return the next mix.

        With batches of one size that is the order of the paper's TPS; here batches differ in size, and more updates
        of fewer experiences would be no progress.
        """
        if self.mix == self.kept:
            self._rate = rate
        elif rate > self._rate:
            self.kept, self._rate = self.mix, rate
        else:
            self.mix = self.kept
            return self.mix
        self.mix = self._neighbour()
        return self.mix

    def _neighbour(self) -> Mix:
        """Draw one of the mixes that differ in one number by 1."""
        near = [
            self.kept._replace(**{name: number + change})
            for name, number in self.kept._asdict().items()
            for change in (-1, 1)
            if 1 <= number + change <= self._most
        ]
        return near[int(self._generator.integers(len(near)))]


class Adjustment:
    """An adjuster by the clock: it hears how fast training was when a mix has worked for long enough.

    A stretch of one mix may go over several phases, whose readings each begin at 0.

    Parameters
    ----------
    adjuster : Adjuster
    every_s : float
        Seconds that each mix works, at least.
    """

    def __init__(self, adjuster: Adjuster, every_s: float) -> None:
        self.adjuster, self._every_s = adjuster, every_s
        self._changed: Reading | None = None  # when the mix did, in this phase
        self._before = (0.0, 0.0)  # seconds since it did, and experiences trained on, when the last phase ended

    def look(self, reading: Reading) -> Mix | None:
        """Give the next mix, if it is time to change."""
        seconds, trained = self._since_the_change(reading)
        if seconds < self._every_s:
            return None
        self._changed = reading
        return self.adjuster.tell(trained / seconds)

    def end_phase(self, reading: Reading) -> None:
        """Keep what the phase has measured of the mix at work."""
        self._before, self._changed = self._since_the_change(reading), None

    def _since_the_change(self, reading: Reading) -> tuple[float, float]:
        """Give the seconds since the mix changed, of this phase and those before, and the experiences trained on."""
        if (changed := self._changed) is not None:
            return reading.seconds - changed.seconds, reading.sums["trained"] - changed.sums["trained"]
        seconds, trained = self._before
        return seconds + reading.seconds, trained + reading.sums["trained"]
