"""Networks: shapes, scaling, initialisation, refusals."""

import math
import sys

import pytest
import torch

from workbench.algos.rl.games import find_game
from workbench.algos.rl.model import CONVOLUTIONAL, make_model
from workbench.core.errors import InvalidInput


@pytest.mark.parametrize("network", sorted(CONVOLUTIONAL.keys() - {"tiny"}))
def test_every_network_plays_pong(network):
    model = make_model(find_game("Pong"), network)
    obs = torch.randint(0, 256, (2, 4, 84, 84), dtype=torch.uint8)
    logits, values = model(obs)
    assert logits.shape == (2, 6)
    assert values.shape == (2,)


@pytest.mark.parametrize(("game", "network"), [("CartPole-v1", "mlp-separate"), ("Pong", "small")])
def test_to_make_one_imports_no_algebra(game, network, monkeypatch):
    """With which torch guards shapes that it does not know: a third of a second and 34 MB of every process."""
    monkeypatch.setitem(sys.modules, "torch.fx.experimental.symbolic_shapes", None)
    assert all(part.device.type == "cpu" for part in make_model(find_game(game), network).parameters())


def test_the_small_network_is_the_papers():
    model = make_model(find_game("Pong"))
    shapes = [tuple(p.shape) for p in model.parameters() if p.dim() > 1]
    assert shapes == [(16, 4, 8, 8), (32, 16, 4, 4), (256, 2592), (7, 256)]


def test_what_a_network_says_is_up_to_the_pixels_not_to_how_they_lie_in_memory():
    model = make_model(find_game("Pong"))
    obs = torch.randint(0, 256, (2, 4, 84, 84), dtype=torch.uint8)
    one, other = model(obs), model(obs.contiguous(memory_format=torch.channels_last))
    assert all((a == b).all() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("network", ["small", "large-3", "large-2"])
def test_in_bfloat16_the_first_layer_says_and_learns_what_it_does_in_float32(network):
    model = make_model(find_game("Pong"), network)
    generator = torch.Generator().manual_seed(0)
    obs = torch.randint(0, 256, (3, 4, 84, 84), dtype=torch.uint8, generator=generator)
    (logits, values), first = model(obs), model.trunk[0].weight
    with torch.autocast("cpu", torch.bfloat16):
        low_logits, low_values = model(obs)
    torch.testing.assert_close(low_logits, logits, rtol=0.02, atol=0.02 * logits.abs().max().item())
    torch.testing.assert_close(low_values, values, rtol=0.02, atol=0.02 * values.abs().max().item())
    (slope,), (low_slope,) = torch.autograd.grad(values.sum(), [first]), torch.autograd.grad(low_values.sum(), [first])
    assert float((low_slope - slope).norm() / slope.norm()) < 0.2  # of weights in another order: 1.4


@pytest.mark.parametrize(("network", "planes"), [("small", 4), ("large-1", 4), ("ba3c-32", 12)])
def test_bytes_are_scaled_inside(network, planes):
    model = make_model(find_game("Pong", rgb=planes == 12), network)
    obs = torch.full((1, planes, 84, 84), 255, dtype=torch.uint8)
    assert torch.allclose(model(obs)[0], model.head(model.trunk(torch.ones(1, planes, 84, 84)))[:, :-1], atol=1e-5)


def test_uniform_init_is_bounded_by_the_fan_in():
    model = make_model(find_game("Pong"), init="uniform", seed=1)
    weight = model.trunk[0].weight
    assert weight.abs().max() <= 1 / math.sqrt(4 * 8 * 8)
    assert weight.abs().max() > 0.99 / math.sqrt(4 * 8 * 8)


def test_orthogonal_init_has_gains_of_its_own_for_the_trunk_the_policy_and_the_value():
    model = make_model(find_game("CartPole-v1"), init="orthogonal", seed=1)
    for layers in (model.trunk, model.critic):
        one, two = layers[0].weight, layers[2].weight
        torch.testing.assert_close(one.T @ one, 2 * torch.eye(4), rtol=0, atol=1e-5)
        torch.testing.assert_close(two.T @ two, 2 * torch.eye(64), rtol=0, atol=1e-5)
    head = model.head.weight
    torch.testing.assert_close(head[:2] @ head[:2].T, 1e-4 * torch.eye(2), rtol=0, atol=1e-9)
    assert head[2].norm().item() == pytest.approx(1)
    assert not any(bias.any() for name, bias in model.named_parameters() if name.endswith("bias"))


def test_the_value_of_a_trunk_of_its_own_counts_five_times():
    model = make_model(find_game("CartPole-v1"), "mlp-separate")
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.copy_(torch.tensor([1.0, 2.0, 3.0]))
        logits, values = model(torch.randn(1, 4))
    assert (logits.tolist(), values.tolist()) == ([[1, 2]], [15])


def test_seeds_decide_the_weights_and_leave_torchs_generator_alone():
    game = find_game("CartPole-v1")
    before = torch.random.get_rng_state()
    for init in ("uniform", "orthogonal"):
        one, same, other = (make_model(game, init=init, seed=s).head.weight for s in (1, 1, 2))
        assert torch.equal(one, same)
        assert not torch.equal(one, other)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("network", ["auto", "mlp-separate"])
def test_the_values_gradient_does_not_reach_the_policys_weights(network):
    model = make_model(find_game("CartPole-v1"), network)
    logits, values = model(torch.randn(7, 4))
    assert logits.shape == (7, 2)
    assert values.shape == (7,)
    names = [name for name, _ in model.named_parameters()]
    of_value = torch.autograd.grad(
        values.square().sum(), list(model.parameters()), allow_unused=True, retain_graph=True
    )
    of_policy = torch.autograd.grad(logits.square().sum(), list(model.parameters()), allow_unused=True)
    for name, value, policy in zip(names, of_value, of_policy, strict=True):
        if name.startswith("head."):  # one matrix, a row for each output
            assert [bool(row.any()) for row in value] == [False, False, True]
            assert [bool(row.any()) for row in policy] == [True, True, False]
        else:
            assert (value is None) == name.startswith("trunk.")
            assert (policy is None) == name.startswith("critic.")


def test_the_shared_network_is_there_by_its_name():
    model = make_model(find_game("CartPole-v1"), "mlp")
    assert [tuple(p.shape) for p in model.parameters() if p.dim() > 1] == [(64, 4), (64, 64), (3, 64)]


def test_networks_that_do_not_exist_or_fit():
    with pytest.raises(InvalidInput, match="unknown network 'smal': did you mean 'small'"):
        make_model(find_game("Pong"), "smal")
    with pytest.raises(InvalidInput, match="cannot read CartPole-v1"):
        make_model(find_game("CartPole-v1"), "small")
