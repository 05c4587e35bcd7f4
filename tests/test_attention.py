"""What maps are computed from: against numbers worked out by hand, and against plain versions with whole T x T matrices."""

import math
import weakref

import pytest
import torch
import torch.nn.functional as F
from conftest import tiny_config
from torch.utils._python_dispatch import TorchDispatchMode

from vitdemo import attention
from vitdemo.model import ViT

KINDS = {
    "class token": {}, "registers": {"registers": 4}, "unplaced registers": {"registers": 4, "prefix_positions": 1},
    "distilled": {"distilled": True},
    "mean pool": {"pool": "mean", "class_token": False}, "mean pool, class token unread": {"pool": "mean"},
    "mean pool, registers": {"pool": "mean", "class_token": False, "registers": 4, "norm_at": "pooled"},
    "layer scale, hidden layer in the head": {"layer_scale": True, "head": "mlp"}, "tall patches": {"patch": (6, 5)},
}
every_kind = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)


def made(options: dict, batch: int = 5) -> tuple[ViT, torch.Tensor]:
    """A float64 model with weights large enough that heads differ, and pictures for it."""
    model, generator = ViT(tiny_config(**options)).double().eval(), torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.3 * torch.randn(p.shape, generator=generator, dtype=torch.float64))
    return model, torch.randn(batch, 3, *model.config.image, dtype=torch.float64, generator=generator)


def start_of(model: ViT) -> torch.Tensor:
    config = model.config
    return attention.reader(config.tokens, config.prefix, config.pool == "cls")


def from_weights(*blocks) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Queries and keys whose softmax is the given weights, each block (H, T, T) or (T, T): log A against unit vectors."""
    blocks = [torch.as_tensor(A, dtype=torch.float64).reshape(1, -1, len(A[-1]), len(A[-1])) for A in blocks]
    keys = [torch.eye(A.shape[-1], dtype=torch.float64).expand_as(A) for A in blocks]
    return [A.log() * A.shape[-1] ** 0.5 for A in blocks], keys


def one_hot(token: int, tokens: int) -> torch.Tensor:
    return F.one_hot(torch.tensor(token), tokens).double()


def close(got: torch.Tensor, wanted) -> bool:
    return torch.allclose(got.double(), torch.as_tensor(wanted, dtype=torch.float64), atol=1e-7)


# rollout

FIRST, SECOND = [[.5, .5], [.25, .75]], [[.25, .75], [.5, .5]]


def test_rollout_of_two_tokens_is_the_number_worked_out_by_hand():
    # a1 = (A1 + I)/2 = [[.75 .25] [.125 .875]], a2 = [[.625 .375] [.25 .75]]; row 0 of a2 a1 = .625 (.75 .25) + .375 (.125 .875)
    got = attention.rollout(*from_weights(FIRST, SECOND), start=one_hot(0, 2))
    assert got.shape == (1, 2)
    assert close(got, [[.515625, .484375]])
    assert not close(got, [[.3125, .6875]])                                 # A2 A1, without the residual
    swapped = attention.rollout(*from_weights(SECOND, FIRST), start=one_hot(0, 2))
    assert close(swapped, [[.53125, .46875]])


def test_rollout_up_to_a_layer_leaves_the_later_ones_out():
    blocks, start = from_weights(FIRST, SECOND), one_hot(1, 2)
    assert close(attention.rollout(*blocks, start=start, up_to=1), [[.125, .875]])
    assert torch.equal(attention.rollout(*blocks, start=start, up_to=2), attention.rollout(*blocks, start=start))


@pytest.mark.parametrize(("fusion", "wanted"), [
    ("mean", [.6875, .125, .1875]),             # ((.375 .25 .375) + (1 0 0)) / 2
    ("max", [2 / 3, 1 / 9, 2 / 9]),             # ((.5 .25 .5) + (1 0 0)) / 2.25: rows are brought back to sum 1
    ("min", [5 / 7, 1 / 7, 1 / 7]),             # ((.25 .25 .25) + (1 0 0)) / 1.75
])
def test_heads_are_fused_as_asked_and_rows_brought_back_to_one(fusion, wanted):
    other = [[.2, .3, .5], [.1, .6, .3]]
    blocks = from_weights([[[.5, .25, .25], *other], [[.25, .25, .5], *other]])
    assert close(attention.rollout(*blocks, start=one_hot(0, 3), fusion=fusion), [wanted])


@pytest.mark.parametrize(("token", "class_token", "wanted"), [
    (2, True, [.05 / 1.75, 0, 1.7 / 1.75]), (2, False, [0, 0, 1]), (0, True, [.6, .16, .24]), (0, False, [1 / 1.8, .32 / 1.8, .48 / 1.8]),
])
def test_the_lowest_weights_are_discarded_but_not_those_on_the_class_token(token, class_token, wanted):
    # half of nine is four: .05, .1, .2 (all in column 0) and .25
    blocks = from_weights([[.2, .32, .48], [.1, .6, .3], [.05, .25, .7]])
    assert close(attention.rollout(*blocks, start=one_hot(token, 3), discard=0.5, class_token=class_token), [wanted])


@pytest.mark.parametrize("class_token", [True, False])
def test_weights_that_are_all_alike_have_no_lowest(class_token):
    q = torch.zeros(5, 2, 7, 3)
    start = attention.reader(7, 1)
    got = attention.rollout([q], [q], start=start, discard=0.9, class_token=class_token)
    assert torch.equal(got, attention.rollout([q], [q], start=start))


@pytest.mark.parametrize("discard", [0.0, 0.3, 0.99])
@pytest.mark.parametrize("fusion", ["mean", "min", "max"])
@every_kind
def test_rollout_equals_the_product_of_whole_matrices(options, fusion, discard):
    model, images = made(options)
    with torch.no_grad():
        trace = model.trace(images)
    start, T = start_of(model), model.config.tokens
    got = attention.rollout(trace.queries, trace.keys, start=start, up_to=2, fusion=fusion, discard=discard,
                            class_token=model.config.class_token)
    for i in range(len(images)):
        product = torch.eye(T, dtype=torch.float64)
        for q, k in list(zip(trace.queries, trace.keys))[:2]:
            heads = (q[i] @ k[i].mT / math.sqrt(5)).softmax(-1)
            A = {"mean": heads.mean(0), "min": heads.min(0).values, "max": heads.max(0).values}[fusion]
            for place in A.flatten().argsort()[:int(discard * T * T)].tolist():
                if place % T or not model.config.class_token:
                    A[place // T, place % T] = 0
            a = (A + torch.eye(T)) / 2
            product = a / a.sum(1, keepdim=True) @ product
        assert close(got[i], start.double() @ product)
    assert close(got.sum(1), torch.ones(5))


# relevance

def test_relevance_of_two_tokens_is_the_number_worked_out_by_hand():
    A1, A2 = torch.tensor([[[[.5, .5], [.25, .75]]]]), torch.tensor([[[[.25, .75], [.5, .5]]]])
    G1, G2 = torch.tensor([[[[2., -4.], [4., 4.]]]]), torch.tensor([[[[-1., 4.], [2., -2.]]]])
    # Ā1 = [[1 0] [1 3]], Ā2 = [[0 3] [1 0]]; (1 0)(I + Ā2) = (1 3), times (I + Ā1) = (1 3) + (1+3 9)
    assert torch.equal(attention.relevance([(A2, G2), (A1, G1)], start=torch.tensor([1., 0.])), torch.tensor([[5., 12.]]))
    assert not torch.equal(attention.relevance([(A1, G1), (A2, G2)], start=torch.tensor([1., 0.])), torch.tensor([[5., 12.]]))


def test_negative_parts_are_cut_head_by_head_before_the_mean():
    A = torch.full((1, 2, 2, 2), .5)
    gradient = torch.tensor([[[[4., -8.], [0., 0.]], [[-8., 4.], [0., 0.]]]])
    assert torch.equal(attention.relevance([(A, gradient)], start=torch.tensor([1., 0.])), torch.tensor([[2., 1.]]))


def explicit(model: ViT, z: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Logits, with every block's A a tensor of the graph, written out without the fused attention."""
    kept = []
    for block in model.blocks:
        B, T, D = z.shape
        heads = block.attn.qkv(block.norm1(z)).split(D, dim=-1)
        q, k, v = (x.reshape(B, T, 2, D // 2).transpose(1, 2) for x in heads)
        A = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(D // 2), dim=-1)
        kept.append(A)
        z = z + block.ls1(block.attn.proj(torch.einsum("bhij,bhjd->bihd", A, v).reshape(B, T, D)))
        z = z + block.ls2(block.mlp(block.norm2(z)))
    return model.classify(model.norm(z)), kept


@pytest.mark.parametrize("klass", [0, 2])
@every_kind
def test_relevance_equals_the_product_of_whole_matrices_with_gradients_by_the_weights_themselves(options, klass):
    model, images = made(options)
    logits, kept = explicit(model, model.embed(images))
    gradients = torch.autograd.grad(logits[:, klass].sum(), kept)
    R = torch.eye(model.config.tokens, dtype=torch.float64).repeat(5, 1, 1)
    for A, gradient in zip(kept, gradients):
        R = R + (A * gradient).clamp(min=0).mean(1) @ R
    branches = model.branches(model.embed(images))
    pairs = attention.class_gradients(branches, klass)
    for (A, gradient), wanted_A, wanted in zip(pairs, reversed(kept), reversed(gradients), strict=True):
        assert torch.allclose(A, wanted_A, atol=1e-12)
        assert torch.allclose(gradient, wanted, rtol=1e-9, atol=1e-12)
    got = attention.class_relevance(branches, klass, start=start_of(model))
    assert got.shape == (5, model.config.tokens)
    assert not got.requires_grad
    assert close(got, start_of(model).double() @ R)
    assert not close(got, attention.class_relevance(branches, 1, start=start_of(model)))    # the same pass, another class


def test_relevance_leaves_no_gradient_on_any_parameter():
    model, images = made({})
    model.head.bias.grad = torch.full((3,), 7., dtype=torch.float64)
    attention.class_relevance(model.branches(model.embed(images)), 1, start=start_of(model))
    assert torch.equal(model.head.bias.grad, torch.full((3,), 7., dtype=torch.float64))
    assert all(p.grad is None for p in model.parameters() if p is not model.head.bias)


def test_weights_that_need_no_gradient_are_enough_if_the_tokens_do():
    model, images = made({})
    wanted = attention.class_relevance(model.branches(model.embed(images)), 1, start=start_of(model))
    branches = model.requires_grad_(False).branches(model.embed(images).requires_grad_())
    assert torch.equal(attention.class_relevance(branches, 1, start=start_of(model)), wanted)


# memory

class Squares(TorchDispatchMode):
    """Watches every operation: products of two T x T matrices, and how many tensors as large as (B, H, N, N) are alive at once."""

    def __init__(self, T: int, size: int):
        super().__init__()
        self.shape, self.size, self.products, self.alive, self.most = (T, T), size, 0, set(), 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        if func in (torch.ops.aten.mm.default, torch.ops.aten.bmm.default):
            self.products += all(a.shape[-2:] == self.shape for a in tensors)
        out = func(*args, **(kwargs or {}))
        for found in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(found, torch.Tensor) and found.numel() >= self.size:
                key = found.untyped_storage().data_ptr()
                self.alive.add(key)
                weakref.finalize(found.untyped_storage(), self.alive.discard, key)
        self.most = max(self.most, len(self.alive))
        return out


def watched(depth: int, ask) -> Squares:
    """`ask(model, trace, branches)` under watch, on a model of that depth with 19 tokens of head width 5."""
    model, images = made({"depth": depth, "registers": 3})
    with torch.no_grad():
        trace = model.trace(images)
    branches = model.branches(model.embed(images))
    with Squares(19, 5 * 2 * 15 * 15) as squares, torch.no_grad():
        result = ask(model, trace, branches)
    del result
    return squares


@pytest.mark.parametrize("ask", [
    lambda model, t, b: attention.columns(t.queries, t.keys, 7),
    lambda model, t, b: attention.rollout(t.queries, t.keys, start=start_of(model), discard=0.5),
    lambda model, t, b: attention.facts(t.queries, t.keys, prefix=4, grid=(3, 5), patch=(4, 4), start=attention.reader(19, 4, False)),
    lambda model, t, b: attention.class_relevance(b, 1, start=start_of(model)),
], ids=["columns", "rollout", "facts", "relevance"])
def test_no_function_multiplies_whole_matrices_or_needs_more_memory_for_more_layers(ask):
    shallow, deep = watched(1, ask), watched(6, ask)
    assert deep.products == 0
    assert 1 <= deep.most == shallow.most <= 3


def test_the_watch_notices_matrices_that_are_kept_and_matrices_multiplied():
    def careless(model, t, b):
        kept = [attention.weights(q, k) for q, k in zip(t.queries, t.keys)]
        return kept, kept[0] @ kept[-1]

    squares = watched(6, careless)
    assert squares.products == 1
    assert squares.most > 6


# rows, columns, maps, facts

@every_kind
def test_rows_and_columns_are_those_of_the_weights_of_every_layer(options):
    model, images = made(options)
    trace = model.trace(images)
    whole = torch.stack([attention.weights(q, k) for q, k in zip(trace.queries, trace.keys)], dim=1)    # (B, L, H, T, T)
    last = model.config.tokens - 1
    for token in (0, 7, last) if last > 7 else (0, last):
        assert torch.allclose(attention.rows(trace.queries, trace.keys, token), whole[..., token, :], atol=1e-12)
        assert torch.allclose(attention.columns(trace.queries, trace.keys, token), whole[..., token], atol=1e-12)


@every_kind
def test_the_reader_is_the_class_token_or_every_patch_alike(options):
    config = tiny_config(**options)
    start = attention.reader(config.tokens, config.prefix, config.pool == "cls")
    assert start.sum() == pytest.approx(1)
    assert start.nonzero()[:, 0].tolist() == ([0] if config.pool == "cls" else list(range(config.prefix, config.tokens)))


@every_kind
def test_class_maps_are_what_the_reader_reads(options):
    model, images = made(options)
    config, trace = model.config, model.trace(images)
    maps = attention.class_maps(trace.queries, trace.keys, prefix=config.prefix, grid=config.grid, class_token=config.pool == "cls")
    whole = torch.stack([attention.weights(q, k) for q, k in zip(trace.queries, trace.keys)], dim=1)
    wanted = whole[..., 0, :] if config.pool == "cls" else whole[..., config.prefix:, :].mean(-2)
    assert maps.patches.shape == (5, 3, 2, *config.grid)
    assert close(maps.prefix, wanted[..., :config.prefix])
    assert close(maps.patches.flatten(-2), wanted[..., config.prefix:])


@every_kind
def test_facts_equal_those_of_loops(options):
    model, images = made(options, batch=2)
    config, trace = model.config, model.trace(images)
    (rows, cols), (tall, wide), prefix, start = config.grid, config.patch, config.prefix, start_of(model).tolist()
    with torch.no_grad():
        got = attention.facts(trace.queries, trace.keys, prefix=prefix, grid=config.grid, patch=config.patch, start=start_of(model))
    for b in range(2):
        for layer, (q, k) in enumerate(zip(trace.queries, trace.keys)):
            for head, A in enumerate(attention.weights(q, k)[b].tolist()):
                read = [sum(s * line[j] for s, line in zip(start, A)) for j in range(config.tokens)]
                distances = []
                for i in range(rows * cols):
                    line = A[prefix + i][prefix:]
                    distances.append(sum(w / sum(line) * math.hypot((i // cols - j // cols) * tall, (i % cols - j % cols) * wide)
                                         for j, w in enumerate(line)))
                entropy = -sum(w * math.log(w) for w in read)
                assert [float(fact[b, layer, head]) for fact in got] == pytest.approx(
                    [entropy, math.exp(entropy), sum(distances) / len(distances), sum(read[:prefix])], rel=1e-6)


def test_an_even_head_beside_one_that_reads_a_single_token():
    T = 17                                      # two prefix tokens and 3 x 5 patches of 4 x 6 pixels
    q, k = torch.zeros(1, 2, T, 5, dtype=torch.float64), torch.zeros(1, 2, T, 5, dtype=torch.float64)
    q[:, 1, :, 0], k[:, 1, 1, 0] = 1e4, 1       # head 1: everyone reads token 1, a prefix token, and nothing else
    for class_token in (True, False):
        got = attention.facts([q], [k], prefix=2, grid=(3, 5), patch=(4, 6), start=attention.reader(T, 2, class_token))
        assert close(got.entropy[0, 0], [math.log(T), 0])
        assert torch.allclose(got.effective[0, 0], torch.tensor([17., 1.], dtype=torch.float64))
        assert close(got.prefix[0, 0], [2 / 17, 1])
        assert got.distance.isfinite().all()    # nothing on patches at all, and still no 0/0


def test_a_head_that_reads_the_first_patch_is_as_far_as_patches_are_from_it():
    q, k = torch.zeros(1, 1, 7, 5), torch.zeros(1, 1, 7, 5)
    q[..., 0], k[:, :, 1, 0] = 1e4, 1           # one prefix token, 2 x 3 patches of 30 x 40 pixels, all reading the first
    got = attention.facts([q], [k], prefix=1, grid=(2, 3), patch=(30, 40), start=attention.reader(7, 1))
    assert got.distance.item() == pytest.approx((0 + 40 + 80 + 30 + 50 + math.hypot(30, 80)) / 6, rel=1e-6)


# refusals

def asked(**changes):
    q = torch.zeros(5, 2, 16, 3)
    return attention.rollout([q, q], [q, q], **{"start": attention.reader(16, 1), **changes})


@pytest.mark.parametrize(("changes", "said"), [
    ({"up_to": 0}, "up_to must be a whole number from 1 to 2, the number of layers, not 0"), ({"up_to": 3}, "not 3"),
    ({"up_to": True}, "not True"), ({"up_to": 1.0}, "not 1.0"), ({"up_to": math.nan}, "not nan"),
    ({"fusion": "median"}, "fusion must be one of mean, min, max, not 'median'"), ({"fusion": ["mean"]}, "fusion"),
    ({"discard": 1.0}, "discard must be a share from 0 to below 1, not 1.0"), ({"discard": -0.1}, "not -0.1"),
    ({"discard": math.nan}, "not nan"), ({"discard": "0.5"}, "not '0.5'"), ({"start": torch.ones(15)}, "16 finite numbers"),
    ({"start": torch.full((16,), math.nan)}, "16 finite numbers"),
])
def test_impossible_rollouts_are_refused_in_words(changes, said):
    with pytest.raises(ValueError, match=said):
        asked(**changes)


@pytest.mark.parametrize("klass", [3, -1, True, 1.0, math.nan, None])
def test_a_class_the_model_does_not_know_is_refused(klass):
    model, images = made({})
    with pytest.raises(ValueError, match="the model has 3 classes, numbered from 0"):
        attention.class_relevance(model.branches(model.embed(images)), klass, start=start_of(model))


def test_a_model_without_a_head_and_a_pass_without_gradients_are_refused():
    model, images = made({"classes": 0})
    with pytest.raises(ValueError, match="0 classes"):
        attention.class_relevance(model.branches(model.embed(images)), 0, start=start_of(model))
    model, images = made({})
    with torch.no_grad(), pytest.raises(ValueError, match="kept no gradients"):
        attention.class_relevance(model.branches(model.embed(images)), 0, start=start_of(model))


@pytest.mark.parametrize(("T", "prefix", "class_token"), [(16, 0, True), (16, 16, True), (16, -1, False), (16, 17, False)])
def test_a_reader_that_is_not_there_is_refused(T, prefix, class_token):
    with pytest.raises(ValueError, match="prefix must lie between"):
        attention.reader(T, prefix, class_token)


@pytest.mark.parametrize("token", [16, -1, True, 1.0])
@pytest.mark.parametrize("ask", [attention.rows, attention.columns])
def test_rows_and_columns_of_no_token_are_refused(ask, token):
    q = torch.zeros(5, 2, 16, 3)
    with pytest.raises(ValueError, match="token must be a whole number from 0 to 15"):
        ask([q], [q], token)


def test_facts_on_a_grid_that_does_not_fit_are_refused():
    q = torch.zeros(5, 2, 16, 3)
    with pytest.raises(ValueError, match="16 tokens are not 2 prefix tokens and a grid of 3 x 5"):
        attention.facts([q], [q], prefix=2, grid=(3, 5), patch=(4, 4), start=attention.reader(16, 2))
