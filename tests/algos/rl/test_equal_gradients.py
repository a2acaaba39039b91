"""One rollout and the same weights through all four systems: equal gradients, and RMSProp's steps, to 1e-6."""

from itertools import combinations

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
QUICK = {"init": "uniform", "device": "cpu", "n_agents": 2, "precision": "float32"}


@pytest.mark.parametrize(
    ("game", "network"), [("Pong", "small"), ("CartPole-v1", "mlp"), ("CartPole-v1", "mlp-separate")]
)
def test_a3c_ga3c_ba3c_and_hts_rl_take_the_same_gradient(game, network) -> None:
    shared, seed = {**QUICK, "game": game, "network": network}, 5
    a3c, ga3c, hts = (system(**shared)({}, seed) for system in (A3C, GA3C, HTS))
    ranks = [BA3C(**shared, n_ranks=N_RANKS).rank({}, seed, rank) for rank in range(N_RANKS)]
    rollout = fixed_rollout(ga3c.game)
    wanted = flat(ga3c.learner.gradients(rollout)[0])
    assert np.abs(wanted).max() > 1e-3

    a3c._open()  # agents learn on copies of the shared weights
    of_a3c = flat(a3c.learner.gradients(rollout, a3c._copies[1])[0])
    a3c.close()  # its emulators serve another
    of_ba3c = np.mean([flat(r.learner.gradients(part(rollout, r.rank, N_RANKS))[0]) for r in ranks], axis=0)
    hts._open()
    with torch.no_grad():  # the newest weights have moved on: the gradient is of those that acted
        for p in hts.model.parameters():
            p.add_(0.05)
    of_hts = flat(hts.learner.gradients(rollout, hts._delayed)[0])

    for found in (of_a3c, of_ba3c, of_hts):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
    assert np.abs(flat(hts.learner.gradients(rollout)[0]) - wanted).max() > 1e-3
    for trial in (ga3c, hts, *ranks):
        trial.close()


@pytest.mark.parametrize("game", ["Pong", "CartPole-v1"])
def test_one_rollout_gives_the_steps_of_ga3c_and_a3c_at_the_delayed_weights_of_hts_rl(game) -> None:
    """HTS-RL's newest weights are elsewhere; the step is the one the others take at the weights that acted."""
    shared = {**QUICK, "game": game}
    hts, ga3c, a3c = (system(**shared)({"max_grad_norm": 0.1}, 5) for system in (HTS, GA3C, A3C))
    hts._open()
    a3c._open()
    rollout = fixed_rollout(hts.game, 25)
    with torch.no_grad():
        for p in hts.model.parameters():
            p.add_(0.05)
    taken = []
    for trial, model in ((hts, hts._delayed), (ga3c, ga3c.model), (a3c, a3c._copies[1])):
        before = flat(trial.model.parameters())
        update = trial.learner.train(rollout, model)
        taken.append((update, trial.learner.optimizer.square_avg, flat(trial.model.parameters()) - before))
    for (one, squares, step), (other, other_squares, other_step) in combinations(taken, 2):
        assert one.grad_norm == pytest.approx(other.grad_norm, rel=1e-6)
        assert one.policy_loss == pytest.approx(other.policy_loss, abs=1e-6)
        for a, b in zip(squares, other_squares, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-9)  # (1 - decay) times the squared gradients
        np.testing.assert_allclose(step, other_step, rtol=0, atol=1e-6)
    hts.close()
    a3c.close()
