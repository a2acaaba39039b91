"""BA3C gangs for tests: ranks as threads of one process, and ranks that train on given experiences."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.algos.rl.rollouts import fixed_rollout
from tests.support import silent
from workbench.algos.rl.ba3c.connection import Connection, Listener, connect
from workbench.algos.rl.ba3c.exchange import flat
from workbench.algos.rl.ba3c.rank import BA3CTrial
from workbench.algos.rl.ba3c.trial import BA3C
from workbench.algos.rl.rollout import Rollout
from workbench.core.budget import Budget

CARTPOLE = {"game": "CartPole-v1", "min_games": 1, "evaluate_every": None, "peer_timeout_s": 120.0}
SHARDED = {"n_awaited": 1, "n_servers": 2}
AHEAD = {"plays_on": True}


def nothing():
    pass


def connected() -> tuple[Connection, Connection]:
    """Connect two ranks, here."""
    listener = Listener("127.0.0.1")
    there: list = []
    thread = threading.Thread(target=lambda: there.append(connect(listener.address, 1, 10)))
    thread.start()
    (here,) = listener.accept(2, nothing, 30)
    thread.join()
    listener.close()
    return here, there[0]


def ranks_of(factory: BA3C, config=None, seed: int = 0) -> list[BA3CTrial]:
    """Build every rank, here."""
    return [factory.rank(config or {}, seed, rank) for rank in range(factory.n_ranks)]


def train(ranks: Sequence[BA3CTrial], progress=silent):
    """Run one phase with each rank in a thread; return rank 0's metrics, or raise what went wrong first."""
    address = ranks[0].listen("127.0.0.1")
    failures: list[BaseException] = []

    def other(rank):
        try:
            rank.join(address)
            rank.train_phase(silent)
        except BaseException as failure:  # noqa: BLE001 - raised again below
            failures.append(failure)
        finally:
            rank.leave()

    threads = [threading.Thread(target=other, args=(rank,)) for rank in ranks[1:]]
    for thread in threads:
        thread.start()
    try:
        metrics = ranks[0].train_phase(progress)
    finally:
        ranks[0].leave()
        for thread in threads:
            thread.join(60)
    if failures:
        raise failures[0]
    return metrics


def hold_up(ranks: Sequence[BA3CTrial], straggler: int) -> list[list[int]]:
    """Keep a rank from playing until the third update; give whose gradients updates are of, as they are made."""
    sets: list[list[int]] = []
    third, update, gather = threading.Event(), ranks[0]._update, ranks[straggler].player.gather

    def updated(contributions, squares):
        sets.append([contribution.rank for contribution in contributions])
        made = update(contributions, squares)
        if made.version == 3:
            third.set()
        return made

    def held_up():
        assert third.wait(60)
        return gather()

    ranks[0]._update, ranks[straggler].player.gather = updated, held_up  # type: ignore[method-assign]
    return sets


def part(rollout: Rollout, rank: int, n_ranks: int) -> Rollout:
    """Give a rank's even share."""
    at = np.array_split(np.arange(len(rollout)), n_ranks)[rank]
    return Rollout(rollout.obs[at], rollout.actions[at], rollout.returns[at], rollout.versions[at])


@dataclass(frozen=True)
class Fed(BA3C):
    """BA3C whose ranks train on their shares of `fixed_rollout`, another one each update, instead of playing.

    With each a game ends, for a phase waits for games.
    """

    whole: int = 24

    def rank(self, config, seed, rank) -> BA3CTrial:
        trial = super().rank(config, seed, rank)

        def gather() -> Rollout:
            rollout = fixed_rollout(trial.game, self.whole, seed=trial.player.version)
            rollout.versions[:] = trial.player.version
            trial.player.episodes.merge([0.0], [1])
            return part(rollout, rank, self.n_ranks)

        trial.player.gather = gather  # type: ignore[method-assign]
        return trial


def cartpole(updates=5, **settings) -> BA3C:
    """Games of two steps, of which some end in every update: a phase has exactly so many."""
    small = {"n_agents": 4, "batch": 8, "max_episode_frames": 2}
    return BA3C(phase=Budget(updates=updates), **{**CARTPOLE, **small, **settings})


def weights(trial) -> np.ndarray:
    return flat(list(trial.model.parameters()))


def close(ranks):
    for rank in ranks:
        rank.close()
