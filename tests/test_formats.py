"""Which decoder reads a file, and what is said of a file that none reads."""

import gzip
import io
import struct
import sys
import zipfile
import zlib

import numpy as np
import pytest
from conftest import picture_bytes
from PIL import Image, ImageCms

from vitdemo.images import PictureError, open_picture

RGB = Image.fromarray(np.random.default_rng(1).integers(0, 256, (9, 14, 3), np.uint8)).resize((42, 27), Image.Resampling.BICUBIC)
RAMP = np.arange(9 * 14, dtype=np.float64).reshape(9, 14) / 125                 # from 0 to 1
SCALED = (RAMP * 255).round().astype(np.uint8)


def tiff(values: np.ndarray, *, order: str = "<", photometric: int = 1, packed: bool = False, more: tuple = ()) -> bytes:
    """A TIFF of one strip, written by hand: of kinds that Pillow does not write. `more`: (tag, type, count, packed value)."""
    rows, cols, bands = values.shape if values.ndim == 3 else (*values.shape, 1)
    kind, strip = {"u": 1, "i": 2, "f": 3}[values.dtype.kind], values.astype(values.dtype.newbyteorder(order)).tobytes()
    strip = zlib.compress(strip) if packed else strip
    entries = [(256, 4, 1, cols), (257, 4, 1, rows), (258, 3, 1, 8 * values.dtype.itemsize), (259, 3, 1, 8 if packed else 1), (262, 3, 1, photometric), (273, 4, 1, 0),
               (277, 3, 1, bands), (278, 4, 1, rows), (279, 4, 1, len(strip)), (339, 3, 1, kind)]
    start = 8 + 2 + 12 * (len(entries) + len(more)) + 4
    fields = {tag: (wide, count, struct.pack(order + ("I" if wide == 4 else "HH"), *((start if tag == 273 else value,) if wide == 4 else (value, 0))))
              for tag, wide, count, value in entries}
    fields |= {tag: (wide, count, value) for tag, wide, count, value in more}
    table = b"".join(struct.pack(order + "HHI", tag, wide, count) + value for tag, (wide, count, value) in sorted(fields.items()))
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, len(fields))
    return head + table + bytes(4) + strip


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("values", [RAMP, RAMP.astype("f4"), (RAMP * 65535).astype("u2"), (RAMP * 60000 - 30000).astype("i4")], ids=["f8", "f4", "u2", "i4"])
def test_every_kind_of_number_in_a_tiff_is_scaled_over_its_range(values, order, packed):
    found = np.asarray(open_picture(tiff(values, order=order, packed=packed)).image)[..., 0]
    assert np.abs(found.astype(int) - SCALED).max() <= 1


def test_whole_numbers_without_a_sign_do_not_wrap_and_white_may_be_the_least_value():
    large = np.asarray(open_picture(tiff((RAMP * 4e9).astype("u4"))).image)[..., 0]
    assert np.abs(large.astype(int) - SCALED).max() <= 1
    for values in ((RAMP * 65535).astype("u2"), RAMP.astype("f4"), RAMP):
        assert np.abs(np.asarray(open_picture(tiff(values, photometric=0)).image)[..., 0].astype(int) - (255 - SCALED)).max() <= 1


def test_one_value_may_stand_for_transparent_in_sixteen_bits():
    image = Image.fromarray((RAMP * 65535).astype("u2"))
    picture = open_picture(picture_bytes(image, "PNG", transparency=0))
    assert picture.image.getpixel((0, 0)) == (255, 255, 255) and picture.image.getpixel((1, 0)) == (2, 2, 2)
    assert picture.notes[-1] == "Transparent parts were laid on white."


@pytest.mark.parametrize("content", [tiff(RAMP.astype("f2")), tiff(np.stack([RAMP] * 3, -1).astype("f4"), photometric=2)])
def test_a_rare_kind_of_pixels_is_refused_as_one(content):
    with pytest.raises(PictureError, match="TIFF header.*rare kind.*PNG or JPEG"):
        open_picture(content)


def zipped(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, "x")
    return buffer.getvalue()


DNG = tiff((RAMP * 65535).astype("u2"), more=((50706, 1, 4, b"\1\4\0\0"),))
NIKON = tiff(np.zeros((4, 5), "u1"), order=">", more=((254, 4, 1, struct.pack(">I", 1)), (330, 4, 1, bytes(4))))
PILLOW_WRITES = {"ICO": "icon", "TGA": "TGA", "DDS": "DDS", "JPEG2000": "JPEG 2000", "ICNS": "icon", "EPS": "EPS", "PCX": "PCX", "SGI": "SGI", "QOI": "QOI", "PDF": "PDF"}


@pytest.mark.parametrize(("content", "said"), [
    (b"8BPS\0\1", "Photoshop.*PNG"), (b"gimp xcf v011\0", "GIMP"), (b"\xff\x0a\xfa\x1f", "JPEG XL.*PNG"), (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
    (b"II\xbc\1", "JPEG XR"), (b"v/1\1", "OpenEXR"), (b"#?RADIANCE\n", "HDR"), (DNG, "raw file.*JPEG"), (NIKON, "raw file"), (b"II*\0\x10\0\0\0CR\2\0", "raw file"),
    (b"\0\0\0\x18ftypcrx \0\0\0\1crx isom", "raw file"), (b"FUJIFILMCCD-RAW 0201", "raw file"), (b"\xd7\xcd\xc6\x9a", "WMF"), (b"\1\0\0\0" + bytes(36) + b" EMF", "EMF"),
    (b"\0\0\0\x18ftypmp42\0\0\0\0isommp42", "video"), (b"RIFF\0\0\0\0AVI LIST", "video"), (b"\x1aE\xdf\xa3", "video"), (b"RIFF\0\0\0\0WAVEfmt ", "sound"), (b"ID3\3", "sound"),
    (gzip.compress(b"<?xml version='1.0'?><SVG/>", mtime=0), "SVG.*PNG"), (gzip.compress(b"hello", mtime=0), "unpack it"), (b"\x1f\x8b\x08", "unpack it"), (zipped("a.png"), "unpack it"),
    (b"7z\xbc\xaf\x27\x1c", "unpack it"), (b"Rar!\x1a\7\1", "unpack it"), (zipped("[Content_Types].xml"), "office document"), (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "office"),
    (b"\0\5\x16\7\0\2\0\0Mac OS X", "begin with \\._"), (b"version https://git-lfs.github.com/spec/v1\noid", "Git LFS"), (b"MZ\x90\0", "program"),
    (b"[InternetShortcut]\r\nURL=https://example.org", "text and not a picture"), ("\ufeffhello".encode("utf-16-le"), "text and not a picture"),
    (b"data:image/png;base64,iVBORw0KGgo=", "text and not a picture"), (bytes(500), "not a picture in a format"), (b"\xef\xbb\xbf" + picture_bytes(RGB), "not a picture"),
    *((picture_bytes(RGB, kind), said) for kind, said in PILLOW_WRITES.items()),
])
def test_what_no_decoder_takes_is_called_by_its_name(content, said):
    with pytest.raises(PictureError, match=said) as refusal:
        open_picture(content)
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 200


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "AVIF", "BMP", "TIFF"])
def test_what_follows_a_picture_does_not_matter_also_where_it_makes_it_an_archive_or_a_page(kind):
    content = picture_bytes(RGB, kind)
    for more in (b"junk" * 99, zipped("a.txt"), b"<html><script>alert(1)</script></html>"):
        assert open_picture(content + more).image.tobytes() == open_picture(content).image.tobytes()


@pytest.mark.parametrize("compression", ["jpeg", "tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_tiffs_of_every_packing_and_size_of_offsets_are_read(compression):
    for large in (False, True):
        found = open_picture(picture_bytes(RGB, "TIFF", compression=compression, big_tiff=large)).image
        assert np.abs(np.asarray(found).astype(int) - np.asarray(RGB)).mean() < (6 if compression == "jpeg" else 0.001)


def test_lab_colours_and_profiles_for_other_colours_come_out_right():
    lab = ImageCms.profileToProfile(RGB, ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB")
    assert np.abs(np.asarray(open_picture(picture_bytes(lab, "TIFF")).image).astype(int) - np.asarray(RGB)).mean() < 1.5
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    swapped = srgb.replace(b"rXYZ", b"temp").replace(b"gXYZ", b"rXYZ").replace(b"temp", b"gXYZ")
    red, green, blue = open_picture(picture_bytes(Image.new("RGB", (4, 4), (220, 20, 20)), "PNG", icc_profile=swapped)).image.getpixel((0, 0))
    assert green > 180 > 100 > max(red, blue)
    grey = RGB.convert("L")
    assert open_picture(picture_bytes(grey, "JPEG", icc_profile=srgb)).image.tobytes() == open_picture(picture_bytes(grey, "JPEG")).image.tobytes()


def heic(image: Image.Image, *behind: Image.Image, orientation: int = 1) -> bytes:
    """An HEIC photo whose pixels are those of `image`, which it says must be turned, and other pictures behind it."""
    made, buffer, exif = pytest.importorskip("pillow_heif").from_pillow(image), io.BytesIO(), Image.Exif()
    exif[0x0112] = orientation
    made.info["exif"] = exif.tobytes()
    for other in behind:
        made.add_from_pillow(other)
    made.save(buffer, quality=-1, chroma=444)
    return buffer.getvalue()


def apart(image: Image.Image) -> float:
    """The mean difference from RGB, of 255."""
    return float(np.abs(np.asarray(image).astype(int) - np.asarray(RGB)).mean())


def test_an_heic_photo_is_opened_where_its_decoder_is_installed(monkeypatch):
    content, before = heic(RGB), set(Image.OPEN)
    picture = open_picture(content)
    assert picture.format == "HEIC" and apart(picture.image) < 2
    assert set(Image.OPEN) == before                                        # nothing was registered with Pillow for everybody
    monkeypatch.setitem(sys.modules, "pillow_heif", None)                   # as if it were not installed
    for content in (content, b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"):
        with pytest.raises(PictureError, match="HEIC photo.*pillow-heif.*JPEG"):
            open_picture(content)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_an_heic_photo_comes_out_upright_once(orientation):
    upright, undo = Image.new("RGB", (48, 32), (200, 0, 0)), {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}[orientation]
    upright.paste((0, 0, 200), (0, 0, 24, 16))
    stored = upright if undo is None else upright.transpose(Image.Transpose(undo))
    picture = open_picture(heic(stored, orientation=orientation)).image
    assert picture.size == (48, 32) and picture.getpixel((4, 4))[2] > 150 and picture.getpixel((44, 28))[0] > 150


def test_the_first_of_several_heic_pictures_is_used_and_its_transparency_laid_on_paper():
    picture = open_picture(heic(RGB, RGB.rotate(180)))
    assert picture.notes == ("The first picture was used.",) and apart(picture.image) < 2
    clear = RGB.convert("RGBA")
    clear.paste((0, 0, 0, 0), (0, 0, 20, 27))
    assert min(open_picture(heic(clear)).image.getpixel((4, 4))) > 245


def test_an_heic_photo_that_claims_another_size_or_is_cut_is_refused():
    content = heic(Image.new("RGB", (640, 480), (9, 99, 200)))
    at = content.index(b"ispe") + 8
    with pytest.raises(PictureError, match="30000 x 20000.*40 megapixels"):
        open_picture(content[:at] + struct.pack(">II", 30_000, 20_000) + content[at + 8:])
    with pytest.raises(PictureError):
        open_picture(content[:at] + struct.pack(">II", 30, 20) + content[at + 8:])
    for share in (0.1, 0.5, 0.95):
        with pytest.raises(PictureError):
            open_picture(content[:int(len(content) * share)])


def test_what_pillow_unpacks_pixel_by_pixel_is_refused_where_it_would_take_long():
    small, large = (b"P6 %d %d 1000\n" % (side, side) for side in (10, 1500))
    assert open_picture(small + bytes(600)).image.size == (10, 10)
    with pytest.raises(PictureError, match="1500 x 1500.*very long"):
        open_picture(large)
    assert open_picture(b"P6 1500 1500 255\n" + bytes(3 * 1500**2)).image.size == (1500, 1500)
