"""Atari's emulators outlive the trial that played on them: `ale_py` takes as long to make one as for hundreds of steps.

Each computes tables of colours when it is made, and again when it is seeded. A search begins many trials of the same
game in one process, and BA3C evaluates again and again: they take what the last ones left, seeded anew.
"""

import atexit
import os
import threading
from typing import Any

from ale_py.vector_env import AtariVectorEnv

MOST_KEPT = 32  # emulators, of some 4 MiB each: as many as a trial has where nobody says otherwise; or as ever played

_lock = threading.Lock()
_kept: list[tuple[tuple[Any, ...], AtariVectorEnv]] = []  # the oldest first, by process and settings
_playing, _most_playing = 0, 0
atexit.register(_kept.clear)  # threads must not outlive the interpreter; the library complains of what does


def open_emulators(rom: str, n_envs: int, **settings: Any) -> AtariVectorEnv:
    """Take emulators that were kept, or start new ones; whoever gets them resets them with seeds of its own.

    Parameters
    ----------
    rom, n_envs, settings
        Of `ale_py.vector_env.AtariVectorEnv`.
    """
    wanted = _key(rom, n_envs, settings)
    with _lock:
        at = next((at for at, (kind, _) in enumerate(_kept) if kind == wanted), None)
        env = None if at is None else _kept.pop(at)[1]
    if env is None:
        env = AtariVectorEnv(rom, n_envs, **settings)
        env.kind = wanted
    _count(n_envs)
    return env


def keep_emulators(env: AtariVectorEnv) -> None:
    """Keep emulators that have answered everything they were sent, for the next to want the same, or else free them.

    Where a batch is less than all of them, some always play on: these are freed.
    """
    _count(-env.num_envs)
    if env.batch_size == env.num_envs:
        with _lock:
            _kept.append((env.kind, env))
            while sum(kept.num_envs for _, kept in _kept) > max(MOST_KEPT, _most_playing):
                del _kept[0]


def _count(n_more: int) -> None:
    global _playing, _most_playing
    with _lock:
        _playing += n_more
        _most_playing = max(_most_playing, _playing)


def _key(rom: str, n_envs: int, settings: dict[str, Any]) -> tuple[Any, ...]:
    """Name the process too: a forked one has none of the threads."""
    return (os.getpid(), rom, n_envs, *sorted(settings.items()))
