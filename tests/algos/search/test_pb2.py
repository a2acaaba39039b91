import numpy as np
import pytest

from tests.algos.search.arena import asked, play
from workbench.algos.search import PB2
from workbench.core.domains import Uniform
from workbench.core.errors import InvalidInput
from workbench.core.protocols import Report
from workbench.core.space import Space

LINE = Space({"x": Uniform(0.0, 1.0)})


def test_the_bound_of_one_observation_by_hand() -> None:
    """At the place and time of a rise that stood out by one standard deviation, and far from it."""
    scheduler = asked(PB2(LINE, 2, 5, length=0.5, forget=0.0, kappa=2.0), 2)
    member = scheduler._members[0]
    member.scores, member.phase = [1.0], 1
    scheduler._seen = [({"x": 0.0}, 2, 1.0, 3.0), ({"x": 1.0}, 2, 1.0, 1.0)]  # rises of +1 and -1 standard deviations
    bounds = scheduler._bounds([{"x": 0.0}, {"x": 1.0}], member)
    between = np.exp(-((0.5) ** 2) / (2 * 0.5**2))  # ranks of 0, 0, 1, 1 are 0.25 and 0.75
    mean = (1 - between) / (1.1 - between)
    told = np.array([[1.1, between], [between, 1.1]])
    spread = np.sqrt(1 - np.array([1, between]) @ np.linalg.solve(told, [1, between]))
    assert bounds.tolist() == pytest.approx([mean + 2 * spread, -mean + 2 * spread], abs=1e-6)


def test_an_observation_is_of_the_score_before_a_phase_and_of_the_rise_in_it() -> None:
    scheduler = PB2(LINE, 2, 5)
    config, _ = scheduler.ask().config, scheduler.ask()
    for phase, score in enumerate([1.0, 4.0, 2.0]):
        scheduler.tell(Report(0, phase, score))
    assert scheduler._seen == [(config, 2, 1.0, 3.0), (config, 3, 4.0, -2.0)]


def test_what_was_seen_tells_less_at_another_score_and_phases_ago() -> None:
    """After three phases at a score of 4: a rise from there two phases ago, and a lesser one from 0 in this phase."""
    scheduler = PB2(LINE, 2, 9, length=0.5, forget=0.19, kappa=0.0)
    member = scheduler._members[0]
    member.scores, member.phase = [4.0], 3
    scheduler._seen = [({"x": 0.5}, 2, 4.0, 3.0), ({"x": 0.5}, 4, 0.0, 1.0)]
    aged, apart = 0.81, np.exp(-1 / (2 * 0.5**2))  # two phases: twice the root of 1 - 0.19; all there is between scores
    expected = np.array([aged, apart]) @ np.linalg.solve([[1.1, aged * apart], [aged * apart, 1.1]], [1, -1])
    assert scheduler._bounds([{"x": 0.5}], member).tolist() == pytest.approx([expected], abs=1e-6)


@pytest.mark.parametrize("lost", [-1e3, -1e300])
def test_a_phase_that_diverged_leaves_the_model_what_it_knows_of_the_others(lost, monkeypatch) -> None:
    """The rise is highest at 0.5; without an outlier nothing is cut, and bounds are the same to the last bit."""
    scheduler = PB2(LINE, 2, 20, forget=0.0, kappa=0.0)
    member, drawn = scheduler._members[0], [{"x": x} for x in (0.05, 0.5, 0.95)]
    member.scores, member.phase = [10.0], 12
    places = [7 * i % 25 for i in range(25)]
    scheduler._seen = [({"x": x / 24}, i // 2 + 1, i / 2, 1 - abs(x / 12 - 1)) for i, x in enumerate(places)]
    plain = scheduler._bounds(drawn, member)
    with monkeypatch.context() as uncut:
        uncut.setattr("workbench.algos.search.pb2._OUTLYING", np.inf)
        assert scheduler._bounds(drawn, member).tolist() == plain.tolist()
    scheduler._seen.append(({"x": 0.2}, 12, 8.0, lost - 8.0))
    assert scheduler._bounds(drawn, member).argmax() == plain.argmax() == 1


def test_what_others_have_just_been_given_is_worth_less() -> None:
    scheduler = PB2(LINE, 3, 5)
    member = scheduler._members[0]
    member.scores, member.phase = [1.0], 1
    scheduler._seen = [({"x": x}, 2, 1.0, 1.0) for x in (0.0, 1.0)]
    alone = scheduler._bounds([{"x": 0.5}], member)
    scheduler._given[1] = {"x": 0.5}
    assert scheduler._bounds([{"x": 0.5}], member) < alone


def test_a_copy_is_asked_about_at_the_score_its_weights_have(monkeypatch) -> None:
    asked = []

    def changed(self, member, config):
        asked.append(self._trials.configs[int(member.scores[-1] // 10)] == config)  # scores name their trial
        return self._space.sample(self._rng)

    monkeypatch.setattr(PB2, "_changed", changed)
    play(PB2(LINE, 4, 5, seed=1, share=0.25), 4, score=lambda config, trial, phase: float(10 * trial + phase))
    assert asked
    assert all(asked)


def test_where_one_place_is_best_its_members_gather_there() -> None:
    """The rise per phase is highest at 0.7; PBT that may only multiply what it has gets there later, if at all."""

    def gathered(kind, **more) -> float:
        scores = {}

        def score(config, trial, phase):
            scores[trial] = scores.get(trial, float(phase)) + 1 - abs(config["x"] - 0.7)
            return scores[trial]

        world = play(kind(LINE, 6, 14, seed=1, share=0.4, **more), 6, score=score)
        late = [run.config["x"] for run in world.runs if run.phase >= 8]
        return float(np.mean(np.abs(np.array(late) - 0.7)))

    assert gathered(PB2, kappa=0.3) < 0.2


def test_it_learns_however_few_scores_a_test_compares() -> None:
    scheduler = PB2(LINE, 2, 5, last_scores=1)
    play(scheduler, 2)
    assert scheduler._seen


def test_it_learns_of_last_phases_and_keeps_nobody_from_what_is_over() -> None:
    """Members that are slower, or have failed fewer, still choose when others have ended."""
    scheduler = PB2(LINE, 6, 5, share=0.5, warmup=2)
    play(scheduler, 2)
    assert len(scheduler._seen) == 6 * (5 - 1)
    assert not scheduler._given
    failing = PB2(LINE, 6, 5, share=0.5, warmup=2)
    play(failing, 3, seed=3, fail=0.3)
    assert any(member.over for member in failing._members)
    assert not failing._given


def test_a_kernel_without_a_length_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"PB2 needs length in \(0, 1\], got 0"):
        PB2(LINE, 2, 5, length=0)
