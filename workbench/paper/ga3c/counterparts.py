"""Ours beside the GA3C paper's numbers, all measured."""

import json
from pathlib import Path

from workbench.analysis.variants import final_scores
from workbench.paper.experiment import RecordedTable
from workbench.paper.ga3c.published import NUMBERS, TABLE_2
from workbench.paper.numbers import Counterpart, Ours, Pairs, find, within_factor_2
from workbench.study.results import Results

WHY_NOT = {"Table 3": "a day on a GPU for each game"}
"""Place in the paper → why what stands there was not run, where no recording can bring it."""


def networks(root: Path) -> Pairs:
    """Predictions a second of GA3C and A3C, and their ratio, on each network of Table 2."""
    kept = RecordedTable.open("ga3c-networks", root)
    rows = {row["network"]: row for row in kept.frame.to_dict("records")}
    for network in TABLE_2:
        for system, measure, why in (
            ("GA3C", "ga3c_pps", "no GPU here, and other processors"),
            ("A3C", "a3c_pps", "other processors"),
            ("GA3C over A3C", "ratio", "no GPU here; each system in the faster of two precisions"),
        ):
            number, value = find(NUMBERS, "Table 2", f"{system}, {network}"), float(rows[network][measure])
            why += "; agrees if within a factor of 2"
            yield number, Ours(value, "measured", within_factor_2(number, value), why, scale=kept.scale)


def training_batch(root: Path) -> Pairs:
    """The least training batch whose scores were best at the end (Fig. 7)."""
    kept = RecordedTable.open("ga3c-training-batch", root)
    means = final_scores(kept.frame).groupby("variant")["score"].mean()
    best = int(str(means.idxmax()))
    why = f"the best of {len(means)} sizes by the mean score of {kept.frame['seed'].nunique()} seeds on CartPole"
    for end in ("from", "to"):
        number = find(NUMBERS, "Fig. 7", f"best least training batch, {end}")
        agrees = best >= number.value if end == "from" else best <= number.value
        yield number, Ours(best, "measured", agrees, f"{why}; agrees if it lies in the range", scale=kept.scale)


def pong_agent(root: Path) -> Pairs:
    """One agent's games of Pong (Table 3)."""
    sittings = [Results.of_recording(root / name) for name in ("pong-agent", "pong-agent-slower")]
    frames = sum(run.frames.phases["score"].count() * run.spec["trainable"]["phase"]["frames"] for run in sittings)
    evaluation = json.loads((root / "pong-agent-slower" / "evaluation.json").read_text(encoding="utf-8"))
    number = find(NUMBERS, "Table 3", "after one day, pong")
    why = f"mean of {evaluation['n_episodes']} games, actions drawn; agrees if at least as high"
    scale = f"one agent, {frames / 1e6:.0f} million frames in {len(sittings)} sittings"
    yield number, Ours(evaluation["mean"], "measured", evaluation["mean"] >= number.value, why, scale=scale)


COUNTERPARTS: list[Counterpart] = [networks, training_batch, pong_agent]
