"""Files to take home: their names, their kinds, and numbers in them that are the explanation's own."""

import io
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

import matplotlib
import numpy as np
import pytest
from conftest import seeded
from matplotlib.figure import Figure
from PIL import Image

from vitdemo import answers, checkpoint
from vitdemo.explain import Explanation, explain
from vitdemo.takehome import KINDS, save_maps, take, token_name, view_figure, view_title

VIEW = {"kind": "attention", "direction": "reads", "token": None, "layer": 1, "head": 1, "up_to": 3, "fusion": "mean", "discard": 0.0, "klass": 0}
VIEWS = {"head": {}, "mean of heads": {"head": "mean"}, "read by": {"direction": "read_by", "token": 4, "head": "max"}, "patch reads": {"token": 9, "head": "min"},
         "rollout": {"kind": "rollout", "up_to": 2, "fusion": "max", "discard": 0.25}, "relevance": {"kind": "relevance", "klass": 2},
         "mean attention": {"kind": "mean attention"}, "occlusion": {"kind": "occlusion", "klass": 1}}
FEATURES = {"Similarity to the patch in row 2, column 4": {"kind": "similarity", "token": 9}, "Similarity to the class token": {"kind": "similarity"},
            "Length of tokens after layer 2": {"kind": "norms"}, "Feature colours": {"kind": "colours", "part": "all"},
            "Feature colours of the foreground": {"kind": "colours", "part": "foreground"}}


@pytest.fixture(scope="module")
def result(tiny, photo) -> Explanation:
    return explain(photo, tiny)


def shown(figure: Figure) -> tuple[str, str, float, str]:
    """Title, small print, the scale's end, and what the scale measures."""
    return figure.get_suptitle(), figure.get_supxlabel(), figure.axes[1].get_ylim()[1], figure.axes[1].get_ylabel()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_is_what_its_name_and_type_say(kind, result):
    name = result.top()[0][0]
    taken = take(result, kind, VIEW)
    assert taken.name == {"png": f"{name}-layer-2-head-2.png", "svg": f"{name}-layer-2-head-2.svg", "sheet": f"{name}-all-heads.png", "npz": f"{name}-maps.npz", "report": f"{name}-report.html"}[kind]
    if kind in ("png", "sheet"):
        image = Image.open(io.BytesIO(taken.data))
        assert taken.type == "image/png" and image.format == "PNG" and image.width > 400 and len(image.convert("RGB").getcolors(10**7)) > 50
    elif kind == "svg":
        assert taken.type == "image/svg+xml" and ElementTree.fromstring(taken.data).tag.endswith("svg")
    elif kind == "npz":
        with np.load(io.BytesIO(taken.data)) as held:
            assert taken.type == "application/octet-stream" and np.array_equal(held["shown"], result.attention[1, 1])
    else:
        assert taken.type == "text/html" and taken.data.startswith(b"<!doctype html>")


def test_the_same_figure_is_the_same_file(result):
    assert take(result, "svg", VIEW).data.count(b"<dc:date>") == 0 and take(result, "png", VIEW).data == take(result, "png", VIEW).data


def test_words_of_an_svg_are_words_and_all_it_needs_is_inside(tiny, photo):
    odd = checkpoint.Loaded(tiny.model, ("</text><script>hit()</script>", "a & b", "Äpfel $x$"), tiny.preprocessing, {}, "model <b>")
    result = explain(photo, odd)
    for klass, name in enumerate(odd.classes):
        drawn = ElementTree.fromstring(take(result, "svg", {**VIEW, "kind": "relevance", "klass": klass}).data)
        words = [one.text for one in drawn.iter("{http://www.w3.org/2000/svg}text")]
        assert f"What speaks for {name}" in words and any(word.startswith("model <b>: the model says") for word in words)
        assert not any(one.tag.endswith("script") for one in drawn.iter())
        links = [value for one in drawn.iter() for key, value in one.attrib.items() if key.endswith("href")]
        assert links and all(link.startswith(("#", "data:image/png;base64,")) for link in links)


def test_figures_drawn_side_by_side_are_the_same_as_one_by_one_and_leave_the_settings_alone(result):
    before, views = dict(matplotlib.rcParams), [{**VIEW, "layer": layer} for layer in range(3)] * 2
    alone = [take(result, "svg", view).data for view in views]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda view: take(result, "svg", view).data, views)) == alone
    assert dict(matplotlib.rcParams) == before and alone[0] == alone[3] != alone[1]


@pytest.mark.parametrize(("changes", "ending"), [
    ({}, "layer-2-head-2"), ({"token": 0}, "layer-2-head-2"), ({"head": "mean"}, "layer-2-mean-of-the-heads"), ({"token": 8}, "layer-2-head-2-what-row-2-column-3-reads"),
    ({"token": 0, "direction": "read_by"}, "layer-2-head-2-who-reads-the-class-token"), ({"kind": "relevance", "klass": 1}, "what-speaks-for-green"),
    ({"kind": "rollout", "up_to": 2}, "rollout-up-to-layer-2-mean-of-the-heads"), ({"kind": "mean attention"}, "mean-attention-of-all-layers-and-heads")])
def test_a_figures_name_tells_whose_map_it_is_also_after_a_long_class(changes, ending, result, tiny, photo):
    assert take(result, "png", {**VIEW, **changes}).name == f"{result.top()[0][0]}-{ending}.png"
    long = explain(photo, checkpoint.Loaded(tiny.model, ("x" * 199 + "a", "green", "x" * 199 + "b"), tiny.preprocessing, {}, "m"))
    assert take(long, "svg", {**VIEW, **changes}).name in (f"{'x' * 40}-{ending}.svg", f"green-{ending}.svg")


def test_a_caption_says_what_the_colours_do_not(result):
    caption = " ".join(view_figure(result, {**VIEW, "direction": "read_by", "token": 4}, opacity=0.4).get_supxlabel().split())
    column = result.read_by(4)[1, 1]
    assert f"give it {column.sum():.2f} (an even share would be 1.00), {column[0]:.2f} of it from tokens that are no patch" in caption
    assert "colours laid over the picture at 40%" in caption
    hidden = {**VIEW, "kind": "occlusion", "klass": int(result.probabilities.argmin())}
    rises = (answers.map_of(result, hidden) < 0).any()
    assert ("where hiding makes it more probable, 0" in view_figure(result, hidden).get_supxlabel().replace("\n", " ")) == rises
    assert view_figure(result, hidden).axes[1].get_ylabel() == "fall of the probability"


@pytest.mark.parametrize(("changes", "frames"), [({"token": 4}, 2), ({"token": 0}, 0), ({}, 0), ({"kind": "rollout", "token": 4}, 0)])
def test_the_patch_that_is_asked_about_is_framed(changes, frames, result):
    axis = view_figure(result, {**VIEW, **changes}).axes[0]
    assert len(axis.patches) == frames
    if frames:
        left, top = axis.patches[0].get_xy()
        height, width = axis.images[0].get_array().shape[:2]
        above, beside, *_ = result.geometry.patch_rectangle(0, 3)           # token 4 is the fourth patch
        assert abs(top + 0.5 - above * height / result.picture.height) < 1.5 and abs(left + 0.5 - beside * width / result.picture.width) < 1.5


def test_another_kind_is_refused_in_a_sentence(result):
    for kind in ("gif", "", None, ["png"]):
        with pytest.raises(ValueError, match="one of png, svg, sheet, npz, report"):
            take(result, kind, VIEW)


@pytest.mark.parametrize("name", VIEWS)
def test_a_figure_shows_the_map_its_title_names_on_the_scale_it_names(name, result):
    view = {**VIEW, **VIEWS[name]}
    title, small, high, unit = shown(view_figure(result, view, opacity=1.0))
    vector = answers.map_of(result, view)
    all_heads = result.reads() if name == "head" else None                  # joined heads have a scale of their own
    assert high == pytest.approx(all_heads[1, :, 1:].max() if all_heads is not None else vector[1:].max())
    assert title.replace("\n", " ") == view_title(result, view)
    assert f"the model says {result.top()[0][0]}, {result.top()[0][1]:.0%}" in small
    assert ("one scale for all heads of layer 2" in small) == (all_heads is not None) and ("scale of this map" in small) == (all_heads is None)
    weights = name not in ("relevance", "occlusion")
    assert ("attention weight" in unit and "even share" in unit) == weights and (f"{vector[0]:.1%} on tokens that are no patch" in small) == (weights and view["head"] not in ("min", "max"))


@pytest.mark.parametrize("heads", ["min", "max"])
@pytest.mark.parametrize("direction", ["reads", "read_by"])
def test_what_is_no_row_of_attention_states_no_share_of_one(heads, direction, result):
    view = {**VIEW, "head": heads, "direction": direction, "token": 4}
    _, small, _, _ = shown(view_figure(result, view, opacity=1.0))
    assert "no patch" not in small and "readers" not in small


@pytest.mark.parametrize("title", FEATURES)
@pytest.mark.parametrize("stretched", [False, True])
def test_a_figure_of_features_has_its_scale_and_says_what_the_colours_mean(title, stretched, result):
    view = {**VIEW, **FEATURES[title]}
    figure, vector = view_figure(result, view, own_scale=stretched, opacity=1.0), answers.map_of(result, view)
    assert figure.get_suptitle() == title and take(result, "png", view).name.startswith(f"{result.top()[0][0]}-{title.split()[0]}".lower())
    small = figure.get_supxlabel().replace("\n", " ")
    if view["kind"] == "colours":
        assert len(figure.axes) == 1 and all(f"{share:.0%}" in small for share in answers.colours(result, view["part"])["explained"])
        shown, wanted = figure.axes[0].images[0].get_array(), 255 * result.patches(vector)
        height, width = shown.shape[:2]
        middles = [[shown[int(height * (10 + 180 * (r + 0.5) / 3) / 200), int(width * (c + 0.5) / 5)] for c in range(5)] for r in range(3)]
        assert np.abs(np.moveaxis(np.array(middles, float), -1, 0) - wanted).max() <= 1
        return
    low = vector[1:].min() if stretched else -1 if view["kind"] == "similarity" else 0
    high = 1 if view["kind"] == "similarity" and not stretched else vector[1:].max()
    assert figure.axes[1].get_ylim() == pytest.approx((low, high), rel=1e-5) and f"class token {vector[0]:.2f}" in small
    assert len(figure.axes[0].patches) == (2 if view["token"] else 0) * (view["kind"] == "similarity")


def test_the_scale_ends_at_the_largest_weight_on_a_patch_however_much_the_class_token_takes(photo):
    result = explain(photo, seeded(registers=3))
    totals, tokens = np.stack([result.reads(token) for token in range(result.tokens)]), []
    for token, layer in np.ndindex(result.tokens, 3):
        if totals[token, layer, :, :4].max() > 1.2 * totals[token, layer, :, 4:].max():
            tokens.append(token)
            high = shown(view_figure(result, {**VIEW, "token": token, "layer": layer}))[2]
            assert high == pytest.approx(totals[token, layer, :, 4:].max())
            break
    assert tokens                                                           # there is such a token in this model


def test_with_a_scale_of_its_own_a_head_says_so_and_ends_at_its_own_largest_weight(result):
    _, small, high, _ = shown(view_figure(result, VIEW, own_scale=True))
    assert "scale of this map" in small and high == pytest.approx(result.attention[1, 1].max())


@pytest.mark.parametrize(("changes", "title"), [
    ({}, "Layer 2, head 2 (what the class token reads)"), ({"head": "min", "token": 0}, "Layer 2, min of the heads (what the class token reads)"),
    ({"direction": "read_by", "token": 8}, "Layer 2, head 2 (who reads the patch in row 2, column 3)"), ({"kind": "relevance", "klass": 1}, "What speaks for green"),
    ({"kind": "rollout", "up_to": 2, "discard": 0.25}, "Rollout up to layer 2, mean of the heads, weakest 25% discarded"), ({"kind": "rollout"}, "Rollout up to layer 3, mean of the heads"),
    ({"kind": "occlusion", "klass": 2}, "What red loses when a patch is hidden"), ({"kind": "mean attention"}, "Mean attention of all layers and heads")])
def test_a_view_in_words(changes, title, result):
    assert view_title(result, {**VIEW, **changes}) == title


def test_tokens_have_names_that_count_from_one_and_go_row_by_row(photo):
    result = explain(photo, seeded(registers=2))
    assert [token_name(result, token) for token in (0, 1, 2, 3, 7, 8, 17)] == [
        "the class token", "register 1", "register 2", "the patch in row 1, column 1", "the patch in row 1, column 5", "the patch in row 2, column 1", "the patch in row 3, column 5"]
    assert token_name(explain(photo, seeded(distilled=True)), 1) == "the distillation token"
    averaged = explain(photo, seeded(pool="mean", class_token=False))
    assert token_name(averaged, 0) == "the patch in row 1, column 1" and view_title(averaged, VIEW) == "Layer 2, head 2 (what the average patch reads)"


def test_the_numbers_are_the_explanations_own(result, tmp_path):
    save_maps(result, tmp_path / "maps.npz", view={**VIEW, "kind": "rollout", "up_to": 1})
    with np.load(tmp_path / "maps.npz") as held:
        assert sorted(held) == sorted(["attention", "prefix_attention", "probabilities", "classes", "lens", "rollout", "relevance", "shown", "entropy", "effective", "distance"])
        for name in ("attention", "prefix_attention", "probabilities", "lens"):
            assert np.array_equal(held[name], getattr(result, name))
        assert held["classes"].tolist() == list(result.classes)
        assert np.array_equal(held["rollout"], result.patches(result.rollout())) and np.array_equal(held["shown"], result.patches(result.rollout(1)))
        assert np.array_equal(held["relevance"], result.patches(result.relevance(result.top()[0][0])))
        assert np.array_equal(held["entropy"], result.facts().entropy[0]) and held["distance"].shape == (3, 2)


def test_a_model_without_a_head_can_be_taken_home_too(photo):
    result = explain(photo, seeded(classes=0))
    buffer = io.BytesIO()
    save_maps(result, buffer)
    with np.load(io.BytesIO(buffer.getvalue())) as held:
        assert "relevance" not in held and "shown" not in held and held["probabilities"].shape == (0,)
        assert held["classes"].shape == (0,) and held["classes"].dtype.kind == "U" and held["lens"].shape == (3, 0)
    for kind in KINDS:
        assert take(result, kind, VIEW).name.startswith("seeded-")
    for kind in ("relevance", "occlusion"):
        with pytest.raises(ValueError, match="no classes"):
            take(result, "png", {**VIEW, "kind": kind})
    assert "a model without classes" in view_figure(result, VIEW).get_supxlabel()


@pytest.mark.parametrize(("name", "stem"), [("../../etc/passwd", "etc-passwd"), ("<b>$x$</b>\n", "b-x-b"), ("猫", "picture"), ("", "picture"), ("a" * 300, "a" * 60), ("con. ", "con")])
def test_names_of_files_are_plain_whatever_the_classes_are_called(name, stem, tiny, photo):
    hostile = checkpoint.Loaded(tiny.model, (name, name + "2", name + "3"), tiny.preprocessing, {}, "$odd$ <model>")
    result = explain(photo, hostile)
    object.__setattr__(result, "probabilities", np.array([0.8, 0.1, 0.1], np.float32))
    assert take(result, "npz", VIEW).name == f"{stem}-maps.npz"


def test_dollars_and_braces_in_names_are_letters_in_a_figure(tiny, photo):
    odd = checkpoint.Loaded(tiny.model, ("$\\frac{1}{$", "b{0}", "%s"), tiny.preprocessing, {}, "$x^$ model")
    result = explain(photo, odd)
    for view in ({**VIEW, "kind": "relevance"}, VIEW):
        assert take(result, "svg", view).data.startswith(b"<?xml")
    assert take(result, "sheet", VIEW).data.startswith(b"\x89PNG")
