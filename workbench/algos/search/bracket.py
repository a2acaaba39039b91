"""A bracket: one Successive Halving over given rungs, with its barriers, on free or on fixed places."""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.algos.search.rungs import Rung
from workbench.algos.search.trials import Trials, comparable
from workbench.core.checks import COUNT, check_value
from workbench.core.errors import InvalidInput, SchedulerError
from workbench.core.protocols import Decision, Report, Run, Verdict
from workbench.core.showing import so_many


class Bracket:
    """One Successive Halving over given rungs: the part that Hyperband shares.

    Parameters
    ----------
    rungs : sequence of Rung
    trials : Trials
        Where trials come from; several brackets may share it. Reports are taken in by the owner.
    hold : bool
        Trials wait on their nodes.
    restart : bool
        Survivors are repeated as new trials.
    places : Places, optional
        Binds each trial to a slot.
    tag : mapping
        Put into every decision's reason.
    """

    def __init__(
        self,
        rungs: Sequence[Rung],
        trials: Trials,
        *,
        hold: bool = False,
        restart: bool = False,
        places: "Places | None" = None,
        tag: Mapping[str, Any] | None = None,
    ) -> None:
        self.rungs = list(rungs)
        self._trials, self._hold, self._restart, self._places = trials, hold, restart, places
        self._tag = dict(tag or {})
        self._at = 0
        self._unstarted = rungs[0].n_trials
        self._members = self._awaited = rungs[0].n_trials  # of this rung; of them, those not at its end yet
        self._scores: dict[int, float] = {}  # of the trials that have arrived there
        self._survivors: deque[int] = deque()  # to be taken up, best first
        self._first: dict[int, int] = {}  # repeat → the trial that had its configuration first

    @property
    def over(self) -> bool:
        """Whether nothing is left to run."""
        return self._awaited == 0

    def ask(self) -> Run | None:
        """Start or take up the next trial; ``None`` if nobody may run now."""
        run = self._begin() if self._unstarted else self._take_up()
        if run is not None and self._places is not None:
            self._places.enter(run.trial)
        return run

    def _begin(self) -> Run | None:
        slot = None if self._places is None else self._places.bind(len(self._trials))
        if self._places is not None and slot is None:
            return None
        run = self._trials.new(slot)
        if run is None:
            raise SchedulerError(
                f"the searcher ran out with {so_many(self._unstarted, 'trial')} of the first rung to come: "
                "one that can run out needs a length"
            )
        self._unstarted -= 1
        return run

    def _take_up(self) -> Run | None:
        places = self._places
        trial = next((t for t in self._survivors if places is None or places.vacant(t)), None)
        if trial is None:
            return None
        self._survivors.remove(trial)
        slot = None if places is None else places.slot[trial]
        if not self._restart:
            return self._trials.resume(trial, slot)
        run = self._trials.again(trial, slot)
        self._first[run.trial] = self._first.get(trial, trial)
        if places is not None:
            places.slot[run.trial] = places.slot[trial]
        return run

    def tell(self, report: Report) -> dict[int, Decision]:
        """Answer for the reporter, and at the barrier for all who wait there."""
        rung, trial = self.rungs[self._at], report.trial
        if trial in self._scores:  # a person stopped it while it waited at the barrier: it had been counted
            del self._scores[trial]
            self._carry_out(trial, Verdict.STOP)
            return {trial: self._decision(Verdict.STOP, "failed", trial)}
        if trial in self._survivors:  # or on its way to the next rung
            self._survivors.remove(trial)
        if not report.failed and report.phase < rung.phases - 1:
            return {trial: self._decision(Verdict.CONTINUE, "rung", trial)}
        self._awaited -= 1
        if not report.failed:
            self._scores[trial] = comparable(report)
        decisions = {trial: self._at_the_end(report)}
        if self._awaited == 0 and self._at < len(self.rungs) - 1:
            decisions |= self._settle(trial)
        for number, decision in decisions.items():
            self._carry_out(number, decision.verdict)
        return decisions

    def _at_the_end(self, report: Report) -> Decision:
        """The reporter's verdict while others are missing."""
        reported = self._members - self._awaited
        if report.failed:
            return self._decision(Verdict.STOP, "failed", report.trial)
        if self._at == len(self.rungs) - 1:
            return self._decision(Verdict.STOP, "finished", report.trial)
        if self._restart:
            return self._decision(Verdict.STOP, "rung ended", report.trial, reported=reported)
        waits = Verdict.HOLD if self._hold else Verdict.PAUSE
        return self._decision(waits, "waiting", report.trial, reported=reported)

    def _settle(self, reporter: int) -> dict[int, Decision]:
        """Drop the worst, and open the next rung."""
        ranked = sorted(self._scores, key=lambda t: (-self._scores[t], self._first.get(t, t)))
        kept = min(self.rungs[self._at + 1].n_trials, len(ranked))
        decisions: dict[int, Decision] = {}
        for i, trial in enumerate(ranked):
            goes_on = Verdict.CONTINUE if self._hold or trial == reporter else Verdict.PAUSE
            verdict, mode = (goes_on, "promoted") if i < kept else (Verdict.STOP, "dropped")
            decisions[trial] = self._decision(verdict, mode, trial, place=i + 1, reported=len(ranked), kept=kept)
        self._at += 1
        self._members, self._awaited, self._scores = kept, kept, {}
        self._survivors.extend(t for t in ranked[:kept] if self._restart or decisions[t].verdict is Verdict.PAUSE)
        return {} if self._restart else decisions

    def _carry_out(self, trial: int, verdict: Verdict) -> None:
        """Keep the books on who runs, who waits, and which slots are taken."""
        if verdict is Verdict.STOP:
            self._trials.end(trial)
        elif verdict is Verdict.CONTINUE:
            self._trials.release(trial)
        else:
            self._trials.rest(trial)
        if self._places is not None and verdict in (Verdict.STOP, Verdict.PAUSE):
            self._places.leave(trial)

    def _decision(self, verdict: Verdict, mode: str, trial: int, **why: int) -> Decision:
        repeats = {"repeats": self._first[trial]} if trial in self._first else {}
        return Decision(verdict, {"mode": mode, **self._tag, "rung": self._at, **why, **repeats})


class Places:
    """A static plan: each trial on one slot, each slot with an equal share of the trials."""

    def __init__(self, n_trials: int, n_nodes: int) -> None:
        self._room = [len(range(slot, n_trials, n_nodes)) for slot in range(n_nodes)]
        self._on: dict[int, int] = {}  # slot → trial on it
        self.slot: dict[int, int] = {}

    def bind(self, trial: int) -> int | None:
        """Bind a new trial to the first free slot that has room for one more; ``None`` if there is none."""
        slot = next((s for s, room in enumerate(self._room) if room and s not in self._on), None)
        if slot is not None:
            self._room[slot] -= 1
            self.slot[trial] = slot
        return slot

    def vacant(self, trial: int) -> bool:
        """Tell whether the trial's slot is free."""
        return self.slot[trial] not in self._on

    def enter(self, trial: int) -> None:
        """Note that a trial is on its slot."""
        self._on[self.slot[trial]] = trial

    def leave(self, trial: int) -> None:
        """Note that a trial is on its slot no more."""
        if self._on.get(self.slot[trial]) == trial:
            del self._on[self.slot[trial]]


def nodes_that_count(scheduler: object, needed: int, n_nodes: int | None, allocation: str, restart: bool) -> int | None:
    """Give the nodes that a plan without free preemption rests on; ``None`` where the plan rests on none.

    Raises
    ------
    InvalidInput
        It has not the nodes it needs.
    """
    name = f"{type(scheduler).__name__}(allocation={allocation!r})"
    if n_nodes is not None:
        check_value(scheduler, COUNT, "n_nodes", n_nodes)
    if allocation == "dynamic" or (allocation == "none" and restart):  # who restarts never waits
        return None  # so that a study is resumed on however many
    if n_nodes is None:
        raise InvalidInput(f"{name} needs to know the cluster: pass n_nodes, or allocation='dynamic'")
    if allocation == "none" and n_nodes < needed:
        raise InvalidInput(
            f"{name} needs {needed} nodes, the cluster has {n_nodes}: add workers or pass allocation='dynamic'"
        )
    return n_nodes
