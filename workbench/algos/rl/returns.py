"""n-step returns (GA3C, Sec. 3.2, below Eq. 1)."""

import numpy as np


def n_step_returns(rewards: np.ndarray, cuts: np.ndarray, bootstrap: np.ndarray, gamma: float) -> np.ndarray:
    """Discounted sum of the rewards up to the next cut, and the value taken to follow it.

    ``R_t = r_t + gamma * (bootstrap_t if cuts_t else R_{t+1})``

    A cut falls where nothing recorded follows: a terminal (bootstrap 0), a truncation (the value of the
    episode's true last observation), or the end of the rollout (the value of the next observation).
    The last row is always a cut.

    Parameters
    ----------
    rewards : ndarray of float, (T, N)
        T steps of N agents.
    cuts : ndarray of bool, (T, N)
    bootstrap : ndarray of float, (T, N) or (N,)
        Read only where there is a cut.
    gamma : float
        Discount a step.

    Returns
    -------
    ndarray of float32, (T, N)
    """
    bootstrap = np.broadcast_to(bootstrap, rewards.shape)
    returns = np.empty(rewards.shape, np.float32)
    following = bootstrap[-1]
    for t in range(len(rewards) - 1, -1, -1):
        following = rewards[t] + gamma * np.where(cuts[t], bootstrap[t], following)
        returns[t] = following
    return returns
