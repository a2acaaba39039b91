"""n-step returns (GA3C, Sec. 3.2, below Eq. 1), and generalised advantages (PPO)."""

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


def generalised_advantages(
    rewards: np.ndarray,
    values: np.ndarray,
    following: np.ndarray,
    cuts: np.ndarray,
    gamma: float,
    gae_lambda: float,
) -> np.ndarray:
    """Generalised advantage estimation (Schulman et al., arXiv 1506.02438, Eqs. 11 and 16).

    ``A_t = d_t + gamma lambda (0 if cuts_t else A_{t+1})`` with ``d_t = r_t + gamma following_t - V_t``. With lambda
    1 it is the return up to the next cut, less the value.

    Parameters
    ----------
    rewards, values : ndarray of float, (T, N)
        T steps of N agents; the values of the observations acted on.
    following : ndarray of float, (T, N)
        Value of the observation that each step led to: 0 after a terminal.
    cuts : ndarray of bool, (T, N)
        Where nothing recorded follows. The last row is always a cut.
    gamma, gae_lambda : float

    Returns
    -------
    ndarray of float32, (T, N)
    """
    errors = rewards + gamma * following - values
    advantages = np.empty(rewards.shape, np.float32)
    later = np.zeros(rewards.shape[1:])
    for t in range(len(rewards) - 1, -1, -1):
        later = errors[t] + gamma * gae_lambda * np.where(cuts[t], 0, later)
        advantages[t] = later
    return advantages
