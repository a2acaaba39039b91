"""A generator under way as a trial, on a thread of its own."""

import ctypes
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.algos.function.state import load_state, save_state
from workbench.core.errors import EndedTooSoon, InvalidInput
from workbench.core.failures import short
from workbench.core.measured import number
from workbench.core.protocols import RETURNS, Measured, Progress
from workbench.core.showing import so_many

_SIGN_S = 2.0  # between two signs of life
_CLOSE_S = 10.0


class FunctionTrial:
    """A generator under way; it shows life while the function computes.

    A `progress` that raises stops it: the function gets an exception that ``except Exception`` does not catch, at its
    next line of Python.

    Parameters
    ----------
    name : str
        The function's, with its place, for errors.
    begin : callable
        State → generator.
    takes_state : bool
        Whether the function can go on from a state.
    """

    def __init__(self, name: str, begin: Callable[[Any], Iterator[Any]], takes_state: bool) -> None:
        self._name, self._begin, self._takes_state = name, begin, takes_state
        self._generator: Iterator[Any] | None = None
        self._state: Any = None
        self._yields = 0
        self._thread = _Thread(f"trial of {name}")

    def train_phase(self, progress: Progress) -> Measured:
        """Run the function to its next yield.

        Returns
        -------
        dict
            What it yielded, without the state.

        Raises
        ------
        EndedTooSoon
            It ended instead.
        InvalidInput
            It yielded something else; the message names it and its line.
        """
        progress({})
        measured, self._state = self._read(self._thread.do(self._next, progress))
        self._yields += 1
        return measured

    def save(self, path: Path) -> None:
        """Write the state that came with the last score, if any did."""
        if self._state is not None:
            save_state(self._state, Path(path), self._name)

    def load(self, path: Path) -> None:
        """Go on from a state, of this trial or of another.

        Raises
        ------
        NoState
            There is none.
        CheckpointError
            It cannot be read.
        """
        state = load_state(Path(path), self._name)
        self.close()  # what is under way goes on from elsewhere
        self._state = state

    def close(self) -> None:
        """Close the generator, which runs its ``finally`` blocks; another phase begins a new one."""
        if self._generator is not None:
            self._thread.close(getattr(self._generator, "close", lambda: None))
            self._thread = _Thread(f"trial of {self._name}")
        self._generator = self._state = None

    def _next(self) -> Any:
        if self._generator is None:
            self._generator = self._begin(self._state)
        self._state = None
        try:
            return next(self._generator)
        except StopIteration as end:
            returned = "" if end.value is None else f" and returned {short(end.value)}, which is not used,"
            count = f"after {so_many(self._yields, 'yield')}" if self._yields else "without a yield"
            raise EndedTooSoon(
                f"{self._name} ended {count}{returned} and another phase was due: yield once in each of the "
                "scheduler's n_phases; to yield more often does no harm"
            ) from None

    def _read(self, value: Any) -> tuple[dict[str, Any], Any]:
        """Part what was yielded into metrics and the state, ``None`` if there is none."""
        state = None
        if isinstance(value, tuple) and len(value) == 2:
            value, state = value
        if state is not None and not self._takes_state:
            raise self._refused("yielded a state, but cannot take it back: give it an argument state=None")
        measured = dict(value) if isinstance(value, Mapping) else {"score": value}
        if "score" not in measured:
            raise self._refused(f'yielded {short(value)}, which has no score: yield {{"score": number, …}}')
        return {str(k): v if k == RETURNS else self._number(k, v) for k, v in measured.items()}, state

    def _number(self, name: Any, value: Any) -> float | int:
        with suppress(TypeError):
            return number(value)
        of = "" if name == "score" else f" as {name!r}"
        raise self._refused(f'yielded {short(value)}{of}: yield a number, or {{"score": number, …}}, or score, state')

    def _refused(self, what: str) -> InvalidInput:
        frame = getattr(self._generator, "gi_frame", None)
        return InvalidInput(f"{self._name}{'' if frame is None else f' in line {frame.f_lineno}'} {what}")


class _Unwanted(BaseException):
    """Raised within a function that is to stop."""


class _Thread:
    """Runs calls on one thread, while the caller shows life."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def do(self, call: Callable[[], Any], progress: Progress) -> Any:
        """Make a call and return what it returns; if `progress` raises meanwhile, stop it and raise that."""
        future = self._submit(call)
        try:
            while wait([future], _SIGN_S).not_done:
                progress({})
        except BaseException:
            self._stop(future)
            raise
        return future.result()

    def close(self, call: Callable[[], Any]) -> None:
        """Make a last call and end the thread; one that hangs is left behind."""
        if self._thread.is_alive():
            self._submit(call)
            self._calls.put(None)
            self._thread.join(_CLOSE_S)

    def _submit(self, call: Callable[[], Any]) -> "Future[Any]":
        future: Future[Any] = Future()
        self._calls.put((future, call))
        if self._thread.ident is None:
            self._thread.start()
        return future

    def _stop(self, future: "Future[Any]") -> None:
        thread, patience = ctypes.c_ulong(self._thread.ident or 0), 1.0
        while not future.done():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_Unwanted))
            wait([future], patience)
            patience *= 2  # it may be clearing up

    def _serve(self) -> None:
        with suppress(_Unwanted):  # one that came too late for its call
            while (due := self._calls.get()) is not None:
                future, call = due
                try:
                    future.set_result(call())
                except (SystemExit, KeyboardInterrupt) as err:  # raised again there, they would end the worker
                    error = RuntimeError(f"{type(err).__name__} {err}".strip())
                    future.set_exception(error.with_traceback(err.__traceback__))
                except BaseException as err:  # noqa: BLE001  raised again where the call was asked for
                    future.set_exception(err)
