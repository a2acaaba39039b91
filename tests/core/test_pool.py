"""Processes to compute in: what an interrupt leaves of them."""

import os
import signal
import subprocess
import sys

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


def test_ctrl_c_ends_them_at_once_and_without_a_word() -> None:
    command = [sys.executable, "-c", WAITING]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as running:
        try:
            assert [running.stdout.readline() for _ in range(2)] == ["at work\n"] * 2
            os.killpg(running.pid, signal.SIGINT)
            assert running.communicate(timeout=60) == ("interrupted\n", "")
        finally:
            if running.poll() is None:  # or what failed is told only after they have waited
                os.killpg(running.pid, signal.SIGKILL)
