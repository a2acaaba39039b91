"""The executor's own line to a Dask scheduler: it notices when the line breaks, and makes a new one."""

import asyncio
import pickle
import sys
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import CancelledError
from concurrent.futures import Future as LocalFuture
from contextlib import suppress
from typing import Any

import cloudpickle
from distributed import Client, Future
from distributed.client import done_callback
from distributed.comm import connect

from workbench.cluster import worker
from workbench.cluster.sharing import Sharing
from workbench.cluster.steady import keep_time
from workbench.core.errors import InvalidInput
from workbench.core.record import PACKAGE, version_of

_ANSWER_S = 5.0
_AGAIN_S = 3.0
_CLOSE_S = 30.0
_BETWEEN_S = 0.005  # between messages to the scheduler, as Dask has it to workers; its 10 ms hold up short phases
_VERSION = version_of(PACKAGE)
_PYTHON = "{}.{}".format(*sys.version_info)


class _Call:
    """A call that is made where this is unpickled, in the worker's task.

    A function that is a task itself is unpickled by what reads the worker's line to the scheduler: where it cannot be
    imported, the line breaks, and the worker dies.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._made = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        function, arguments = self._made
        return _called, (_VERSION, function, cloudpickle.dumps(arguments), _PYTHON)


def _called(version: str | None, function: Callable[..., Any], arguments: bytes, python: str) -> Any:
    """Call a function on a worker; raise `ImportError` if the driver has another version of this package or of Python.

    Before the arguments are made: those of another version may be other things, and another Python dies of code that
    was compiled for this one.
    """
    if version != _VERSION and None not in (version, _VERSION):
        raise ImportError(f"{PACKAGE} {_VERSION} there, {version} here")
    if python != _PYTHON:
        raise ImportError(f"Python {_PYTHON} there, {python} here")
    return function(*pickle.loads(arguments))


class Connection:
    """A client of the executor's own, whose topics and futures are nobody else's.

    A Dask client that lost its scheduler and found it again has lost its futures and, silently, its subscriptions. So
    a broken line is never used again: `reconnect` makes a new client with a new topic, which supersedes on every worker
    whatever the old one left running.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster to speak to; only its address and its security are used.
    study : str
        The study's identity, the same for every driver it ever has.
    on_workers : callable
        Called on the client's own thread when a worker has come or gone.
    on_message : callable
        Called there with what a worker tells of its task.
    """

    def __init__(
        self, client: Client, study: str, on_workers: Callable[[], None], on_message: Callable[[Any], None]
    ) -> None:
        self._address, self._security = client.scheduler.address, client.security
        self._study = study
        self._on_workers, self._on_message = on_workers, on_message
        self._asked: LocalFuture[Mapping[str, Any]] | None = None
        self._tried = 0.0
        self._connect({})

    @property
    def unbroken(self) -> bool:
        """Whether the line is the one it was when it was made."""
        return self._own.status == "running" and self._own.scheduler_comm is self._comm

    def reconnect(self) -> bool:
        """Try, for a few seconds and not too often, to make a new line; tell whether there is one."""
        if time.monotonic() - self._tried < _AGAIN_S:
            return False
        old = self._own
        try:
            self._tell(self._reach).result(2 * _AGAIN_S)
            self._connect({"timeout": _AGAIN_S})
        except (OSError, TimeoutError, CancelledError):
            self._tried = time.monotonic()
            return False
        threading.Thread(target=old.close, kwargs={"timeout": _AGAIN_S}, daemon=True).start()
        return True

    def take_over(self, answer_s: float = 0.0) -> dict[str, str]:
        """Listen, and tell all workers that what earlier drivers of this study left running is wanted no more.

        Parameters
        ----------
        answer_s : float
            How long to wait for all of them to say which checkpoints they are sending.

        Returns
        -------
        dict
            Checkpoint on its way → life of the worker that sends it (`slots.Worker`).

        Raises
        ------
        InvalidInput
            Dask's scheduler cannot import this package.
        """
        sharing = self._tell(lambda own: own.register_plugin(Sharing()))
        try:
            sharing.result(_CLOSE_S)
        except ImportError as err:
            raise InvalidInput(
                f"Dask's scheduler at {self._address} cannot import the workbench ({err}): install it there in the "
                "same version as here, and start the scheduler again"
            ) from None
        except (OSError, TimeoutError, CancelledError):
            pass  # it has just gone, or hangs: the next look will tell
        self._own.subscribe_topic("all", self._hear_of_workers)
        self._own.subscribe_topic(self.topic, lambda event: self._on_message(event[1]))
        answer = self._tell(lambda own: own.run(worker.supersede, self._study, self.topic, on_error="return"))
        with suppress(OSError, TimeoutError, CancelledError):
            sent = [told for told in answer.result(answer_s).values() if isinstance(told, dict)]
            return {name: life for told in sent for name, life in told.items()}
        return {}

    def workers(self, **claim: Any) -> Mapping[str, Any] | None:
        """Ask which workers this study may use (`Sharing.workers`); ``None``: no answer within a few seconds."""
        if self._asked is not None and not self._asked.done():
            return None  # asked before, no answer yet
        request = {"study": self._study, "driver": self.topic, **claim}
        self._asked = self._tell(lambda own: own.scheduler.workbench_workers(**request))
        try:
            return self._asked.result(_ANSWER_S)
        except (OSError, TimeoutError, CancelledError, AttributeError):  # the last: it has been started again
            return None
        except TypeError as err:
            raise InvalidInput(
                f"Dask's scheduler at {self._address} shares workers as another version of the workbench does ({err}): "
                "install the version that is here, and start the scheduler again"
            ) from None

    def submit(self, function: Callable[..., Any], *arguments: Any, address: str | None, key: str) -> Future:
        """Run a function on one worker, which fails with an `ImportError` or the like where it has no such function."""
        call = cloudpickle.dumps(_Call(function, arguments))
        return self._own.submit(pickle.loads, call, key=key, workers=[address], pure=False)

    def when_done(self, future: Future, tell: Callable[[Future], None]) -> None:
        """Call with what was submitted here once it is over, on the client's own thread.

        `Future.add_done_callback` calls on another, which is not there any more where a script ends while trials run:
        each of them would bring a traceback.
        """
        self._own.loop.add_callback(done_callback, future, tell)

    def restart(self, address: str) -> None:
        """Have a worker replaced by its nanny, in the background.

        Dask's scheduler is not to wait for the new one: it would still do so as its cluster ends, and tell of an error.
        """
        how = {"timeout": 10, "wait_for_workers": False, "on_error": "return", "stimulus_id": f"restart-{self.topic}"}
        self._tell(lambda own: own.scheduler.restart_workers(workers=[address], **how))

    def cancel(self, running: list[Future], addresses: list[str]) -> None:
        """Make what runs on these workers stop, and wait until they have heard of it."""
        topic = self.topic
        asked = self._tell(lambda own: own.run(worker.cancel, topic, workers=addresses, on_error="ignore"))
        for future in running:
            future.cancel()
        asked.result(timeout=_CLOSE_S)

    def cancel_attempt(self, name: str, addresses: list[str]) -> None:
        """Make one attempt at a phase stop, on each of these workers, in the background."""
        topic = self.topic

        def ask(address: str) -> None:
            self._tell(lambda own: own.run(worker.cancel, topic, name, workers=[address], on_error="ignore"))

        for address in addresses:  # one by one: a worker that has just died must not keep the others from hearing it
            ask(address)

    def close(self) -> None:
        """Hang up."""
        if self.unbroken:
            with suppress(OSError, TimeoutError, ValueError):  # the last: nobody has listened yet
                self._own.unsubscribe_topic("all")
        self._own.close(timeout=_AGAIN_S)

    def _tell(self, say: Callable[[Client], Awaitable[Any]]) -> "LocalFuture[Any]":
        """Say something to the cluster, in the background and within a time limit.

        It is said on the client's own event loop: a stopped process never answers, and where threads wait for answers
        a few such processes would leave none to have them replaced.
        """
        own = self._own

        async def said() -> Any:
            return await asyncio.wait_for(say(own), _CLOSE_S)

        saying = said()
        try:
            return asyncio.run_coroutine_threadsafe(saying, own.loop.asyncio_loop)
        except RuntimeError:  # the client has been closed
            saying.close()
            lost: LocalFuture[Any] = LocalFuture()
            lost.cancel()
            return lost

    def _hear_of_workers(self, event: tuple[float, Any]) -> None:
        message = event[1]
        if isinstance(message, dict) and message.get("action") in ("add-worker", "remove-worker"):
            self._on_workers()

    async def _reach(self, own: Client) -> None:
        """Raise `OSError` if nobody is there: a client that finds nobody leaves its thread and its files behind."""
        comm = await connect(self._address, timeout=_AGAIN_S, **own.connection_args)
        comm.abort()

    def _connect(self, limits: Mapping[str, Any]) -> None:
        self.topic = f"workbench-{self._study}-{uuid.uuid4().hex[:8]}"
        self._own = Client(self._address, security=self._security, set_as_default=False, name=self.topic, **limits)
        keep_time(self._own.loop)
        self._comm = self._own.scheduler_comm
        self._comm.interval = _BETWEEN_S
