"""Devices by their names."""

import pytest
import torch

from workbench.algos.rl.device import torch_device
from workbench.algos.rl.ga3c.trial import GA3C
from workbench.core.errors import InvalidInput


def test_auto_is_cuda_where_there_is_one(monkeypatch) -> None:
    for there, device in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert torch_device("auto") == torch.device(device)


@pytest.mark.parametrize(
    ("device", "says"),
    [
        ("gpu", "unknown device 'gpu'.*auto, cpu, cuda"),
        ("cuda", "device 'cuda' is not available here: use 'auto' or 'cpu'"),
        ("cuda:1", "device 'cuda:1' is not available here"),
        ("meta", "device 'meta' is not available here"),
        ("mps", "device 'mps' is not available here"),
    ],
)
def test_what_is_not_there_is_refused_by_every_system(device, says, monkeypatch) -> None:
    pytest.importorskip("stable_baselines3")
    from workbench import SB3

    monkeypatch.setattr("workbench.algos.rl.device._THERE", {"cpu": lambda: True, "cuda": lambda: False})
    for system in (GA3C, lambda env, device: SB3("PPO", env, device=device)):
        with pytest.raises(InvalidInput, match=says):
            system("CartPole-v1", device=device)
