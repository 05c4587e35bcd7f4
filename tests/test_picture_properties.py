"""What holds for every picture, whatever its mode, size, format and metadata."""

import io

import numpy as np
import pytest
from conftest import picture_bytes
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, PngImagePlugin

from vitdemo.images import TURNS, PictureError, open_picture

SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
EXACT = {"PNG": {}, "TIFF": {}, "BMP": {}, "WEBP": {"lossless": True, "exact": True}, "PPM": {}}              # formats that keep every pixel
FEW = settings(max_examples=40, deadline=None)
SIDES = st.integers(1, 40)
MODES = st.sampled_from(["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F"])


def noise(mode: str, cols: int, rows: int, seed: int) -> Image.Image:
    values = np.random.default_rng(seed).integers(0, 256, (rows, cols, 4), np.uint8)
    if mode == "I;16":
        return Image.fromarray(values[..., 0].astype(np.uint16) * 7 + 300)
    if mode == "F":
        return Image.fromarray(values[..., 0].astype(np.float32) / 90 - 1)
    return Image.fromarray(values[..., :3]).quantize(16) if mode == "P" else Image.fromarray(values, "RGBA").convert(mode)


def written(image: Image.Image, kind: str, **options) -> bytes | None:
    """The picture as a file; None where Pillow writes no such files."""
    try:
        return picture_bytes(image, kind, **EXACT.get(kind, {}), **options)
    except (OSError, ValueError, KeyError):
        return None


@FEW
@given(mode=MODES, cols=SIDES, rows=SIDES, seed=st.integers(0, 99), orientation=st.integers(0, 9), kind=st.sampled_from(["JPEG", "PNG", "WEBP", "TIFF"]))
def test_a_turned_picture_is_the_picture_turned(mode, cols, rows, seed, orientation, kind):
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = noise(mode, cols, rows, seed)
    plain, turned = written(image, kind), written(image, kind, exif=exif)
    if plain is None:
        return
    upright, turn = open_picture(plain).image, TURNS.get(orientation)
    expected = upright if turn is None else upright.transpose(turn)
    found = open_picture(turned).image
    assert found.size == expected.size and found.tobytes() == expected.tobytes()


@FEW
@given(mode=MODES, cols=SIDES, rows=SIDES, seed=st.integers(0, 99), kind=st.sampled_from(["JPEG", "PNG", "GIF", "WEBP", "AVIF", "BMP", "TIFF", "PPM"]))
def test_a_picture_is_rgb_of_its_own_size_carries_nothing_and_opens_to_itself(mode, cols, rows, seed, kind):
    image = noise(mode, cols, rows, seed)
    content = written(image, kind)
    if content is None:
        return
    picture = open_picture(content)
    pixels = np.asarray(picture.image)
    assert picture.image.mode == "RGB" and pixels.dtype == np.uint8 and pixels.shape == (rows, cols, 3)
    assert picture.image.info == {} and not picture.image.getexif() and picture.format == kind
    assert open_picture(picture.image).image.tobytes() == picture.image.tobytes()
    if mode in ("1", "L", "I;16", "F") and kind in EXACT:
        assert (pixels == pixels[..., :1]).all()


@FEW
@given(mode=MODES, cols=SIDES, rows=SIDES, seed=st.integers(0, 99), kind=st.sampled_from(["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"]))
def test_bytes_a_path_an_open_file_and_a_pil_image_are_one_picture(tmp_path_factory, mode, cols, rows, seed, kind):
    content = written(noise(mode, cols, rows, seed), kind)
    if content is None:
        return
    path = tmp_path_factory.getbasetemp() / "one.dat"
    path.write_bytes(content)
    expected = open_picture(content)
    with path.open("rb") as file:
        for source in (path, str(path), file, io.BytesIO(content), bytearray(content), memoryview(content)):
            assert open_picture(source).image.tobytes() == expected.image.tobytes() and open_picture(content).notes == expected.notes
    if kind != "TIFF" or mode != "F":
        assert open_picture(Image.open(io.BytesIO(content))).image.tobytes() == expected.image.tobytes()


@FEW
@given(cols=SIDES, rows=SIDES, seed=st.integers(0, 99), kind=st.sampled_from(["JPEG", "PNG", "TIFF", "WEBP"]), dpi=st.sampled_from([0, 1, 72, 65_535, 10**6]),
       text=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=200), maker=st.binary(max_size=60))
def test_what_a_picture_says_about_itself_changes_no_pixel(cols, rows, seed, kind, dpi, text, maker):
    image, exif = noise("RGB", cols, rows, seed), Image.Exif()
    exif[0x010F], exif[0x927C] = text, maker
    words = PngImagePlugin.PngInfo()
    words.add_text("Comment", text)
    words.add_itxt("More", text, zip=True)
    more = {"JPEG": {"comment": text.encode(), "dpi": (dpi, dpi)}, "PNG": {"pnginfo": words, "dpi": (dpi, dpi)}, "TIFF": {"dpi": (dpi, dpi), "description": text},
            "WEBP": {"xmp": text.encode()}}[kind]
    described = written(image, kind, exif=exif, **more)
    if described is not None:
        picture = open_picture(described)
        assert picture.image.tobytes() == open_picture(written(image, kind)).image.tobytes() and picture.notes == ()


@FEW
@given(cols=SIDES, rows=SIDES, seed=st.integers(0, 99), kind=st.sampled_from(["PNG", "TIFF", "WEBP"]), mode=st.sampled_from(["RGBA", "LA"]), share=st.floats(0, 0.9))
def test_colours_under_full_transparency_do_not_matter(cols, rows, seed, kind, mode, share):
    one, other = (np.array(noise(mode, cols, rows, number)) for number in (seed, seed + 1))
    hidden = np.random.default_rng(seed).random((rows, cols)) < share
    hidden.flat[0] = False
    one[..., -1] = np.where(hidden, 0, one[..., -1] | 1)
    other[~hidden], other[..., -1] = one[~hidden], one[..., -1]
    first, second = (open_picture(written(Image.fromarray(values, mode), kind)) for values in (one, other))
    assert first.image.tobytes() == second.image.tobytes() and first.notes == second.notes
    pixels = np.asarray(first.image)
    assert (pixels[hidden] == 255).all()


@FEW
@example(cols=3, rows=3, kind="JPEG", most=3, enough=0)                     # halved it is still too large
@given(cols=st.integers(1, 120), rows=st.integers(1, 120), kind=st.sampled_from(["JPEG", "PNG", "BMP"]), most=st.integers(1, 6000), enough=st.integers(0, 60))
def test_sizes_are_bounded_and_a_reduced_photo_keeps_enough(cols, rows, kind, most, enough):
    content = written(Image.new("L", (cols, rows), 9), kind)
    try:
        found = open_picture(content, max_pixels=most, enough=enough).image
    except PictureError as refusal:
        assert cols * rows > most and f"{cols} x {rows}" in str(refusal)
        return
    assert cols * rows <= (3 if kind == "JPEG" else 1) * most and found.width * found.height <= most
    assert abs(found.width * rows - found.height * cols) <= 9 * max(cols, rows)         # the same shape, but for rounding
    if cols * rows <= most:
        assert min(found.size) >= min(enough, cols, rows) and (enough or found.size == (cols, rows))


@FEW
@given(values=st.lists(st.integers(0, 65535), min_size=2, max_size=300, unique=True), kind=st.sampled_from(["PNG", "TIFF"]))
def test_sixteen_bits_keep_their_order_and_fill_the_range(values, kind):
    wide = max(2, -(-len(values) // 150))
    padded = np.resize(np.array(values, np.uint16), (-(-len(values) // wide), wide))
    found = np.asarray(open_picture(written(Image.fromarray(padded), kind)).image)[..., 0].ravel()
    order = np.argsort(padded.ravel(), kind="stable")
    assert (np.diff(found[order].astype(int)) >= 0).all() and found.min() == 0 and found.max() == 255


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_a_profile_that_says_what_is_assumed_anyhow_changes_next_to_nothing(kind, mode):
    content, tagged = (written(noise(mode, 30, 20, 1), kind, **more) for more in ({}, {"icc_profile": SRGB}))
    if content is not None:
        apart = np.asarray(open_picture(content).image).astype(int) - np.asarray(open_picture(tagged).image)
        assert np.abs(apart).max() <= 1
