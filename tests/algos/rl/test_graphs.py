"""Predictions captured on a GPU, where there is one: the same as on the processor, for any number of threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from tests.algos.rl.rollouts import fixed_rollout
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.games import find_game

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")


def learner(device="cpu"):
    return GA3C("Pong", device=device, precision="float32")({}, seed=3).learner


def test_each_size_and_each_change_of_the_weights_is_answered() -> None:
    gpu, cpu, rollout = learner("cuda"), learner(), fixed_rollout(find_game("Pong"))
    for _ in range(2):
        for n in (1, 3, 4, 7):
            for one, other in zip(gpu.predict(rollout.obs[:n]), cpu.predict(rollout.obs[:n]), strict=True):
                assert one.shape == other.shape
                assert np.allclose(one, other, atol=0.02)
        gpu.train(rollout), cpu.train(rollout)


def test_threads_are_answered_each_by_itself_while_others_train() -> None:
    still, moving, cpu = learner("cuda"), learner("cuda"), learner()
    rollout = fixed_rollout(find_game("Pong"))
    obs = rollout.obs
    sizes = [*range(1, len(obs)), len(obs)] * 10
    expected = {n: cpu.predict(obs[-n:])[1] for n in sizes}

    def ask(n: int) -> bool:
        return bool(np.allclose(still.predict(obs[-n:])[1], expected[n], atol=0.02))

    with ThreadPoolExecutor(5) as pool:
        trained = [pool.submit(moving.train, rollout) for _ in range(40)]
        answered = [pool.submit(moving.predict, obs[:n]) for n in sizes]
        assert all(pool.map(ask, sizes))
        assert all(future.result() for future in (*trained, *answered))
    assert moving.updates == 40
    assert np.isfinite(moving.predict(obs)[0]).all()
