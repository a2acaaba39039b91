"""What every scheduler must do, whatever it decides."""

import copy
import inspect
import io
import json
import math
import pickle
from collections import Counter
from dataclasses import fields, replace
from functools import cache
from importlib.util import find_spec
from itertools import takewhile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.algos.search.arena import Played, play
from tests.support import SPACE, MemoryLog, RandomTimes, simulate, virtual_executor
from workbench.algos.search import (
    ASHA,
    MFPBT,
    PASHA,
    PB2,
    PBT,
    CostAwareSearcher,
    EvolutionSearcher,
    FullRuns,
    GridSearcher,
    Hyperband,
    HyperTrick,
    InformedSearcher,
    ListSearcher,
    MedianStopping,
    OptunaSearcher,
    Portfolio,
    RandomSearcher,
    Seeded,
    SMACSearcher,
    SuccessiveHalving,
    Sure,
    TopK,
)
from workbench.core.describe import build, describe, explain_of
from workbench.core.drive import drive, replay
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.ledger import Ledger, TrialState
from workbench.core.protocols import Config, Kind, Report, Scheduler, Verdict, expectation_of
from workbench.core.registry import SCHEDULERS as REGISTERED
from workbench.core.size import size_of

DIMENSIONS = dict(SPACE)
N_SLOTS = 3  # of the static plans below, which want to know

SCHEDULERS = {
    "random": lambda: FullRuns(RandomSearcher(SPACE), 7, 3),
    "grid": lambda: FullRuns(GridSearcher(SPACE, 3), 20, 3),
    "hypertrick": lambda: HyperTrick(RandomSearcher(SPACE), 12, 4, 0.25),
    "hypertrick-grid": lambda: HyperTrick(GridSearcher(SPACE, 4), 100, 3, 0.5),
    "halving": lambda: SuccessiveHalving(RandomSearcher(SPACE), 9, 9),
    "halving-rate": lambda: SuccessiveHalving(GridSearcher(SPACE, 5), 100, 4, eviction_rate=0.3),
    "halving-restart": lambda: SuccessiveHalving(RandomSearcher(SPACE), 9, 9, restart=True),
    "halving-static": lambda: SuccessiveHalving(
        RandomSearcher(SPACE), 10, 4, eviction_rate=0.3, allocation="static", n_nodes=N_SLOTS
    ),
    "halving-hold": lambda: SuccessiveHalving(RandomSearcher(SPACE), 3, 3, allocation="none", n_nodes=N_SLOTS),
    "hyperband": lambda: Hyperband(RandomSearcher(SPACE), 9),
    "hyperband-sequence": lambda: Hyperband(RandomSearcher(SPACE), 9, formula="journal", order="sequence"),
    "hyperband-rounds": lambda: Hyperband(RandomSearcher(SPACE), 4, eta=2, rounds=2),
    "hyperband-restart": lambda: Hyperband(RandomSearcher(SPACE), 9, restart=True),
    "hyperband-hold": lambda: Hyperband(RandomSearcher(SPACE), 3, order="sequence", allocation="none", n_nodes=N_SLOTS),
    "asha": lambda: ASHA(RandomSearcher(SPACE), 14, 9),
    "asha-grid": lambda: ASHA(GridSearcher(SPACE, 4), 100, 8, eta=2, min_phases=2),
    "asha-stopping": lambda: ASHA(RandomSearcher(SPACE), 14, 9, variant="stopping"),
    "pasha": lambda: PASHA(RandomSearcher(SPACE), 14, 9),
    "median": lambda: MedianStopping(RandomSearcher(SPACE), 12, 4),
    "median-completed": lambda: MedianStopping(RandomSearcher(SPACE), 12, 4, min_reports=1, completed_only=True),
    "pbt": lambda: PBT(RandomSearcher(SPACE), 6, 5),
    "pbt-mf": lambda: MFPBT(RandomSearcher(SPACE), 4, 6, share=0.5, intervals=[1, 3]),
    "pbt-pb2": lambda: PB2(RandomSearcher(SPACE), 4, 6, share=0.5, warmup=3, draws=20),
    "pbt-t-test": lambda: PBT(RandomSearcher(SPACE), 4, 8, exploit="t-test", level=0.5, resample=0.3),
    "pbt-burn-in": lambda: PBT(RandomSearcher(SPACE), 4, 5, share=0.5, burn_in=2),
    "pbt-tournament": lambda: PBT(GridSearcher(SPACE, 2), 4, 4, exploit="tournament", space=SPACE, seed=5),
    "pbt-explore": lambda: PBT(RandomSearcher(SPACE), 4, 3, exploit="none"),
    "portfolio": lambda: Portfolio(RandomSearcher(SPACE), 4, (8, 4, 2), (0.5, 0.25, 0.0)),
    "portfolio-grid": lambda: Portfolio(GridSearcher(SPACE, 8), 3, [10, 5], [0.3, 0.1]),
    "halving-topk": lambda: TopK(RandomSearcher(SPACE), 9, 4, kept=3),
    "sure": lambda: Sure(RandomSearcher(SPACE), 12, 9, finalists=2, seeds=2, warmup=4),
    "sure-grid": lambda: Sure(GridSearcher(SPACE, 4), 100, 4, eta=2, rungs=[0.3], seeds=1),
    "evolution": lambda: HyperTrick(EvolutionSearcher(SPACE, warmup=4), 15, 3, 0.25),
    "cost-aware": lambda: HyperTrick(CostAwareSearcher(SPACE, warmup=4), 15, 3, 0.25),
    "informed": lambda: HyperTrick(
        InformedSearcher(
            EvolutionSearcher(SPACE, warmup=4),
            first=[{"lr": 1e-3, "gamma": 0.99}],
            past=[{"config": {"lr": 1e-4, "gamma": 0.9}, "scores": [0.5, 1.0]}],
        ),
        15,
        3,
    ),
    "list": lambda: HyperTrick(
        ListSearcher([{"lr": 10.0**-n, "gamma": gamma} for n in (2, 3, 4) for gamma in (0.9, 0.99)]), 20, 3
    ),
    "evolution-asha": lambda: ASHA(EvolutionSearcher(SPACE, warmup=3, random=0.0), 12, 4, eta=2),
}
SCHEDULERS |= {
    f"seeded-{name}": lambda name=name: Seeded(SCHEDULERS[name](), 2) for name in ("hypertrick", "asha", "pbt")
}
SCHEDULERS["seeded-halving"] = lambda: Seeded(SCHEDULERS["halving"](), 3, "median")
if find_spec("optuna"):
    SCHEDULERS["optuna"] = lambda: HyperTrick(OptunaSearcher(SPACE, n_random=4), 10, 3, 0.25)
if find_spec("smac"):
    SCHEDULERS["smac"] = lambda: HyperTrick(SMACSearcher(SPACE, n_random=8, candidates=50), 10, 3, 0.25)
BOUND = {"halving-static", "halving-hold", "hyperband-hold"}  # to a cluster of N_SLOTS
BARRIERS = {
    name for name in SCHEDULERS if name.startswith(("halving", "hyperband", "seeded"))
}  # nodes idle while all wait for the last
REPEATS = {"sure"}  # its last nodes wait for a finalist to repeat


@pytest.fixture(params=SCHEDULERS)
def name(request):
    return request.param


@pytest.fixture
def scheduler(name):
    return SCHEDULERS[name]()


@cache
def simulated(name: str) -> tuple[Scheduler, MemoryLog]:
    """A scheduler after a study, and its log: to read, for many tests do."""
    scheduler = SCHEDULERS[name]()
    return scheduler, simulate(scheduler, slots=N_SLOTS)


@cache
def played(name: str, seed: int = 0) -> tuple[Scheduler, Played]:
    """The same of a scheduler whose trials report in any order."""
    scheduler = SCHEDULERS[name]()
    return scheduler, play(scheduler, N_SLOTS, seed)


@settings(max_examples=25, deadline=None)
@given(
    slots=st.integers(1, 20), seed=st.integers(0, 1000), spread=st.floats(0, 2), name=st.sampled_from(list(SCHEDULERS))
)
def test_every_study_ends_with_every_trial_over(slots, seed, spread, name) -> None:
    log = simulate(SCHEDULERS[name](), RandomTimes(seed, spread), N_SLOTS if name in BOUND else slots)
    ledger = Ledger(log)
    runs = [e for e in log if e.kind is Kind.RUN]
    assert runs
    assert {ledger.trials[e.trial].state for e in runs} <= {TrialState.STOPPED, TrialState.FAILED}


@settings(max_examples=100, deadline=None)
@given(
    slots=st.integers(1, 12),
    seed=st.integers(0, 1000),
    fail=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
    name=st.sampled_from(list(SCHEDULERS)),
    timed=st.booleans(),
)
def test_any_order_of_reports_and_failures_comes_to_an_end(slots, seed, fail, name, timed) -> None:
    """What is held on the way stands in `arena.play`: nobody runs twice at once, everyone ends, and so on."""
    slots = N_SLOTS if name in BOUND else slots
    scheduler = SCHEDULERS[name]()
    world = play(scheduler, slots, seed, fail=fail, speeds=[1.0 + s % 4 for s in range(slots)] if timed else None)
    assert len({run.trial for run in world.runs}) <= scheduler.n_trials
    for run in world.runs:
        SPACE.validate(run.config)


def test_no_phase_runs_twice_or_out_of_order(name) -> None:
    scheduler, log = simulated(name)
    first = {e.trial: e.phase for e in reversed(log) if e.kind is Kind.RUN}
    ended = [(e.trial, e.phase) for e in log if e.kind is Kind.PHASE_ENDED]
    assert max(Counter(ended).values()) == 1
    for trial in {t for t, _ in ended}:
        phases = [p for t, p in ended if t == trial]
        assert phases == list(range(first[trial], first[trial] + len(phases)))
        assert phases[-1] < scheduler.n_phases


@pytest.mark.parametrize("name", [name for name in SCHEDULERS if name not in BARRIERS | REPEATS])
def test_no_slot_idles_while_a_trial_could_start(name) -> None:
    """Slots are filled as soon as they fall free: idle time only when nothing is left to start."""
    _, log = simulated(name)
    last_start = max(e.at for e in log if e.kind is Kind.RUN)
    starts = sorted((e.at, 1) for e in log if e.kind is Kind.RUN)
    ends = sorted((e.at, -1) for e in log if e.kind is Kind.DECISION and _leaves(e, log))
    busy, at = 0, 0.0
    for when, change in sorted(starts + ends, key=lambda x: (x[0], x[1])):
        if when > at and at < last_start:
            assert busy == N_SLOTS
        busy, at = busy + change, when


def _leaves(event, log) -> bool:
    """Tell whether a verdict frees a slot: the trial it falls on has just reported."""
    reported = any(e.kind is Kind.PHASE_ENDED and (e.at, e.trial) == (event.at, event.trial) for e in log)
    return reported and event.data["verdict"] in ("stop", "pause")


@pytest.mark.parametrize("name", sorted(name for name in BARRIERS if name not in BOUND))
def test_no_slot_idles_while_a_trial_of_a_barrier_waits_to_run(name) -> None:
    """In a trial's log: from its promotion, or from the beginning, until it runs no slot is free."""
    _, log = simulated(name)
    for i, run in enumerate(log):
        if run.kind is not Kind.RUN or run.at == 0:
            continue
        freed = [e for e in log[:i] if e.at == run.at and e.kind is Kind.DECISION]
        assert freed, f"{run} could have come earlier: nothing had just happened"


def test_every_report_is_answered_at_once_with_a_verdict_and_a_reason(name) -> None:
    _, log = simulated(name)
    for event in log:
        if event.kind is Kind.DECISION:
            assert event.data["verdict"] in set(Verdict)
            assert event.data["mode"]
    for i, event in enumerate(log):
        if event.kind is Kind.PHASE_ENDED:
            told = list(takewhile(lambda e: e.kind is Kind.DECISION, log[i + 1 :]))
            assert (event.trial, event.phase) in [(e.trial, e.phase) for e in told]


def test_settings_survive_a_round_trip_through_json(scheduler) -> None:
    described = json.loads(json.dumps(describe(scheduler)))
    again = build("scheduler", described, REGISTERED)
    assert describe(again) == describe(scheduler)
    assert again == scheduler
    assert (again.n_trials, again.n_phases, again.expected_phases) == (
        scheduler.n_trials,
        scheduler.n_phases,
        scheduler.expected_phases,
    )
    assert again.ask() == scheduler.ask()


def with_numpy_numbers(thing):
    """The same settings, each number one of NumPy's."""
    given = {f.name: getattr(thing, f.name) for f in fields(thing) if f.init}
    kinds = {int: np.int64, float: np.float64}
    numbers = {name: kinds[type(value)](value) for name, value in given.items() if type(value) in kinds}
    return replace(thing, **numbers)


@pytest.mark.parametrize("seed", [None, -1, 1.5, "3", True])
def test_a_seed_is_a_whole_number(seed) -> None:
    """Without one, what was drawn could not be drawn again, and the study not be resumed."""
    examples = [make() for make in SCHEDULERS.values()]
    examples += [scheduler.searcher for scheduler in examples if hasattr(scheduler, "searcher")]
    seeded = {type(example): example for example in examples if hasattr(example, "seed")}
    assert {RandomSearcher, EvolutionSearcher, HyperTrick, ASHA, PBT, Portfolio, Sure} <= seeded.keys()
    for kind, example in seeded.items():
        with pytest.raises(InvalidInput, match=f"{kind.__name__} needs seed a whole number from 0, got {seed!r}"):
            replace(example, seed=seed)


def test_settings_may_be_numpy_s_numbers(name, scheduler) -> None:
    again = with_numpy_numbers(copy.deepcopy(scheduler))
    assert json.dumps(describe(again)) == json.dumps(describe(scheduler))
    log, size = simulate(again, slots=N_SLOTS), size_of(again)
    told = json.dumps([size.to_json(), *([e.kind, e.at, e.trial, e.phase, e.slot, e.data] for e in log)])
    ended, plain = simulated(name)
    assert told == json.dumps(
        [size_of(ended).to_json(), *([e.kind, e.at, e.trial, e.phase, e.slot, e.data] for e in plain)]
    )


def test_replaying_the_log_gives_the_same_answers(name, scheduler) -> None:
    _, log = simulated(name)
    replay(scheduler, log)
    assert scheduler.ask() is None


def test_replay_of_a_log_that_is_not_its_own_is_refused(name, scheduler) -> None:
    log = MemoryLog(simulated(name)[1])
    flip = {"stop": "continue", "continue": "stop", "pause": "stop", "hold": "stop"}
    at = next(i for i, e in enumerate(log) if e.kind is Kind.DECISION)
    log[at] = replace(log[at], data={**log[at].data, "verdict": flip[log[at].data["verdict"]]})
    with pytest.raises(SchedulerError, match="replay differs"):
        replay(scheduler, log)


class EvenTimes(RandomTimes):
    """Every phase takes the same time, so that trials put on slots in one order report in that order."""

    def phase(self, trial: int, phase: int, config, seed: int) -> tuple[float, float]:
        return 1.0, super().phase(trial, phase, config, seed)[1]


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_study_cut_anywhere_goes_on_to_the_same_decisions(name) -> None:
    """Cut all along an undisturbed study, on one slot where that is enough: the order of reports is fixed."""
    slots = N_SLOTS if name in BOUND else 1
    whole = simulate(SCHEDULERS[name](), EvenTimes(0), slots=slots)
    verdicts = _verdicts(whole)
    cuts = _cuts(whole)
    for cut in cuts[:: max(len(cuts) // 6, 1)]:
        log = MemoryLog(whole[:cut])
        fresh = SCHEDULERS[name]()
        ledger = replay(fresh, log)
        assert drive(fresh, virtual_executor(EvenTimes(0), slots, ledger.at), log, ledger=ledger)
        assert (sorted if name in BOUND else list)(_verdicts(log)) == (sorted if name in BOUND else list)(verdicts)


def _verdicts(log) -> list[tuple[int, int, str]]:
    """Final verdicts; whether a trial was paused on the way depends on who came last to the barrier."""
    return [
        (e.trial, e.phase, e.data["verdict"]) for e in log if e.kind is Kind.DECISION and e.data["verdict"] == "stop"
    ]


def _cuts(log: MemoryLog) -> list[int]:
    """Places a driver may have died: anywhere but between a report and its decisions, which are logged as one."""
    return [
        i
        for i in range(len(log) + 1)
        if i == 0 or (log[i - 1].kind is not Kind.PHASE_ENDED and (i == len(log) or log[i].kind is not Kind.DECISION))
    ]


@pytest.mark.parametrize("name", [name for name in SCHEDULERS if hasattr(SCHEDULERS[name](), "grow")])
def test_a_study_that_has_ended_goes_on_with_more_trials(name) -> None:
    log = simulate(scheduler := SCHEDULERS[name](), slots=N_SLOTS)
    scheduler.grow(2 * scheduler.n_trials)
    ledger = Ledger(log)
    assert drive(scheduler, virtual_executor(RandomTimes(0), N_SLOTS, ledger.at), log, ledger=ledger)
    assert len(ledger) == scheduler.n_trials
    assert {trial.state for trial in ledger.trials.values()} == {TrialState.STOPPED}


def test_asking_when_there_is_nothing_to_start_changes_nothing(scheduler) -> None:
    runs = []
    while (run := scheduler.ask()) is not None:
        runs.append(run)
    assert scheduler.ask() is None
    scheduler.tell(Report(runs[0].trial, 0, 1.0))


def test_a_failed_trial_is_stopped_and_nobody_else_is_touched(scheduler) -> None:
    first, second = scheduler.ask(), scheduler.ask()
    told = scheduler.tell(Report(first.trial, 0, float("nan"), failed=True))
    assert told[first.trial].verdict is Verdict.STOP
    assert second.trial not in told
    scheduler.tell(Report(second.trial, 0, 1.0))


class Writer(pickle.Pickler):
    """Writes out all of a scheduler but generators, such as SMAC's of suggestions, which cannot be."""

    def persistent_id(self, part: object) -> str | None:
        return "a generator" if inspect.isgenerator(part) else None


def written_out(scheduler) -> bytes:
    Writer(file := io.BytesIO()).dump(scheduler)
    return file.getvalue()


class Pestered:
    """A scheduler that hears, after every report, of reports that make no sense: it must refuse them, unmoved."""

    def __init__(self, scheduler) -> None:
        self.scheduler, self.n_phases = scheduler, scheduler.n_phases
        self.over: list[Report] = []  # the last of each trial that is over
        self.refused = Counter()

    def ask(self):
        return self.scheduler.ask()

    def tell(self, report: Report):
        told = self.scheduler.tell(report)
        stopped = [trial for trial, decision in told.items() if decision.verdict is Verdict.STOP]
        self.over += [Report(trial, report.phase, report.score, report.failed) for trial in stopped]
        before = written_out(self.scheduler)
        if not report.failed:
            self._refuses("repeated", report)
        self._refuses("unknown", Report(10_000, 0, 1.0))
        self._refuses("unknown", Report(10_000, 0, math.nan, failed=True))
        self._refuses("early", Report(report.trial, report.phase + 2, 1.0))
        for old in self.over[-3:]:
            how = "after failure" if old.failed else "after stop"
            self._refuses(how, Report(old.trial, old.phase + 1, 1.0))
            self._refuses(how, Report(old.trial, old.phase + 1, math.nan, failed=True))
        assert written_out(self.scheduler) == before, report
        return told

    def _refuses(self, how: str, report: Report) -> None:
        with pytest.raises(SchedulerError, match="came, but"):
            self.scheduler.tell(report)
        self.refused[how] += 1


def test_senseless_reports_are_refused_and_change_nothing(scheduler) -> None:
    """Late ones (after a stop, a failure, the last phase), repeated ones, ones of trials there are not."""
    pestered = Pestered(scheduler)
    play(pestered, N_SLOTS, seed=3, fail=0.15)
    assert {"repeated", "unknown", "early", "after stop", "after failure"} <= set(pestered.refused)


KNOW_THEIR_PHASES = BARRIERS - {"seeded-hypertrick", "seeded-asha"} | {
    name for name in SCHEDULERS if name.startswith(("random", "grid", "pbt"))
}


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("seed", [0, 1])
def test_expected_phases_are_those_that_run(name, seed) -> None:
    """Exactly for who knows them beforehand; HyperTrick knows a mean, which is held in its own tests."""
    scheduler, world = played(name, seed)
    if name in KNOW_THEIR_PHASES:
        assert len(world.reports) == scheduler.expected_phases
    elif (told := expectation_of(scheduler)) is not None:
        assert sum(told.fewest) <= len(world.reports) <= scheduler.n_trials * scheduler.n_phases
        assert sum(told.began) == pytest.approx(scheduler.expected_phases)
        assert told.began[0] == told.fewest[0] == scheduler.n_trials
    else:
        assert 0 < scheduler.expected_phases <= scheduler.n_trials * scheduler.n_phases
        assert len(world.reports) <= scheduler.n_trials * scheduler.n_phases


def test_expected_phases_by_hand() -> None:
    """Rungs of 27@1, 9@3, 3@9, 1@27: 27 + 9·2 + 3·6 + 18; of 64@1, 21@3, 7@9, 2@27: 64 + 42 + 42 + 36; of 64@3 on."""
    assert SuccessiveHalving(RandomSearcher(SPACE), 27, 27).expected_phases == 81
    assert ASHA(RandomSearcher(SPACE), 64, 27).expected_phases == 184
    assert ASHA(RandomSearcher(SPACE), 64, 27, min_phases=3).expected_phases == 64 * 3 + 21 * 6 + 7 * 18
    assert PBT(RandomSearcher(SPACE), 6, 5).expected_phases == 30
    assert Hyperband(RandomSearcher(SPACE), 9).expected_phases == 9 + 6 + 6 + 3 * 3 + 6 + 3 * 9


@pytest.mark.parametrize("variant", ["promotion", "stopping"])
def test_asha_expects_too_little_by_at_most_a_third(variant) -> None:
    """Its rungs fill one by one: of the first few too many are promoted, the more so where scores are fresh draws."""
    ran = [len(play(ASHA(RandomSearcher(SPACE), 64, 9, variant=variant), 8, seed).reports) for seed in range(10)]
    expected = ASHA(RandomSearcher(SPACE), 64, 9, variant=variant).expected_phases
    assert 0.9 * expected <= np.mean(ran) <= 4 / 3 * expected


def test_sizes_are_true_where_the_searcher_runs_out(name) -> None:
    scheduler, world = played(name)
    assert len({run.trial for run in world.runs}) == scheduler.n_trials or isinstance(
        getattr(scheduler, "scheduler", scheduler), PBT
    )


class Short(RandomSearcher):
    """Runs out after five configurations, and does not say so beforehand."""

    def suggest(self, trial: int) -> Config | None:
        return super().suggest(trial) if trial < 5 else None


SHORT = {  # of those that need not know beforehand how many there will be
    "random": lambda: FullRuns(Short(SPACE), 7, 3),
    "hypertrick": lambda: HyperTrick(Short(SPACE), 12, 4, 0.25),
    "asha": lambda: ASHA(Short(SPACE), 14, 9),
    "pasha": lambda: PASHA(Short(SPACE), 14, 9),
    "sure": lambda: Sure(Short(SPACE), 12, 9, finalists=2, seeds=2, warmup=4),
    "portfolio": lambda: Portfolio(Short(SPACE), 4, (8, 4, 2), (0.5, 0.25, 0.0)),
    "median": lambda: MedianStopping(Short(SPACE), 12, 4),
    "seeded": lambda: Seeded(ASHA(Short(SPACE), 14, 9), 2),
}


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("slots", [1, 2, 20])
def test_a_searcher_that_runs_out_before_its_time_ends_the_study(name, slots) -> None:
    world = play(SHORT[name](), slots)
    assert len({run.config["lr"] for run in world.runs}) == 5


class Empty(RandomSearcher):
    """Says beforehand that it has nothing to give."""

    def __len__(self) -> int:
        return 0


@pytest.mark.parametrize("scheduler", [FullRuns, HyperTrick, ASHA])
def test_a_searcher_of_length_0_is_refused_as_a_scheduler_is_made(scheduler) -> None:
    with pytest.raises(InvalidInput, match=r"^Empty has no configuration, for its length is 0: "):
        scheduler(Empty(SPACE), 9, 3)


def test_every_reason_has_words_that_name_no_other_scheduler_s_modes(scheduler) -> None:
    """Words begin with a short name; DCM and WSM are HyperTrick's alone."""
    world = play(scheduler, N_SLOTS, seed=1, fail=0.1)
    explain = explain_of(describe(scheduler))
    for reasons in world.reasons:
        for reason in reasons.values():
            words = explain(reason)
            assert words.strip()
            assert words.count("\n") == 0
            if not isinstance(getattr(scheduler, "scheduler", scheduler), (HyperTrick, Portfolio)):
                assert "DCM" not in words
                assert "WSM" not in words
            elif reason["mode"] in ("collecting", "selecting") and "rank" in reason:
                assert words.startswith("DCM: " if reason["mode"] == "collecting" else "WSM: ")


def test_scores_in_its_reasons_are_named_as_such(name) -> None:
    """A study that minimises turns those back, and no others."""
    scheduler, world = played(name)
    scores = {report.score for report in world.reports}
    reasons = [reason for answers in world.reasons for reason in answers.values()]
    keys = {key for reason in reasons for key, value in reason.items() if isinstance(value, float) and value in scores}
    assert keys <= set(getattr(scheduler, "scores_in_reasons", ()))


def test_it_shows_its_settings_in_a_notebook(scheduler) -> None:
    assert f"<b>{type(scheduler).__name__}</b>" in scheduler._repr_html_()


@pytest.mark.parametrize("given", [SPACE, DIMENSIONS])
def test_a_space_or_its_dimensions_stand_for_a_random_searcher(given) -> None:
    """Drawn from with the scheduler's own seed, where it has one."""
    schedulers = [make() for make in reversed(SCHEDULERS.values())]
    random = {type(s): s for s in schedulers if isinstance(getattr(s, "searcher", None), RandomSearcher)}
    assert random.keys() == {type(s) for s in schedulers} - {Seeded}
    for scheduler, example in random.items():
        chosen = {f.name: getattr(example, f.name) for f in fields(example) if f.init and f.name != "searcher"}
        chosen |= {"seed": 3} if "seed" in chosen else {}
        short = scheduler(given, **chosen)
        long = scheduler(RandomSearcher(SPACE, chosen.get("seed", 0)), **chosen)
        assert short == long
        assert [run.config for run in play(short, 2).runs] == [run.config for run in play(long, 2).runs]


@pytest.mark.parametrize("given", [5, None, RandomSearcher, lambda config: None])
def test_what_gives_no_configurations_is_refused(given) -> None:
    with pytest.raises(InvalidInput, match="HyperTrick draws configurations from a Space, a dict of dimensions"):
        HyperTrick(given, 4, 2)


def test_a_searcher_that_cannot_hear_of_reports_is_refused_before_anything_runs() -> None:
    class Deaf:
        def suggest(self, trial):
            return {"x": 1}

    with pytest.raises(
        InvalidInput, match=r"^Deaf lacks observe\(report\): a searcher that learns of no report passes$"
    ):
        HyperTrick(Deaf(), 4, 2)


def test_switches_and_lists_of_another_kind_are_refused(scheduler) -> None:
    """The word "no" would have switched something on."""
    for setting in fields(scheduler):
        value = getattr(scheduler, setting.name)
        if setting.init and isinstance(value, (bool, tuple)):
            wrong, says = ("no", "true or false") if isinstance(value, bool) else (5, "to be a list")
            with pytest.raises(InvalidInput, match=f"needs {setting.name} {says}.*, got"):
                replace(scheduler, **{setting.name: wrong})
