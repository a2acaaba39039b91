"""A study without its log is the study that the loop and the executor run, to the last bit."""

import math
import random
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algos.search.test_contract import BOUND, N_SLOTS, SCHEDULERS
from tests.support import SPACE
from workbench.algos.search import FullRuns, RandomSearcher
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.protocols import Decision, Run, Verdict
from workbench.simulation import simulate
from workbench.simulation.cluster import VirtualCluster
from workbench.simulation.race import Race


class SomeDiverge:
    """Scores are whole numbers, so that some are equal; some are no number, which fails the trial."""

    def __init__(self, seed, share) -> None:
        self.seed, self.share = seed, share

    def phase(self, trial, phase, config, seed):
        drawn = random.Random(f"{self.seed} {trial} {phase} {seed}")
        return round(0.1 + drawn.random(), 1), math.nan if drawn.random() < self.share else float(drawn.randrange(20))


@pytest.mark.parametrize("name", SCHEDULERS)
@settings(max_examples=3, deadline=None)
@given(
    seed=st.integers(0, 1000),
    nodes=st.integers(1, 9),
    share=st.sampled_from([0.0, 0.0, 0.1, 1.0]),
    spread=st.sampled_from([0.0, 0.4]),
    delays=st.sampled_from([(0.0, 0.0), (0.5, 0.2)]),
)
def test_it_comes_to_what_the_log_says(name, seed, nodes, share, spread, delays) -> None:
    nodes = N_SLOTS if name in BOUND else nodes
    cluster = VirtualCluster(nodes, speed_spread=spread, startup_s=delays[0], switch_s=delays[1], seed=seed)
    scheduler, model = SCHEDULERS[name](), SomeDiverge(seed, share)
    logged = simulate(scheduler, model, cluster, seed=seed, events=[])
    raced = simulate(scheduler, model, cluster, seed=seed)
    for field in fields(raced):
        np.testing.assert_array_equal(getattr(raced, field.name), getattr(logged, field.name), field.name)


class Odd:
    """Two trials; stops each when it reports, but for what it was made to say."""

    n_phases, n_trials = 2, 2

    def __init__(self, **told) -> None:
        self.asked, self.told = 0, {int(trial[1:]): Decision(verdict) for trial, verdict in told.items()}

    def ask(self):
        self.asked += 1
        return Run(self.asked - 1, {}) if self.asked <= 2 else None

    def tell(self, report):
        return {report.trial: Decision(Verdict.STOP)} | self.told


class Even:
    """Trial 0 ends its phases after 1, 2, … seconds, trial 1 after 2, 4, …"""

    def phase(self, trial, phase, config, seed):
        return 1.0 + trial, 0.0


@pytest.mark.parametrize("events", [None, []])
@pytest.mark.parametrize(
    ("told", "nodes"),
    [
        ({"t0": Verdict.STOP, "t1": Verdict.STOP}, 2),  # trial 1 is in a phase
        ({"t0": Verdict.PAUSE}, 1),  # and nobody asks for it again
        ({"t0": Verdict.HOLD}, 1),
    ],
)
def test_what_no_scheduler_may_say_is_refused_as_by_the_loop(told, nodes, events) -> None:
    with pytest.raises(SchedulerError):
        simulate(Odd(**told), Even(), VirtualCluster(nodes), events=events)


class Copies(Odd):
    """The second is a copy of the first."""

    def ask(self):
        run = super().ask()
        return run and replace(run, parent=run.trial - 1 if run.trial else None)


@pytest.mark.parametrize("events", [None, []])
@pytest.mark.parametrize(
    ("nodes", "makespan"),
    [
        (2, 8 + 2),  # trial 0 has no checkpoint yet: its copy is brought up from nothing
        (1, 8 + 1 + 4 + 2),
    ],
)
def test_a_copy_is_brought_up_from_a_checkpoint_if_its_parent_has_one(nodes, makespan, events) -> None:
    cluster = VirtualCluster(nodes, startup_s=8.0, switch_s=4.0)
    assert simulate(Copies(), Even(), cluster, events=events).makespan == makespan


class NamesSlots(Odd):
    """The second is to run on slot 1, the third on slot 4, the last on slot 0, which the first holds."""

    n_phases, n_trials = 1, 5

    def ask(self):
        self.asked += 1
        return Run(self.asked - 1, {}, slot=(None, 1, 4, None, 0)[self.asked - 1]) if self.asked <= 5 else None


@pytest.mark.parametrize("events", [None, []])
def test_a_trial_runs_on_the_slot_it_names_if_that_is_free_else_on_the_lowest(events) -> None:
    class Sixteen:
        def phase(self, trial, phase, config, seed):
            return 16.0, 0.0

    cluster = VirtualCluster(5, speeds=[1.0, 2.0, 4.0, 8.0, 16.0])
    outcome = simulate(NamesSlots(), Sixteen(), cluster, events=events)
    ended = dict(zip(outcome.reporters.tolist(), outcome.ended_s.tolist(), strict=True))
    assert ended == {0: 16 / 1, 1: 16 / 2, 2: 16 / 16, 3: 16 / 4, 4: 16 / 8}


class SaysOfFailures(Odd):
    """Has no decision for a trial that has failed, or one that comes too late."""

    def __init__(self, verdict) -> None:
        super().__init__()
        self.verdict = verdict

    def tell(self, report):
        return {} if self.verdict is None else {report.trial: Decision(self.verdict)}


@pytest.mark.parametrize("events", [None, []])
@pytest.mark.parametrize("verdict", [None, *Verdict])
def test_a_failed_trial_is_over_whether_or_not_its_scheduler_says_so(verdict, events) -> None:
    assert simulate(SaysOfFailures(verdict), SomeDiverge(0, 1.0), VirtualCluster(2), events=events).trials == 2


def test_a_race_up_to_a_moment_holds_what_happens_then() -> None:
    race = Race(FullRuns(RandomSearcher(SPACE), 2, 2), Even(), VirtualCluster(2))
    told = [(race.run(until), [at for at, *_ in race.tally.ended]) for until in (0.5, 1.0, 2.0, 4.0)]
    assert told == [(False, []), (False, [1.0]), (False, [1.0, 2.0, 2.0]), (True, [1.0, 2.0, 2.0, 4.0])]


class LetsPausedGoOn(Odd):
    """Pauses the first, and lets it go on when the second reports."""

    def tell(self, report):
        answers = {report.trial: Decision(Verdict.PAUSE)}
        return answers | ({0: Decision(Verdict.CONTINUE)} if report.trial else {})


@pytest.mark.parametrize("events", [None, []])
def test_a_paused_trial_goes_on_only_when_it_is_asked_for(events) -> None:
    with pytest.raises(SchedulerError, match=r"trial 0.* on no slot: ask for it instead"):
        simulate(LetsPausedGoOn(), Even(), VirtualCluster(1), events=events)


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0])
def test_a_duration_that_is_none_is_refused(seconds) -> None:
    class Wrong:
        def phase(self, trial, phase, config, seed):
            return seconds, 0.0

    with pytest.raises(InvalidInput, match="trial 0, phase 0, a duration of"):
        simulate(FullRuns(RandomSearcher(SPACE), 1, 1), Wrong(), VirtualCluster(1))
