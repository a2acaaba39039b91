"""How fast the running trials go, over the study's clock: rates summed, lags and queues averaged over trials."""

import math

SUMMED = ("pps", "tps", "frames_per_s")
AVERAGED = ("policy_lag_mean", "prediction_queue", "training_queue")
NAMES = (*SUMMED, *AVERAGED)
MOST = 400  # samples; then every two become one

Sample = list[float | None]
"""Seconds on the study's clock, then a value a name in `NAMES`; None where no running trial has said."""


class Rates:
    """Samples of what the running trials last reported, at equal steps of time that double as the study goes on."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._step_s = 1.0
        self._next_s = 0.0
        self._sent = 0
        self._now: dict[int, dict[str, float]] = {}  # running trial → its last values

    def add(self, trial: int, at_s: float, name: str, value: float | None) -> None:
        """Take in a value; points must come in order of time."""
        self._pass(at_s)
        if name in NAMES and value is not None and math.isfinite(value):
            self._now.setdefault(trial, {})[name] = value

    def drop(self, trial: int, at_s: float) -> None:
        """A trial is on no slot any more: it does nothing."""
        self._pass(at_s)
        self._now.pop(trial, None)

    def changes(self) -> tuple[bool, list[Sample]]:
        """Give the samples viewers lack, and whether they must forget those they have; take them as sent."""
        anew, new = self._sent == 0, self.samples[self._sent :]
        self._sent = len(self.samples)
        return anew, new

    def _pass(self, at_s: float) -> None:
        """Let the clock run; a sample for the time before `at_s` is due at most once."""
        if at_s < self._next_s:
            return
        if self._now:
            self.samples.append([round(at_s, 1), *(self._value(name) for name in NAMES)])
        self._next_s = at_s + self._step_s
        if len(self.samples) > MOST:
            pairs = zip(self.samples[::2], self.samples[1::2], strict=False)
            self.samples = [[a[0], *map(_mean, a[1:], b[1:])] for a, b in pairs]
            self._step_s *= 2
            self._sent = 0

    def _value(self, name: str) -> float | None:
        known = [values[name] for values in self._now.values() if name in values]
        if not known:
            return None
        return float(f"{sum(known) / (1 if name in SUMMED else len(known)):.4g}")


def _mean(a: float | None, b: float | None) -> float | None:
    return (a + b) / 2 if a is not None and b is not None else (b if a is None else a)
