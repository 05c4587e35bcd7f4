"""Pictures explained without a page: the maps, and everything else that can be asked about an explanation, against loops."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import seeded
from PIL import Image

from vitdemo import checkpoint
from vitdemo.attention import weights
from vitdemo.explain import Explanation, explain, untrained
from vitdemo.images import PictureError, to_input
from vitdemo.payload import payload

KINDS = {"plain": {}, "registers": {"registers": 2}, "distilled": {"distilled": True}, "averaged": {"pool": "mean", "class_token": False},
         "averaged beside a class token": {"pool": "mean", "registers": 1}, "headless": {"classes": 0}, "class token and mean": {"head": "both"},
         "uneven patches": {"patch": (4, 2), "image": (12, 10)}, "made for another grid": {"image": (16, 8)}}


def of_kind(name: str) -> checkpoint.Loaded:
    """A seeded model that looks at a grid of 3 x 5 patches, also where its own one is another."""
    loaded = seeded(**KINDS[name])
    rows, cols = loaded.config.patch
    return replace(loaded, preprocessing=loaded.preprocessing.with_(size=(3 * rows, 5 * cols)))


@pytest.fixture(params=KINDS)
def result(request, photo) -> Explanation:
    return explain(photo, of_kind(request.param))


def whole(result: Explanation) -> np.ndarray:
    """All weights of all layers and heads, (layers, heads, T, T), by the softmax of equation (6) written out."""
    found = []
    for q, k in zip(result.trace.queries, result.trace.keys, strict=True):
        scores = q[0].double().numpy() @ k[0].double().numpy().swapaxes(1, 2) / np.sqrt(q.shape[-1])
        powers = np.exp(scores - scores.max(2, keepdims=True))
        found.append(powers / powers.sum(2, keepdims=True))
    return np.stack(found)


def start_of(result: Explanation) -> np.ndarray:
    """Who reads: token 0, or every patch alike."""
    config, start = result.loaded.config, np.zeros(result.tokens)
    start[slice(config.prefix, None) if config.pool == "mean" else 0] = 1 / (15 if config.pool == "mean" else 1)
    return start


def test_maps_have_the_grids_shape_and_each_head_sums_to_one_with_its_prefix(tiny, photo):
    result = explain(photo, tiny)
    assert result.attention.shape == (3, 2, 3, 5) and result.prefix_attention.shape == (3, 2, 1) and result.grid == (3, 5)
    assert np.allclose(result.attention.sum((2, 3)) + result.prefix_attention.sum(2), 1, atol=1e-6)
    assert result.probabilities.sum() == pytest.approx(1, abs=1e-6) and result.uniform == 1 / 16
    assert result.picture.size == (300, 200) and result.seen.size == (20, 12)


def test_the_maps_are_the_class_tokens_rows_of_the_models_own_attention(tiny, photo):
    result = explain(photo, tiny)
    trace = tiny.model.trace(to_input(Image.open(photo), tiny.preprocessing, tiny.config.patch).tensor)
    for layer in range(3):
        whole = weights(trace.queries[layer], trace.keys[layer])[0, :, 0]
        assert np.allclose(result.attention[layer].reshape(2, 15), whole[:, 1:].detach().numpy(), atol=1e-6)
    assert np.allclose(result.probabilities, trace.logits.softmax(-1)[0].detach().numpy(), atol=1e-6)


def test_top_is_in_order_and_never_longer_than_the_classes(tiny, photo):
    top = explain(photo, tiny).top(9)
    assert len(top) == 3 and [p for _, p in top] == sorted((p for _, p in top), reverse=True)
    assert dict(top) == pytest.approx(dict(zip(tiny.classes, explain(photo, tiny).probabilities.tolist(), strict=True)))


def test_a_turned_photo_gives_the_maps_of_the_upright_one(tiny, photo, tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    image = Image.open(photo)
    image.save(tmp_path / "upright.png")
    image.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "turned.png", exif=exif)
    one, two = explain(tmp_path / "upright.png", tiny), explain(tmp_path / "turned.png", tiny)
    assert np.array_equal(one.attention, two.attention)


def test_a_flat_picture_has_no_nan_anywhere(tiny):
    for colour in ("black", "white"):
        result = explain(Image.new("RGB", (64, 64), colour), tiny)
        assert np.isfinite(result.attention).all() and np.isfinite(result.probabilities).all()


def test_a_model_without_a_head_has_maps_and_no_classes(photo):
    result = explain(photo, seeded(classes=0))
    assert result.top() == [] and result.attention.shape == (3, 2, 3, 5) and result.lens.shape == (3, 0) and result.probabilities.shape == (0,)
    for klass in (0, "red"):
        for ask in (result.class_index, result.relevance):
            with pytest.raises(ValueError, match="no classes"):
                ask(klass)


def test_without_a_model_the_one_in_the_box_answers_and_it_knows_the_ten_classes(photo):
    result = explain(photo)
    assert len(result.classes) == 10 and "airplane" in result.classes and result.attention.shape[2:] == (8, 8)


def test_a_picture_that_is_none_raises_its_own_error(tiny):
    with pytest.raises(PictureError):
        explain(b"nothing", tiny)


def test_explaining_leaves_no_gradients_and_no_state_on_the_model(tiny, photo):
    before = {name: set(vars(module)) for name, module in tiny.model.named_modules()}
    explain(photo, tiny)
    assert before == {name: set(vars(module)) for name, module in tiny.model.named_modules()}
    assert all(p.grad is None for p in tiny.model.parameters()) and torch.is_grad_enabled()


def test_every_tokens_row_and_column_are_those_of_the_whole_matrix(result):
    A = whole(result)
    for token in range(result.tokens):
        assert np.allclose(result.reads(token), A[:, :, token], atol=1e-6) and np.allclose(result.read_by(token), A[:, :, :, token], atol=1e-6)


def test_without_a_token_the_reader_reads_and_that_is_what_attention_holds(result):
    found, prefix = result.reads(), result.loaded.config.prefix
    assert np.allclose(found, np.einsum("t,lhts->lhs", start_of(result), whole(result)), atol=1e-6)
    assert np.array_equal(found[..., :prefix], result.prefix_attention) and np.array_equal(result.patches(found), result.attention)
    assert result.tokens == prefix + 15 and result.uniform == 1 / result.tokens
    assert result.reader == ("the average patch" if result.loaded.config.pool == "mean" else "the class token")


@pytest.mark.parametrize("fusion", ["mean", "min", "max"])
def test_rollout_is_the_product_of_the_layers_halves_up_to_the_one_asked_for(result, fusion):
    A = getattr(whole(result), fusion)(1)
    for up_to in (1, 2, 3, None):
        product = np.eye(result.tokens)
        for one in A[:up_to]:
            half = one + np.eye(result.tokens)
            product = half / half.sum(1, keepdims=True) @ product
        found = result.rollout(up_to, fusion=fusion)
        assert np.allclose(found, start_of(result) @ product, atol=1e-6) and found.sum() == pytest.approx(1, abs=1e-5)


def test_rollout_that_discards_keeps_only_the_strongest_weights_and_the_class_tokens_column(result):
    A, share = whole(result).mean(1), 0.8
    product = np.eye(result.tokens)
    for one in A:
        low = one < np.sort(one.ravel())[int(share * one.size)]
        if result.loaded.config.class_token:
            low[:, 0] = False
        half = np.where(low, 0, one) + np.eye(result.tokens)
        product = half / half.sum(1, keepdims=True) @ product
    assert np.allclose(result.rollout(discard=share), start_of(result) @ product, atol=1e-5)


def logit_and_weights(result: Explanation, klass: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The logit of a class and every layer's weights that it was made with: the model's equations once more, by hand."""
    model, A = result.loaded.model, []
    z = model.embed(result.tensor.clone())
    for block in model.blocks:
        q, k, v = block.attn.qkv(block.norm1(z)).view(1, result.tokens, 3, model.config.heads, -1).permute(2, 0, 3, 1, 4)
        A.append((q @ k.transpose(2, 3) / q.shape[3] ** 0.5).softmax(3))
        z = z + block.attn.proj((A[-1] @ v).transpose(1, 2).flatten(2))
        z = z + block.mlp(block.norm2(z))
    return model.classify(model.norm(z))[0, klass], A


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "headless"])
@pytest.mark.parametrize("klass", [0, 2])
def test_relevance_is_equations_5_and_6_without_the_identity(photo, kind, klass):
    result = explain(photo, of_kind(kind))
    logit, A = logit_and_weights(result, klass)
    assert logit.item() == pytest.approx(result.trace.logits[0, klass].item(), abs=1e-4)
    R = np.eye(result.tokens)
    for one, gradient in zip(A, torch.autograd.grad(logit, A), strict=True):
        R = R + (gradient * one).clamp(min=0).mean(1)[0].detach().numpy() @ R
    read, prefix = start_of(result), result.loaded.config.prefix
    if kind == "distilled":                                                 # the answer is the mean of what two tokens say
        read = np.eye(result.tokens)[:2].mean(0)
    elif kind == "class token and mean":
        read = (read + np.eye(result.tokens)[prefix:].mean(0)) / 2
    expected = np.clip(read @ (R - np.eye(result.tokens)), 0, None)
    found = result.relevance(klass)
    assert found.max() > 0 and np.allclose(found, expected, atol=1e-5 * max(1, expected.max()))
    assert np.array_equal(found, result.relevance(result.classes[klass]))
    assert all(p.grad is None for p in result.loaded.model.parameters())


def test_relevance_differs_by_class_and_works_where_no_gradients_are_wanted(tiny, photo):
    result = explain(photo, tiny)
    with torch.inference_mode():
        one = result.relevance("blue")
    assert np.array_equal(one, result.relevance(0)) and not np.allclose(one, result.relevance("red"))


def test_facts_are_those_of_the_whole_matrix(result):
    assert result.grid == (3, 5)
    facts, A, config = result.facts(), whole(result), result.loaded.config
    row = np.einsum("t,lhts->lhs", start_of(result), A)
    entropy = -(row * np.log(row)).sum(2)
    assert facts.entropy.shape == (1, 3, 2) and np.allclose(facts.entropy[0], entropy, atol=1e-5)
    assert np.allclose(facts.effective[0], np.exp(entropy), atol=1e-4) and np.allclose(facts.prefix[0], row[..., :config.prefix].sum(2), atol=1e-6)
    far = np.zeros((3, 2))
    for layer, head, one, two in np.ndindex(3, 2, 15, 15):
        apart = np.hypot((one // 5 - two // 5) * config.patch[0], (one % 5 - two % 5) * config.patch[1])
        patches = A[layer, head, config.prefix + one, config.prefix:]
        far[layer, head] += patches[two] / patches.sum() * apart / 15
    assert np.allclose(facts.distance[0], far, atol=1e-4)


def test_the_lens_reads_the_classifier_after_every_layer_and_ends_with_the_answer(photo):
    for changes in ({}, {"pool": "mean", "class_token": False}, {"distilled": True}):
        result = explain(photo, seeded(**changes))
        model, z = result.loaded.model, result.embedded()
        for layer, block in enumerate(model.blocks):
            z, _ = block(z)
            assert np.allclose(result.lens[layer], model.classify(model.norm(z)).softmax(-1)[0].detach().numpy(), atol=1e-5)
        assert np.allclose(result.lens[-1], result.probabilities, atol=1e-6) and np.allclose(result.lens.sum(1), 1, atol=1e-5)


def test_the_twin_knows_how_the_picture_was_read_and_where_it_lies(tiny):
    result = explain(Image.new("RGB", (40, 20), "red"), tiny, fit="pad")
    twin = result.twin()
    assert result.notes and twin.notes == result.notes and twin.lies == result.lies and twin.original.size == result.original.size == (40, 20)


def test_the_twin_sees_the_same_picture_with_weights_that_learned_nothing(tiny, photo):
    result = explain(photo, tiny)
    twin, again, other = result.twin(), result.twin(), result.twin(seed=5)
    assert np.array_equal(twin.attention, again.attention) and not np.array_equal(twin.attention, other.attention)
    assert twin.attention.shape == result.attention.shape and not np.allclose(twin.attention, result.attention, atol=1e-3)
    assert twin.tensor is result.tensor and twin.picture is result.picture and twin.geometry == result.geometry
    assert twin.classes == result.classes and twin.loaded.config == tiny.config and "untrained" in twin.model and twin.loaded.provenance["notes"] == ["random weights"]
    assert np.abs(twin.attention - 1 / 16).max() < 0.02                     # before training hardly any token stands out
    assert twin.relevance(0).shape == (16,) and twin.rollout().sum() == pytest.approx(1, abs=1e-5)
    assert np.array_equal(explain(photo, untrained(tiny)).attention, twin.attention)


def test_a_class_is_named_by_number_or_by_name_and_others_are_refused(tiny, photo):
    result = explain(photo, tiny)
    assert [result.class_index(name) for name in tiny.classes] == [result.class_index(i) for i in range(3)] == [0, 1, 2]
    for wrong in ("cat", "", "0", -1, 3, True, 1.0, None):
        with pytest.raises(ValueError, match="knows 3 classes, numbered from 0; .* is none of them"):
            result.class_index(wrong)


@pytest.mark.parametrize("token", [-1, 16, True, 2.0, "0"])
def test_a_token_that_is_not_there_is_refused(tiny, photo, token):
    result = explain(photo, tiny)
    for ask in (result.reads, result.read_by):
        with pytest.raises(ValueError, match="from 0 to 15"):
            ask(token)


@pytest.mark.parametrize("bad", [{"up_to": 0}, {"up_to": 4}, {"up_to": True}, {"fusion": "sum"}, {"discard": 1.0}, {"discard": float("nan")}])
def test_a_rollout_that_is_none_is_refused(tiny, photo, bad):
    with pytest.raises(ValueError):
        explain(photo, tiny).rollout(**bad)


def test_everything_works_on_a_picture_of_grey_shades(photo):
    result = explain(photo, checkpoint.Loaded(seeded(channels=1).model, ("a", "b", "c"), seeded().preprocessing.with_(channels=1, mean=(0.5,), std=(0.5,)), {}, "grey"))
    assert result.seen.mode == "L" and result.relevance("b").shape == (16,) and result.twin().attention.shape == (3, 2, 3, 5)


def test_of_two_classes_with_one_name_the_one_that_leads_is_meant(tiny, photo):
    twins = checkpoint.Loaded(tiny.model, ("crane", "crane", "crane"), tiny.preprocessing, {}, "cranes")
    result = explain(photo, twins)
    assert result.leading() == np.argsort(-result.probabilities, kind="stable").tolist()
    assert payload(result)["leading"] == result.leading() and [name for name, _ in result.top()] == ["crane"] * 3
