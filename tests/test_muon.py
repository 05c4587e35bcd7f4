"""Muon for all blocks at once moves every matrix as PyTorch's own does, one after the other."""

import copy

import pytest
import torch

from vitdemo.muon import Muon, orthogonal

SHAPES = [(12, 12), (36, 12), (12, 12), (48, 12), (12, 48), (36, 12), (48, 12)]


@pytest.mark.parametrize("nesterov", [True, False])
def test_every_matrix_moves_as_by_pytorchs_own_muon_to_the_bit(nesterov):
    generator = torch.Generator().manual_seed(0)
    ours = [torch.randn(shape, generator=generator).requires_grad_() for shape in SHAPES]
    theirs = [copy.deepcopy(p) for p in ours]
    settings = {"lr": 0.02, "momentum": 0.9, "weight_decay": 0.1, "nesterov": nesterov, "adjust_lr_fn": "original"}
    one, other = Muon(ours, **settings), torch.optim.Muon(theirs, **settings)
    for _ in range(4):
        for p, q in zip(ours, theirs, strict=True):
            p.grad = torch.randn(p.shape, generator=generator)
            q.grad = p.grad.clone()
        ours[3].grad = theirs[3].grad = None                                # what did not take part stays
        one.step()
        other.step()
    assert all(torch.equal(p, q) for p, q in zip(ours, theirs, strict=True))
    moved, resumed = one.state_dict()["state"], other.state_dict()["state"]
    assert moved.keys() == resumed.keys() and all(torch.equal(moved[k]["momentum_buffer"], resumed[k]["momentum_buffer"]) for k in moved)


def test_a_direction_keeps_the_singular_vectors_and_evens_out_their_lengths():
    matrices = torch.randn(3, 8, 20, generator=torch.Generator().manual_seed(1))
    found = orthogonal(matrices, (3.4445, -4.775, 2.0315), 5, 1e-7).float()
    U, S, V = torch.linalg.svd(matrices, full_matrices=False)
    lengths = torch.einsum("nri,nrc,nic->ni", U, found, V)                  # along each pair of singular vectors
    assert ((lengths > 0.5) & (lengths < 1.4)).all() and (S.amax(1) / S.amin(1) > 2.5).all()
    assert torch.allclose(U * lengths[:, None] @ V, found, atol=0.05)
