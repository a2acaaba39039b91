"""The dashboard's lists: what was decided or asked, who went on, what went wrong; and the last word on every trial."""

from collections import defaultdict, deque
from functools import partial
from operator import itemgetter
from typing import Any

from workbench.core.ledger import Ledger, TrialState
from workbench.core.protocols import Event, Explain, Kind
from workbench.viz.dashboard.words import line_of, list_of, why_of

_MOST = 300  # lines of each list


class Lines:
    """Events as numbered lines of some lists, put into words only when they are shown.

    A trial that failed is told once: the line of its end takes the place of those of its attempts.

    Parameters
    ----------
    ledger : Ledger
        Of the same events, one step ahead.
    explain : Explain
        Puts the scheduler's reasons into words.
    """

    def __init__(self, ledger: Ledger, explain: Explain) -> None:
        self._ledger, self._explain = ledger, explain
        self._lists: dict[str, deque[tuple[int, Event]]] = defaultdict(partial(deque, maxlen=_MOST))
        self._last_word: dict[int, Event] = {}  # by trial: its last verdict, or that a person stopped it
        self._lost: dict[int, list[int]] = {}  # by trial: the lines of its lost attempts since a phase ended
        self._void: list[int] = []  # lines whose place another took, until viewers know
        self.number = 0  # of the last line

    def take(self, event: Event) -> None:
        """Write an event down if it makes a line, and if it is the last word on its trial."""
        trial = event.trial
        if event.kind is Kind.PHASE_STARTED or event.kind is Kind.RUN:
            return
        if trial is not None and (event.kind is Kind.DECISION or event.kind is Kind.TRIAL_STOPPED):
            known = self._ledger.trials[trial]
            if event.kind is Kind.DECISION and (known.mode == "person" or known.state is TrialState.FAILED):
                return  # the scheduler, told that a person stopped the trial or that it failed, agrees
            self._last_word[trial] = event
        if trial is not None and event.kind is Kind.PHASE_ENDED:
            self._lost.pop(trial, None)
            return
        where = list_of(event)
        if where is None:
            return
        self.number += 1
        if trial is not None and event.kind is Kind.PHASE_FAILED:
            self._lost.setdefault(trial, []).append(self.number)
        elif trial is not None and event.kind is Kind.TRIAL_FAILED:
            void = self._lost.pop(trial, [])
            self._void += void
            self._lists[where] = deque((line for line in self._lists[where] if line[0] not in void), _MOST)
        self._lists[where].append((self.number, event))

    def since(self, n: int) -> list[dict[str, Any]]:
        """Put into words the lines after the n-th, those that are kept."""
        kept = (line for lines in self._lists.values() for line in lines if line[0] > n)
        return [{**line_of(event, self._explain), "n": k} for k, event in sorted(kept, key=itemgetter(0))]

    def take_void(self) -> list[int]:
        """Give the lines that viewers must forget, and take it as done."""
        void, self._void = self._void, []
        return void

    def why(self, trial: int) -> str:
        """Say why the last verdict on a trial fell; empty if none has."""
        event = self._last_word.get(trial)
        if event is None or self._ledger.trials[trial].state is TrialState.FAILED:
            return ""  # its error says why
        return "stopped by a person" if event.kind is Kind.TRIAL_STOPPED else why_of(event, self._explain)
