"""Processes to compute in: what an interrupt leaves of them."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from multiprocessing import current_process, get_context, spawn

import pytest

from tests.support import FROM_HERE, without_semaphores
from workbench.core.errors import InvalidInput
from workbench.core.pool import deaf, process_pool, refuse_without_processes, without_main

WAITING = r"""
import os
import time
from workbench.core.pool import process_pool

def work(number):
    os.write(1, b"at work\n")  # a line in one go: two processes write into the same pipe
    time.sleep(600)

if __name__ == "__main__":
    try:
        with process_pool(2) as pool:
            list(pool.map(work, range(2)))
    except KeyboardInterrupt:
        print("interrupted")
"""


WAITS = r"""
import os
import time
from workbench.core.pool import process_pool

def wait_in_two():
    with process_pool(2, "spawn") as pool:
        list(pool.map(wait, range(2)))

def wait(_):
    os.write(1, b"at work\n")
    time.sleep(600)
"""


WITHIN = r"""
import os
from workbench.core.pool import process_pool
from waits import wait_in_two

if __name__ == "__main__":
    try:
        with process_pool(1, "spawn") as pool:
            pool.submit(wait_in_two).result()
    except BaseException:
        print("interrupted")
"""


@pytest.fixture
def where(tmp_path) -> dict[str, object]:
    """Where `WAITS` is a module, which imports little: each of the processes does."""
    (tmp_path / "waits.py").write_text(WAITS)
    return {"cwd": tmp_path, "env": {**os.environ, **FROM_HERE}}


@pytest.mark.parametrize("code", [WAITING, WITHIN])
@pytest.mark.parametrize("end", [os.killpg, os.kill])  # as a terminal does, and as `kill` does
def test_ctrl_c_ends_them_at_once_and_without_a_word(code, end, where) -> None:
    """Nor does any live on: it would hold the pipes open."""
    command = [sys.executable, "-c", code]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes, **where) as running:
        try:
            assert [running.stdout.readline() for _ in range(2)] == ["at work\n"] * 2
            end(running.pid, signal.SIGINT)
            assert running.communicate(timeout=60) == ("interrupted\n", "")
        finally:
            if running.poll() is None:  # or what failed is told only after they have waited
                os.killpg(running.pid, signal.SIGKILL)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_none_outlives_the_process_that_has_them(method, where) -> None:
    code = WITHIN.replace('process_pool(1, "spawn")', f'process_pool(1, "{method}")')
    pipes = {"stdout": subprocess.PIPE, **where}
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True, **pipes) as running:
        try:
            assert [running.stdout.readline() for _ in range(2)] == [b"at work\n"] * 2
            running.kill()
            running.stdout.read()  # until nobody holds the other end
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)


def how_interrupts_are_heard() -> tuple[bool, object]:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getsignal(signal.SIGINT)


class _AsItComesUp:
    """Becomes, where it arrives, whether interrupts are kept from a process that is not up yet."""

    def __reduce__(self):
        return _deaf, ()


def _deaf() -> bool:
    return how_interrupts_are_heard()[0]


TOLD: list[bool] = []


def _begin_in(folder, deaf) -> None:
    os.chdir(folder)
    TOLD.append(deaf)


def _begun() -> tuple[str, list[bool]]:
    return os.getcwd(), TOLD


def test_they_come_up_deaf_and_hear_once_they_can_end(tmp_path) -> None:
    here, options = how_interrupts_are_heard(), sys.warnoptions.copy()
    with process_pool(1, "spawn", _begin_in, (tmp_path, _AsItComesUp())) as pool:
        assert pool.submit(how_interrupts_are_heard).result(60) == (False, signal.SIG_DFL)
        assert pool.submit(_begun).result(60) == (str(tmp_path), [True])
    assert (how_interrupts_are_heard(), sys.warnoptions) == (here, options)


def _tell(line) -> None:
    line.send(how_interrupts_are_heard()[0])


def test_a_process_begun_deaf_stays_so() -> None:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_tell, args=(theirs,))
    with deaf():
        with deaf():
            process.start()
        assert how_interrupts_are_heard()[0]
    assert ours.recv()
    process.join(60)
    assert not how_interrupts_are_heard()[0]


def test_of_two_that_begin_processes_without_the_script_the_first_to_end_takes_nothing_from_the_other(
    monkeypatch,
) -> None:
    def prepare(name: str) -> dict[str, str]:
        return {"name": name, "init_main_from_path": "script.py"}

    monkeypatch.setattr("workbench.core.pool._prepare", prepare)
    monkeypatch.setattr("workbench.core.pool._BY_THEMSELVES", [])  # a cluster may be up here for other tests
    monkeypatch.setattr(spawn, "get_preparation_data", prepare)

    def told(name: str) -> bool:
        return "init_main_from_path" in spawn.get_preparation_data(name)

    first, second = without_main("first"), without_main("second")
    first.__enter__()
    second.__enter__()
    assert [told(name) for name in ("first 1", "second 1", "third")] == [False, False, True]
    first.__exit__(None, None, None)
    assert [told(name) for name in ("first 1", "second 1", "third")] == [True, False, True]
    second.__exit__(None, None, None)
    assert told("second 1")
    assert spawn.get_preparation_data is prepare


def test_a_process_that_may_start_none_is_told_so(monkeypatch) -> None:
    said = r"^work is spread, and this process may start none \(it is daemonic.* or spread none$"
    with get_context("fork").Pool(1) as pool, pytest.raises(InvalidInput, match=said):
        pool.apply(refuse_without_processes, ("work is spread", "spread none"))
    monkeypatch.setitem(current_process()._config, "daemon", True)
    with pytest.raises(InvalidInput, match=r"daemonic.* or compute in this one alone \(processes=1\)$"):
        process_pool(2)


@pytest.mark.parametrize("option", ["ro", "size=4k"])
def test_where_the_system_makes_no_semaphore_it_is_said(option) -> None:
    """As in a container without /dev/shm, or with one that is full."""
    script = "from workbench.core.pool import process_pool; process_pool(2)"
    ran = subprocess.run(
        [*without_semaphores(option), sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, **FROM_HERE},
    )
    assert re.search(r"InvalidInput: several processes .* need semaphores.*: see to /dev/shm,.* or compute", ran.stderr)
