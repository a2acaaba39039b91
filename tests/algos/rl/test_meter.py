"""What is measured, worked by hand."""

import numpy as np
import pytest

from workbench.algos.rl.learner import Update
from workbench.algos.rl.meter import MAX_LAG, Meter


def counted(meter, lags, losses, waiting):
    meter.add_update(Update(np.array(lags), *losses), waiting)
    return meter.reading()


def test_lags_are_of_experiences_and_losses_of_updates():
    meter = Meter()
    counted(meter, [0] * 90 + [1] * 5, (1.0, 2.0, 0.5, 4.0), 3)
    metrics = counted(meter, [3] * 5, (3.0, 6.0, 0.1, 0.0), 1).since()
    assert (metrics["policy_lag_mean"], metrics["policy_lag_p95"]) == ((5 + 15) / 100, 1)
    assert (metrics["train_batch_mean"], metrics["training_queue"]) == (50, 2)
    means = [metrics[name] for name in ("policy_loss", "value_loss", "entropy", "grad_norm")]
    assert means == pytest.approx([2.0, 4.0, 0.3, 2.0])


def test_what_was_measured_before_another_reading_is_left_out():
    meter = Meter()
    meter.add_prediction(8, 5)
    earlier = counted(meter, [7, 7], (9.0, 9.0, 9.0, 9.0), 9)
    for batch in (1, 3):
        meter.add_prediction(batch, batch)
    later = counted(meter, [2, MAX_LAG + 5], (1.0, 2.0, 3.0, 4.0), 6)
    earlier.seconds, later.seconds = 10.0, 12.0
    assert later.since(earlier) == {
        "pps": 2.0,
        "tps": 0.5,
        "predict_batch_mean": 2.0,
        "prediction_queue": 2.0,
        "train_batch_mean": 2.0,
        "policy_lag_mean": (2 + MAX_LAG) / 2,
        "policy_lag_p95": MAX_LAG,
        "training_queue": 6.0,
        "policy_loss": 1.0,
        "value_loss": 2.0,
        "entropy": 3.0,
        "grad_norm": 4.0,
    }


def test_what_nothing_was_measured_of_is_left_out():
    assert Meter().reading().since().keys() == {"pps", "tps"}
