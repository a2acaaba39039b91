"""A schedule replayed in one trial: the recorded hyperparameters, at the recorded phases."""

import json
import pickle

import pytest

from tests.support import Deterministic, silent
from workbench.algos.quadratic import Quadratic
from workbench.algos.replay import Replay
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.core.budget import Budget
from workbench.core.errors import InvalidInput, WorkbenchError

AGENT = GA3C("CartPole-v1", phase=Budget(frames=1000))
ZIGZAG = [{"h0": 1.0, "h1": 0.0}, {"h0": 0.0, "h1": 1.0}, {"h0": 0.0, "h1": 1.0}]


def test_every_phase_runs_with_its_own_hyperparameters() -> None:
    trial = Replay(ZIGZAG, {"kind": "quadratic"})({}, 0)
    ran = [trial.train_phase(silent) for _ in range(4)]
    trial.close()
    shrunk = 0.96**4
    assert [(m["theta0"], m["theta1"]) for m in ran] == [
        pytest.approx(theta)
        for theta in [
            (0.9 * shrunk, 0.9),
            (0.9 * shrunk, 0.9 * shrunk),
            (0.9 * shrunk, 0.9 * shrunk**2),
            (0.9 * shrunk, 0.9 * shrunk**3),  # past the schedule's end its last entry holds
        ]
    ]
    assert [(m["replayed_h0"], m["replayed_h1"]) for m in ran] == [(1.0, 0.0), (0.0, 1.0), (0.0, 1.0), (0.0, 1.0)]


def test_a_replay_goes_on_from_its_checkpoint_where_it_was(tmp_path) -> None:
    factory = Replay(ZIGZAG, Quadratic())
    whole, first = factory({}, 0), factory({}, 0)
    through = [whole.train_phase(silent) for _ in range(3)]
    assert first.train_phase(silent) == through[0]
    first.save(tmp_path)
    second = pickle.loads(pickle.dumps(factory))({}, 0)
    second.load(tmp_path)
    assert [second.train_phase(silent) for _ in range(2)] == through[1:]


def test_a_trial_within_that_measures_nothing_is_refused_in_one_line() -> None:
    class Silent(Deterministic):
        def train_phase(self, progress):
            pass

    with pytest.raises(WorkbenchError, match=r"train_phase returns a dict of metrics, .* got None"):
        Replay(ZIGZAG, Silent)({}, 0).train_phase(silent)


def test_the_trial_within_keeps_its_weights_and_its_seed() -> None:
    schedule = [{"learning_rate": 1e-3}, {"learning_rate": 1e-4}]
    trial = Replay(schedule, GA3C(game="CartPole-v1", phase=Budget(updates=10), n_agents=4, lockstep=True))({}, 3)
    first = trial.train_phase(silent)
    assert trial._trial.learner.optimizer.lr == 1e-3
    second = trial.train_phase(silent)
    assert trial._trial.learner.optimizer.lr == 1e-4
    assert second["updates"] == 2 * first["updates"]
    assert trial._trial.seed == 3
    trial.close()


def test_a_schedule_s_file_says_what_was_trained(tmp_path) -> None:
    file = tmp_path / "best.json"
    file.write_text(json.dumps({"phases": [{"config": c} for c in ZIGZAG], "trainable": {"kind": "quadratic"}}))
    replay = Replay(str(file))
    assert replay == Replay(ZIGZAG, Quadratic())
    assert Replay(str(file), Quadratic(learning_rate=0.1)).factory.learning_rate == 0.1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((ZIGZAG,), "needs to know what to train"),
        (([], Quadratic()), "one configuration a phase"),
        (([{"h0": 1.0, "h1": 0.0}, {"h0": 1.0}], Quadratic()), r"phase 1 of the schedule names \['h0'\]"),
        ((5, Quadratic()), "one configuration a phase, and one at least, got 5"),
        (([{"h0": 1.0}, {"h1": 1.0}], Quadratic()), r"phase 1 of the schedule names \['h1'\]"),
        (([{"h2": 1.0}], Quadratic()), "hyperparameter of Quadratic 'h2'"),
        (("nowhere.json",), "cannot read the schedule nowhere.json"),
        ((ZIGZAG, {"kind": "quadratik"}), "did you mean 'quadratic'"),
        (
            ([{"network": "mlp"}, {"network": "mlp-separate"}], AGENT),
            "changes network from 'mlp' to 'mlp-separate'",
        ),
        (([{"gamma": 0.9}, {"gamma": 3.0}], AGENT), r"GA3C needs gamma in .*, got 3\.0"),
    ],
)
def test_schedules_that_cannot_be_replayed_are_refused(arguments, says) -> None:
    with pytest.raises(InvalidInput, match=says):
        Replay(*arguments)


def test_a_hyperparameter_may_apply_in_some_phases_only() -> None:
    def moved(config, state=0.0):
        while True:
            state = (state or 0.0) + config.get("momentum", 10.0)
            yield state, state

    steps = [{"optimizer": "sgd", "momentum": 0.5}, {"optimizer": "adam"}, {"optimizer": "sgd", "momentum": 0.75}]
    replay = Replay(steps, moved)
    trial = replay({}, 0)
    found = [trial.train_phase(silent) for _ in steps]
    assert [metrics["score"] for metrics in found] == [0.5, 10.5, 11.25]
    assert [metrics.get("replayed_momentum") for metrics in found] == [0.5, None, 0.75]
    trial.close()
    with pytest.raises(InvalidInput, match="sets momentum: leave it out of the search space"):
        Replay(steps[1:], moved).check(["momentum"])


def test_a_function_is_replayed_and_one_that_only_a_file_names_is_not_imported(tmp_path) -> None:
    def climb(config, state=None):
        height = state or 0.0
        while True:
            height += config["h0"]
            yield height, height

    trial = Replay([{"h0": 1.0}, {"h0": 10.0}], climb)({}, 0)
    assert [trial.train_phase(silent)["score"] for _ in range(3)] == [1.0, 11.0, 21.0]
    trial.close()
    file = tmp_path / "best.json"
    file.write_text(json.dumps({"trainable": {"kind": "mine:climb"}, "phases": [{"config": {"h0": 1.0}}]}))
    with pytest.raises(
        InvalidInput, match=r"is of mine:climb, code of your own, .*trainable = {kind = \"mine:climb\"}"
    ):
        Replay(file)
    assert Replay(file, climb).configs == ({"h0": 1.0},)


def test_a_file_of_something_else_is_refused(tmp_path) -> None:
    (tmp_path / "x.json").write_text("[1, 2]")
    with pytest.raises(InvalidInput, match="is no schedule"):
        Replay(tmp_path / "x.json")
    with pytest.raises(InvalidInput, match="no checkpoint of a replay"):
        Replay(ZIGZAG, Quadratic())({}, 0).load(tmp_path)
    with pytest.raises(InvalidInput, match="sets h0: leave it out of the search space"):
        Replay(ZIGZAG, Quadratic()).check(["h0"])
    Replay([{"lr": 1.0}], Deterministic).check(["anything"])  # a trainable of one's own need not check
