"""Checkpoints on their way to a URL while the worker trains on: what the worker does, what the driver knows of it."""

import threading
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field

from workbench.cluster.attempts import Attempt
from workbench.cluster.checkpoints import CheckpointStore


@dataclass
class _Upload:
    study: str
    trial: int
    name: str
    over: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None


class Uploads:
    """What one worker sends.

    A checkpoint has been written to the worker's own disk when it comes here, so the phase is over and its score can be
    told; it is elsewhere once `tell` has been called. What goes wrong is the trial's affair, not the next one's.
    """

    def __init__(self) -> None:
        self._last: _Upload | None = None
        self._proved: set[str] = set()  # places that have taken a checkpoint of this worker's

    def under_way(self, study: str) -> list[str]:
        """Name the checkpoint of a study that is on its way, if there is one."""
        last = self._last
        return [last.name] if last is not None and last.study == study and not last.over.is_set() else []

    def begin(
        self, store: CheckpointStore, study: str, trial: int, name: str, tell: Callable[[str, str], None]
    ) -> None:
        """Send a checkpoint in the background; `tell` then gets its name, and why it failed if it did."""
        upload = self._last = _Upload(study, trial, name)

        def send() -> None:
            try:
                store.send(name)
                self._proved.add(store.root)
            except Exception as err:  # noqa: BLE001  whatever it is, the worker waits to be told
                upload.error = err
            try:
                tell(name, "" if upload.error is None else str(upload.error))
            finally:
                upload.over.set()  # last: whoever sees it knows that the driver has been told

        threading.Thread(target=send, name=f"upload of {name}").start()

    @property
    def busy(self) -> bool:
        """Whether anything is on its way."""
        return self._last is not None and not self._last.over.is_set()

    def is_proved(self, store: CheckpointStore) -> bool:
        """Whether the place has taken a checkpoint before: a first one is waited for, lest one trains in vain."""
        return store.root in self._proved

    def wait(self, say: Callable[[str], None], every_s: float = 1.0) -> None:
        """Wait until nothing is on its way, saying so now and then."""
        while (last := self._last) is not None and not last.over.wait(every_s):
            say(f"waiting for checkpoint {last.name} to arrive")

    def refuse(self, study: str, trial: int) -> None:
        """Raise what has failed the last upload, if it was this trial's; once."""
        last = self._last
        if last is not None and (last.study, last.trial) == (study, trial) and last.error is not None:
            self._last = None
            raise last.error


class Arrivals:
    """What the driver knows: which checkpoints are on their way, from which worker, which attempts wait for them."""

    def __init__(self, leave_s: float = 0.0) -> None:
        self._leave_s = leave_s  # what a worker that goes in order may still take to send
        self._gone: dict[str, float] = {}  # since when its worker is gone
        self._from: dict[str, str] = {}  # checkpoint → life of the worker that sends it
        self._early: set[str] = set()  # arrived before it was said that they were sent
        self._waiting: list[Attempt] = []

    def __len__(self) -> int:
        return len(self._from)

    def begin(self, on_their_way: Mapping[str, str]) -> None:
        """Begin anew with what the workers say that they are sending."""
        self._from, self._early = dict(on_their_way), set()

    def sent(self, name: str, life: str, on_its_way: bool) -> None:
        """A worker has ended a phase; its checkpoint may be on its way."""
        if name in self._early:
            self._early.remove(name)
        elif on_its_way:
            self._from[name] = life

    def must_wait(self, attempt: Attempt) -> bool:
        """Put an attempt off that has to read what only another worker has: its trial lives nowhere."""
        if attempt.alive or attempt.job.checkpoint not in self._from:
            return False
        self._waiting.append(attempt)
        return True

    @property
    def waiting(self) -> list[Attempt]:
        """Attempts that are put off."""
        return list(self._waiting)

    def arrived(self, *names: str) -> list[Attempt]:
        """Checkpoints can be read, or never will be; give the attempts that can begin."""
        for name in names:
            self._gone.pop(name, None)
            if self._from.pop(name, None) is None:
                self._early.add(name)
        ready = [attempt for attempt in self._waiting if attempt.job.checkpoint not in self._from]
        self._waiting = [attempt for attempt in self._waiting if attempt.job.checkpoint in self._from]
        return ready

    @property
    def senders(self) -> list[str]:
        """Lives of the workers that are sending."""
        return [*set(self._from.values())]

    def lost(self, gone: Container[str], left: Container[str], now: float) -> Iterable[str]:
        """Name the checkpoints that will not arrive: their worker is gone, and has not just left in order."""
        lost = []
        for name in [name for name, life in self._from.items() if life in gone]:
            since = self._gone.setdefault(name, now)
            if self._from[name] not in left or now - since > self._leave_s:
                lost.append(name)
                del self._gone[name]
        return lost

    def forget_waiting(self) -> None:
        """Let nothing begin any more."""
        self._waiting = []
