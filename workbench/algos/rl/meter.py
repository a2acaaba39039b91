"""What a running system measures of itself (GA3C, Sec. 4.2): rates, batch and queue sizes, policy lag, losses."""

import threading
import time
from contextlib import suppress
from typing import Any

import numpy as np

from workbench.algos.rl.learner import Update
from workbench.core.protocols import Metrics

LOSSES = ("policy_loss", "value_loss", "entropy", "grad_norm")
MAX_LAG = 4096  # updates; what lags more is counted here


class Meter:
    """Sums since the meter was made; `read` turns their growth since another reading into metrics.

    Any thread may add; each addition takes a short lock, once a batch.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = time.perf_counter()
        self._sums = dict.fromkeys(
            ("predictions", "prediction_batches", "prediction_queue", "trained", "training_queue", *LOSSES), 0.0
        )
        self._updates = 0
        self._lags = np.zeros(MAX_LAG + 1, np.int64)

    def add_prediction(self, batch: int, waiting: int) -> None:
        """Count a prediction for `batch` observations, with `waiting` requests left in the queue."""
        with self._lock:
            self._sums["prediction_queue"] += waiting
            self._sums["predictions"] += batch
            self._sums["prediction_batches"] += 1

    def add_update(self, update: Update, waiting: int) -> None:
        """Count an update, with `waiting` segments left in the queue."""
        lags = np.bincount(np.minimum(update.lags, MAX_LAG), minlength=MAX_LAG + 1)
        with self._lock:
            self._updates += 1
            self._lags += lags
            self._sums["trained"] += len(update.lags)
            self._sums["training_queue"] += waiting
            for name in LOSSES:
                self._sums[name] += getattr(update, name)

    @property
    def seconds(self) -> float:
        """Wall time since the meter was made."""
        return time.perf_counter() - self._began

    def reading(self) -> "Reading":
        """Copy the sums."""
        with self._lock:
            return Reading(self.seconds, dict(self._sums), self._updates, self._lags.copy())


class Reading:
    """The sums of a `Meter` at one time."""

    def __init__(self, seconds: float, sums: dict[str, float], updates: int, lags: np.ndarray) -> None:
        self.seconds, self.sums, self.updates, self.lags = seconds, sums, updates, lags

    def since(self, earlier: "Reading | None" = None) -> dict[str, float]:
        """Return the metrics of the time between `earlier` (or the meter's making) and this reading.

        Returns
        -------
        dict
            ``pps`` predictions a second, ``tps`` updates a second, ``predict_batch_mean`` observations a
            prediction, ``train_batch_mean`` experiences an update, ``policy_lag_mean`` and ``policy_lag_p95``
            in updates, ``prediction_queue`` requests and ``training_queue`` segments left waiting, seen when
            a batch is taken, ``policy_loss``, ``value_loss``, ``entropy`` (nats) and ``grad_norm`` means over
            updates. What nothing was measured of is left out.
        """
        before = earlier.sums if earlier else dict.fromkeys(self.sums, 0.0)
        grown = {name: amount - before[name] for name, amount in self.sums.items()}
        seconds = max(self.seconds - (earlier.seconds if earlier else 0.0), 1e-9)
        updates = self.updates - (earlier.updates if earlier else 0)
        lags = self.lags - (earlier.lags if earlier else 0)
        metrics = {"pps": grown["predictions"] / seconds, "tps": updates / seconds}
        if grown["prediction_batches"]:
            metrics["predict_batch_mean"] = grown["predictions"] / grown["prediction_batches"]
            metrics["prediction_queue"] = grown["prediction_queue"] / grown["prediction_batches"]
        if updates:
            metrics["train_batch_mean"] = grown["trained"] / updates
            metrics["policy_lag_mean"] = float(lags @ np.arange(len(lags)) / lags.sum())
            metrics["policy_lag_p95"] = float(np.searchsorted(lags.cumsum(), 0.95 * lags.sum()))
            metrics["training_queue"] = grown["training_queue"] / updates
            for name in LOSSES:
                metrics[name] = grown[name] / updates
        return metrics


class _Enough(Exception):
    """Ends a stretch of `play_for`."""


def play_for(trial: Any, seconds: float) -> dict[str, float]:
    """Play and train for so many seconds, at least, however long a phase is and whether games end, to measure speed.

    Parameters
    ----------
    trial : Trial or LocalGang
        It may go on afterwards.
    seconds : float

    Returns
    -------
    dict
        What `progress` is given, over the whole time, and ``seconds``.
    """
    measured = getattr(trial, "chief", trial).measured

    def progress(metrics: Metrics) -> None:
        if metrics and measured()["seconds"] >= seconds:  # a gang that is coming up has none
            raise _Enough

    with suppress(_Enough):
        trial.train_phase(progress)
    final: dict[str, float] = measured()
    return final
