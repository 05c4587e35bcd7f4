"""Muon for all blocks at once moves every matrix as PyTorch's own does, one after the other in bfloat16."""

import copy

import pytest
import torch

from vitdemo.muon import Muon, orthogonal

SHAPES = [(12, 12), (36, 12), (12, 12), (48, 12), (12, 48), (36, 12), (48, 12)]
COEFFICIENTS = (3.4445, -4.775, 2.0315)


def close(one, other, share):
    return (one.double() - other.double()).norm() <= share * other.double().norm()


@pytest.mark.parametrize("numbers", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("nesterov", [True, False])
def test_every_matrix_moves_as_by_pytorchs_own_muon_but_for_the_rounding_of_its_bfloat16(nesterov, numbers):
    generator = torch.Generator().manual_seed(0)
    ours = [torch.randn(shape, generator=generator).requires_grad_() for shape in SHAPES]
    theirs, before = [copy.deepcopy(p) for p in ours], [p.detach().clone() for p in ours]
    settings = {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.1, "nesterov": nesterov, "adjust_lr_fn": "original"}
    one, other = Muon(ours, numbers=numbers, **settings), torch.optim.Muon(theirs, **settings)
    for _ in range(4):
        for p, q in zip(ours, theirs, strict=True):
            p.grad = torch.randn(p.shape, generator=generator)
            q.grad = p.grad.clone()
        ours[3].grad = theirs[3].grad = None                                # what did not take part stays
        one.step()
        other.step()
    for p, q, start in zip(ours, theirs, before, strict=True):
        assert close(p.detach() - start, q.detach() - start, 0.02)
    assert torch.equal(ours[3], before[3]) and not torch.equal(ours[0], before[0])
    moved, resumed = one.state_dict()["state"], other.state_dict()["state"]
    assert moved.keys() == resumed.keys() and all(torch.equal(moved[k]["momentum_buffer"], resumed[k]["momentum_buffer"]) for k in moved)


def test_matrices_that_are_stacked_in_one_parameter_move_as_if_each_were_its_own():
    generator = torch.Generator().manual_seed(0)
    stack, other = torch.randn(36, 12, generator=generator).requires_grad_(), torch.randn(36, 12, generator=generator).requires_grad_()
    apart, same = [part.detach().clone().requires_grad_() for part in stack.chunk(3)], other.detach().clone().requires_grad_()
    settings = {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.1}
    one, many = Muon([stack, other], stacked={id(stack): 3}, **settings), Muon([*apart, same], **settings)
    for _ in range(3):
        stack.grad, other.grad = (torch.randn(36, 12, generator=generator) for _ in range(2))
        stack.grad[:24] *= 1e-3                                             # as those of queries and keys are beside the values'
        same.grad = other.grad.clone()
        for part, gradient in zip(apart, stack.grad.chunk(3), strict=True):
            part.grad = gradient.clone()
        before = stack.detach().clone()
        one.step()
        many.step()
        steps = (stack.detach() - before).view(3, -1).norm(dim=1)
        assert steps.max() < 1.5 * steps.min()
    assert torch.allclose(stack, torch.cat(apart), atol=1e-6) and torch.allclose(other, same, atol=1e-6)


@pytest.mark.parametrize("rank", [1, 3, 8])
@pytest.mark.parametrize("steps", [1, 5])
@pytest.mark.parametrize("cols", [8, 20])
def test_the_iteration_in_float32_is_the_one_of_the_whole_matrices_by_whichever_products(rank, steps, cols):
    """Also of gradients of a few directions, with which the other ones must not be filled up by rounding."""
    generator = torch.Generator().manual_seed(rank)
    matrices = torch.randn(3, 8, rank, generator=generator) @ torch.randn(3, rank, cols, generator=generator) + 1e-5 * torch.randn(3, 8, cols, generator=generator)
    a, b, c = COEFFICIENTS
    X = matrices.double()
    X = X / torch.linalg.matrix_norm(X, keepdim=True)
    for _ in range(steps):
        A = X @ X.mT
        X = a * X + (b * A + c * A @ A) @ X
    found = orthogonal(matrices, COEFFICIENTS, steps, 1e-7)
    assert found.dtype == torch.float32 and close(found, X, 1e-3)


@pytest.mark.parametrize("numbers", [torch.float32, torch.bfloat16])
def test_a_matrix_of_zeros_stays_one(numbers):
    assert torch.equal(orthogonal(torch.zeros(2, 3, 5), COEFFICIENTS, 5, 1e-7, numbers), torch.zeros(2, 3, 5))


@pytest.mark.parametrize("cols", [8, 20])
@pytest.mark.parametrize("numbers", [torch.float32, torch.bfloat16])
def test_the_iteration_multiplies_in_the_numbers_that_it_is_told(numbers, cols, monkeypatch):
    seen, product = [], torch.baddbmm
    monkeypatch.setattr(torch, "baddbmm", lambda *given, **more: seen.extend(one.dtype for one in given) or product(*given, **more))
    found = orthogonal(torch.randn(3, 8, cols, generator=torch.Generator().manual_seed(0)), COEFFICIENTS, 5, 1e-7, numbers)
    assert seen and {*seen} == {numbers} and found.dtype == torch.float32


def test_a_direction_keeps_the_singular_vectors_and_evens_out_their_lengths():
    matrices = torch.randn(3, 8, 20, generator=torch.Generator().manual_seed(1))
    found = orthogonal(matrices, COEFFICIENTS, 5, 1e-7)
    U, S, V = torch.linalg.svd(matrices, full_matrices=False)
    lengths = torch.einsum("nri,nrc,nic->ni", U, found, V)                  # along each pair of singular vectors
    assert ((lengths > 0.5) & (lengths < 1.4)).all() and (S.amax(1) / S.amin(1) > 2.5).all()
    assert torch.allclose(U * lengths[:, None] @ V, found, atol=1e-4)


def test_another_scale_of_its_steps_is_refused_and_not_passed_over():
    matrix = torch.zeros(3, 2, requires_grad=True)
    Muon([matrix], lr=0.1)                                                  # PyTorch's own default is the original's
    with pytest.raises(ValueError, match="adjust_lr_fn"):
        Muon([matrix], lr=0.1, adjust_lr_fn="match_rms_adamw")
