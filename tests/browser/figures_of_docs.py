"""Pictures of the docs' pages, of what is in `data/`: ``python -m tests.browser.figures_of_docs [TO [NAME ...]]``."""

import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier

from tests.browser.lab import browser_page
from tests.browser.pictures import DOCS, shoot
from tests.browser.standing import stand
from workbench import HyperTrick, LogUniform, Study
from workbench.analysis import importance, learning_curves
from workbench.analysis.variants import variant_bands
from workbench.core.describe import explain_of
from workbench.core.places import DATA
from workbench.core.protocols import Event
from workbench.knowledge import Recording
from workbench.knowledge.frames import frames_of
from workbench.knowledge.reader import POINT
from workbench.paper.ba3c.hosts import link_rates
from workbench.paper.catalogue import recorded
from workbench.paper.ga3c.agents import ways
from workbench.paper.hts.speedup import speedups
from workbench.paper.hypertrick import toy_problem
from workbench.paper.pbt import ablations, gans
from workbench.paper.pbt.measures import improvements, published_improvements
from workbench.simulation import compare, preset
from workbench.study.results import Results
from workbench.viz import figures
from workbench.viz.dashboard.board import Board
from workbench.viz.dashboard.feed import READ, News

STUDY = "ms-pacman-hypertrick"
STEADY = "ms-pacman-hyperband"  # the machine was taken away from it for seconds, not for hours
PLAIN = {"displayModeBar": False}


def of_study(name: str) -> Callable[[], go.Figure]:
    """Give a figure of the recorded study of Ms. Pac-Man."""
    return lambda: Results.of_recording(DATA / STUDY).figures()[name]


def curves_over_frames() -> go.Figure:
    frames = Results.of_recording(DATA / STUDY).frames
    curves = learning_curves(frames.phases, frames.metrics, "frames")
    return figures.learning_curves(curves, frames.trials, x_title="frames").update_layout(
        title="46 trials under HyperTrick"
    )


def toy_schedule() -> go.Figure:
    table = toy_problem.table()
    frames = frames_of(toy_problem.play(toy_problem.schedulers(table)["hypertrick"], table).events)
    title = "12 trials of 4 phases under HyperTrick on 6 nodes (simulated): a bar a phase, the later the lighter"
    return figures.node_occupancy(frames.spans, frames.slots, frames.wall_s).update_layout(title=title, height=330)


def learned() -> go.Figure:
    kept = recorded("ga3c-against-sb3-atari")
    curves = kept.frame.assign(variant=kept.frame["system"].map({"default": "GA3C", "a2c": "Stable-Baselines3's A2C"}))
    return figures.bands(variant_bands(curves), f"Ms. Pac-Man · {kept.scale}", "frames", "score (last 100 games)")


def agents_of_table_3() -> go.Figure:
    title = "Games of GA3C's Table 3: scores at the ends of phases; Pong of three seeds, Boxing by PPO"
    drawn = figures.bands(variant_bands(ways()), title, "frames", "0 random play, 1 the paper's agent")
    return drawn.add_hline(1, line_dash="dot")


def pong() -> go.Figure:
    words = {"pong-longer": "lockstep, updates of 80: three seeds", "pong-gpu": "on a GPU, updates of 320: one"}
    curves = []
    for name, variant in words.items():
        frames = Results.of_recording(DATA / name).frames
        ends = learning_curves(frames.phases, frames.metrics, "frames").query("phase_end")
        curves.append(ends.assign(variant=variant, seed=ends["trial"], frames=ends["x"]))
    return figures.bands(variant_bands(pd.concat(curves)), "Pong: scores at the ends of phases", "frames", "score")


def training_batch() -> go.Figure:
    kept = recorded("ga3c-training-batch-atari")
    return figures.bands(variant_bands(kept.frame), f"Ms. Pac-Man · {kept.scale}", "frames", "score")


def learning_rates() -> go.Figure:
    kept = recorded("ga3c-learning-rate-atari")
    runs = kept.frame.query("game == 'MsPacman'")
    return figures.bands(variant_bands(runs), f"Ms. Pac-Man by learning rate · {kept.scale}", "frames", "score")


def medians(name: str) -> Callable[[], go.Figure]:
    """Give the curves of a recording of BA3C on CartPole: a line a variant, without how far its seeds lie apart."""

    def drawn() -> go.Figure:
        kept = recorded(name)
        title = f"CartPole, medians of {kept.frame['seed'].nunique()} seeds · {kept.scale}"
        bands = figures.bands(variant_bands(kept.frame), title, "frames", "score (mean return of a phase's games)")
        return bands.for_each_trace(lambda trace: trace.update(visible=False), lambda trace: trace.fill is not None)

    return drawn


def links() -> go.Figure:
    kept = recorded("ba3c-links")
    return figures.estimates(link_rates(kept.frame), f"Ranks that sleep, on virtual hosts · {kept.scale}", "batches/s")


def asynchronous() -> go.Figure:
    kept = recorded("hts-asynchronous")
    runs = kept.frame[kept.frame["learning_rate"] == 3e-3]
    title = f"CartPole, learning rate 3e-3, median and range of {runs['seed'].nunique()} seeds · {kept.scale}"
    bands = variant_bands(runs.assign(variant=runs["system"]))
    return figures.bands(bands, title, "frames", "score (mean return of a phase's games)")


def toy_of_pbt() -> go.Figure:
    """The recording's seed 0, played again: it keeps how runs end, and no paths."""
    kept = recorded("pbt-toy")
    drawn = figures.toy_problem(ablations.paths([ablations.play(name, 0) for name in ablations.VARIANTS]))
    title = f"PBT on its toy problem, and its ablations: one seed of {kept.frame['seed'].nunique()} · {kept.scale}"
    return drawn.update_layout(title_text=title)


def populations() -> go.Figure:
    kept = recorded("pbt-population")
    title = f"CartPole, {kept.frame['repeat'].nunique()} repetitions · {kept.scale}"
    both = pd.concat([improvements(kept.frame), published_improvements()])
    return figures.estimates(both, title, "best final score / random search's", reference=1)


def gans_of_digits() -> go.Figure:
    kept = recorded("pbt-digits-gan")
    title = f"GANs of digits, {kept.frame['repeat'].nunique()} repetitions · {kept.scale}"
    return figures.estimates(gans.scores(kept.frame), title, "digits score of the best and mean of all at the end")


def hts_speedup() -> go.Figure:
    kept = recorded("hts-speedup")
    found = speedups(kept.frame)
    return figures.speedup_by_variance(found.assign(expected=found["expected_with_learning"]), kept.scale, {})


def compared() -> go.Figure:
    found = compare(preset("paper-46"), repeats=100)
    title = "Regret of the best so far, 46 configurations on 46 nodes: medians and 95 % of 100 repetitions (simulated)"
    return figures.bands(found.over_time("regret"), title, "time [s]", "regret")


def importance_of_curves() -> go.Figure:
    events: list[Event] = []
    preset("ga3c-curves").repetition().run("hypertrick", events)
    frames = frames_of(events)
    found = importance(frames.trials, frames.phases, frames.hyperparameters)
    return figures.hyperparameter_importance(found.table, str(found))


def seeds_of_curves() -> go.Figure:
    """The ten seeds of five configurations, from the best by their mean last score down to the worst."""
    kept = recorded("ga3c-curves")
    last = kept.frame[kept.frame["step"] == kept.frame["step"].max()].groupby("config_id")["score"].mean()
    ranked = last.sort_values(ascending=False).index[[0, 5, 15, 25, 45]]
    rows = kept.frame.set_index("config_id").loc[ranked].reset_index()
    variant = [f"lr {r.learning_rate:.1e}, gamma {r.gamma:g}, t_max {r.t_max:g}" for r in rows.itertuples()]
    bands = variant_bands(rows.assign(variant=variant), x="step")
    return figures.bands(bands, "Five of the 46: median of ten seeds, and how far they lie apart", "units", "score")


def curves_of_atari() -> go.Figure:
    rows = recorded("ga3c-curves-atari").frame.rename(columns={"step": "x"})
    rows["trial"] = rows.groupby(["config_id", "seed"]).ngroup()
    rows = rows.assign(phase=rows["x"], phase_end=rows["x"] == rows["x"].max())
    configs = rows.drop_duplicates("trial").assign(state="finished")
    names = ["learning_rate", "gamma", "t_max"]
    fig = figures.learning_curves(rows, configs, color="learning_rate", hyperparameters=names, x_title="unit")
    title = "GA3C on Ms. Pac-Man: 46 configurations, two seeds, none stopped (measured)"
    return fig.update_layout(title=title, showlegend=False)


def train(config: dict[str, float]) -> Iterator[dict[str, float]]:
    """What `docs/own.md` begins with, sparser where that pays: weights that are not zero are a second objective."""
    images, digits = load_digits(return_X_y=True)
    rates = {"alpha": config["alpha"], "eta0": config["eta0"], "learning_rate": "constant"}
    model = SGDClassifier(penalty="l1", random_state=0, **rates)
    for _ in range(9):
        model.partial_fit(images[:1400], digits[:1400], classes=range(10))
        yield {"score": model.score(images[1400:], digits[1400:]), "weights": float(np.count_nonzero(model.coef_))}


@cache
def own_study() -> Results:
    space = {"alpha": LogUniform(1e-6, 1e-1), "eta0": LogUniform(1e-4, 1.0)}
    with TemporaryDirectory() as folder:
        study = Study(
            "digits",
            HyperTrick(space, n_trials=32, n_phases=9),
            train,
            second="weights",
            second_mode="min",
            db=Path(folder) / "kb.db",
        )
        results = study.run().results()
        assert results.figures()  # read while its database is there
    return results


FIGURES: dict[str, Callable[[], go.Figure]] = {
    "survival": of_study("survival"),
    "curves": curves_over_frames,
    "importance": importance_of_curves,
    "toy-schedule": toy_schedule,
    "pbt-toy": toy_of_pbt,
    "pbt-population": populations,
    "pbt-digits-gan": gans_of_digits,
    "ba3c-links": links,
    "ba3c-stability": medians("ba3c-stability"),
    "ba3c-adam": medians("ba3c-adam"),
    "ga3c-training-batch": training_batch,
    "ga3c-learning-rate": learning_rates,
    "hts-speedup": hts_speedup,
    "hts-asynchronous": asynchronous,
    "compared": compared,
    "ga3c-learns": learned,
    "ga3c-table-3": agents_of_table_3,
    "ga3c-pong": pong,
    "seeds": seeds_of_curves,
    "curves-atari": curves_of_atari,
    "own": lambda: own_study().figures()["parallel coordinates"],
    "objectives": lambda: own_study().figures()["objectives"],
}


def half_way() -> Board:
    """A board of the recorded study when 60 % of its time had passed."""
    recording = Recording.open(DATA / STEADY)
    events, metrics = recording.events(), recording.frames().metrics
    until = 0.6 * events[-1].at
    size = Results.of_recording(DATA / STEADY).size
    board = Board(STEADY, size, explain_of(recording.spec["scheduler"]))
    rows = metrics[metrics["name"].isin(READ) & (metrics["at_s"] <= until)]
    points = [(r.trial, r.phase, r.at_s, READ.index(r.name), r.value) for r in rows.itertuples()]
    board.take(News([event for event in events if event.at <= until], np.array(points, POINT)))
    return board


def main(folder: Path = DOCS, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with browser_page() as page:
        for name, figure in FIGURES.items():
            if names and name not in names:
                continue
            drawn = figure().update_layout(template="plotly_white", paper_bgcolor="white")
            height = int(drawn.layout.height or 420)
            page.set_viewport_size({"width": 1000, "height": height})
            body = drawn.to_html(include_plotlyjs=True, full_html=False, config=PLAIN)
            page.set_content(f"<body style='margin:0'>{body}</body>")
            page.wait_for_selector(".main-svg")
            shoot(page, folder / f"{name}.png")
        if not names or "study" in names:
            page.set_viewport_size({"width": 1440, "height": 605})
            stand(page, half_way())
            page.wait_for_timeout(400)
            shoot(page, folder / "study.png")
        assert page.complaints == [], page.complaints


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]), *sys.argv[2:])
