"""The model by its properties: golden sizes, what mixes with what, and that every weight learns. Parity with others is test_parity.py."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from vitdemo import attention
from vitdemo.config import ConfigError, Preprocessing, TrainConfig, ViTConfig
from vitdemo.model import ViT, patchify, resize_positions, sinusoidal_positions
from vitdemo.presets import SIZES

TINY = ViTConfig(image=(12, 20), patch=(4, 4), channels=3, dim=10, depth=2, heads=2, mlp_dim=14, classes=3)
OPTIONS = {
    "as it is": {}, "sinusoidal positions": {"positions": "sinusoidal"}, "no positions": {"positions": "none"}, "hidden layer in the head": {"head": "mlp"},
    "mean pooling": {"pool": "mean", "class_token": False}, "mean pooling, pooled norm": {"pool": "mean", "norm_at": "pooled"},
    "linear patchifier": {"patchify": "linear"}, "grey": {"channels": 1}, "registers": {"registers": 4}, "unplaced registers": {"registers": 4, "prefix_positions": 1},
    "distilled": {"distilled": True}, "layer scale": {"layer_scale": True}, "no bias": {"qkv_bias": False}, "tall patches": {"patch": (6, 5)},
}


def make(config: ViTConfig = TINY, *, dtype: torch.dtype = torch.float64) -> ViT:
    """A model in which every parameter is random, so that nothing is hidden by a zero."""
    model = ViT(config).to(dtype)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.3 * torch.randn(p.shape, generator=generator, dtype=dtype))
    return model.eval()


def pictures(config: ViTConfig = TINY, batch: int = 5) -> torch.Tensor:
    return torch.randn(batch, config.channels, *config.image, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize(("size", "count"), [
    ("ti/16", 5_717_416), ("s/16", 22_050_664), ("b/16", 86_567_656), ("b/32", 88_224_232), ("l/16", 304_326_632), ("l/32", 306_535_400),
    ("h/14", 632_045_800), ("vit-micro", 683_242), ("vit-tiny-9.5m", 9_509_642),
])
def test_named_sizes_have_their_published_parameter_counts(size, count):
    with torch.device("meta"):
        assert sum(p.numel() for p in ViT(SIZES[size].config).parameters()) == count


def test_the_digit_model_cuts_seven_by_seven_patches_and_has_two_heads_of_width_four():
    config = SIZES["vit-mnist"].config
    assert (config.grid, config.tokens, config.head_dim, config.depth, config.channels) == ((7, 7), 50, 4, 2, 1)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_option_gives_logits_and_a_trace_equal_in_every_bit(options):
    config = TINY.with_(**options)
    model, images = make(config), pictures(config)
    trace = model.trace(images)
    assert trace.logits.shape == (5, 3) and trace.tokens.shape == (5, config.tokens, 10)
    assert torch.equal(trace.logits, model(images)) and torch.equal(trace.tokens, model.encode(images))
    assert trace.lens.shape == (5, 2, 3) and torch.equal(trace.lens[:, -1], trace.logits)
    shorter = ViT(config.with_(depth=1)).double().eval()                    # the lens after block 1: the model that ends there
    shorter.load_state_dict({name: weight for name, weight in model.state_dict().items() if "blocks.1" not in name})
    assert torch.allclose(trace.lens[:, 0], shorter(images), atol=1e-9)
    assert [q.shape for q in trace.queries] == [k.shape for k in trace.keys] == [(5, 2, config.tokens, 5)] * 2


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_after_one_backward_no_parameter_has_a_zero_or_missing_gradient(options):
    config = TINY.with_(**options)
    model = make(config).train()
    F.cross_entropy(model(pictures(config)), torch.tensor([0, 1, 2, 0, 1])).backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
    assert idle == []


def test_a_model_without_a_head_has_no_logits_but_hidden_states():
    model = make(TINY.with_(classes=0))
    assert model(pictures()).shape == (5, 0) and model.encode(pictures()).shape == (5, 16, 10)


def test_pictures_of_a_batch_do_not_mix():
    model, images = make(), pictures()
    together = model(images)
    images[2] += 1
    changed = (model(images) - together).abs().amax(1) > 1e-9
    assert changed.tolist() == [False, False, True, False, False]


def test_patches_and_their_positions_moved_together_change_nothing_and_patches_alone_do():
    model, z = make(), make().embed(pictures()) - make().pos_embed
    order = torch.cat((torch.tensor([0]), 1 + torch.randperm(15, generator=torch.Generator().manual_seed(5))))

    def logits(tokens, positions):
        for block in model.blocks:
            tokens, _ = block(tokens if positions is None else tokens + positions)
            positions = None
        return model.classify(model.norm(tokens))

    before = logits(z, model.pos_embed)
    assert torch.allclose(logits(z[:, order], model.pos_embed[:, order]), before, atol=1e-12)
    assert not torch.allclose(logits(z[:, order], model.pos_embed), before, atol=1e-3)


def test_without_positions_any_shuffle_of_patches_leaves_the_logits():
    model, images = make(TINY.with_(positions="none")), pictures()
    patches = patchify(images, (4, 4))[:, torch.randperm(15, generator=torch.Generator().manual_seed(5))]
    shuffled = F.fold(patches.transpose(1, 2), (12, 20), kernel_size=4, stride=4)
    assert not torch.equal(shuffled, images)
    assert torch.allclose(model(shuffled), model(images), atol=1e-12)


def test_patchify_is_unfold_and_the_reshape_of_a_height_width_channel_picture_is_not():
    images = pictures()
    right = F.unfold(images, kernel_size=4, stride=4).transpose(1, 2)
    assert torch.equal(patchify(images, (4, 4)), right)
    wrong = images.permute(0, 2, 3, 1).reshape(5, 15, 4 * 4 * 3)             # cuts strips, not squares
    assert not torch.allclose(wrong.sort(-1).values, right.sort(-1).values)


def test_the_linear_patchifier_equals_the_convolution():
    conv, linear = make(), make(TINY.with_(patchify="linear"))
    linear.load_state_dict(conv.state_dict())
    assert torch.allclose(conv.patch_embed(pictures()), linear.patch_embed(pictures()), atol=1e-12)


def test_sinusoidal_positions_are_those_of_the_formula():
    table = sinusoidal_positions(7, 6)
    assert table.shape == (1, 7, 6)
    for t, i in ((0, 0), (3, 2), (5, 4)):
        assert math.isclose(table[0, t, i].item(), math.sin(t / 10000 ** (i / 6)), abs_tol=1e-6)
        assert math.isclose(table[0, t, i + 1].item(), math.cos(t / 10000 ** (i / 6)), abs_tol=1e-6)


def test_a_larger_picture_of_another_shape_is_taken_with_resampled_positions():
    model = make()
    assert model.encode(torch.zeros(1, 3, 24, 8, dtype=torch.float64)).shape == (1, 13, 10)
    moved = resize_positions(model.pos_embed, (3, 5), (6, 2))
    assert torch.equal(moved[:, :1], model.pos_embed[:, :1]) and moved.shape == (1, 13, 10)


@pytest.mark.parametrize("shape", [(5, 3, 12, 21), (5, 1, 12, 20), (3, 12, 20), (5, 3, 0, 20)])
def test_images_that_do_not_fit_are_refused_with_their_shape(shape):
    with pytest.raises(ValueError, match=str(shape[-1])):
        make()(torch.zeros(shape, dtype=torch.float64))


def test_eight_random_pictures_are_memorised():
    torch.manual_seed(0)
    model, images, labels = make(dtype=torch.float32), pictures(batch=8).float(), torch.arange(8) % 3
    nn.init.zeros_(model.head.weight)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(150):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05 and (model(images).argmax(1) == labels).all()


def test_the_same_generator_draws_the_same_weights():
    one, two, other = (ViT(TINY, torch.Generator().manual_seed(seed)).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["blocks.0.attn.qkv.weight"], other["blocks.0.attn.qkv.weight"])


def test_matrices_are_drawn_as_the_config_says():
    wide = TINY.with_(dim=100, mlp_dim=300)
    normal, xavier = (ViT(wide.with_(init=init), torch.Generator().manual_seed(1)).blocks[0].mlp.fc1.weight for init in ("normal", "xavier"))
    assert abs(normal.std().item() - 0.0176) < 0.001 and normal.abs().max() <= 0.04           # a normal cut at two deviations
    assert xavier.abs().max() <= (6 / 400) ** 0.5 and abs(xavier.std().item() - (2 / 400) ** 0.5) < 0.003


def test_weights_from_queries_and_keys_give_what_the_fused_attention_gave():
    block = make().blocks[0]
    z = torch.randn(5, 16, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(6))
    out, (q, k, v, sa) = block.attn(z)
    assert torch.allclose(attention.weights(q, k) @ v, sa, atol=1e-12)
    rebuilt = block.attn.proj((attention.weights(q, k) @ v).transpose(1, 2).reshape(5, 16, 10))
    assert torch.allclose(rebuilt, out, atol=1e-12)


@pytest.mark.parametrize("change", [*OPTIONS.values(), {"head": "both"}, {"depth": 1}], ids=[*OPTIONS, "both", "one block"])
def test_what_is_spared_while_learning_changes_neither_logits_nor_gradients(change):
    config = TINY.with_(**change)
    model, images = make(config), pictures(config)
    found = []
    for spared in (False, True):
        model.train(spared).zero_grad()
        logits = model(images)
        F.cross_entropy(logits, torch.arange(5) % 3).backward()
        found.append([logits.detach(), *(p.grad.clone() for p in model.parameters())])
    assert all(torch.allclose(whole, few, atol=1e-12) for whole, few in zip(*found, strict=True))


@pytest.mark.parametrize(("change", "worked_out"), [({}, 1), ({"distilled": True, "registers": 3}, 5), ({"head": "both"}, 16),
                                                    ({"pool": "mean", "class_token": False}, 15)])
def test_the_last_block_works_out_only_what_the_classifier_reads_and_only_while_learning(change, worked_out):
    model = make(TINY.with_(**change))
    seen = []
    model.norm.register_forward_hook(lambda module, given, out: seen.append(out.shape[1]))
    model(pictures())
    model.train()(pictures())
    assert seen == [model.config.prefix + 15, worked_out]


def test_rows_sum_to_one_and_a_row_and_a_column_are_those_of_the_whole():
    trace = make().trace(pictures())
    whole = attention.weights(trace.queries[1], trace.keys[1])
    assert torch.allclose(whole.sum(-1), torch.ones(5, 2, 16, dtype=torch.float64))
    assert torch.allclose(attention.row(trace.queries[1], trace.keys[1], 7), whole[..., 7, :])
    assert torch.equal(attention.column(trace.queries[1], trace.keys[1], 7), whole[..., 7])


@pytest.mark.parametrize("token", [-1, 16, 1.0, True, "0", float("nan")])
def test_a_token_that_is_not_there_is_refused(token):
    trace = make().trace(pictures())
    with pytest.raises(ValueError, match="token must be a whole number from 0 to 15"):
        attention.row(trace.queries[0], trace.keys[0], token)


@pytest.mark.parametrize("options", [{}, {"registers": 4}, {"distilled": True}, {"pool": "mean", "class_token": False}])
def test_class_maps_start_after_the_models_own_prefix_and_keep_the_grids_shape(options):
    config = TINY.with_(**options)
    trace = make(config).trace(pictures(config))
    maps = attention.class_maps(trace.queries, trace.keys, prefix=config.prefix, grid=config.grid, class_token=config.class_token)
    assert maps.patches.shape == (5, 2, 2, 3, 5) and maps.prefix.shape == (5, 2, 2, config.prefix)
    assert torch.allclose(maps.patches.sum((-2, -1)) + maps.prefix.sum(-1), torch.ones(5, 2, 2, dtype=torch.float64))
    if config.class_token:
        whole = attention.weights(trace.queries[1], trace.keys[1])
        assert torch.allclose(maps.patches[:, 1].flatten(-2), whole[:, :, 0, config.prefix:])


def test_attention_forced_onto_one_patch_lights_that_patch():
    q, k = torch.zeros(1, 2, 16, 5), torch.zeros(1, 2, 16, 5)
    q[..., 0, :], k[..., 1 + 2 * 5 + 3, :] = 1, 20                          # the class token asks, row 2 column 3 answers
    maps = attention.class_maps([q], [k], prefix=1, grid=(3, 5)).patches[0, 0, 1]
    assert divmod(int(maps.argmax()), 5) == (2, 3) and maps.max() > 0.99


@pytest.mark.parametrize(("change", "said"), [
    ({"patch": (5, 4)}, "12 pixels cannot be cut into patches of 5"), ({"heads": 3}, "width of 10 cannot be shared by 3 heads"),
    ({"pool": "cls", "class_token": False}, "needs a class token"), ({"dim": 10**9}, "dim must lie between"), ({"classes": -1}, "classes must lie between"),
    ({"positions": "rotary"}, "positions must be one of"), ({"depth": "2"}, "depth must be of type int"), ({"depth": float("nan")}, "depth must be"),
    ({"image": (12,)}, "image must be two numbers"), ({"eps": 0.0}, "eps must lie"), ({"channels": True}, "channels must be of type int"),
    ({"dim": 9, "heads": 1, "positions": "sinusoidal"}, "even width"), ({"image": (4096, 4096), "patch": (1, 1)}, "number of tokens"),
])
def test_an_impossible_model_is_refused_in_words_before_it_is_built(change, said):
    with pytest.raises(ConfigError, match=said):
        TINY.with_(**change)


@pytest.mark.parametrize(("change", "said"), [
    ({"minutes": 1, "epochs": 1}, "one of minutes, epochs and steps"), ({"minutes": 0}, "one of minutes, epochs and steps"), ({"minutes": float("inf")}, "minutes"), ({"batch": 0}, "batch"),
    ({"stages": (0.5, 1.0)}, "2 stages need 1 stage ends"), ({"stages": (0.5, 1.0), "stage_ends": (1.5,)}, "rising shares"), ({"lr": -1.0}, "lr"),
    ({"optimizer": "sgd"}, "optimizer must be one of"), ({"seed": 0.5}, "seed must be of type int"),
])
def test_an_impossible_recipe_is_refused_in_words(change, said):
    with pytest.raises(ConfigError, match=said):
        TrainConfig(minutes=1).with_(**change)


@pytest.mark.parametrize("config", [TINY, TrainConfig(minutes=3, stages=(0.5, 1.0), stage_ends=(0.4,)), Preprocessing(channels=1, mean=(0.1,), std=(0.2,))])
def test_configs_go_into_json_and_back_unchanged(config):
    import json

    assert type(config).from_json(json.loads(json.dumps(config.to_json()))) == config
    with pytest.raises(ConfigError, match="no setting 'colour'"):
        type(config).from_json({"colour": 1})
