"""RMSProp worked by hand, beside torch's, and under several threads."""

import math
import threading

import pytest
import torch

from workbench.algos.rl.optim import SharedRMSProp


def test_two_steps_by_hand_with_epsilon_inside_the_root():
    weight = torch.tensor([1.0], requires_grad=True)
    optimizer = SharedRMSProp([weight], 0.1, decay=0.9, eps=0.04)
    assert optimizer.step([torch.tensor([2.0])]) == pytest.approx(2.0)
    g = 0.1 * 4
    expected = 1 - 0.1 * 2 / math.sqrt(g + 0.04)
    assert weight.item() == pytest.approx(expected)
    optimizer.step([torch.tensor([-1.0])])
    g = 0.9 * g + 0.1 * 1
    assert weight.item() == pytest.approx(expected + 0.1 / math.sqrt(g + 0.04))


def test_the_other_form_is_torchs():
    torch.manual_seed(0)
    ours, theirs = torch.ones(3, 2, requires_grad=True), torch.ones(3, 2, requires_grad=True)
    optimizer = SharedRMSProp([ours], 0.01, eps=1e-3, eps_inside_root=False)
    reference = torch.optim.RMSprop([theirs], lr=0.01, alpha=0.99, eps=1e-3)
    for _ in range(5):
        gradient = torch.randn(3, 2)
        optimizer.step([gradient])
        theirs.grad = gradient.clone()
        reference.step()
    assert torch.allclose(ours, theirs, atol=1e-7)


def test_the_norm_is_taken_over_all_gradients_and_clipped():
    a, b = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    optimizer = SharedRMSProp([a, b], 1.0, decay=0.0, eps=1e4, max_norm=0.5)
    assert optimizer.step([torch.tensor([3.0]), torch.tensor([4.0])]) == pytest.approx(5.0)
    assert a.item() == pytest.approx(-0.3 / math.sqrt(0.09 + 1e4))
    assert b.item() == pytest.approx(-0.4 / math.sqrt(0.16 + 1e4))


def test_accumulators_may_start_at_one():
    weight = torch.zeros(1, requires_grad=True)
    SharedRMSProp([weight], 1.0, decay=0.99, eps=0.1, initial_square=1.0).step([torch.tensor([1.0])])
    assert weight.item() == pytest.approx(-1 / math.sqrt(1.1))


def test_a_gradient_that_is_no_number_changes_nothing():
    weight = torch.ones(2, requires_grad=True)
    optimizer = SharedRMSProp([weight], 0.1)
    assert math.isnan(optimizer.step([torch.tensor([math.nan, 1.0])]))
    assert weight.tolist() == [1, 1]
    assert optimizer.square_avg[0].tolist() == [0, 0]


def test_a_step_between_forward_and_backward_is_no_error():
    weight = torch.ones(2, 2, requires_grad=True)
    optimizer = SharedRMSProp([weight], 0.1)
    inputs = torch.ones(2, requires_grad=True)
    loss = (weight @ inputs).square().sum()
    optimizer.step([torch.ones(2, 2)])
    gradients = torch.autograd.grad(loss, [weight, inputs])
    assert all(g.isfinite().all() for g in gradients)


def test_no_step_of_four_threads_is_lost():
    weight = torch.zeros(1000, requires_grad=True)
    optimizer = SharedRMSProp([weight], 1.0, decay=0.0, eps=1e-12)
    threads = [
        threading.Thread(target=lambda: [optimizer.step([torch.ones(1000)]) for _ in range(50)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.allclose(weight, torch.full((1000,), -200.0))
