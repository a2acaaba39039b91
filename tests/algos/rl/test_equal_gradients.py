"""One rollout and the same weights through all four systems: equal gradients, to 1e-6."""

import numpy as np
import pytest
import torch

from tests.algos.rl.ba3c.gangs import part
from tests.algos.rl.rollouts import fixed_rollout
from workbench.algos.rl.a3c.trial import A3C
from workbench.algos.rl.ba3c.exchange import flat
from workbench.algos.rl.ba3c.trial import BA3C
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.hts.trial import HTS

N_RANKS = 3


@pytest.mark.parametrize(
    ("game", "network"), [("Pong", "small"), ("CartPole-v1", "mlp"), ("CartPole-v1", "mlp-separate")]
)
def test_a3c_ga3c_ba3c_and_hts_rl_take_the_same_gradient(game, network) -> None:
    shared, seed = {"game": game, "network": network, "device": "cpu", "n_agents": 2, "precision": "float32"}, 5
    a3c, ga3c, hts = (system(**shared)({}, seed) for system in (A3C, GA3C, HTS))
    ranks = [BA3C(**shared, n_ranks=N_RANKS).rank({}, seed, rank) for rank in range(N_RANKS)]
    rollout = fixed_rollout(ga3c.game)
    wanted = flat(ga3c.learner.gradients(rollout)[0])
    assert np.abs(wanted).max() > 1e-3

    a3c._open()  # agents learn on copies of the shared weights
    of_a3c = flat(a3c.learner.gradients(rollout, a3c._copies[1])[0])
    of_ba3c = np.mean([flat(r.learner.gradients(part(rollout, r.rank, N_RANKS))[0]) for r in ranks], axis=0)
    hts._open()
    with torch.no_grad():  # the newest weights have moved on: the gradient is of those that acted
        for p in hts.model.parameters():
            p.add_(0.05)
    of_hts = flat(hts.learner.gradients(rollout, hts._delayed)[0])

    for found in (of_a3c, of_ba3c, of_hts):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
    assert np.abs(flat(hts.learner.gradients(rollout)[0]) - wanted).max() > 1e-3
    for trial in (a3c, ga3c, hts, *ranks):
        trial.close()
