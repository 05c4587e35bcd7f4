"""Questions about a result: right beside `explain`, one sentence for nonsense, each visitor's own, tests gone on with until they are done."""

import base64
import io
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from asking import Page
from conftest import coloured, seeded, tiny_config
from PIL import Image

from vitdemo import answers, checkpoint, faithfulness, features, surgery
from vitdemo.attention import weights
from vitdemo.config import Preprocessing
from vitdemo.explain import explain
from vitdemo.faithfulness import Hider
from vitdemo.model import ViT
from vitdemo.surgery import Surgery
from vitdemo.ui import operated, testing
from vitdemo.ui.questions import Questions
from vitdemo.ui.results import Results
from vitdemo.ui.slots import Slots

LAST = {"kind": "attention", "direction": "reads", "token": None, "layer": 2, "head": "mean"}
WAY = {"klass": 1, "how": "mean", "insertion": False}


@pytest.fixture(scope="module")
def result(tiny, photo):
    return explain(photo, tiny)


@pytest.fixture
def page(result):
    return Page(result)


@pytest.fixture(scope="module")
def headless(tiny, photo):
    model = ViT(tiny_config(classes=0), torch.Generator().manual_seed(2)).eval()
    return explain(photo, checkpoint.Loaded(model, (), tiny.preprocessing, {}, "headless"))


@pytest.fixture(scope="module")
def averaging(photo):
    """Explained by a model that averages its patches, has no class token but a register, and takes grey pictures."""
    config = tiny_config(pool="mean", class_token=False, registers=1, channels=1)
    model = ViT(config, torch.Generator().manual_seed(3)).eval()
    return explain(photo, checkpoint.Loaded(model, ("a", "b", "c"), Preprocessing(size=(12, 20), channels=1, mean=(0.5,), std=(0.5,)), {}, "mean"))


def unpack(packed):
    shares = np.frombuffer(base64.b64decode(packed["data"]), "<u2").reshape(packed["shape"]) / 65535
    return shares * np.array(packed["highs"]).reshape(*packed["shape"][:2], 1)


def same(one, two):
    return np.allclose(one, two, atol=2e-5)


@pytest.mark.parametrize("token", [0, 1, 15])
def test_token_gives_rows_columns_and_totals(page, result, token):
    answer = page.ask("token", token=token)
    whole = torch.stack([weights(q, k)[0] for q, k in zip(result.trace.queries, result.trace.keys, strict=True)]).numpy()     # (L, H, T, T)
    assert same(unpack(answer["reads"]), whole[:, :, token]) and same(unpack(answer["read_by"]), whole[..., token])
    assert same(np.reshape(answer["total"], (3, 2)), whole[..., token].sum(2))


def test_rollout_and_relevance_are_those_of_the_explanation(page, result):
    assert same(unpack(page.ask("rollout", up_to=2, fusion="max", discard=0.5)["map"])[0, 0], result.rollout(2, fusion="max", discard=0.5))
    assert same(unpack(page.ask("rollout")["map"])[0, 0], result.rollout())
    for klass in range(3):
        assert same(unpack(page.ask("relevance", klass=klass)["map"])[0, 0], result.relevance(klass))


def test_facts_and_embedding_have_the_models_shape(page, result):
    facts = page.ask("facts")
    assert same(facts["entropy"], result.facts().entropy[0]) and same(facts["distance"], result.facts().distance[0]) and np.shape(facts["prefix"]) == (3, 2)
    embedding = page.ask("embedding")
    assert len(embedding["filters"]) == 10 and embedding["filters"][0].startswith("data:image/png;base64,")
    assert (embedding["positions"]["rows"], embedding["positions"]["cols"]) == (3, 5) and len(base64.b64decode(embedding["positions"]["data"])) == 15 * 15


@pytest.mark.parametrize("token", [0, 7, None])
def test_similarity_is_the_cosine_of_a_tokens_features_with_all_tokens(page, result, token):
    tokens = result.trace.tokens[0].double().numpy()
    tokens /= np.sqrt((tokens**2).sum(1, keepdims=True))
    assert same(2 * unpack(page.ask("similarity", token=token)["map"])[0, 0] - 1, tokens @ tokens[token or 0])


def test_the_average_patch_is_asked_about_where_there_is_no_class_token(averaging):
    patches = averaging.trace.tokens[0].double().numpy()
    mean = patches[1:].mean(0)
    wanted = patches @ mean / np.sqrt((patches**2).sum(1) * (mean @ mean))
    assert same(2 * unpack(Page(averaging).ask("similarity")["map"])[0, 0] - 1, wanted)


def rgba(picture):
    return np.frombuffer(base64.b64decode(picture["rgba"]), np.uint8).reshape(-1, 4)


@pytest.mark.parametrize("part", features.PARTS)
def test_colours_and_norms_are_those_of_the_module(page, result, part):
    found, all_parts = features.colours([result.trace.tokens[0, 1:]], [(3, 5)], part), {one: page.ask("colours", part=one) for one in features.PARTS}
    answer = all_parts[part]
    (picture,) = answer["pictures"]
    assert np.array_equal(rgba(picture)[:, 3] > 0, found.kept[0]) and np.abs(rgba(picture)[:, :3] - 255 * found.rgb[0].numpy()).max() <= 0.5
    assert same(answer["explained"], np.round(found.explained, 4)) and page.ask("colours", part=part) == answer
    norms = page.ask("norms")
    with torch.inference_mode():
        lengths = features.norms(result.loaded.model, result.embedded())
    assert np.allclose(unpack(norms["lengths"])[:, 0], lengths, rtol=1e-4) and np.allclose(norms["limits"], features.limits(lengths, 1), rtol=1e-4)


def test_a_second_picture_is_compared_with_the_first_ones_patch_and_coloured_together_with_it(page, result, tiny):
    second = explain(coloured("blue", 3, (30, 50)), tiny)
    beside = page.results.keep(second)
    one, two = (e.trace.tokens[0].double().numpy() for e in (result, second))
    wanted = two @ one[7] / np.sqrt((two**2).sum(1) * (one[7] @ one[7]))
    assert same(2 * unpack(page.ask("similarity", token=7, beside=beside)["map"])[0, 0] - 1, wanted)
    joint = page.ask("colours", beside=beside)
    found = features.colours([result.trace.tokens[0, 1:], second.trace.tokens[0, 1:]], [(3, 5), (3, 5)])
    assert len(joint["pictures"]) == 2 and all(np.abs(rgba(picture)[:, :3] - 255 * rgb.numpy()).max() <= 0.5 for picture, rgb in zip(joint["pictures"], found.rgb, strict=True))
    assert joint["pictures"][0] != page.ask("colours")["pictures"][0]


def test_a_picture_after_surgery_is_compared_and_one_of_another_model_is_not(page, result, photo):
    for moved in (page.ask("surgery", order=[14, *range(1, 14), 0]), page.ask("surgery", positions=False)):
        assert "map" in page.ask("similarity", token=1, beside=moved["key"]) and len(page.ask("colours", beside=moved["key"])["pictures"]) == 2
    bare = unpack(page.ask("similarity", token=1, beside=page.ask("surgery", masked=list(range(15)), positions=False)["key"])["map"])[0, 0]
    assert np.ptp(bare[1:]) < 1e-4                                          # every patch the mean colour, and nobody knows where it is
    for other in (page.ask("twin")["key"], page.results.keep(explain(photo, seeded(5, dim=20)))):
        assert page.ask("similarity", token=1, beside=other) == page.ask("colours", beside=other) == {"apart": True}


def test_a_result_beside_that_is_no_longer_kept_is_told_in_a_sentence(page):
    for question in ("similarity", "colours"):
        for key in ("", "x", page.key[:-1]):
            answer = page.ask(question, token=1, beside=key)
            assert answer == {"error": "The result beside this one is no longer kept: look at its picture again."}


@pytest.mark.parametrize("view", [{"kind": "similarity", "token": 3}, {"kind": "norms", "layer": 1}, {"kind": "colours", "part": "background"}], ids=lambda view: view["kind"])
def test_features_are_taken_home_as_numbers_and_are_no_map_to_test(page, result, view):
    tokens = result.trace.tokens[0]
    with torch.inference_mode():
        wanted = {"similarity": lambda: features.similarity(tokens[3], tokens)[1:].view(3, 5), "norms": lambda: features.norms(result.loaded.model, result.embedded())[1, 1:].view(3, 5),
                  "colours": lambda: features.colours([tokens[1:]], [(3, 5)], "background").rgb[0].T.reshape(3, 3, 5)}[view["kind"]]()
    taken = page.ask("take", kind="npz", view=view)
    with np.load(io.BytesIO(base64.b64decode(taken["data"]))) as maps:
        assert maps["shown"].shape == wanted.shape and np.allclose(maps["shown"], wanted, atol=1e-6)
    assert all(page.ask("take", kind=kind, view=view)["name"].endswith(kind) for kind in ("png", "svg"))
    assert "kind" in page.ask("test", view=view, **WAY)["error"]


def test_the_twin_is_the_same_picture_through_random_weights_and_is_kept(page, result):
    one, two = page.ask("twin"), page.ask("twin")
    twin = result.twin()
    assert one["key"] == two["key"] != page.key and same(unpack(one["reads"]), twin.reads()) and one["rows"] == 3
    assert not same(unpack(one["reads"]), result.reads()) and dict(one["top"]) == pytest.approx(dict(twin.top()), abs=1e-6)
    of_twin = page.questions.ask({"question": "token", "key": one["key"], "token": 4})
    assert same(unpack(of_twin["reads"]), twin.reads(4))


def test_the_box_is_the_same_picture_through_the_other_model_prepared_as_that_one_wants_it(result, photo):
    other = seeded(5, image=(16, 8), heads=5)
    page = Page(result, box=other)
    one, two, through = page.ask("box"), page.ask("box"), explain(photo, other)
    assert one["key"] == two["key"] != page.key and (one["rows"], one["cols"], one["heads"]) == (4, 2, 5)
    assert same(unpack(one["reads"]), through.reads()) and dict(one["top"]) == pytest.approx(dict(through.top()), abs=1e-6)


def test_all_visitors_share_one_untrained_twin_of_a_model(result):
    results = Results()
    questions = Questions(results, result.loaded)
    keys = [questions.ask({"question": "twin", "key": results.keep(result)})["key"] for _ in range(3)]
    assert len({id(results.get(key).held().model) for key in keys}) == 1 and len(set(keys)) == 3


def test_the_twin_and_the_model_without_positions_are_not_mixed_up(page, result):
    for _ in range(2):
        twin, bare = page.ask("twin"), page.ask("surgery", positions=False)
        assert (twin["positions"], bare["positions"]) == ("learned", "none") and twin["model"] == "tiny untrained"
        assert dict(twin["top"]) == pytest.approx(dict(result.twin().top()), abs=1e-6)


def test_a_twin_that_made_room_is_made_again(result):
    page = Page(result)
    first = page.ask("twin")["key"]
    with page.results._lock:
        del page.results._kept[first]
    second = page.ask("twin")["key"]
    assert second != first and page.results.get(second)


@pytest.mark.parametrize("positions", [True, False])
def test_surgery_is_that_of_the_module_with_its_difference_and_what_was_before(page, result, positions):
    order = list(range(15))[::-1]
    done = Surgery(15, (2, 7), tuple(order), positions)
    answer = page.ask("surgery", masked=[7, 2, 7], order=order, positions=positions)
    tensor, trace = surgery.answer(result.loaded, result.tensor, done)
    difference, before = surgery.difference(result.loaded, result.tensor, done)
    probabilities = trace.logits.softmax(-1)[0].tolist()
    assert dict(answer["top"]) == pytest.approx(dict(zip(result.classes, probabilities, strict=True)), abs=1e-6)
    assert answer["difference"] == pytest.approx(difference, rel=1e-4) and difference > 1e-3
    assert dict(answer["before"]) == pytest.approx(dict(zip(result.classes, before.logits.softmax(-1)[0].tolist(), strict=True)), abs=1e-6)
    kept = page.results.get(answer["key"]).explanation
    assert torch.equal(kept.tensor, tensor) and page.ask("surgery", masked=[2, 7], order=order, positions=positions)["key"] == answer["key"]
    assert answer["positions"] == ("learned" if positions else "none")


def test_what_is_asked_about_a_picture_without_positions_is_answered_without_positions(page, result):
    key = page.ask("surgery", positions=False)["key"]
    bare = page.results.get(key).explanation
    with torch.inference_mode():
        z = result.loaded.model.embed(result.tensor, positions=False)
        logits = result.loaded.model.classify(result.loaded.model.transform(z))
    assert torch.allclose(bare.trace.logits, logits, atol=1e-6) and torch.equal(bare.embedded(), z)
    assert page.questions.ask({"question": "embedding", "key": key})["positions"] is None
    assert same(unpack(page.questions.ask({"question": "relevance", "key": key, "klass": 1})["map"])[0, 0], bare.relevance(1))
    shared = {p.data_ptr() for p in result.loaded.model.parameters()}
    assert {p.data_ptr() for p in bare.loaded.model.parameters()} <= shared             # no second copy of the weights


def test_without_positions_shuffling_changes_nothing_but_rounding(page):
    order = np.random.default_rng(0).permutation(15).tolist()
    assert page.ask("surgery", order=order, positions=False)["difference"] < 1e-5 < page.ask("surgery", order=order)["difference"]


def test_the_operated_picture_shows_the_patches_where_the_model_got_them(tiny):
    shades = (10 + 15 * np.arange(15)).reshape(3, 5).astype(np.uint8)
    plain = np.repeat(np.repeat(np.repeat(shades, 40, 0), 40, 1)[..., None], 3, 2)
    order = tuple(np.random.default_rng(1).permutation(15).tolist())
    made = operated.operate(explain(Image.fromarray(plain), tiny), tiny, Surgery(15, (4,), order)).explanation
    wanted = shades.ravel().astype(int)
    wanted[4] = round(shades.mean())
    for image, size in ((made.picture, (640, 384)), (made.seen, (20, 12))):
        blocks = np.asarray(image).reshape(3, image.height // 3, 5, image.width // 5, 3)
        assert image.size == size and np.abs(blocks.mean((1, 3, 4)).ravel() - wanted[list(order)]).max() < 2
    again = torch.from_numpy(np.array(made.seen)).permute(2, 0, 1)[None] / 127.5 - 1
    assert torch.allclose(made.tensor, again, atol=0.02)                    # the very pixels, but for the rounded mean
    assert made.geometry.crop == (0, 0, 384, 640) and made.geometry.grid == (3, 5)


@pytest.mark.parametrize("size", [(1, 1), (400, 3), (31, 97)])
def test_surgery_on_tiny_and_long_pictures_gives_a_picture(tiny, size):
    answer = Page(explain(Image.new("RGB", size, (200, 40, 40)), tiny)).ask("surgery", masked=[0], order=[*range(1, 15), 0])
    assert (answer["width"], answer["height"]) == (640, 384) and answer["crop"] == [0, 0, 384, 640]


@pytest.mark.parametrize("how", ["mean", "blur", "drop"])
@pytest.mark.parametrize("insertion", [False, True])
def test_a_test_gone_on_with_equals_the_functions_called_directly(page, result, how, insertion, monkeypatch):
    monkeypatch.setattr(testing, "SLICE", 0)                                # one step a call
    answer, calls = page.until_done("test", view=LAST, klass=1, how=how, insertion=insertion)
    hider = Hider(result.loaded, result.tensor, 1, how)
    order = faithfulness.order_of(result.attention[2].mean(0))
    own = faithfulness.measure(hider, [order, order[::-1]], insertion=insertion)
    chance = faithfulness.measure(hider, faithfulness.random_orders(15), insertion=insertion)
    areas, random = faithfulness.area(own), faithfulness.area(chance)
    assert calls > 5 and answer["done"] == answer["total"] and answer["order"] == order.tolist()
    assert same(answer["shares"], own.shares) and same(answer["map"], own.probabilities[0]) and same(answer["reversed"], own.probabilities[1])
    assert same(answer["random_mean"], chance.probabilities.mean(0)) and same(answer["random_low"], np.percentile(chance.probabilities, 5, axis=0, method="weibull"))
    assert same(answer["random_high"], np.percentile(chance.probabilities, 95, axis=0, method="weibull"))
    assert same([answer["area"], answer["area_reversed"]], areas) and same(answer["area_random"], [random.mean(), *np.percentile(random, (5, 95), method="weibull")])
    verdict = faithfulness.judge(areas[0], random, insertion=insertion)
    assert answer["kind"] == verdict.kind and answer["sentence"].lower() == verdict.sentence.lower() + "."


def test_progress_of_a_test_only_grows_and_its_answer_stays(page, monkeypatch):
    monkeypatch.setattr(testing, "SLICE", 0)
    seen = []
    while not seen or seen[-1][0] < seen[-1][1]:
        answer = page.ask("test", view=LAST, **WAY)
        assert ("shares" in answer) == (answer["done"] == answer["total"])
        seen.append((answer["done"], answer["total"]))
    assert all(one[0] <= two[0] for one, two in zip(seen, seen[1:])) and len(set(seen)) > 20 and len({total for _, total in seen}) == 1
    assert page.ask("test", view=LAST, **WAY) == answer


def test_random_orders_are_shared_by_all_maps_tested_in_one_way(page, monkeypatch):
    page.until_done("test", view=LAST, **WAY)
    measured = []
    monkeypatch.setattr(faithfulness, "random_orders", lambda *args, **settings: measured.append(args))
    page.until_done("test", view={"kind": "rollout"}, **WAY)
    assert not measured


def test_each_class_way_and_map_has_a_test_of_its_own(page, result):
    views = (LAST, {**LAST, "layer": 0}, {**LAST, "head": 1}, {"kind": "rollout"}, {"kind": "relevance", "klass": 0}, {"kind": "relevance", "klass": 2})
    ways = [{"klass": klass, "how": how, "insertion": insertion} for klass in range(3) for how in ("mean", "blur", "drop") for insertion in (False, True)]
    for view, way in [(LAST, way) for way in ways] + [(view, WAY) for view in views]:
        assert page.until_done("test", view=view, **way)[0] == Page(result).until_done("test", view=view, **way)[0], (view, way)


def test_many_threads_go_on_with_one_test_without_getting_in_each_others_way(page, monkeypatch):
    monkeypatch.setattr(testing, "SLICE", 0)
    page.questions._heavy, found = Slots(4, 20, 30), []
    threads = [threading.Thread(target=lambda: found.append(page.until_done("test", view=LAST, **WAY)[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(answer == found[0] for answer in found) and found[0]["shares"]


def test_the_ranking_holds_five_maps_in_order_each_as_when_tested_alone(page, result, monkeypatch):
    monkeypatch.setattr(testing, "SLICE", 0)
    monkeypatch.setattr(testing, "STEP_OPERATIONS", 1)                      # one picture a step, as for a large model
    answer, calls = page.until_done("rank", **WAY)
    rows = answer["rows"]
    assert calls > 100 and {row["name"] for row in rows} == {"CLS attention, last layer", "mean attention", "rollout", "relevance", "occlusion"}
    assert [row["area"] for row in rows] == sorted(row["area"] for row in rows) and all(0 <= row["percentile"] <= 1 for row in rows)
    hider = Hider(result.loaded, result.tensor, 1, "mean")
    for row in rows:
        alone = page.until_done("test", view=row["view"], **WAY)[0]
        assert (alone["area"], alone["kind"], alone["sentence"], alone["area_random"]) == (row["area"], row["kind"], row["sentence"], answer["random"])
        whole = {"token": None, "up_to": 3, "fusion": "mean", "discard": 0.0, "klass": 1, **row["view"]}
        order = faithfulness.order_of(result.patches(answers.map_of(result, whole)))
        assert row["area"] == pytest.approx(faithfulness.area(faithfulness.measure(hider, [order]))[0], abs=2e-5)
    inserted = page.until_done("rank", **{**WAY, "insertion": True})[0]["rows"]
    assert [row["area"] for row in inserted] == sorted((row["area"] for row in inserted), reverse=True)


def test_a_step_that_fails_is_told_and_started_afresh(page, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr(faithfulness, "order_of", lambda weights: 1 / 0)
        assert "number" in page.ask("test", view=LAST, **WAY)["error"]
    assert page.until_done("test", view=LAST, **WAY)[0]["shares"]


def test_a_test_that_finds_no_slot_says_how_far_it_is(page, monkeypatch):
    monkeypatch.setattr(testing, "SLICE", 0)
    page.ask("test", view=LAST, **WAY)
    page.questions._slots = page.questions._heavy = Slots(1, 0, 0.01)
    turn = page.results.get(page.key).turn
    with turn:
        waiting = page.ask("test", view=LAST, **WAY)
        refused = page.ask("relevance", klass=0)
        assert "reads" in page.ask("token", token=3)                        # quick ones do not wait for long ones
    assert waiting["busy"] and 0 < waiting["done"] < waiting["total"] and refused["busy"] and refused["error"].endswith("moment.")
    assert page.until_done("test", view=LAST, **WAY)[0]["shares"]


@pytest.mark.parametrize("view", [{"kind": "attention", "direction": "read_by", "token": 4, "layer": 0, "head": 1}, {"kind": "relevance", "klass": 2},
                                  {"kind": "rollout", "up_to": 1, "fusion": "min", "discard": 0.3}, {"kind": "mean attention"}, {"kind": "occlusion", "klass": 0}])
def test_every_kind_of_map_can_be_tested(page, result, view):
    answer = page.until_done("test", view=view, **WAY)[0]
    clean = {"token": None, "layer": 0, "head": "mean", "direction": "reads", "up_to": 3, "fusion": "mean", "discard": 0.0, "klass": None, **view}
    assert answer["order"] == faithfulness.order_of(result.patches(answers.map_of(result, clean))).tolist()


def test_fields_that_do_not_matter_for_a_kind_do_not_make_another_test(page):
    page.until_done("test", view=LAST, **WAY)
    answer = page.ask("test", view={**LAST, "up_to": 1, "fusion": "max", "discard": 0.5, "klass": 2, "token": 0}, **WAY)
    assert answer["done"] == answer["total"]


def test_a_model_that_averages_patches_answers_everything(averaging):
    page = Page(averaging)
    for question, more in (("token", {"token": 3}), ("rollout", {}), ("relevance", {"klass": 2}), ("facts", {}), ("twin", {}), ("embedding", {}),
                           ("surgery", {"masked": [0, 14]}), ("surgery", {"positions": False}), ("similarity", {"token": 3}), ("colours", {"part": "foreground"}), ("norms", {})):
        assert "error" not in page.ask(question, **more), question
    names = [row["name"] for row in page.until_done("rank", klass=0, how="drop", insertion=True)[0]["rows"]]
    assert "attention of the average patch, last layer" in names
    assert "average patch" in page.ask("test", view={"kind": "attention", "direction": "read_by"}, **WAY)["error"]


def test_a_model_without_a_head_has_maps_and_a_sentence_about_classes(headless):
    page = Page(headless)
    for question, more in (("relevance", {"klass": 0}), ("test", {"view": LAST, **WAY}), ("rank", WAY)):
        assert "no classes" in page.ask(question, **more)["error"]
    assert page.ask("surgery", masked=[3])["difference"] > 0 and page.ask("surgery", masked=[3])["before"] == []
    assert page.ask("rollout")["map"] and page.ask("twin")["top"] == [] and page.ask("token", token=0)["reads"]
    assert page.ask("similarity", token=2)["map"] and page.ask("colours")["pictures"] and len(page.ask("norms")["limits"]) == 3


def test_take_brings_files(page):
    for kind in ("png", "svg", "sheet", "npz", "report"):
        taken = page.ask("take", kind=kind, view=LAST, opacity=50, colours="viridis", own_scale=True)
        assert taken["name"].endswith({"sheet": "png", "report": "html"}.get(kind, kind)) and "/" in taken["type"] and base64.b64decode(taken["data"])


NONSENSE = [None, True, False, -1, 10**30, 1.5, float("nan"), float("inf"), "", "7", "x" * 10**5, [], [1], {}, {"a": 1}, [[[]]]]


@pytest.mark.parametrize("question, fields, name, fine", [
    ("token", {}, "token", ()), ("rollout", {}, "up_to", (None,)), ("rollout", {}, "fusion", (None,)), ("rollout", {}, "discard", (None, False)),
    ("similarity", {}, "token", (None,)), ("similarity", {"token": 1}, "beside", (None, "", "7", "x" * 10**5)), ("colours", {}, "part", (None,)),
    ("colours", {}, "beside", (None, "", "7", "x" * 10**5)), ("relevance", {}, "klass", ()), ("surgery", {}, "masked", (None, [], [1])), ("surgery", {}, "order", (None,)),
    ("surgery", {}, "positions", (None, True, False)), ("test", {"view": LAST, **WAY}, "view", ()), ("test", {"view": LAST, **WAY}, "klass", ()),
    ("test", {"view": LAST, **WAY}, "how", (None,)), ("rank", WAY, "insertion", (None, True, False)), ("take", {"view": LAST}, "kind", ()),
    ("take", {"view": LAST, "kind": "npz"}, "opacity", (None, 1.5)), ("take", {"view": LAST, "kind": "npz"}, "colours", (None,)),
    ("take", {"view": LAST, "kind": "npz"}, "own_scale", (None, True, False)),
])
def test_nonsense_in_any_field_gets_one_sentence_and_leaves_everything_as_it_was(page, question, fields, name, fine):
    for value in NONSENSE:
        if not any(value is one or (type(value) is type(one) and value == one) for one in fine if one is not False or value is False):
            answer = page.ask(question, **{**fields, name: value})
            assert list(answer) == ["error"] and (name if value not in ({}, {"a": 1}) or name != "view" else "kind") in answer["error"], (value, answer)
            assert answer["error"].endswith(".") and answer["error"].count(". ") == 0 and len(answer["error"]) < 200 and "\n" not in answer["error"]
    assert len(page.results) <= 4 and "reads" in page.ask("token", token=1)


@pytest.mark.parametrize("field, kind", [("kind", None), ("direction", "attention"), ("token", "attention"), ("layer", "attention"), ("head", "attention"),
                                         ("up_to", "rollout"), ("fusion", "rollout"), ("discard", "rollout"), ("klass", "relevance")])
def test_nonsense_in_a_view_is_refused_by_the_field(page, field, kind):
    for value in [*NONSENSE[3:], 16, 3] if field == "layer" else NONSENSE[3:]:
        answer = page.ask("test", view={"kind": kind, field: value}, **WAY)
        assert list(answer) == ["error"] and field in answer["error"], (value, answer)


@pytest.mark.parametrize("order", [[0] * 15, [*range(14)], [*range(16)], [*range(14), 15], [*range(14), True], [*range(14), "14"]])
def test_an_order_that_is_no_order_is_refused(page, order):
    assert list(page.ask("surgery", order=order)) == ["error"]


@pytest.mark.parametrize("request_", [None, 3, "token", [], [{"question": "token"}], {}, {"question": "token"}, {"question": "nothing", "key": "x"},
                                      {"question": ["token"], "key": "x"}, {"question": {}, "key": "x"}, {"question": "token", "key": None},
                                      {"question": "token", "key": 5}, {"question": "token", "key": ["x"]}, {"question": "__class__", "key": "x"}])
def test_a_request_of_the_wrong_shape_gets_one_sentence(page, request_):
    answer = page.questions.ask(request_)
    assert list(answer) == ["error"] and answer["error"].endswith(".")


def test_an_evicted_result_asks_for_the_picture_again(result):
    results = Results(limit_bytes=1)
    page = Page(result, results)
    results.keep(result)
    for question in ("token", "twin", "test"):
        answer = page.ask(question, token=0, view=LAST, **WAY)
        assert answer["gone"] is True and answer["error"] == "This result is no longer kept: please upload the picture again."


def test_nobody_reads_another_visitors_result_without_its_key(result):
    page = Page(result)
    for guess in ("", "0", page.key[:-1], page.key.swapcase(), page.key + " ", "../" + page.key):
        answer = page.questions.ask({"question": "token", "key": guess, "token": 0})
        assert answer.get("gone") is True and "reads" not in answer


def test_an_unexpected_error_is_a_number_and_tells_nothing(page, monkeypatch, caplog):
    def fail(explanation, index):
        raise ValueError("/home/someone/secret.py exploded")

    monkeypatch.setattr(answers, "token", fail)
    answer = page.ask("token", token=1)
    assert list(answer) == ["error"] and "secret" not in answer["error"] and "number" in answer["error"]
    assert "secret" in caplog.text and answer["error"].split("number ")[1][:6] in caplog.text


def test_thirty_visitors_asking_at_once_each_get_their_own_answer(tiny):
    results, wrong = Results(), []
    questions = Questions(results, tiny)
    questions._slots = questions._heavy = Slots(2, 60, 60)

    def visit(seed):
        own = explain(coloured(("red", "green", "blue")[seed % 3], seed, (12 + seed, 20)), tiny)
        key, order = results.keep(own), list(range(15))
        order[0], order[seed % 14 + 1] = order[seed % 14 + 1], order[0]

        def ask(question, **fields):
            return questions.ask({"question": question, "key": key, **fields})

        moved = surgery.answer(tiny, own.tensor, Surgery(15, (), tuple(order)))[1]
        right = [same(unpack(ask("token", token=seed % 16)["reads"]), own.reads(seed % 16)),
                 same(unpack(ask("relevance", klass=seed % 3)["map"])[0, 0], own.relevance(seed % 3)),
                 same(unpack(ask("twin")["reads"]), own.twin().reads()),
                 dict(ask("surgery", order=order)["top"]) == pytest.approx(dict(zip(tiny.classes, moved.logits.softmax(-1)[0].tolist(), strict=True)), abs=1e-5)]
        answer = {"done": 0, "total": 1}
        while answer["done"] < answer["total"]:
            answer = ask("test", view=LAST, **WAY)
        wanted = faithfulness.order_of(own.attention[2].mean(0))
        hider = Hider(tiny, own.tensor, 1, "mean")
        right += [answer["order"] == wanted.tolist(), same(answer["map"], faithfulness.measure(hider, [wanted]).probabilities[0])]
        if not all(right):
            wrong.append((seed, right))

    threads = [threading.Thread(target=visit, args=(seed,)) for seed in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(results) == 90


def test_asking_leaves_no_gradients_on_the_model_and_no_weights_changed(page, tiny):
    before = {name: tensor.clone() for name, tensor in tiny.model.state_dict().items()}
    page.ask("relevance", klass=0)
    page.ask("surgery", masked=[1], positions=False)
    page.until_done("rank", **WAY)
    assert all(torch.equal(tensor, before[name]) for name, tensor in tiny.model.state_dict().items())
    assert all(p.grad is None for p in tiny.model.parameters()) and torch.is_grad_enabled()


def test_large_models_are_tested_in_small_steps(result):
    assert testing.pictures_at_once(result) == faithfulness.BATCH
    config = tiny_config(image=(224, 224), patch=(16, 16), dim=768, depth=12, heads=12)
    with torch.device("meta"):
        big = ViT(config)
    large = replace(result, loaded=replace(result.loaded, model=big), attention=np.zeros((12, 12, 14, 14)))
    assert testing.pictures_at_once(large) == 1


