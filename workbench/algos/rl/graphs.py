"""Predictions on a GPU as CUDA graphs: some forty kernels in one call.

Each call of torch gives up the interpreter's lock and waits to have it back, behind the threads of all agents: with 16
cores that, and no computing, is what a prediction takes its time for.
"""

import threading
from collections.abc import Callable
from queue import Empty, LifoQueue
from typing import Any

import numpy as np
import torch
from torch import Tensor

Forward = Callable[[Any, Tensor], Tensor]
"""Maps a network and observations (B, *obs_shape) on the GPU to answers (B, K) there."""

_WARM_UPS = 3  # in which libraries choose how they compute, and take what memory they need
_MOST_LANES = 16  # torch has 32 streams of a priority, and gives the first again after the last
_capturing = threading.Lock()


class Graphs:
    """Answers of networks to any number of threads; weights are read anew each time.

    Parameters
    ----------
    forward : Forward
    device : torch.device
        A GPU.
    """

    def __init__(self, forward: Forward, device: torch.device) -> None:
        self._forward, self._device = forward, device
        self._free: LifoQueue[_Lane] = LifoQueue()
        self._lock, self._n_lanes = threading.Lock(), 0

    def __call__(self, network: Any, obs: np.ndarray) -> np.ndarray:
        """Return the answers, (B, K), to observations (B, *obs_shape); both are the caller's."""
        lane = self._take_lane()
        try:
            return lane.answers(network, obs)
        finally:
            self._free.put(lane)

    def _take_lane(self) -> "_Lane":
        """Take a lane that nobody is in, or open one more."""
        try:
            return self._free.get_nowait()
        except Empty:
            with self._lock:
                self._n_lanes += (opens := self._n_lanes < _MOST_LANES)
            return _Lane(self._forward, self._device) if opens else self._free.get()


class _Lane:
    """A stream, and what was captured on it, once a network and batch size.

    Libraries have some memory for each stream, and graphs remember it: those of one stream must not run side by side.
    """

    def __init__(self, forward: Forward, device: torch.device) -> None:
        self._forward = forward
        self._stream = torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]  # before training
        self._stream.wait_stream(torch.cuda.default_stream(device))  # there the weights were made
        self._captured: dict[tuple[Any, int], _Captured] = {}

    def answers(self, network: Any, obs: np.ndarray) -> np.ndarray:
        size = 1 << (len(obs) - 1).bit_length()  # of few sizes: what is too much is left over from the last batch
        with torch.cuda.stream(self._stream):
            if (network, size) not in self._captured:
                with _capturing:
                    self._captured[network, size] = _Captured(self._forward, network, size, obs, self._stream)
            return self._captured[network, size].answers(obs)


class _Captured:
    """A graph, and the memory it reads and writes: on the GPU and, pinned, beside it."""

    def __init__(self, forward: Forward, network: Any, size: int, like: np.ndarray, stream: torch.cuda.Stream) -> None:
        alike = torch.from_numpy(like[:1]).expand(size, *like.shape[1:])
        layout = torch.channels_last if like.ndim == 4 else torch.contiguous_format  # as they lie in memory
        self._stream = stream
        self._sent = alike.contiguous(memory_format=layout).pin_memory()
        self._obs = self._sent.to(stream.device)
        for _ in range(_WARM_UPS):
            forward(network, self._obs)
        stream.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        # other threads go on meanwhile, and may ask for memory
        with torch.cuda.graph(self._graph, stream=stream, capture_error_mode="thread_local"):
            self._made = forward(network, self._obs)
        self._answers = torch.empty_like(self._made, device="cpu").pin_memory()

    def answers(self, obs: np.ndarray) -> np.ndarray:
        self._sent.numpy()[: len(obs)] = obs
        self._obs.copy_(self._sent, non_blocking=True)
        self._graph.replay()
        self._answers.copy_(self._made, non_blocking=True)
        self._stream.synchronize()
        return self._answers.numpy()[: len(obs)].copy()
