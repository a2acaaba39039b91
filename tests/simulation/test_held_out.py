import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from workbench.algos.search import ListSearcher
from workbench.cli.main import main
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Decision, Kind, Run, Verdict
from workbench.simulation import compare_held_out, scenario_from, simulate
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.curve_table import CurveTable, read_table
from workbench.simulation.held_out import Choosing, Draw, Met, latest, regrets_of

N_CONFIGS, N_SEEDS, N_STEPS = 24, 6, 9
SCHEDULERS = {
    "full": {"kind": "full"},
    "full-2": {"kind": "full", "seeds": 2},
    "hypertrick": {"kind": "hypertrick"},
    "asha": {"kind": "asha"},
    "asha-3": {"kind": "asha", "seeds": 3},
    "halving": {"kind": "halving"},
    "halving-static": {"kind": "halving", "allocation": "static", "seeds": 1},
    "hyperband": {"kind": "hyperband"},
    "median": {"kind": "median"},
    "topk": {"kind": "topk"},
    "pbt": {"kind": "pbt"},
    "sure": {"kind": "sure", "seeds": 3, "warmup": 6},
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Curves that rise with the learning rate, with noise; steps take different times."""
    rng = np.random.default_rng(0)
    rows = [
        (c, float(lr), s, step, lr * step + rng.normal(), float(rng.uniform(0.5, 2)))
        for c, lr in enumerate(rng.random(N_CONFIGS))
        for s in range(N_SEEDS)
        for step in range(1, N_STEPS + 1)
    ]
    path = tmp_path_factory.mktemp("curves") / "curves.csv"
    pd.DataFrame(rows, columns=["config_id", "lr", "seed", "step", "score", "duration"]).to_csv(path, index=False)
    return path


def scenario(path, schedulers=SCHEDULERS, seeds=1, **cluster):
    curves = {"kind": "table", "path": str(path)}
    cluster = {"nodes": 3, "speed_spread": 0.3} | cluster
    return scenario_from(
        {"simulation": {"seeds": seeds}, "curves": curves, "cluster": cluster, "schedulers": schedulers}
    )


def test_tuning_and_held_out_seeds_never_overlap(path) -> None:
    table = read_table(path)
    for seed in range(20):
        draw = Draw(table, 2, seed)
        assert sorted([*draw.tuning, *draw.held_out]) == list(range(N_SEEDS))
        assert draw.worth == pytest.approx(table.scores[:, draw.held_out, -1].mean(axis=1))
        assert np.allclose(np.array(draw.curves)[..., 1], table.scores[:, draw.tuning])
        assert draw.whole == pytest.approx(table.durations[:, draw.tuning[0]].sum())  # of budgets: one seed of each


def test_the_latest_scores_are_a_share_of_the_phases_rounded_and_one_at_least() -> None:
    scores = np.array([[[0.0, 1, 2, 3, 4], [10, 11, 12, 13, 14]]])  # of one configuration, two seeds
    assert [latest(scores, share).tolist() for share in (0.0, 0.35, 1.0)] == [[9.0], [8.5], [7.0]]


def test_a_score_that_only_held_out_seeds_have_is_never_met(path) -> None:
    """Every score is the number of its seed: what a race reports is of the tuning seeds alone."""
    table = read_table(path)
    table = replace(table, scores=np.broadcast_to(np.arange(N_SEEDS)[None, :, None], table.scores.shape))
    repetition = scenario(path, seeds=3).repetition(5)
    for label in SCHEDULERS:
        draw = Draw(table, 3, 5)
        study = Choosing(repetition.scheduler(label), draw, repetition.cluster)
        study.run([])
        assert {score for scores in study.scores.values() for score in scores} <= set(map(float, draw.tuning))


@pytest.mark.parametrize("label", SCHEDULERS)
def test_what_a_scheduler_meets_is_what_the_simulator_logs(path, label) -> None:
    """The same reports in the same order at the same times, cut or not, for every kind of scheduler."""
    drawn = scenario(path)
    repetition, draw = drawn.repetition(3), Draw(read_table(path), drawn.n_seeds, 3)
    study = Choosing(repetition.scheduler(label), draw, repetition.cluster)
    study.run([0.5, 1.0, 2.0])
    events = []
    outcome = simulate(repetition.scheduler(label), Met(draw), repetition.cluster, seed=3, events=events)
    told = [(e.at, e.data["score"], e.trial) for e in events if e.kind is Kind.PHASE_ENDED]
    assert study.race.tally.ended == told
    assert study.race.now == outcome.makespan


class Names:
    """Two trials on one slot; says that the second leads."""

    n_phases, n_trials = 2, 2

    def __init__(self) -> None:
        self.searcher, self.asked = ListSearcher([{"config_id": 0}, {"config_id": 1}]), 0

    def ask(self):
        self.asked += 1
        return Run(self.asked - 1, {"config_id": self.asked - 1}) if self.asked <= 2 else None

    def tell(self, report):
        verdict = Verdict.STOP if report.phase else Verdict.CONTINUE
        return {report.trial: Decision(verdict, {"mode": "x"})}


def test_regret_and_choices_by_hand() -> None:
    """Worth 1, 5 and 13: the best leads the median by 8. Phases take a second; choices just before 1.5, 2.5 and 3.5."""
    scores = np.array([[[2.0, 1.0], [0.0, 1.0]], [[9.0, 0.0], [0.0, 13.0]], [[0.0, 0.0], [0.0, 5.0]]])
    configs, durations = [{"config_id": n} for n in range(3)], np.ones((3, 2, 2))
    table = CurveTable(configs, [0, 1], np.array([1.0, 2.0]), scores, durations)
    seed = next(seed for seed in range(9) if Draw(table, 1, seed).tuning[0] == 0)
    draw = Draw(table, 1, seed)
    assert draw.regrets == [1.5, 0, 1]
    assert draw.whole == 6
    assert regrets_of(np.ones(3)).tolist() == [0, 0, 0]  # nothing to lose by any choice
    study = Choosing(Names(), draw, VirtualCluster(1))
    # the second score of configuration 1 is 0, below the 1 of configuration 0: its last two come to 4.5
    assert study.run([0.5, 1.5, 3.5], (1, 2)) == [[-1, 0, 1, 0], [-1, 0, 1, 1]]
    assert study.race.now == 4
    named = Names()
    named.leader = lambda: 1
    assert Choosing(named, draw, VirtualCluster(1)).run([3.5]) == [[1, 1]]
    named = Names()
    named.leader = lambda: None
    assert Choosing(named, draw, VirtualCluster(1)).run([3.5]) == [[-1, -1]]
    cut = Choosing(Names(), draw, VirtualCluster(1))
    assert cut.run([0.5, 1.5], to_end=False) == [[-1, 0, 0]]
    assert (cut.scores, cut.race.now) == ({0: [2.0]}, 1.5)
    below = Draw(replace(table, scores=scores - 20), 1, seed)
    assert Choosing(Names(), below, VirtualCluster(2, speeds=(1.0, 0.5))).run([1.5])[0][0] == 0  # 1 has not reported
    over = Choosing(Names(), draw, VirtualCluster(1))
    assert over.run([0.5, 9.0], to_end=False) == [[-1, 0, 0]]
    assert over.race.now == 4  # where the study ended, not where it would have been cut


def test_the_nth_trial_of_a_configuration_meets_its_nth_seed(path) -> None:
    draw = Draw(read_table(path), 2, 0)
    met = Met(draw)
    first = [met.phase(trial, 0, {"config_id": 3}, 0) for trial in (7, 8, 5)]
    assert first == [draw.curves[3][nth][0] for nth in (0, 1, 0)]


def test_a_comparison_by_hand(tmp_path) -> None:
    """The second is worth 4, the first 0: the best leads the median by 2. Each takes half the time; nodes are fast."""
    rows = [
        (c, s, n, y) for c, ys in enumerate([(4, 3, 2, 0), (1, 2, 3, 4)]) for s in range(3) for n, y in enumerate(ys)
    ]
    frame = pd.DataFrame(rows, columns=["config_id", "seed", "step", "score"])
    frame.assign(step=frame["step"] + 1).to_csv(tmp_path / "curves.csv", index=False)
    schedulers = {
        "latest": {"kind": "full"},
        "mean": {"kind": "full", "smooth": 4},
        "twice": {"kind": "full", "seeds": 2},
    }
    drawn = scenario(tmp_path / "curves.csv", schedulers, nodes=1, speed_spread=0.0, speeds=[2.0])
    drawn = replace(drawn, searcher={"kind": "list"})
    found = compare_held_out(drawn, 2, shares=(0.1, 0.25, 0.75))  # nothing yet, the first alone, both
    assert found.regret["latest"].tolist() == [[1, 2, 0, 0]] * 2
    assert found.regret["mean"].tolist() == [[1, 2, 2, 0]] * 2
    assert [found.claimed[label].tolist() for label in schedulers] == [[4, 4], [2.5, 2.5], [4, 4]]
    assert [found.worth[label].tolist() for label in schedulers] == [[4, 4]] * 3
    assert [found.spent[label].tolist() for label in schedulers] == [[1, 1], [1, 1], [2, 2]]
    assert [found.mean("mean", share).value for share in (0.1, 0.75, None)] == [1, 2, 0]
    assert [found.difference("mean", "latest", share).value for share in (0.1, 0.75, None)] == [0, 2, 0]
    two = replace(drawn, cluster=replace(drawn.cluster, nodes=2, speeds=[1.0, 0.5]))  # the second takes 8 s
    assert compare_held_out(two, 1, shares=(0.25,)).spent["latest"] == [8 * 1.5 / 8]
    cut = compare_held_out(drawn, 1, shares=(0.25,), to_end=False)
    assert [values["latest"].tolist() for values in (cut.regret, cut.claimed, cut.worth, cut.spent)] == [
        [[2, 2]],
        [3],
        [0],
        [0.25],
    ]


def test_intervals_of_few_repetitions_reach_beyond_what_these_met(path) -> None:
    """A draw from two repetitions lies between them, so that a bootstrap's 95 % would hold one mean in two."""
    drawn = scenario(path, {label: SCHEDULERS[label] for label in ("full", "hypertrick")})
    once, twice = (compare_held_out(drawn, n, shares=(0.1,)) for n in (1, 2))
    for interval, regret in (
        (twice.mean("full", 0.1), twice.regret["full"][:, 0]),
        (twice.difference("full", "hypertrick"), (twice.regret["full"] - twice.regret["hypertrick"])[:, -1]),
    ):
        assert interval.low < regret.min() < regret.max() < interval.high
    mean = once.mean("full", 0.1)
    assert (mean.low, mean.high) == (-math.inf, math.inf)
    assert once.table().loc["full", "10%"] == f"{mean.value:.3f} [none, none]"
    assert once.summary("full")["regret"]["10%"] == {"value": mean.value, "low": None, "high": None}
    assert once.summary("full")["worth"]["low"] is None


def test_a_scheduler_s_own_smooth_is_its_own(path) -> None:
    """`Sure` averages its scores by itself; elsewhere ``smooth`` says how the choice is made, from the same race."""
    kinds = {
        f"{kind} {n}": {"kind": kind, "smooth": n} for kind, ns in (("sure", (0.3, 0.7)), ("full", (1, 5))) for n in ns
    }
    scenario = scenario_from({"curves": {"kind": "table", "path": str(path)}, "schedulers": kinds})
    assert [scenario.scheduler(label, 0).smooth for label in ("sure 0.3", "sure 0.7")] == [0.3, 0.7]
    assert scenario.alike() == [["sure 0.3"], ["sure 0.7"], ["full 1", "full 5"]]
    assert [scenario.smooth_of(label) for label in kinds] == [1, 1, 1, 5]


def test_numbers_do_not_depend_on_the_processes(path) -> None:
    some = {label: SCHEDULERS[label] for label in ("full", "full-2", "sure")}
    one, two = (compare_held_out(scenario(path, some), 11, processes=n) for n in (1, 2))
    for label in some:
        assert (one.regret[label] == two.regret[label]).all()
    assert one.regret["full"][:, -1].mean() < 0.5 < one.regret["full"][:, 0].mean() + 0.5
    assert one.spent["full-2"].mean() > 1.9 * one.spent["full"].mean()
    assert (one.seeds, one.held_out) == (3, 3)
    assert list(one.table().columns) == ["10%", "15%", "25%", "35%", "50%", "100%", "end", "node time"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seeds": 0}, "Scenario needs seeds a whole number from 1"),
        ({"seeds": 6}, "6 seeds a configuration, and 6 to choose by leave none held out: 5 at most"),
        ({"schedulers": {"full": {"kind": "full", "seeds": 0}}}, "seeds of 'full'"),
        ({"crash_rate": 0.1}, "nothing crashes"),
        ({"startup_s": 1.0}, "nothing crashes, hangs or takes time to start"),
        ({"switch_s": 1.0}, "nothing crashes, hangs or takes time to start"),
    ],
)
def test_what_leaves_nothing_to_judge_by_is_refused(path, settings, words) -> None:
    with pytest.raises(InvalidInput, match=words):
        compare_held_out(scenario(path, **settings), 1)


def test_schedulers_with_fewer_seeds_are_judged_by_the_same_others(path) -> None:
    drawn = scenario(path, {"full": {"kind": "full", "seeds": 1}}, seeds=4)
    assert (drawn.n_seeds, compare_held_out(drawn, 1).held_out) == (4, 2)
    with pytest.raises(InvalidInput, match="with seeds is judged by those held out: use compare_held_out"):
        drawn.repetition().run("full")


def test_the_command(path, capsys) -> None:
    given = ["simulate", "--table", str(path), "--scheduler", "sure,asha", "--nodes", "4", "--repeats", "5"]
    assert main([*given, "--seeds", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["seeds"], found["held_out"]) == (3, N_SEEDS - 3)
    assert set(found["schedulers"]) == {"sure", "asha"}
    assert found["schedulers"]["asha"]["spent"]["value"] > found["schedulers"]["sure"]["spent"]["value"]
    assert main([*given, "--seeds", "2"]) == 0
    assert "judged by 4 others" in capsys.readouterr().out
    assert main([*given, "--seeds", "2", "--db", str(path.parent / "x.db")]) == 2
    assert main([*given, "--seeds", "6"]) == 2


def test_budgets_may_be_an_array(path) -> None:
    assert compare_held_out(scenario(path), 1, shares=np.array([0.1, 0.2])).mean("asha", 0.2).value >= 0


@pytest.mark.parametrize(
    "shares", [(0.5, 0.1), (), np.array([]), 0.5, None, ("a",), "ab", (math.nan,), (-1, 0.5), (0, 1), (True,)], ids=str
)
def test_budgets_rise(path, shares) -> None:
    with pytest.raises(InvalidInput, match="budgets rise"):
        compare_held_out(scenario(path), 1, shares=shares)
