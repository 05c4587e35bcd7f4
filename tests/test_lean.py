"""PNG and GIF files lose what does not bear on their first picture, and nothing else."""

import struct
import time
import zlib

import numpy as np
import pytest
from conftest import picture_bytes
from PIL import Image, PngImagePlugin

from vitdemo import lean
from vitdemo.images import PictureError, open_picture

NOISE = Image.fromarray(np.random.default_rng(0).integers(0, 256, (10, 14, 3), np.uint8))
XMP6 = ('<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description '
        'xmlns:tiff="http://ns.adobe.com/tiff/1.0/" tiff:Orientation="6"/></rdf:RDF></x:xmpmeta>')


def chunk(name: bytes, body: bytes = b"", *, damaged: bool = False) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body) ^ damaged)


def with_chunks(*chunks: bytes) -> bytes:
    """The noise as a PNG with more chunks behind its header."""
    content = picture_bytes(NOISE, "PNG")
    return content[:33] + b"".join(chunks) + content[33:]


@pytest.mark.parametrize("chunks", [
    (chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(50 * 2**20), 9)),), (chunk(b"iTXt", b"x\0\1\0\0\0" + zlib.compress(bytes(50 * 2**20), 9)),),
    (chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(50 * 2**20), 9)),), (chunk(b"iCCP", b"no end"),), (chunk(b"iCCP", b"x\0\0broken"),), (chunk(b"gAMA", b"\0"),),
    (chunk(b"pHYs", b"\xff" * 9),), (chunk(b"pHYs", b""),), (chunk(b"gAMA", bytes(4), damaged=True),), (chunk(b"tRNS", bytes(6), damaged=True),),
    (chunk(b"eXIf", b"MM\0*", damaged=True),), (chunk(b"teSt"),) * 1000, (chunk(b"tEXt", b"a" * 10**6),) * 3, (chunk(b"iTXt", b"XML:com.adobe.xmp\0" + bytes(10**5)),),
])
def test_texts_and_damaged_optional_parts_of_a_png_change_nothing(chunks):
    content = with_chunks(*chunks)
    assert open_picture(content).image.tobytes() == NOISE.tobytes()
    assert len(lean.png(content)) < 1000


def test_a_png_without_any_of_that_is_handed_on_as_it_is_and_what_counts_stays():
    plain = picture_bytes(NOISE, "PNG", exif=b"Exif\0\0MM\0*")
    assert lean.png(plain) is plain
    turned = PngImagePlugin.PngInfo()
    turned.add_itxt("XML:com.adobe.xmp", XMP6)
    assert open_picture(picture_bytes(NOISE, "PNG", pnginfo=turned)).image.size == (10, 14)
    assert open_picture(with_chunks(chunk(b"tRNS", struct.pack(">3H", *NOISE.getpixel((0, 0)))))).image.getpixel((0, 0)) == (255, 255, 255)
    moving = picture_bytes(NOISE, "PNG", save_all=True, append_images=[NOISE.rotate(180)])
    assert "first frame" in open_picture(moving).notes[0] and len(lean.png(moving)) <= len(moving)


@pytest.mark.parametrize("cut", [*range(1, 13, 3), *range(30, 90, 7)])
def test_a_cut_png_stays_cut(cut):
    content = with_chunks(chunk(b"tEXt", b"words"))
    with pytest.raises(PictureError, match="incomplete|no pixels"):
        open_picture(content[:-cut] if cut > 15 else content[:cut + 20])


@pytest.mark.parametrize("more", [b"!\xfe\1a\0" * 800_000, b"!\xfe" + b"\1a" * 1_000_000 + b"\0", b"\0" * 100_000, b"!\xf9\4\0\0\0\0\0" * 50_000])
@pytest.mark.parametrize("place", ["before", "after"])
def test_a_gif_of_very_many_comments_opens_at_once(more, place):
    content = picture_bytes(NOISE, "GIF")
    at = content.index(b",\0\0\0\0") if place == "before" else -1
    began = time.monotonic()
    picture = open_picture(content[:at] + more + content[at:])
    assert picture.image.tobytes() == open_picture(content).image.tobytes() and picture.notes == ()
    assert time.monotonic() - began < 6                                     # with Pillow alone a quarter of a minute, and minutes for five times as many


def test_of_a_gif_the_first_frame_is_kept_with_its_transparency_and_others_are_known_of():
    clear = picture_bytes(NOISE.quantize(8), "GIF", transparency=3)
    assert lean.gif(clear) == (clear, False)
    moving = picture_bytes(NOISE, "GIF", save_all=True, append_images=[NOISE.rotate(180)], comment=b"hello", loop=0)
    content, moves = lean.gif(moving)
    assert moves and len(content) < len(moving) and b"hello" not in content
    assert open_picture(content).image.tobytes() == open_picture(moving).image.tobytes()
    assert open_picture(moving).notes == ("The picture moves: its first frame was used.",) and open_picture(content).notes == ()


def test_a_frame_smaller_than_its_gif_lies_on_paper_and_a_larger_one_is_whole():
    content = picture_bytes(NOISE, "GIF")
    inside = content[:6] + struct.pack("<HH", 30, 20) + content[10:]
    moved = inside.replace(b",\0\0\0\0", b",\5\0\3\0")
    picture = open_picture(moved)
    assert picture.image.size == (30, 20) and picture.notes == ("Transparent parts were laid on white.",)
    assert picture.image.getpixel((4, 3)) == (255, 255, 255) == picture.image.getpixel((29, 19))
    assert picture.image.crop((5, 3, 19, 13)).tobytes() == open_picture(content).image.tobytes()
    smaller = content[:6] + struct.pack("<HH", 4, 3) + content[10:]
    assert open_picture(smaller).image.tobytes() == open_picture(content).image.tobytes()


@pytest.mark.parametrize("length", [0, 5, 12, 13, 14, 40, 60, 130])
def test_a_cut_gif_is_refused_and_one_cut_after_its_first_frame_is_not(length):
    content = picture_bytes(NOISE, "GIF", save_all=True, append_images=[NOISE.rotate(180)])
    with pytest.raises(PictureError):
        open_picture(content[:length])
    assert open_picture(content[:-3]).image.tobytes() == open_picture(content).image.tobytes()
