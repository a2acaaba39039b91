"""RMSProp worked by hand, beside torch's, and under several threads."""

import math
import threading

import pytest
import torch

from workbench.algos.rl.optim import SharedAdam, SharedRMSProp, clip_by_average_norm


def test_two_steps_by_hand_with_epsilon_inside_the_root():
    weight = torch.tensor([1.0], requires_grad=True)
    optimizer = SharedRMSProp([weight], 0.1, decay=0.9, eps=0.04, eps_inside_root=True)
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


@pytest.mark.parametrize("clipped", [False, True])
def test_however_gradients_lie_in_memory_each_meets_its_own_weight(clipped):
    """A convolution's come with channels last, those of a sum with one number for all."""
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 4, 2, 2), (5,)]
    ours, theirs = ([torch.nn.Parameter(torch.ones(shape)) for shape in shapes] for _ in range(2))
    optimizer = SharedRMSProp(ours, 0.01, eps_inside_root=False, max_norm=0.5 if clipped else None)
    reference = torch.optim.RMSprop(theirs, lr=0.01, alpha=0.99, eps=1e-5)
    for _ in range(5):
        picture = torch.randn(shapes[0], generator=generator).contiguous(memory_format=torch.channels_last)
        grads = [picture, torch.randn((), generator=generator).expand(5)]
        for weight, grad in zip(theirs, grads, strict=True):
            weight.grad = grad.clone()
        if clipped:
            torch.nn.utils.clip_grad_norm_(theirs, 0.5)
        reference.step()
        optimizer.step(grads)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("inside", [True, False])
def test_the_norm_is_taken_over_all_gradients_and_clipped(inside):
    a, b = torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)
    optimizer = SharedRMSProp([a, b], 1.0, decay=0.0, eps=0.16, eps_inside_root=inside, max_norm=0.5)
    assert optimizer.step([torch.tensor([3.0]), torch.tensor([4.0])]) == pytest.approx(5.0)
    assert a.item() == pytest.approx(-0.3 / (math.sqrt(0.09 + 0.16) if inside else 0.3 + 0.16))
    assert b.item() == pytest.approx(-0.4 / (math.sqrt(0.16 + 0.16) if inside else 0.4 + 0.16))
    small = torch.zeros(1, requires_grad=True)  # a norm below the limit is left as it is
    SharedRMSProp([small], 1.0, decay=0.0, eps=0.16, eps_inside_root=inside, max_norm=5.0).step([torch.tensor([3.0])])
    assert small.item() == pytest.approx(-3 / (math.sqrt(9 + 0.16) if inside else 3 + 0.16))


def test_accumulators_may_start_at_one():
    weight = torch.zeros(1, requires_grad=True)
    SharedRMSProp([weight], 1.0, decay=0.99, eps=0.1, eps_inside_root=True, initial_square=1.0).step(
        [torch.tensor([1.0])]
    )
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


@pytest.mark.parametrize("kind", [SharedRMSProp, SharedAdam])
def test_statistics_and_weights_are_changed_by_one_thread_at_a_time(kind, monkeypatch):
    optimizer, held = kind([torch.zeros(1)], 0.1), []
    monkeypatch.setattr(optimizer, "_apply", lambda *given: held.append(optimizer._lock.locked()))
    optimizer.step([torch.ones(1)])
    assert held == [True]


def test_adam_hand_worked_as_tensorflow_has_it():
    """g = 2 twice, b1 = .5, b2 = .75: m = 1, 1.5; v = 1, 1.75; rates 1·√.25/.5 = 1 and √.4375/.75."""
    weight = torch.nn.Parameter(torch.tensor([0.0]))
    optimizer = SharedAdam([weight], 1.0, beta1=0.5, beta2=0.75, eps=1.0)
    optimizer.step([torch.tensor([2.0])])
    assert weight.item() == pytest.approx(-1 / (1 + 1))
    optimizer.step([torch.tensor([2.0])])
    assert weight.item() == pytest.approx(-0.5 - (0.4375**0.5 / 0.75) * 1.5 / (1.75**0.5 + 1))


def test_adam_is_torchs_where_eps_is_negligible():
    generator = torch.Generator().manual_seed(0)
    ours, theirs = (torch.nn.Parameter(torch.ones(5)) for _ in range(2))
    optimizer = SharedAdam([ours], 1e-2, beta1=0.8, beta2=0.75, eps=1e-12)
    torchs = torch.optim.Adam([theirs], lr=1e-2, betas=(0.8, 0.75), eps=1e-12)
    for _ in range(20):
        grad = torch.randn(5, generator=generator)
        optimizer.step([grad])
        theirs.grad = grad
        torchs.step()
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-6)


def test_adam_takes_no_step_along_what_is_no_number_and_its_statistics_survive():
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    optimizer = SharedAdam([weight], 0.1)
    optimizer.step([torch.tensor([1.0, -1.0])])
    before = weight.detach().clone()
    assert not torch.isfinite(torch.tensor(optimizer.step([torch.tensor([float("nan"), 0.0])])))
    assert torch.equal(weight, before)
    other = SharedAdam([torch.nn.Parameter(before.clone())], 0.1)
    other.load_state_dict(optimizer.state_dict())
    optimizer.step([torch.tensor([0.5, 0.5])])
    other.step([torch.tensor([0.5, 0.5])])
    assert torch.equal(weight, other.params[0])


def test_clipping_by_the_average_norm_divides_by_the_number_of_elements():
    grad = torch.tensor([3.0, 4.0])  # norm 5, average norm 2.5
    assert clip_by_average_norm(grad, 2.5) is grad
    torch.testing.assert_close(clip_by_average_norm(grad, 0.1), grad * (0.1 / 2.5))
    wide = torch.full((10_000,), 1.0)  # norm 100, average norm 0.01: a large tensor is hardly ever clipped
    assert clip_by_average_norm(wide, 0.1) is wide


def test_all_that_adam_remembers_lies_where_its_weights_do():
    """Ranks join it with the weights into one array; `meta` stands for a GPU."""
    adam = SharedAdam([torch.zeros(3, device="meta"), torch.zeros(2, 2, device="meta")], 0.1)
    kept = [tensor.reshape(-1) for tensors in adam.state_dict().values() for tensor in tensors]
    assert torch.cat([*(w.reshape(-1) for w in adam.params), *kept]).device.type == "meta"


@pytest.mark.parametrize("inside", [True, False])
def test_weights_long_without_a_gradient_keep_a_normal_square_and_step_as_from_none(inside):
    silent, fresh = (torch.nn.Parameter(torch.zeros(3)) for _ in range(2))
    optimizer = SharedRMSProp([silent], 0.1, decay=0.9, eps=1e-5, eps_inside_root=inside, initial_square=1.0)
    for _ in range(2000):  # 0.9^2000 is no float32
        optimizer.step([torch.zeros(3)])
    assert float(optimizer.square_avg[0].min()) > torch.finfo(torch.float32).tiny
    gradient = torch.tensor([1e-3, 0.0, -2.0])
    optimizer.step([gradient])
    SharedRMSProp([fresh], 0.1, decay=0.9, eps=1e-5, eps_inside_root=inside).step([gradient])
    assert torch.equal(silent, fresh)


def test_adam_s_statistics_stay_normal_too():
    weights, tiny = torch.nn.Parameter(torch.zeros(2)), torch.finfo(torch.float32).tiny
    optimizer = SharedAdam([weights], 0.1, beta1=0.8, beta2=0.9)
    for gradient in (1.0, *[0.0] * 2000):
        optimizer.step([torch.tensor([gradient, -gradient])])
        assert optimizer.square[0].min().item() > tiny
        mean = optimizer.mean[0].abs()
        assert ((mean == 0) | (mean > tiny)).all()
    assert optimizer.mean[0].tolist() == [0, 0]
