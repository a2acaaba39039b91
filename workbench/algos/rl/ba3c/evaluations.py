"""Evaluations in the midst of training, every so many updates (Distributed BA3C: every 1000, 50 greedy games)."""

from collections.abc import Callable
from typing import Any

from workbench.algos.rl.evaluate import evaluate
from workbench.algos.rl.games import Game
from workbench.algos.rl.model import ActorCritic


class Evaluations:
    """When to play whole games with the weights as they are, and what came of it last.

    Parameters
    ----------
    every : int or None
        Updates between two; None makes none.
    n_games : int
        Whole games each plays.
    game : Game
    seed : callable
        Updates → the seed of the games played then.
    settings : dict
        Of `evaluate`, those that are the same every time.
    """

    def __init__(
        self, every: int | None, n_games: int, game: Game, seed: Callable[[int], int], settings: dict[str, Any]
    ) -> None:
        self.every, self.n_games = every, n_games
        self._game, self._seed, self._settings = game, seed, settings
        self._made = 0

    def start(self, updates: int) -> None:
        """Go on from so many updates: what was due by then has been played."""
        self._made = updates // (self.every or 1)

    def play_if_due(self, updates: int, model: ActorCritic, meanwhile: Callable[[], object]) -> dict[str, float]:
        """Play if since the last time another `every` updates have been made; `meanwhile` is called at every step.

        Returns
        -------
        dict
            ``eval_score``, the mean return of the games; empty if none was due.
        """
        if self.every is None or updates // self.every == self._made:
            return {}
        self._made = updates // self.every
        played = evaluate(
            model, self._game, self.n_games, seed=self._seed(updates), meanwhile=meanwhile, **self._settings
        )
        return {"eval_score": played.mean}
