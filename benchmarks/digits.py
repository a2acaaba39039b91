"""The trainables on digits: scores by phase for several learning rates, and what the digits score gives to others.

Prints one JSON object. The scores repeat exactly; ``cpu_s`` does not.

Run with ``python benchmarks/digits.py --seeds 3``.
"""

import argparse
import json
import time
from typing import Any

import torch

from workbench import Budget, DigitsClassifier, DigitsGAN
from workbench.algos.digits.data import load
from workbench.algos.digits.gan import digit_score

CLASSIFIER_RATES = (1e-3, 1e-2, 1e-1, 1.0)
GAN_RATES = (1e-4, 1e-3, 2e-3, 1e-2)


def curves(factory: Any, configs: list[dict[str, float]], phases: int, seeds: int) -> list[dict[str, Any]]:
    """Train every configuration with every seed."""
    rows = []
    for config in configs:
        began, scores = time.process_time(), []
        for seed in range(seeds):
            trial = factory(config, seed)
            scores.append([round(trial.train_phase(lambda metrics: None)["score"], 3) for _ in range(phases)])
        rows.append({"config": config, "scores": scores, "cpu_s": round(time.process_time() - began, 2)})
    return rows


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--phases", type=int, default=8)
    given = parser.parse_args()
    valid, noise = load().valid, torch.rand(1000, 64, generator=torch.Generator().manual_seed(0))
    both = [{"generator_learning_rate": rate, "discriminator_learning_rate": rate} for rate in GAN_RATES]
    found = {
        "digits_score": {
            "validation_images": round(digit_score(valid.images), 2),
            "threes_alone": round(digit_score(valid.images[valid.labels == 3]), 2),
            "white_noise": round(digit_score(noise), 2),
        },
        "classifier": curves(
            DigitsClassifier(phase=Budget(updates=50)),
            [{"learning_rate": rate} for rate in CLASSIFIER_RATES],
            given.phases,
            given.seeds,
        ),
        "gan": curves(DigitsGAN(phase=Budget(updates=200)), both, given.phases, given.seeds),
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
