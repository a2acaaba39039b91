"""Full learning curves of GA3C over the paper's search space, nothing stopped early, to replay any scheduler on."""

from dataclasses import dataclass
from typing import Any

from workbench.algos.rl.ga3c.trial import GA3C
from workbench.algos.rl.games import find_game
from workbench.algos.search import RandomSearcher
from workbench.core.budget import Budget
from workbench.core.domains import Choice, LogUniform
from workbench.core.space import Space
from workbench.paper.experiment import Rows, rows_of_each

SPACE = Space(  # the paper's, Sec. 5.1; its set of gamma is lost in the text, this one is ours
    {
        "learning_rate": LogUniform(1e-5, 1e-2),
        "gamma": Choice([0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999]),
        "t_max": LogUniform(2, 100, step=1),
    }
)


@dataclass(frozen=True)
class FullCurves:
    """Configurations drawn from `SPACE`, each trained with so many seeds for `units` of `unit_frames`."""

    seeds: int
    unit_frames: int
    game: str = "CartPole-v1"
    configs: int = 46
    units: int = 27
    processes: int = 2
    first: int = 0  # the number of the first of them
    first_seed: int = 0


def full_curves(settings: FullCurves) -> Rows:
    """Train configurations to the end, nothing stopped early.

    ``workbench simulate --table`` replays the rows under any scheduler on any number of nodes. CartPole runs in the
    deterministic mode, so its scores repeat exactly; seconds do not: several trials run at once, one a process.

    Returns
    -------
    rows
        One a configuration, seed and unit: config_id, learning_rate, gamma, t_max, seed, step (units run), score and
        wall_s. A run that diverges keeps the score of its last whole unit.
    """
    searcher = RandomSearcher(SPACE, seed=0)
    drawn = [dict(searcher.suggest(n) or {}) for n in range(settings.first + settings.configs)]
    configs = list(enumerate(drawn))[settings.first :]
    seeds = range(settings.first_seed, settings.first_seed + settings.seeds)
    jobs = [(settings, number, config, seed) for seed in seeds for number, config in configs]
    return rows_of_each(_full_curve, jobs, settings.processes)


def _full_curve(settings: FullCurves, number: int, config: dict[str, Any], seed: int) -> Rows:
    trial = _agent(settings.game, settings.unit_frames)(config, seed)
    rows: Rows = []
    seconds, last, score, diverged = 0.0, 0.0, float("nan"), False
    for unit in range(1, settings.units + 1):
        if not diverged:
            try:
                metrics = trial.train_phase(lambda metrics: None)
                score, last = metrics["score"], metrics["seconds"]
            except FloatingPointError:
                if not rows:
                    raise
                diverged = True
        seconds += last
        at = {"config_id": number, **config, "seed": seed, "step": unit}
        rows.append(at | {"score": round(score, 3), "wall_s": round(seconds, 4)})
    trial.close()
    return rows


def _agent(game: str, frames: int) -> GA3C:
    """On Atari as the studies of Sec. 5.2.4 have it on two cores, whose trials have one each."""
    of_atari = {"n_groups": 1, "min_training_batch": 80, "emulator_threads": 1, "precision": "bfloat16"}
    own = of_atari if find_game(game).atari else {"lockstep": True}
    return GA3C(game, Budget(frames=frames), device="cpu", **own)
