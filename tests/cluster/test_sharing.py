"""Several studies on one cluster: who may use which worker, and what of it studies see."""

import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from distributed import Client, LocalCluster, Status
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import SPACE, Deterministic, MemoryLog, Waits
from workbench.algos.search import FullRuns, RandomSearcher
from workbench.cluster.checkpoints import CheckpointStore
from workbench.cluster.dask import DaskExecutor
from workbench.cluster.sharing import LEAVING, Claim, Sharing, deal, lacking, shares
from workbench.core.drive import drive
from workbench.core.protocols import Job, Kind, Verdict


def test_workers_are_divided_by_weight_and_what_one_does_not_want_goes_to_the_others() -> None:
    assert shares(8, {"a": Claim(1, 8), "b": Claim(3, 8)}) == pytest.approx({"a": 2, "b": 6})
    assert shares(8, {"a": Claim(1, 8), "b": Claim(3, 2)}) == pytest.approx({"a": 6, "b": 2})
    assert shares(8, {"a": Claim(1, 2), "b": Claim(1, 2)}) == pytest.approx({"a": 4, "b": 4})
    assert deal(8, {"a": Claim(1, 0, unit=3)}) == {"a": 8}  # alone, all of it


def test_what_does_not_divide_goes_to_whom_most_is_owed() -> None:
    assert deal(3, {"a": Claim(1, 9), "b": Claim(1, 9, owed=1.0)}) == {"a": 1, "b": 2}
    assert deal(1, {"a": Claim(1, 9, owed=-5.0), "b": Claim(9, 9, owed=-6.0)}) == {"a": 1, "b": 0}
    assert deal(5, {"a": Claim(1, 8, unit=2), "b": Claim(1, 8)}) == {"a": 2, "b": 3}
    assert deal(6, {"a": Claim(1, 8, unit=2), "b": Claim(1, 8, unit=2)}) == {"a": 4, "b": 2}
    assert deal(6, {"a": Claim(2, 9, owed=99.0), "b": Claim(1, 9), "c": Claim(1, 9)}) == {"a": 3, "b": 2, "c": 1}
    assert deal(4, {"a": Claim(1, 3), "b": Claim(1, 0)}) == {"a": 3, "b": 0}  # nobody wants the fourth


def test_a_gang_that_is_larger_than_its_share_takes_its_slot_when_most_is_owed_to_it() -> None:
    gang = Claim(wanted=8, unit=4, owed=9.0)
    assert deal(4, {"a": gang, "b": Claim(wanted=2)}) == {"a": 4, "b": 0}
    assert deal(4, {"a": gang, "b": Claim(wanted=2, owed=10.0)}) == {"a": 0, "b": 2}
    assert deal(4, {"a": gang, "b": Claim(wanted=9, owed=10.0)}) == {"a": 0, "b": 4}
    assert deal(4, {"a": Claim(wanted=9, unit=3, owed=9.0), "b": Claim(wanted=8, unit=2)}) == {"a": 3, "b": 0}
    claims = {"a": gang, "b": Claim(wanted=1, owed=-9.0), "c": Claim(wanted=9), "d": Claim(wanted=9)}
    assert deal(6, claims) == {"a": 4, "b": 0, "c": 1, "d": 1}  # the least is owed to b
    assert deal(3, {"a": gang, "b": Claim(wanted=2)}) == {"a": 0, "b": 2}  # there are too few


CLAIMS = st.lists(st.tuples(st.floats(0.1, 10), st.integers(0, 30), st.integers(1, 4), st.floats(-9, 9)), min_size=1)


@given(st.integers(0, 40), CLAIMS)
def test_no_worker_is_dealt_twice_and_none_is_kept_from_who_wants_it(n, drawn) -> None:
    claims = {str(k): Claim(weight, wanted, unit, owed=owed) for k, (weight, wanted, unit, owed) in enumerate(drawn)}
    dealt = deal(n, claims)
    left = n - sum(dealt.values())
    assert left >= 0
    if len(claims) == 1:
        return
    assert all(dealt[name] % claim.unit == 0 for name, claim in claims.items())
    assert all(claim.unit > left or claim.wanted <= dealt[name] for name, claim in claims.items())
    less = [name for name, share in shares(n, claims).items() if dealt[name] + claims[name].unit <= share]
    if any(claim.unit > 1 for claim in claims.values()):
        assert all(any(claims[at].owed > claims[name].owed for at in claims) for name in less)
    else:
        assert not less


@settings(max_examples=50)
@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.floats(0.5, 3), st.integers(0, 4), st.integers(1, 5)), min_size=2, max_size=5),
)
def test_every_study_that_fits_has_a_slot_from_turn_to_turn(n, drawn) -> None:
    claims = {str(k): Claim(weight, slots * unit, unit) for k, (weight, slots, unit) in enumerate(drawn) if unit <= n}
    waiting = {name for name, claim in claims.items() if claim.wanted}
    for _ in range(60):
        for name, n_dealt in deal(n, claims).items():
            claims[name].held = n_dealt
        waiting -= {name for name, claim in claims.items() if claim.held}
        for name, part in lacking(claims).items():
            claims[name].owed += 60.0 * part
    assert len(claims) < 2 or not waiting


class Scheduler:
    """What `Sharing` knows of Dask's scheduler: workers w0, w1, …, each of which is up."""

    def __init__(self, n: int) -> None:
        self.handlers: dict = {}
        self.workers: dict = {}
        for k in range(n):
            self.begin(f"w{k}", f"life of w{k}")

    def begin(self, address: str, life: str) -> None:
        self.workers[address] = SimpleNamespace(
            name=address, host="h", status=Status.running, server_id=life, processing={}
        )

    def adaptive_target(self, target_duration=None) -> int:
        return 0


def sharing_of(n: int) -> tuple[Sharing, Scheduler]:
    sharing, scheduler = Sharing(), Scheduler(n)
    sharing.start(scheduler)
    return sharing, scheduler


def ask(sharing: Sharing, study: str, wanted: int, held=(), weight: float = 1.0, unit: int = 1) -> dict:
    """Let a study ask, which holds these in slots and has a trial in a phase on the first of them."""
    held = list(held)[: len(held) // unit * unit]
    lives = {address: f"life of {address}" for address in held}
    return sharing.workers(study, f"driver of {study}", weight, wanted, unit, lives, held[:unit], list(lives.values()))


def test_a_study_that_holds_more_than_it_wants_hides_no_other_ones_need() -> None:
    """Of 8 workers A holds w0 to w6 and wants 1, B holds w7 and wants none, C holds none and wants 1.

    What is wanted is dealt out first, 1, 0 and 1, then the other 6 evenly: 3, 2 and 3. So B is short of one worker that
    it does not want, C of one that it does, and A, who holds 4 too many, owes that one.
    """
    sharing, _ = sharing_of(8)
    assert len(ask(sharing, "A", 7)["workers"]) == 8  # it is alone
    assert ask(sharing, "B", 1)["workers"] == {}
    held = [f"w{k}" for k in range(7)]
    ask(sharing, "A", 7, held)
    assert list(ask(sharing, "B", 1)["workers"]) == ["w7"]
    ask(sharing, "B", 0, ["w7"])
    nothing = {"workers": {}, "surplus": 0, "left": [], "gone": [], "taken": []}
    assert ask(sharing, "C", 1) == {**nothing, "others": 8, "to_come": 8}
    assert ask(sharing, "A", 1, held)["surplus"] == 1


def test_a_study_that_holds_some_of_what_it_wants_is_given_the_rest_and_no_more() -> None:
    sharing, _ = sharing_of(8)
    held = [f"w{k}" for k in range(7)]
    ask(sharing, "A", 7)
    ask(sharing, "B", 2)
    ask(sharing, "A", 7, held)
    assert list(ask(sharing, "B", 2)["workers"]) == ["w7"]
    assert ask(sharing, "A", 1, held)["surplus"] == 1


def test_studies_that_can_only_wait_for_each_other_expect_nothing_of_each_other() -> None:
    sharing, _ = sharing_of(2)

    def told(study: str, held: str, *, stuck: bool) -> tuple[int, int]:
        known = {held: f"life of {held}"}
        answer = sharing.workers(study, f"driver of {study}", 1.0, 2, 1, known, [held], stuck=stuck)
        return answer["others"], answer["to_come"]

    told("A", "w0", stuck=False)
    assert told("B", "w1", stuck=True) == (2, 2)  # A was alone, and had both
    assert told("A", "w0", stuck=False) == (1, 1)  # nobody has the second: B has yet to ask again
    assert told("B", "w1", stuck=False) == (1, 1)
    assert told("A", "w0", stuck=True) == (1, 1)
    assert told("B", "w1", stuck=True) == (1, 0)
    assert told("A", "w0", stuck=True) == (1, 0)


def test_a_new_driver_of_a_study_takes_the_place_of_the_last() -> None:
    sharing, _ = sharing_of(2)
    ask(sharing, "A", 2, ["w0", "w1"])
    told = sharing.workers("A", "A's next driver", 1.0, 2, 1, {}, [])
    assert (list(told["workers"]), told["surplus"]) == (["w0", "w1"], 0)
    assert sharing.adaptive_target() == 2
    assert (sharing.driver("A"), sharing.driver("B")) == ("A's next driver", None)


def test_a_worker_that_is_another_study_s_or_on_its_way_out_is_given_to_none() -> None:
    sharing, scheduler = sharing_of(2)
    scheduler.workers["w1"].status = Status.closing_gracefully
    assert list(ask(sharing, "A", 2)["workers"]) == ["w0"]
    assert ask(sharing, "B", 1, ["w0"])["workers"] == {}  # it had it once
    assert list(ask(sharing, "A", 2, ["w0"])["workers"]) == ["w0"]


def test_nothing_is_given_back_where_free_workers_are_enough_for_the_others() -> None:
    sharing, scheduler = sharing_of(4)
    held = [f"w{k}" for k in range(4)]
    ask(sharing, "A", 4)
    ask(sharing, "B", 1)
    assert ask(sharing, "A", 2, held)["surplus"] == 1
    scheduler.begin("w4", "life of w4")
    sharing.add_worker(scheduler, "w4")
    assert ask(sharing, "A", 2, held)["surplus"] == 0


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """What time it is for `Sharing`."""
    now = [0.0]
    monkeypatch.setattr("workbench.cluster.sharing.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def pass_time(
    sharing: Sharing, clock: list[float], held: dict, seconds: int, wanted: dict, weights=(1.0, 1.0), units=(1, 1)
) -> list:
    """Let A and B ask every second and do as they are told; how many A had in each."""
    had = []
    for _ in range(seconds):
        clock[0] += 1.0
        for study, weight, unit in zip(held, weights, units, strict=True):
            told = ask(sharing, study, wanted[study], held[study], weight, unit)
            held[study] = list(told["workers"])[: len(told["workers"]) - told["surplus"] * unit]
        had.append(len(held["A"]))
    return had


def test_what_does_not_divide_stays_with_one_study_for_a_turn(clock) -> None:
    sharing, _ = sharing_of(3)
    had = pass_time(sharing, clock, {"A": [], "B": []}, 130, {"A": 3, "B": 3})
    turns = [at for at in range(2, 130) if had[at] != had[at - 1]]
    assert set(had[1:]) == {1, 2}
    assert len(turns) == 2
    assert turns[1] - turns[0] > 50


@pytest.mark.parametrize(("workers", "weights"), [(1, (1.0, 1.0)), (9, (1.0, 3.0))])
def test_after_an_hour_in_which_a_study_wanted_less_than_its_share_turns_are_taken_as_ever(
    clock, workers, weights
) -> None:
    """A keeps what nobody wants: so much the less is owed to neither."""
    (sharing, _), held = sharing_of(workers), {"A": [], "B": []}
    assert set(pass_time(sharing, clock, held, 3600, {"A": workers // 3, "B": 0}, weights)) == {workers}
    had = pass_time(sharing, clock, held, 400, {"A": 9, "B": 9}, weights)
    least = int(workers * weights[0] / sum(weights))
    assert set(had[1:]) == {least, least + 1}
    assert sum(had[at] != had[at - 1] for at in range(2, 400)) >= 3


@pytest.mark.parametrize(
    ("workers", "units", "wanted", "had"),
    [
        (4, (2, 1), (8, 1), {2}),  # one worker is of no use to anybody
        (3, (2, 1), (8, 1), {2}),
        (3, (2, 2), (8, 8), {0, 2}),
        (4, (4, 1), (8, 8), {0, 4}),
        (4, (4, 1), (8, 2), {0, 4}),
    ],
)
def test_gangs_leave_others_their_share_and_take_turns_where_it_holds_no_gang(
    clock, workers, units, wanted, had
) -> None:
    """A gang's worker that makes no slot is the other study's; where both can be served at once, both are."""
    (sharing, _), held = sharing_of(workers), {"A": [], "B": []}
    ask(sharing, "A", wanted[0], unit=units[0])
    of_a = pass_time(sharing, clock, held, 400, {"A": wanted[0], "B": wanted[1]}, units=units)[2:]
    whole = [n // units[0] * units[0] for n in of_a]
    assert set(whole) == had
    if len(had) == 1:
        assert len(held["B"]) == 1
    else:
        assert 3 <= sum(whole[at] != whole[at - 1] for at in range(1, len(whole))) <= 7


def test_a_gang_s_turn_lasts_until_it_is_whole_and_it_gathers_its_workers_meanwhile(clock) -> None:
    """B's phases end one by one, minutes apart, and A has nothing of the workers that wait for the last."""
    sharing, _ = sharing_of(4)
    held = [f"w{k}" for k in range(4)]
    ask(sharing, "B", 8)
    ask(sharing, "B", 8, held)
    ask(sharing, "A", 8, unit=4)
    for left in (4, 3, 2, 1):
        for _ in range(200):
            clock[0] += 1.0
            told = ask(sharing, "B", 8, held[:left])
            loose = ask(sharing, "A", 8, unit=4)["workers"]
        assert (told["surplus"], len(loose)) == (left, 4 - left)
    ask(sharing, "B", 8)
    assert len(ask(sharing, "A", 8, unit=4)["workers"]) == 4


def test_a_study_that_had_more_for_hours_as_it_fitted_nobody_else_pays_for_some_of_them(clock) -> None:
    sharing, _ = sharing_of(4)
    ask(sharing, "A", 4)
    ask(sharing, "B", 8, unit=4)
    for _ in range(24 * 60):
        clock[0] += 60.0
        ask(sharing, "A", 4, [f"w{k}" for k in range(4)])  # its phase is long
        ask(sharing, "B", 8, unit=4)
    owed = {one.study: one.owed for one in sharing._drivers.values()}
    assert owed["B"] - owed["A"] == pytest.approx(4 * 3600.0)


def test_workers_that_nobody_has_may_come_to_a_study_where_they_make_a_slot(clock) -> None:
    sharing, _ = sharing_of(6)

    def told_to_a(wanted: int, held=()) -> tuple[list[str], int, int]:
        told = ask(sharing, "A", wanted, held, unit=2)
        return list(told["workers"]), told["others"], told["to_come"]

    ask(sharing, "B", 1)
    assert told_to_a(2) == ([], 6, 6)  # B was alone, and had all
    ask(sharing, "B", 1, ["w0"])
    assert told_to_a(2) == (["w2", "w3"], 4, 4)  # two are nobody's: it may want more by now
    assert told_to_a(4, ["w2", "w3"]) == (["w2", "w3", "w4", "w5"], 2, 2)
    sharing.workers("B", "driver of B", 1.0, 1, 1, {"w0": "life of w0"}, ["w0"], stuck=True)
    assert told_to_a(6, ["w2", "w3", "w4", "w5"])[1:] == (2, 0)  # one is nobody's


def test_a_driver_that_asks_no_more_has_no_claim_after_a_minute(clock) -> None:
    sharing, _ = sharing_of(2)
    ask(sharing, "A", 2)
    clock[0] = 59.0
    assert ask(sharing, "B", 2)["workers"] == {}
    clock[0] = 61.0
    assert list(ask(sharing, "B", 2)["workers"]) == ["w0", "w1"]
    assert sharing.adaptive_target() == 2


def test_a_driver_that_was_silent_hears_which_of_its_workers_are_another_study_s_and_have_not_died(clock) -> None:
    sharing, scheduler = sharing_of(3)
    held = ["w0", "w1", "w2"]
    ask(sharing, "A", 3)
    assert ask(sharing, "A", 3, held)["taken"] == []
    clock[0] = 61.0
    assert len(ask(sharing, "B", 3)["workers"]) == 3
    scheduler.begin("w1", "2nd of w1")
    del scheduler.workers["w2"]
    told = ask(sharing, "A", 3, held)
    assert (told["workers"], told["taken"]) == ({}, ["life of w0"])


def test_workers_that_are_wanted_are_those_that_work_at_least(clock) -> None:
    sharing, scheduler = sharing_of(3)
    for k, ws in enumerate(scheduler.workers.values()):
        ws.address, ws.processing = f"w{k}", {"a phase"} if k else {}
    ask(sharing, "A", 1, ["w0"])  # it holds a trial there, between two phases
    assert sharing.adaptive_target() == 2
    assert sharing.valid_workers_downscaling(scheduler, list(scheduler.workers.values())) == []
    sharing.remove_client(scheduler, "Client-driver of A-1")
    assert sharing.adaptive_target() == 0  # what Dask makes of it
    idle = sharing.valid_workers_downscaling(scheduler, list(scheduler.workers.values()))
    assert [ws.address for ws in idle] == ["w0"]


def test_who_has_left_is_known_by_its_life_for_another_may_come_to_its_address() -> None:
    sharing, scheduler = sharing_of(2)
    ask(sharing, "A", 2)
    sharing.log_event(LEAVING, {"life": "life of w0"})
    sharing.log_event("all", {"action": "remove-worker", "worker": "w1", "expected": True})
    told = ask(sharing, "A", 2, ["w0", "w1"])
    assert (sorted(told["left"]), told["gone"]) == (["life of w0", "life of w1"], [])
    for address in ("w0", "w1"):
        sharing.remove_worker(scheduler, address)
        scheduler.begin(address, f"2nd of {address}")
        sharing.add_worker(scheduler, address)
    told = ask(sharing, "A", 2, ["w0", "w1"])
    assert [worker["life"] for worker in told["workers"].values()] == ["2nd of w0", "2nd of w1"]
    assert sorted(told["left"]) == sorted(told["gone"]) == ["life of w0", "life of w1"]
    sharing.log_event("all", {"action": "remove-worker", "worker": "w0", "expected": False})  # it has died
    known = {"w0": "2nd of w0", "w1": "2nd of w1"}
    assert sharing.workers("A", "driver of A", 1.0, 2, 1, known, [])["left"] == []


@pytest.fixture
def two(client, tmp_path):
    """Makes the executor of a study of its own on the shared cluster."""
    made: list[DaskExecutor] = []

    def make(study: str, factory=Deterministic, **settings) -> DaskExecutor:
        executor = DaskExecutor(client, factory, CheckpointStore(str(tmp_path / study)), study=study, **settings)
        made.append(executor)
        executor.open(0.0)
        return executor

    yield make
    for executor in made:
        executor.close()


def test_a_second_study_gets_its_share_as_phases_end_and_none_disturbs_the_other(two, tmp_path) -> None:
    """Both keep their scores; no worker ever runs a phase of one while the other believes it has it.

    No phase ends before the first study knows of the second.
    """
    logs, errors = {"a": MemoryLog(), "b": MemoryLog()}, []
    waits = Waits(str(tmp_path / "both"))

    def look(executor: DaskExecutor, log: MemoryLog) -> bool:
        if executor._book.surplus or any(e.kind is Kind.SLOT_LOST for e in log):
            Path(waits.until).touch()
        return False

    def run(study: str) -> None:
        try:
            with closing(two(study, waits, max_retries=0)) as executor:
                stop = partial(look, executor, logs[study])
                assert drive(FullRuns(RandomSearcher(SPACE), 4, 6), executor, logs[study], seed=1, stop=stop)
        except BaseException as err:  # noqa: BLE001  asserted below
            errors.append(err)

    first = threading.Thread(target=run, args=("a",))
    first.start()
    second = threading.Thread(target=run, args=("b",))
    second.start()
    for thread in (first, second):
        thread.join(120)
    assert not errors
    scores = [
        sorted((e.trial, e.phase, e.data["score"]) for e in log if e.kind is Kind.PHASE_ENDED) for log in logs.values()
    ]
    assert len(scores[0]) == 24
    assert scores[0] == scores[1]
    assert not [e for log in logs.values() for e in log if e.kind is Kind.PHASE_FAILED]
    assert any(e.kind is Kind.SLOT_LOST for log in logs.values() for e in log)  # one has given a slot to the other


def test_a_study_whose_driver_has_gone_leaves_its_workers_to_the_others(two) -> None:
    first = two("a")
    assert first.n_slots == 2
    second = two("b")
    assert second.n_slots == 0
    first.close()
    second.want(2)
    while second.n_slots < 2:
        second.wait(5)


@pytest.mark.slow
def test_adaptive_scaling_hears_what_a_study_could_use_and_closes_no_worker_with_a_trial(tmp_path) -> None:
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
        Client(cluster, set_as_default=False) as client,
        closing(DaskExecutor(client, Deterministic, CheckpointStore(str(tmp_path)))) as executor,
    ):
        executor.open(0.0)
        executor.start(Job(0, 0, {"lr": 1e-3}, 0))
        while not any(e.kind is Kind.PHASE_ENDED for e in executor.wait(5)):
            pass
        executor.want(3)
        adaptive = cluster.adapt(minimum=1, maximum=3, interval="100ms")
        while executor.n_slots < 3:
            executor.wait(5)
        executor.want(1)  # the trial is held: its worker runs nothing, and must be kept all the same
        while executor.n_slots > 1:
            executor.wait(5)
        adaptive.stop()
        executor.apply(0, Verdict.CONTINUE)
        events = []
        while not any(e.kind in (Kind.PHASE_ENDED, Kind.PHASE_FAILED) for e in events):
            events += executor.wait(5)
        assert [(e.kind, e.slot) for e in events if e.kind is not Kind.PROGRESS][-1] == (Kind.PHASE_ENDED, 0)
