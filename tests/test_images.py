"""Opening untrusted pictures: every kind of hard input, the geometry, and the one way into a model."""

import io
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import picture_bytes
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageFile
from torchvision.models import get_weight
from torchvision.transforms import Normalize

from vitdemo.config import ConfigError, Preprocessing
from vitdemo.geometry import Geometry, centred
from vitdemo.images import PAPER, Picture, PictureError, normalise, open_picture, see, to_input

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "vitdemo" / "ui" / "examples").glob("*.jpg"))
ANALYSED = {"static_palette.gif", "photo.avif", "phone_mpo.jpg", "png_without_suffix", ".hidden.png", "rgba_png_named.gif", "la_gray_alpha.png",
            "aspect_3x300.png"}
ANALYSED_STARTS = ("ok_", "gray", "bilevel", "palette", "cmyk", "猫", "long_", "exif_", "rgba_under", "anim", "float", "icc", "size_", "flat", "overlay")
REFUSED = {
    "rgba_fully_transparent.png": "fully transparent", "heic_header_only.heic": "HEIC.*JPEG", "svg_script.svg": "SVG.*PNG", "zero_byte.png": "empty",
    "text_named.png": "not a picture", "truncated_half.jpg": "incomplete", "truncated_half.png": "incomplete", "truncated_tail.jpg": "incomplete",
    "ihdr_zero_width.png": "not a picture|no pixels", "bomb_20000x20000_1bit.png": "40 megapixels", "pixels_12000x9000_1bit.png": "12000 x 9000.*40 megapixels",
    "aspect_1x2000.png": "too thin",
}


def test_every_hard_input_is_analysed_or_refused_in_one_sentence_as_expected(cases):
    files = sorted(p for p in (cases / "images").iterdir())
    assert len(files) > 40
    for path in files:
        if path.name in REFUSED:
            with pytest.raises(PictureError, match=REFUSED[path.name]) as refusal:
                open_picture(path)
            text = str(refusal.value)
            assert str(path.parent) not in text and "\n" not in text and "Traceback" not in text
        else:
            assert path.name in ANALYSED or path.name.startswith(ANALYSED_STARTS), f"nobody said what to do with {path.name}"
            picture = open_picture(path)
            assert picture.image.mode == "RGB" and open_picture(path.read_bytes()).image.tobytes() == picture.image.tobytes()


def test_all_turned_photos_come_out_upright_and_alike(cases):
    upright = np.asarray(open_picture(cases / "images" / "exif_orient_1.jpg").image).astype(int)
    assert upright.shape == (64, 96, 3)
    for number in (2, 4, 5, 6, 8):
        turned = np.asarray(open_picture(cases / "images" / f"exif_orient_{number}.jpg").image).astype(int)
        assert turned.shape == upright.shape and np.abs(turned - upright).mean() < 3


def test_what_lies_under_transparency_does_not_matter(cases):
    one, *others = (open_picture(cases / "images" / f"rgba_under_{name}.png").image.tobytes() for name in ("black", "green", "white"))
    assert others == [one, one] and PAPER == (255, 255, 255)


def test_a_profile_that_swaps_red_and_green_is_obeyed(cases):
    picture = open_picture(cases / "images" / "icc_swapped_rg.png").image
    colours = [colour for _, colour in picture.getcolors(10**6)]
    assert any(abs(r - 26) <= 4 and abs(g - 227) <= 4 and abs(b - 26) <= 4 for r, g, b in colours)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
def test_exif_orientation_is_applied_whatever_the_format(orientation, kind):
    upright = Image.new("RGB", (6, 4), (200, 0, 0))
    upright.paste((0, 0, 200), (0, 0, 3, 2))                                # blue in the upper left
    undo = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}[orientation]
    stored = upright if undo is None else upright.transpose(Image.Transpose(undo))
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = open_picture(picture_bytes(stored.resize((stored.width * 8, stored.height * 8), 0), kind, exif=exif)).image
    assert picture.size == (48, 32)
    assert picture.getpixel((4, 4))[2] > 150 and picture.getpixel((44, 28))[0] > 150


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
def test_transparency_of_every_kind_is_laid_on_paper_and_said(mode):
    if mode in ("RGBA", "LA"):
        image = Image.new(mode, (8, 8), (10, 20, 30, 255) if mode == "RGBA" else (50, 255))
        image.paste((10, 20, 30, 0) if mode == "RGBA" else (50, 0), (0, 0, 4, 8))
        options = {}
    else:
        image = Image.new(mode, (8, 8), {"P": 1, "L": 9, "RGB": (9, 9, 9)}[mode])
        image.paste({"P": 0, "L": 7, "RGB": (7, 7, 7)}[mode], (0, 0, 4, 8))
        if mode == "P":
            image.putpalette([0, 0, 0, 90, 90, 90])
        options = {"transparency": {"P": 0, "L": 7, "RGB": (7, 7, 7)}[mode]}
    picture = open_picture(picture_bytes(image, "PNG", **options))
    assert picture.image.getpixel((1, 1)) == PAPER and picture.image.getpixel((6, 6)) != PAPER
    assert picture.notes == ("Transparent parts were laid on white.",)


@pytest.mark.parametrize("values", [np.arange(0, 65536, 16, dtype=np.uint16), np.arange(1000, 1512, dtype=np.uint16)])
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_keep_their_shades(values, kind):
    image = Image.fromarray(np.tile(values, (64, 1)))
    shades = len(np.unique(np.asarray(open_picture(picture_bytes(image, kind)).image)))
    assert shades > 200


def test_floats_are_scaled_and_what_is_no_number_is_black():
    values = np.linspace(-3, 7, 64 * 8, dtype=np.float32).reshape(8, 64)
    values[0, 0], values[0, 1] = np.nan, np.inf
    pixels = np.asarray(open_picture(picture_bytes(Image.fromarray(values), "TIFF")).image)
    assert pixels[0, 0, 0] == 0 and pixels.max() == 255 and len(np.unique(pixels)) > 200
    flat = open_picture(picture_bytes(Image.fromarray(np.full((8, 8), 3.0, np.float32)), "TIFF")).image
    assert flat.getextrema() == ((128, 128),) * 3


def test_broken_profiles_and_broken_exif_are_ignored():
    image = Image.new("RGB", (8, 8), (50, 60, 70))
    assert open_picture(picture_bytes(image, "PNG", icc_profile=b"nonsense")).image.getpixel((0, 0)) == (50, 60, 70)
    assert open_picture(picture_bytes(image, "PNG", exif=b"Exif\0\0MM\0*nonsense")).image.getpixel((0, 0)) == (50, 60, 70)
    grey = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")).tobytes()
    assert open_picture(picture_bytes(image, "PNG", icc_profile=grey)).image.getpixel((0, 0)) == (50, 60, 70)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "TIFF"])
def test_of_several_frames_the_first_is_used_and_said(kind):
    frames = [Image.new("RGB", (8, 8), colour) for colour in ((255, 0, 0), (0, 255, 0), (0, 0, 255))]
    picture = open_picture(picture_bytes(frames[0], kind, save_all=True, append_images=frames[1:], **({"lossless": True} if kind == "WEBP" else {})))
    assert picture.image.getpixel((3, 3)) == (255, 0, 0) and "first" in picture.notes[0]


def test_a_large_jpeg_is_reduced_while_it_is_decoded_and_other_large_pictures_are_refused():
    image = Image.new("RGB", (900, 600), (10, 200, 30))
    picture = open_picture(picture_bytes(image, "JPEG"), max_pixels=200_000)
    assert picture.image.size == (450, 300) and "900 × 600" in picture.notes[0]
    with pytest.raises(PictureError, match="900 x 600"):
        open_picture(picture_bytes(image, "PNG"), max_pixels=200_000)


@pytest.mark.parametrize(("content", "said"), [
    (b"", "empty"), (b"hello", "not a picture"), (b"\0\0\0\x18ftypheic\0\0\0\0", "HEIC"), (b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic", "HEIC"),
    (b"\0\0\0\x1cftypheif\0\0\0\0mif1heic", "HEIC"), (b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", "video"),
    (b"<?xml version='1.0'?><svg/>", "SVG"), (b"  <SVG onload='x'>", "SVG"), (b"%PDF-1.7", "PDF"), (b"\x40" + bytes(7) + b'{"__metadata__":{}}', "weights"),
    (b"PK\x03\x04" + bytes(26) + b"archive/data.pkl", "weights"), (b"<!DOCTYPE html><html>", "web page"),
    (b"\xef\xbb\xbf<svg/>", "SVG"), (b"<!-- drawn -->\n<svg/>", "SVG"), ("<?xml version='1.0'?><svg/>".encode("utf-16"), "SVG"),
    (b"<!doctype html><svg/>", "web page"), (b"P", "not a picture"),
    (b"GIF89a\1\0\1\0\0\0\0,\0\0\0\0\0\xff\0\xff\0\2\2L\1\0;", "megapixels"),   # a small screen, a frame of 65280 x 65280
    (b"\x89PNG\r\n\x1a\n", "not a picture|incomplete"), (b"GIF89a", "not a picture|incomplete"), (b"\xff\xd8\xff\xe0", "not a picture|incomplete"),
    (b"P6 99999 99999 255\n", "megapixels|incomplete"), (b"%!PS-Adobe-3.0 EPSF-3.0", "PostScript.*PNG"),
])
def test_what_is_no_picture_is_refused_by_name(content, said):
    with pytest.raises(PictureError, match=said):
        open_picture(content)


@pytest.mark.parametrize("source", ["/nowhere/at/all.png", Path("/"), 7, None, io.StringIO("text"), object(), "a\0b"])
def test_what_is_no_file_is_refused_without_its_folder(source):
    with pytest.raises(PictureError) as refusal:
        open_picture(source)
    assert "nowhere" not in str(refusal.value)


def test_pil_images_open_files_and_paths_are_taken_alike(tmp_path):
    image = Image.effect_noise((30, 20), 50).convert("RGB")
    content = picture_bytes(image)
    (tmp_path / "x.jpg").write_bytes(content)
    for source in (image, content, io.BytesIO(content), tmp_path / "x.jpg", str(tmp_path / "x.jpg"), Image.open(io.BytesIO(content))):
        assert open_picture(source).image.tobytes() == image.tobytes()


@pytest.mark.parametrize(("image", "said"), [
    (Image.new("RGB", (0, 5)), "no pixels"), (Image.new("1", (7000, 6000)), "7000 x 6000.*40 megapixels"), (Image.new("L", (3, 900)), "too thin"),
    (Image.open(io.BytesIO(picture_bytes(Image.effect_noise((60, 40), 60))[:900])), "incomplete"), (Image.new("La", (5, 4)), "broken"),
])
def test_a_pil_image_is_checked_like_a_file(image, said):
    with pytest.raises(PictureError, match=said):
        open_picture(image)


def test_a_pil_image_stays_as_it_was_and_an_opened_picture_opens_to_itself():
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "a camera"
    source = Image.open(io.BytesIO(picture_bytes(Image.effect_noise((30, 20), 50).convert("RGBA"), "PNG", exif=exif)))
    once = open_picture(source).image
    assert once.size == (20, 30) and once.info == {} and not once.getexif()
    assert open_picture(once).image.tobytes() == once.tobytes()
    assert source.size == (30, 20) and "exif" in source.info and source.mode == "RGBA"


def test_sixteen_bits_are_turned_too_and_a_palette_may_hold_the_transparency():
    exif = Image.Exif()
    exif[0x0112] = 8
    image = Image.fromarray(np.arange(600, dtype=np.uint16).reshape(20, 30))
    assert open_picture(picture_bytes(image, "PNG", exif=exif)).image.getpixel((0, 0)) == (12, 12, 12)   # 29 / 599, the upper right corner
    palette = Image.new("P", (8, 8))
    palette.putpalette([9, 9, 9, 0, 90, 90, 90, 255], "RGBA")
    palette.putpixel((1, 1), 1)
    assert open_picture(palette).image.getpixel((0, 0)) == PAPER and open_picture(palette).image.getpixel((1, 1)) == (90, 90, 90)


@pytest.mark.parametrize(("kind", "options"), [
    ("PNG", {}), ("JPEG", {}), ("JPEG", {"progressive": True}), ("GIF", {}), ("WEBP", {}), ("AVIF", {}), ("BMP", {}), ("PPM", {}),
    ("TIFF", {}), ("TIFF", {"compression": "tiff_lzw"}),
])
@pytest.mark.filterwarnings("ignore:Corrupt EXIF data", "ignore:Truncated File Read")       # Pillow's words about a cut TIFF
def test_a_cut_off_file_of_any_format_is_refused(kind, options):
    content = picture_bytes(Image.effect_noise((60, 40), 60).convert("RGB"), kind, **options)
    for share in (0.02, 0.3, 0.6, 0.95):
        with pytest.raises(PictureError, match="incomplete|not a picture"):
            open_picture(content[: int(len(content) * share)])


def test_of_a_phones_several_pictures_the_first_is_shown_even_if_their_list_is_broken():
    first, second = Image.new("RGB", (24, 16), (200, 0, 0)), Image.new("RGB", (12, 8), (0, 0, 200))
    content = picture_bytes(first, "MPO", save_all=True, append_images=[second])
    at = content.index(b"MPF\0") + 4
    for whole in (content, content[:at] + b"II*\0\x08\0\0\0" + bytes(8) + content[at + 16:]):
        picture = open_picture(whole)
        assert picture.image.size == (24, 16) and picture.image.getpixel((3, 3))[0] > 190 and picture.notes == ()


def test_a_photo_of_108_megapixels_is_reduced_without_a_warning(monkeypatch):
    def changes_every_thread(*_, **__):
        raise AssertionError("silencing warnings changes the whole process")

    content = picture_bytes(Image.new("L", (12_000, 9_000), 77), "JPEG")
    with monkeypatch.context() as patch:                                    # the filters of pytest.ini turn warnings into errors
        patch.setattr(warnings, "catch_warnings", changes_every_thread)
        patch.setattr(warnings, "simplefilter", changes_every_thread)
        picture = open_picture(content)
    assert picture.image.size == (6000, 4500) and picture.image.getpixel((99, 99)) == (77, 77, 77)
    assert "12000 × 9000" in picture.notes[0]
    at = content.index(b"\xff\xc0") + 5                                      # rows and columns in the frame header
    with pytest.raises(PictureError, match="13000 x 12000.*120 megapixels"):
        open_picture(content[:at] + (12_000).to_bytes(2, "big") + (13_000).to_bytes(2, "big") + content[at + 4:])


def test_a_jpeg_of_very_many_scans_is_refused_before_they_are_decoded():
    content = picture_bytes(Image.new("RGB", (64, 48)), "JPEG", progressive=True)
    assert open_picture(content).image.size == (64, 48)
    last = content[content.rindex(b"\xff\xda"):-2]
    with pytest.raises(PictureError, match="200 scans"):
        open_picture(content[:-2] + last * 200 + content[-2:])


def test_no_state_of_pillow_is_changed_and_nothing_warns():
    before = Image.MAX_IMAGE_PIXELS
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PictureError):
            open_picture(b"BM" + b"\xff" * 60)
    assert before == Image.MAX_IMAGE_PIXELS and not ImageFile.LOAD_TRUNCATED_IMAGES


def test_a_bomb_costs_no_memory_and_sixteen_bits_cost_little(tmp_path):
    if not Path("/proc/self/status").is_file():
        pytest.skip("the peak of a process's memory is read from /proc")
    import struct
    import zlib

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 12_000, 13_000, 8, 2, 0, 0, 0)
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 10**6)) + chunk(b"IEND", b""))
    Image.fromarray(np.tile(np.arange(3000, dtype=np.uint16), (3000, 1))).save(tmp_path / "grey.png")
    code = ("import re, sys\nfrom vitdemo.images import *\nImage.init()\n"       # not ru_maxrss: a child starts with its parent's peak
            "def grown(): return int(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1]) - before\n"
            "before = 0; before = grown()\n"
            "try: open_picture(sys.argv[1])\nexcept PictureError as error: print(error)\n"
            "print(grown())\nopen_picture(sys.argv[2])\nprint(grown())")
    done = subprocess.run([sys.executable, "-c", code, *(str(tmp_path / name) for name in ("bomb.png", "grey.png"))],
                          capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    sentence, bomb, grey = done.stdout.strip().splitlines()
    assert "megapixels" in sentence and int(bomb) < 20_000                  # kB
    assert int(grey) < 150_000                                              # 9 megapixels; with float64 for all of them it was 300 MB


@settings(max_examples=60, deadline=None)
@given(mode=st.sampled_from(["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F", "YCbCr", "LAB", "HSV"]), rows=st.integers(1, 40),
       cols=st.integers(1, 40), kind=st.sampled_from(["PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "PPM", "AVIF"]))
def test_any_mode_size_and_format_comes_out_as_a_bounded_rgb_picture_or_a_sentence(mode, rows, cols, kind):
    image = Image.new(mode, (cols, rows), 1)
    try:
        content = picture_bytes(image, kind)
    except (OSError, ValueError, KeyError):
        content = None                                                      # Pillow does not write this pair
    for source in filter(None, (content, image)):
        try:
            picture = open_picture(source)
        except PictureError:
            continue
        assert picture.image.mode == "RGB" and picture.image.size == (cols, rows)
        assert torch.isfinite(to_input(picture, Preprocessing(), (4, 4)).tensor).all()


def test_flipped_and_cut_bytes_give_a_picture_or_a_sentence():
    generator = np.random.default_rng(0)
    noise = Image.effect_noise((24, 16), 60).convert("RGB")
    exif = Image.Exif()
    exif[0x0112] = 6
    for kind in ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP", "AVIF"):
        whole = picture_bytes(noise, kind, **({"exif": exif} if kind in ("PNG", "JPEG", "WEBP") else {}))
        for _ in range(60):
            broken = bytearray(whole[: generator.integers(1, len(whole) + 1)] if generator.random() < 0.3 else whole)
            for place in generator.integers(0, len(broken), generator.integers(0, 6)):
                broken[place] = generator.integers(0, 256)
            try:
                assert isinstance(open_picture(bytes(broken)), Picture)
            except PictureError as error:
                assert "\n" not in str(error)


def test_a_patch_of_a_wide_picture_lies_where_the_crop_says_and_back():
    image = Image.new("RGB", (320, 80))
    geometry = to_input(image, Preprocessing(size=(12, 20)), (4, 4)).geometry
    assert geometry.grid == (3, 5) and geometry.original == (80, 320)
    top, left, bottom, right = geometry.crop
    assert (top, bottom) == (0, 80) and right - left == pytest.approx(80 * 20 / 12) and left == pytest.approx(320 - right)
    for row in range(3):
        for col in range(5):
            t, le, b, r = geometry.patch_rectangle(row, col)
            assert geometry.patch_at((t + b) / 2, (le + r) / 2) == (row, col)
    assert geometry.patch_at(40, left - 1) is None and geometry.patch_at(40, right + 1) is None
    for wrong in ((3, 0), (0, 5), (-1, 0)):
        with pytest.raises(ValueError, match="3 x 5"):
            geometry.patch_rectangle(*wrong)


def test_the_hot_corner_of_the_original_is_the_first_patch():
    image = Image.new("RGB", (200, 100), (0, 0, 0))
    image.paste((255, 255, 255), (50, 0, 75, 25))                           # upper left of the centred square
    seen = to_input(image, Preprocessing(size=(12, 12)), (3, 3))
    bright = seen.tensor[0, 0].unfold(0, 3, 3).unfold(1, 3, 3).mean((-2, -1))
    assert divmod(int(bright.argmax()), 4) == (0, 0)
    assert Geometry((100, 200), (0, 50, 100, 150), (12, 12), (3, 3)).patch_rectangle(0, 0) == (0, 50, 25, 75)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_that_already_is_an_input_keeps_every_pixel_and_a_fraction_crops(channels):
    image = Image.effect_noise((20, 12), 60).convert("RGB")
    preprocessing = Preprocessing(size=(12, 20), channels=channels, mean=(0.5,) * channels, std=(0.5,) * channels)
    seen, crop = see(image, preprocessing)
    assert seen.tobytes() == image.convert("L" if channels == 1 else "RGB").tobytes() and crop == (0, 0, 12, 20)
    assert to_input(image, preprocessing, (4, 4)).tensor.shape == (1, channels, 12, 20)
    seen, crop = see(image, preprocessing.with_(crop_fraction=0.5))
    assert crop == (3, 5, 9, 15) and seen.size == (20, 12) and seen.tobytes() != image.tobytes()


def test_of_a_picture_that_needs_no_resizing_a_crop_keeps_whole_pixels():
    for side in (28, 196, 224, 384):
        for full in range(side, 2 * side):
            off = round((full - side) / 2)
            assert centred((full, full), (side, side), side / full) == (off, off, off + side, off + side)


def test_no_size_of_picture_and_input_trips_over_rounding():
    sizes = np.random.default_rng(0).integers(1, (400, 400, 300, 300), (1500, 4)).tolist()
    for height, width, rows, cols in [[111, 326, 201, 1], *([side, 2 * side, 224, 224] for side in range(150, 600)), *sizes]:
        preprocessing = Preprocessing(size=(rows, cols), channels=1, mean=(0,), std=(1,), interpolation="bilinear")
        seen, (top, left, bottom, right) = see(Image.new("L", (width, height)), preprocessing)
        assert seen.size == (cols, rows) and 0 <= top < bottom <= height and 0 <= left < right <= width


def pictures() -> list[Image.Image]:
    """Photos, and pictures busy in every pixel whose sides leave half pixels over when they are cropped."""
    noise = np.random.default_rng(3)
    busy = [noise.integers(0, 256, (tall, wide, 3)).astype(np.uint8) for tall, wide in ((333, 500), (375, 499), (301, 227), (225, 224), (97, 131), (611, 1203))]
    return [*(Image.open(path).convert("RGB") for path in EXAMPLES), *map(Image.fromarray, busy)]


def apart(images: list[Image.Image], preprocessing: Preprocessing, theirs) -> tuple[float, float]:
    """Largest and mean difference, of 255, between our inputs and those of `theirs`, both normalised."""
    found = []
    for image in images:
        ours, their = to_input(image, preprocessing, (1, 1)).tensor[0], torch.as_tensor(np.asarray(theirs(image)))
        found.append(255 * ((ours - their) * torch.tensor(preprocessing.std)[:, None, None]).abs())
    return max(one.max().item() for one in found), sum(one.mean().item() for one in found) / len(found)


# What the originals do in two steps, resizing and then cropping, is done here in one. Left is the rounding of Pillow's sampling weights: two of
# 255 in single pixels. Half a pixel of the input aside would be 4 of 255 on average, in photos.
TWO_STEPS = {"max": 2.01, "mean": 0.01}


@pytest.mark.parametrize("weights", ["ViT_B_16_Weights.IMAGENET1K_V1", "ViT_L_16_Weights.IMAGENET1K_V1", "ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1"])
def test_an_input_is_the_one_that_torchvisions_own_transforms_make(weights):
    original = get_weight(weights).transforms()
    side = original.crop_size[0]
    preprocessing = Preprocessing(size=(side, side), crop_fraction=side / original.resize_size[0], mean=tuple(original.mean), std=tuple(original.std),
                                  interpolation=original.interpolation.value)
    largest, mean = apart(pictures(), preprocessing, original)
    assert largest < TWO_STEPS["max"] and mean < TWO_STEPS["mean"]


@pytest.mark.parametrize(("size", "crop_pct", "interpolation"), [(224, 0.9, "bicubic"), (224, 0.875, "bilinear"), (384, 1.0, "bicubic"), (224, 0.95, "bicubic")])
def test_an_input_is_the_one_that_timms_transform_makes(size, crop_pct, interpolation):
    create_transform = pytest.importorskip("timm.data").create_transform
    preprocessing = Preprocessing(size=(size, size), crop_fraction=crop_pct, interpolation=interpolation)
    original = create_transform(size, crop_pct=crop_pct, interpolation=interpolation, mean=preprocessing.mean, std=preprocessing.std)
    largest, mean = apart(pictures(), preprocessing, original)
    assert largest < TWO_STEPS["max"] and mean < TWO_STEPS["mean"]


def test_a_squashed_input_is_the_one_that_hugging_faces_processor_makes():
    processor = pytest.importorskip("transformers").ViTImageProcessor()     # PyTorch's resizing, or Pillow's in older versions: one of 255 apart
    preprocessing = Preprocessing(size=(224, 224), interpolation="bilinear", fit="squash")
    largest, mean = apart(pictures(), preprocessing, lambda image: processor(image, return_tensors="np")["pixel_values"][0])
    assert largest < 1.01 and mean < 0.05


def test_a_photo_that_is_made_very_much_smaller_is_still_near_the_original():
    busy = Image.fromarray(np.random.default_rng(5).integers(0, 256, (300, 401, 3)).astype(np.uint8)).resize((2404, 1800), Image.Resampling.BICUBIC)
    original = get_weight("ViT_B_16_Weights.IMAGENET1K_V1").transforms(crop_size=160, resize_size=183)
    preprocessing = Preprocessing(size=(160, 160), crop_fraction=160 / 183, mean=tuple(original.mean), std=tuple(original.std), interpolation="bilinear")
    largest, mean = apart([busy], preprocessing, original)                  # from an eighth on in two steps, five times as fast
    assert largest < 4 and mean < 1


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("fit", ["squash", "whole"])
def test_all_of_the_picture_is_seen_where_nothing_is_cropped(fit, channels):
    preprocessing = Preprocessing(size=(12, 20), channels=channels, mean=(0.5,) * channels, std=(0.5,) * channels, crop_fraction=0.5, fit=fit)
    image = Image.effect_noise((90, 30), 60).convert("RGB")
    made = to_input(image, preprocessing, (4, 4))
    size = (12, 20) if fit == "squash" else (8, 24)
    assert made.geometry == Geometry((30, 90), (0, 0, 30, 90), size, (4, 4)) and made.tensor.shape == (1, channels, *size)
    expected = image.convert("L" if channels == 1 else "RGB").resize(size[::-1], Image.Resampling.BICUBIC)
    assert made.seen.tobytes() == expected.tobytes()
    again = to_input(made.seen, preprocessing.with_(size=size), (4, 4))     # what already is such an input stays as it is
    assert again.seen.tobytes() == made.seen.tobytes() and torch.equal(again.tensor, made.tensor)


def test_preprocessing_from_before_pictures_could_be_seen_whole_is_read_as_a_crop():
    old = {"size": [32, 32], "channels": 3, "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "crop_fraction": 1.0, "interpolation": "bicubic"}
    assert Preprocessing.from_json(old) == Preprocessing() and Preprocessing().fit == "crop"
    assert Preprocessing.from_json(Preprocessing(fit="whole").to_json()).fit == "whole"
    with pytest.raises(ConfigError, match="fit must be one of 'crop', 'squash', 'whole', not 'stretch'"):
        Preprocessing(fit="stretch")


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1"])
@pytest.mark.parametrize("channels", [1, 3])
def test_an_input_has_the_models_channels_whatever_the_mode(mode, channels):
    preprocessing = Preprocessing(size=(12, 20), channels=channels, mean=(0.5,) * channels, std=(0.5,) * channels)
    made = to_input(Image.new(mode, (20, 12)), preprocessing, (4, 4))
    assert made.tensor.shape == (1, channels, 12, 20) and made.seen.mode == ("L" if channels == 1 else "RGB")


def test_normalise_is_torchvisions_and_a_reduced_picture_keeps_its_colours():
    images = torch.randint(0, 256, (3, 3, 5, 7), dtype=torch.uint8)
    preprocessing = Preprocessing(mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6))
    expected = Normalize(preprocessing.mean, preprocessing.std)(images.float() / 255)
    assert torch.allclose(normalise(images, preprocessing), expected, atol=1e-6)
    assert torch.allclose(normalise(floats := images.float(), preprocessing), expected, atol=1e-6) and floats.equal(images.float())
    flat = to_input(Image.new("RGB", (999, 700), (30, 60, 90)), Preprocessing(mean=(0,) * 3, std=(1,) * 3), (4, 4))
    assert torch.allclose(flat.tensor[0].mean((1, 2)) * 255, torch.tensor([30.0, 60.0, 90.0]), atol=0.01)
