"""Everything at once: a study on real workers under random kills, hangs, requests, full disks and drivers that die."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.support import SPACE, Deterministic, score_of
from workbench import HyperTrick, KnowledgeBase, RandomSearcher, Study
from workbench.core.drive import replay
from workbench.core.errors import WorkbenchError
from workbench.core.ledger import Ledger, TrialState
from workbench.core.protocols import Event, Kind
from workbench.knowledge import check
from workbench.knowledge.inbox import Controls

NODES, TRIALS, PHASES, PHASE_S, STALL_S = 3, 300, 4, 0.2, 3.0
PATIENCE_S = 240
DONE = Counter[str]()  # in all examples
HARMS: dict[str, dict[str, st.SearchStrategy]] = {  # what is done, and what it is given
    "harm_a_worker": {
        "which": st.integers(0, NODES - 1),
        "how": st.sampled_from([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP]),
    },
    "harm_a_phase": {"what": st.sampled_from(["hang", "crash"])},
    "end_the_driver": {"how": st.sampled_from([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])},
    "suspend_the_driver": {"seconds": st.sampled_from([0.5, 2 * STALL_S])},
    "fill_the_disk": {},
    "make_space": {},
}


class Brief(Deterministic):
    """A short phase that hangs or crashes when a file says so; the first to see it takes it away.

    Each leaves the number of its worker's process.
    """

    def train_phase(self, progress) -> dict[str, float]:
        Path(os.environ["HARM"], f"{os.getpid()}.worker").touch()
        for _ in range(int(PHASE_S / 0.05)):
            progress({"frames": float(self.phase)})
            time.sleep(0.05)
        if self._told("hang"):
            while True:
                time.sleep(1)  # no sign of life
        if self._told("crash"):
            raise RuntimeError("told to")
        return super().train_phase(progress)

    @staticmethod
    def _told(what: str) -> bool:
        try:
            Path(os.environ["HARM"], what).unlink()
        except FileNotFoundError:
            return False
        return True


def scheduler() -> HyperTrick:
    return HyperTrick(RandomSearcher(SPACE, seed=0), TRIALS, PHASES)


def main(folder: Path) -> None:
    """Drive the study, as a person would from the shell."""
    begun = (folder / "begun").exists()
    (folder / "begun").touch()
    how = {"nodes": NODES, "stall_s": STALL_S, "max_retries": 1000}
    study = Study("harmed", scheduler(), Brief, db=folder / "kb.db", **how)
    with suppress(KeyboardInterrupt):
        study.run(resume=begun and known(folder))


def known(folder: Path) -> bool:
    with suppress(WorkbenchError), KnowledgeBase(folder / "kb.db") as kb:
        return "harmed" in list(kb)
    return False


class Harm(RuleBasedStateMachine):
    """Each rule does one harm, or lets some time pass; `teardown` lets the study end and looks at what it recorded."""

    @initialize()
    def begin(self) -> None:
        self._place = TemporaryDirectory()
        self.folder = Path(self._place.name)
        self.controls = Controls(self.folder / "kb.db", "harmed")
        self.done = Counter[str]()
        self._start()
        while not (known(self.folder) and any(e.kind is Kind.PHASE_ENDED for e in self._events())):
            assert self.driver.poll() is None, self._said()
            time.sleep(0.1)

    @invariant()
    def time_passes(self) -> None:
        """Leave each harm a phase's time to be noticed, or not, before the next."""
        if hasattr(self, "driver"):
            time.sleep(PHASE_S)

    def _start(self) -> None:
        command = [sys.executable, "-m", "tests.hostile.test_at_random", str(self.folder)]
        self.driver = subprocess.Popen(
            command,
            env={**os.environ, "HARM": str(self.folder)},
            start_new_session=True,
            stderr=(self.folder / "said").open("ab"),
            stdout=subprocess.DEVNULL,
        )

    def _alive(self) -> bool:
        """Tell whether the study goes on; a driver that has died is followed by another."""
        if self.driver.poll() is None:
            return True
        if known(self.folder) and self._events()[-1].kind is Kind.STUDY_ENDED:
            return False
        self._start()
        self.done["drivers"] += 1
        return True

    def _events(self) -> list[Event]:
        with KnowledgeBase(self.folder / "kb.db") as kb:
            return kb["harmed"].events()

    def _workers(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(self.driver.pid).children(recursive=True)
            return [one for one in below if (self.folder / f"{one.pid}.worker").exists()]
        return []

    @rule(data=st.data(), what=st.sampled_from([*HARMS, *["harm_a_worker"] * 4]))
    def harm(self, data: st.DataObject, what: str) -> None:
        """One rule for all of these, for Hypothesis leaves whole rules out of an example."""
        given = {name: data.draw(strategy) for name, strategy in HARMS[what].items()}
        getattr(self, what)(**given)

    def harm_a_worker(self, which: int, how: signal.Signals) -> None:
        workers = self._workers() if self._alive() else []
        if workers:  # as a driver comes up there are none that have trained yet
            with suppress(psutil.NoSuchProcess):
                workers[which % len(workers)].send_signal(how)
                self.done[how.name] += 1

    def harm_a_phase(self, what: str) -> None:
        (self.folder / what).touch()
        self.done[what] += 1

    @rule(nodes=st.integers(1, NODES + 1))
    def scale(self, nodes: int) -> None:
        self._ask("scale", nodes)

    @rule(what=st.sampled_from(["stop", "pause", "resume", "clone"]), trial=st.integers(0, 30))
    def ask_for_a_trial(self, what: str, trial: int) -> None:
        self._ask(what, trial)

    @rule(what=st.sampled_from(["pause_study", "resume_study"]))
    def ask_for_the_study(self, what: str) -> None:
        self._ask(what)

    def _ask(self, what: str, *about: int) -> None:
        if self._alive() and known(self.folder):
            getattr(self.controls, what)(*about)
            self.done[what] += 1

    def end_the_driver(self, how: signal.Signals) -> None:
        if self._alive() and known(self.folder):
            self.driver.send_signal(how)
            self.driver.wait(PATIENCE_S)
            self.done["ended " + how.name] += 1

    def suspend_the_driver(self, seconds: float) -> None:
        if self._alive():
            self.driver.send_signal(signal.SIGSTOP)
            time.sleep(seconds)  # the time that passes is the harm
            self.driver.send_signal(signal.SIGCONT)
            self.done["suspended"] += 1

    def fill_the_disk(self) -> None:
        """Let the driver's next writes fail, for what they are written to may not grow; it waits for space."""
        if self._alive() and known(self.folder):
            self._limit(4096)
            self.done["full disk"] += 1

    def make_space(self) -> None:
        if self._alive():
            self._limit(resource.RLIM_INFINITY)

    def _limit(self, size: int) -> None:
        with suppress(ProcessLookupError):
            resource.prlimit(self.driver.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    @rule(seconds=st.floats(0.1, 1.0))
    def let_it_work(self, seconds: float) -> None:
        self._alive()
        time.sleep(seconds)

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        try:
            self._end_in_peace()
            self._look()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.driver.pid, signal.SIGKILL)
            self.driver.wait()
            self._place.cleanup()

    def _end_in_peace(self) -> None:
        """Undo what still harms; every slot must come back before the study may go on to its end."""
        self._written, self._until = 0, time.monotonic() + PATIENCE_S
        whole = False
        while self._alive() and not whole:
            self._wait("slots were lost for good")
            self._limit(resource.RLIM_INFINITY)
            if known(self.folder):
                self.controls.scale(NODES)
                self.controls.resume_study()
                self._release()
                whole = self._slots() == NODES
        while self._alive():
            self._wait("the study does not end")
            self._release()

    def _wait(self, wrong: str) -> None:
        """Let a second pass; nothing written down for too long is wrong, however slow the machine is."""
        written = len(self._events()) if known(self.folder) else 0
        if written > self._written:
            self._written, self._until = written, time.monotonic() + PATIENCE_S
        assert time.monotonic() < self._until, f"{wrong}: {self.done}\n{self._said()}"
        time.sleep(1)

    def _release(self) -> None:
        """Let every trial that a person has set aside go on."""
        if self._alive() and known(self.folder):
            with KnowledgeBase(self.folder / "kb.db") as kb:
                ledger = Ledger(kb["harmed"].events())
            for trial in ledger.in_state(TrialState.SET_ASIDE):
                self.controls.resume(trial)

    def _slots(self) -> int:
        """Count the slots that are up, of the driver that runs now."""
        slots: set[int] = set()
        for event in self._events():
            if event.kind in (Kind.STUDY_STARTED, Kind.STUDY_RESUMED):
                slots.clear()
            elif event.kind is Kind.SLOT_JOINED:
                slots.add(event.slot)
            elif event.kind is Kind.SLOT_LOST:
                slots.discard(event.slot)
        return len(slots)

    def _said(self) -> str:
        return (self.folder / "said").read_text(errors="replace")[-3000:]

    def _look(self) -> None:
        print(dict(self.done))  # noqa: T201  what was done, in the test's own output
        DONE.update(self.done)
        events = self._events()
        assert check(self.folder / "kb.db") == []
        ended = Counter((e.trial, e.phase) for e in events if e.kind is Kind.PHASE_ENDED)
        assert [which for which, n in ended.items() if n > 1] == []
        replay(scheduler(), events)  # raises where a decision differs from what the scheduler decides
        runs = {e.trial: e.data for e in events if e.kind is Kind.RUN}
        for event in events:
            if event.kind is Kind.PHASE_ENDED:
                run = runs[event.trial]
                assert event.data["score"] == score_of(run["config"], run["seed"], event.phase)
                assert event.data["metrics"]["phases_run"] == event.phase + 1


# three examples: without harm, with one harm again and again, at random
HOW = {"deadline": None, "suppress_health_check": list(HealthCheck), "max_examples": 3}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_steps_of_harm_change_no_decision_and_lose_nothing() -> None:
    run_state_machine_as_test(Harm, settings=settings(**HOW, stateful_step_count=200))
    assert DONE.keys() >= {"SIGKILL", "SIGSTOP"}  # or no worker was found that could be signalled


if __name__ == "__main__":
    main(Path(sys.argv[1]))
