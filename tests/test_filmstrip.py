"""The exported film: the right map on the right scale at the right moment, small enough, and one sentence where there is nothing to show."""

import base64
import io
import json

import numpy as np
import pytest
from conftest import coloured
from PIL import Image

from vitdemo import filmstrip
from vitdemo.filmstrip import FilmstripError, animate, shown, untold
from vitdemo.payload import data_url, pack

ROWS, COLS, LAYERS, HEADS = 3, 5, 3, 2


def scene_of(**changes) -> dict:
    """Two subjects, the second a validation picture, on a 3 x 5 grid behind one class token."""
    wide = Image.new("RGB", (200, 120), (200, 200, 200))
    subject = {"name": "picture 1", "picture": data_url(wide, "JPEG"), "height": 120, "width": 200, "crop": [0, 0, 120, 200],
               "seen": data_url(wide.resize((20, 12)), "PNG"), "truth": None}
    own = {**subject, "name": "green", "picture": data_url(coloured("green", 1, (12, 20)), "PNG"), "height": 12, "width": 20, "crop": [0, 0, 12, 20], "truth": 1}
    return {"classes": ["blue", "green", "red"], "layers": LAYERS, "heads": HEADS, "rows": ROWS, "cols": COLS, "prefix": 1, "prefix_names": ["class token"],
            "reader": "the class token", "patch": [4, 4], "subjects": [subject, own], "watched": [{"picture": "data:,", "truth": 0}], **changes}


def weights_on(patch: int, share: float) -> np.ndarray:
    """Every head of every layer reads one patch (counted row by row) with `share`, the class token with the rest; the last head reads itself."""
    weights = np.zeros((LAYERS, HEADS, 1 + ROWS * COLS), np.float32)
    weights[..., 1 + patch], weights[..., 0] = share, 1 - share
    weights[-1, -1] = np.eye(1, weights.shape[2])
    return weights


def frame_of(step: int, weights: np.ndarray, top=((2, 0.7), (1, 0.2), (0, 0.1)), **changes) -> dict:
    one = {"top": [list(pair) for pair in top], "reads": pack(weights, "u1")}
    return json.loads(json.dumps({"step": step, "accuracy": 0.25 + step / 1000, "n": 1200, "subjects": [one, one], "watched": [[0, 1.0, 1.0]], **changes}))


FRAMES = [frame_of(0, weights_on(2, 0.2)), frame_of(40, weights_on(2, 0.4)), frame_of(100, weights_on(13, 0.8))]
LOSSES = [{"step": 0, "loss": None}, *({"step": step, "loss": 2.3 - step / 100} for step in range(1, 101)), {"skipped": ["x"]}]


def pictures_of(content: bytes) -> list[np.ndarray]:
    film = Image.open(io.BytesIO(content))
    found = []
    for i in range(film.n_frames):
        film.seek(i)
        found.append(np.asarray(film.convert("RGB")).astype(int))
    return found


def cell(picture: np.ndarray, patch: int) -> np.ndarray:
    """The colour in the middle of a patch of the large picture: 330 x 198 pixels in the middle of a square."""
    row, col = divmod(patch, COLS)
    top, left = 52 + (330 - 198) / 2 + 198 * (row + 0.5) / ROWS, 20 + 330 * (col + 0.5) / COLS
    return picture[int(top) - 3:int(top) + 4, int(left) - 3:int(left) + 4].mean((0, 1))


@pytest.mark.parametrize("kind", ["webp", "gif"])
def test_the_brightest_cell_is_where_the_attention_is_and_grows_on_one_scale(kind):
    content = animate(scene_of(), FRAMES, LOSSES, subject=0, layer=1, head=0, kind=kind, seconds_per_frame=0.2)
    first, second, third = pictures_of(content)
    for picture, patch in ((first, 2), (second, 2), (third, 13)):
        heat = [cell(picture, i)[:2].sum() - cell(picture, i)[2] for i in range(ROWS * COLS)]              # cividis runs from blue to yellow
        assert int(np.argmax(heat)) == patch
    heats = [cell(picture, patch)[0] for picture, patch in ((first, 2), (second, 2), (third, 13))]
    assert heats[0] < heats[1] - 20 < heats[2] - 40
    assert np.abs(cell(first, 7) - cell(third, 7)).max() < 6                # what stays unread stays as dark


def test_the_film_is_a_moving_picture_of_the_size_and_pace_asked_for():
    content = animate(scene_of(), FRAMES, LOSSES, subject=0, layer=1, head=0, kind="webp", seconds_per_frame=0.2)
    film = Image.open(io.BytesIO(content))
    assert (film.format, film.n_frames, film.info["loop"]) == ("WEBP", 3, 0) and film.width <= 720 and len(content) < 100_000
    waits = []
    for i in range(3):
        film.seek(i)
        film.load()
        waits.append(film.info["duration"])
    assert waits == [200, 200, 800]                                         # the end stays longer
    gif = Image.open(io.BytesIO(animate(scene_of(), FRAMES, LOSSES, subject=0, layer=1, head=0, kind="gif", seconds_per_frame=0.2)))
    assert (gif.format, gif.n_frames, gif.info["loop"]) == ("GIF", 3, 0)


def test_what_is_drawn_is_the_asked_map_with_the_words_of_its_moment():
    weights = np.random.default_rng(0).dirichlet(np.ones(16), size=(LAYERS, HEADS)).astype(np.float32)
    frames = [frame_of(0, weights), frame_of(1500, weights, top=((1, 0.9), (0, 0.1)))]
    drawn = shown(scene_of(), frames, subject=1, layer=2, head=1)
    assert np.allclose(drawn[0].weights, weights[2, 1, 1:].reshape(ROWS, COLS), atol=weights.max() / 255)
    assert np.allclose(shown(scene_of(), frames, subject=1, layer=-1, head="mean")[0].weights, weights[2, :, 1:].mean(0).reshape(ROWS, COLS), atol=weights.max() / 255)
    assert (drawn[0].answer, drawn[0].told) == ("red 70%", "wrong: it is green\nthen green 20%")
    assert drawn[0].caption == "before the first step\nvalidation: 25.0% of 1,200 right"
    assert (drawn[1].answer, drawn[1].told) == ("green 90%", "right\nthen blue 10%") and drawn[1].caption.startswith("after 1,500 steps\n")
    assert shown(scene_of(), frames, subject=0, layer=2, head=1)[0].told == "then green 20%"               # nobody knows what it is


def test_a_head_that_starts_at_zero_has_no_answer():
    even = frame_of(0, weights_on(1, 0.5), top=((1, 0.33333), (0, 0.33333), (2, 0.33333)))
    assert shown(scene_of(), [even], subject=1, layer=0, head=0)[0][1:3] == ("no answer yet", "all classes are alike")


def test_the_mark_moves_along_the_loss():
    pictures = pictures_of(animate(scene_of(), FRAMES, LOSSES, subject=0, layer=0, head="mean", kind="webp", seconds_per_frame=0.2))
    centres = []
    for picture in pictures:
        right = picture[206:390, 424:712]
        blue = (right[..., 2] - right[..., 0] > 90).astype(float)
        centres.append(np.argmax([blue[:, i:i + 10].sum() for i in range(blue.shape[1] - 10)]))
    assert centres[0] < centres[1] - 60 < centres[2] - 120


def test_without_losses_or_with_heads_that_read_no_patch_there_is_still_a_film():
    assert len(pictures_of(animate(scene_of(), FRAMES, [], subject=0, layer=0, head=0, kind="webp", seconds_per_frame=0.2))) == 3
    assert len(pictures_of(animate(scene_of(), FRAMES[:1], LOSSES, subject=1, layer=2, head=1, kind="gif", seconds_per_frame=0.2))) == 1


def test_names_of_any_length_and_kind_are_words_and_nothing_else():
    scene = scene_of(classes=["$x^2$ " * 20, "\n\ta\x00b", "W" * 200])
    content = animate(scene, FRAMES, LOSSES, subject=1, layer=0, head=0, kind="gif", seconds_per_frame=0.2)
    ink = [(picture[40:140, 610:615] < 128).sum() for picture in pictures_of(content)]
    assert ink == [0, 0, 0]                                                 # nothing runs into the small picture


def test_a_long_film_is_thinned_evenly_and_stays_below_four_megabytes(monkeypatch):
    frames = [frame_of(step, weights_on(step % 15, 0.5)) for step in range(0, 900, 10)]
    monkeypatch.setattr(filmstrip, "MOST_FRAMES", 6)
    drawn = filmstrip._thinned(list(range(90)), 12)
    assert (drawn[0], drawn[-1], len(drawn)) == (0, 89, 12) and set(np.diff(drawn)) <= {8, 9}
    whole = animate(scene_of(), frames, LOSSES, subject=0, layer=0, head=0, kind="webp", seconds_per_frame=0.2)
    assert len(pictures_of(whole)) == 6 and len(whole) < filmstrip.MOST_BYTES
    monkeypatch.setattr(filmstrip, "MOST_BYTES", int(0.7 * len(whole)))
    small = animate(scene_of(), frames, LOSSES, subject=0, layer=0, head=0, kind="webp", seconds_per_frame=0.2)
    assert len(small) <= int(0.7 * len(whole)) and 2 <= len(pictures_of(small)) < 6


@pytest.mark.parametrize(("options", "sentence"), [
    ({"kind": "mp4"}, "webp or gif"), ({"subject": 2}, "has 2 pictures"), ({"subject": -1}, "has 2 pictures"), ({"subject": "0"}, "has 2 pictures"),
    ({"layer": 3}, "3 layers"), ({"layer": -2}, "3 layers"), ({"layer": None}, "3 layers"), ({"head": 2}, "2 heads"), ({"head": -1}, "2 heads"),
    ({"head": "max"}, "2 heads"), ({"head": True}, "2 heads"), ({"seconds_per_frame": 0}, "0.05 to 10"), ({"seconds_per_frame": float("nan")}, "0.05 to 10")])
def test_what_cannot_be_shown_is_one_sentence(options, sentence):
    with pytest.raises(FilmstripError, match=sentence):
        animate(scene_of(), FRAMES, LOSSES, **{"subject": 0, "layer": 0, "head": 0, "kind": "webp", "seconds_per_frame": 0.2, **options})


def test_a_film_without_frames_or_without_attention_is_one_sentence():
    with pytest.raises(FilmstripError, match="no pictures yet"):
        animate(scene_of(), [], LOSSES, subject=0, layer=0)
    blind = [{**frame, "subjects": [{**one, "reads": None} for one in frame["subjects"]]} for frame in FRAMES]
    with pytest.raises(FilmstripError, match="no attention"):
        animate(scene_of(layers=0, heads=0), blind, LOSSES, subject=0, layer=0)


def test_an_untold_film_holds_no_picture_of_the_data_set():
    scene, frames = untold(scene_of(), FRAMES)
    assert [subject["name"] for subject in scene["subjects"]] == ["picture 1"] and scene["watched"] == []
    assert all(len(frame["subjects"]) == 1 and frame["watched"] == [] for frame in frames)
    assert len(scene_of()["subjects"]) == 2 and frames[0]["accuracy"] == FRAMES[0]["accuracy"] and len(FRAMES[0]["watched"]) == 1
    secret = scene_of()["subjects"][1]["picture"]
    assert secret not in json.dumps([scene, frames]) and base64.b64decode(scene["subjects"][0]["picture"].split(",")[1])
    assert len(pictures_of(animate(scene, frames, LOSSES, subject=0, layer=0, kind="webp", seconds_per_frame=0.2))) == 3
