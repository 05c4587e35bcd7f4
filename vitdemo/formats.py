"""Which decoder reads a file, decided by its content; and what a file is that none reads, in words.

The decoders are an explicit list. Whatever else Pillow has (PostScript, for which it starts another program, fonts, ...) is never asked.
"""

import io
import re
import zlib
from typing import NamedTuple

from PIL import Image, ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.TiffImagePlugin import BITSPERSAMPLE, SAMPLEFORMAT, TiffImageFile

from vitdemo import lean

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "AVIF", "BMP", "TIFF", "PPM")         # MPO (phone photos) is JPEG with more behind it
HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevm", b"hevs", b"hevx", b"heif", b"mif1", b"mif2", b"msf1", b"miaf")
HEIC = ("this is an HEIC photo, which cannot be read here unless the owner installs pillow-heif: save it as JPEG "
        "(on an iPhone: share, options, most compatible)")

RAW, SOUND = "a camera's raw file", "a video or a sound"
# what a file is, by the bytes at a place in it
KNOWN = (
    (-18, b"TRUEVISION-XFILE", "a TGA picture"), (0, b"8BPS", "a Photoshop file"), (0, b"gimp xcf", "a GIMP file"),
    (0, b"\0\0\1\0", "an icon (ICO)"), (0, b"icns", "an icon (ICNS)"), (0, b"\0\0\0\x0cjP  ", "a JPEG 2000 picture"),
    (0, b"\xff\x4f\xff\x51", "a JPEG 2000 picture"), (0, b"\xff\x0a", "a JPEG XL picture"), (0, b"\0\0\0\x0cJXL ", "a JPEG XL picture"),
    (0, b"II\xbc\x01", "a JPEG XR picture"), (0, b"DDS ", "a texture (DDS)"), (0, b"\xabKTX", "a texture (KTX)"),
    (0, b"v/1\1", "an OpenEXR picture"), (0, b"#?R", "a Radiance picture (HDR)"), (0, b"\x0a\5\1", "a PCX picture"),
    (0, b"\x01\xda", "an SGI picture"), (0, b"qoif", "a QOI picture"), (0, b"BPG\xfb", "a BPG picture"), (0, b"FLIF", "a FLIF picture"),
    (0, b"P7\n", "a PAM picture"), (0, b"PF", "a PFM picture"), (0, b"\x8aMNG", "an MNG animation"),
    (128, b"DICM", "a medical picture (DICOM)"), (0, b"SIMPLE  =", "an astronomer's picture (FITS)"), (0, b"AT&TFORM", "a DjVu document"),
    (0, b"%!PS", "a PostScript drawing (EPS)"), (0, b"\xc5\xd0\xd3\xc6", "a PostScript drawing (EPS)"),
    (0, b"\xd7\xcd\xc6\x9a", "a Windows drawing (WMF)"), (40, b" EMF", "a Windows drawing (EMF)"), (8, b"CR", RAW), (4, b"ftypcrx", RAW),
    (0, b"FUJIFILMCCD-RAW", RAW), (0, b"IIRO", RAW), (0, b"IIRS", RAW), (0, b"MMOR", RAW), (0, b"IIU\0", RAW), (6, b"HEAPCCDR", RAW),
    (0, b"FOVb", RAW), (0, b"\0MRM", RAW), (4, b"ftyp", "a video"), (0, b"\x1aE\xdf\xa3", "a video"), (8, b"AVI ", "a video"),
    (0, b"FLV\1", "a video"), (0, b"\0\0\1\xba", "a video"), (0, b"\0\0\1\xb3", "a video"), (0, b"OggS", SOUND), (8, b"WAVE", SOUND),
    (0, b"ID3", SOUND), (0, b"fLaC", SOUND), (0, b"MZ\x90", "a program"), (0, b"\x7fELF", "a program"), (0, b"\x30\x26\xb2\x75", SOUND),
)
DNG_VERSION = (b"\x12\xc6\1\0\4\0\0\0", b"\xc6\x12\0\1\0\0\0\4")             # a TIFF's entry that only raw files have, in both byte orders
ONLY_A_PREVIEW = (b"\xfe\0\4\0\1\0\0\0\1\0\0\0", b"\0\xfe\0\4\0\0\0\1\0\0\0\1")              # its first picture is a small copy ...
OF_ANOTHER = (b"\x4a\1\4\0", b"\1\x4a\0\4")                                    # ... of one that lies deeper: Nikon, Sony, Pentax


class PictureError(ValueError):
    """A file that is no usable picture; the message is one sentence that says what is wrong and what to do."""


class Header(NamedTuple):
    """A file as a picture of which only the header has been read."""

    image: ImageFile.ImageFile
    format: str
    first: str                      # which of several it is: the first "frame", "page" or "picture"; empty for a single one


class Tiff(TiffImageFile):
    """Pillow's decoder, which unpacks 64-bit floats (what NumPy's users save) but does not know that a TIFF may hold them, and takes the
    order of the bytes in packed 32-bit ones for the file's, though libtiff has put them in the machine's."""

    def _setup(self) -> None:
        doubles = self.tag_v2.get(BITSPERSAMPLE) == (64,) and self.tag_v2.get(SAMPLEFORMAT) == (3,)
        if doubles:
            self.tag_v2[BITSPERSAMPLE] = 32
        super()._setup()
        for number, tile in enumerate(self.tile):
            layout = tile.args[0].replace("32", "64") if doubles else tile.args[0]
            native = layout.replace("32B", "32N").replace("64B", "64N") if tile.codec_name == "libtiff" else layout
            self.tile[number] = tile._replace(args=(native, *tile.args[1:]))


OURS = {"JPEG": JpegImageFile, "TIFF": Tiff}     # instead of Pillow's choice; the plain JPEG decoder takes the first picture of an MPO


def header(content: bytes) -> Header:
    """Find the decoder and read the size. The decoders are asked as `Image.open` asks them, without its check of the size: that one warns,
    and silencing a warning changes the whole process; the caller's is stricter. Raises PictureError."""
    Image.init()                                                            # load the decoders; costs something once only
    (kind, factory), moves = _decoder(content), False
    if kind == "PNG":
        content = lean.png(content)
    elif kind == "GIF":
        content, moves = lean.gif(content)
    try:
        image = factory(io.BytesIO(content), "")
    except SyntaxError:
        raise PictureError(f"the {kind} header is broken, incomplete, or claims no pixels or some of a rare kind: save the picture again, "
                           "as PNG or JPEG") from None
    many = moves or getattr(image, "is_animated", False)
    return Header(image, kind, {"TIFF": "page", "HEIC": "picture"}.get(kind, "frame") if many else "")


def _decoder(content: bytes):
    """(name, class) of the decoder that takes a file. Raises PictureError with what the file is, where none does."""
    if content[4:8] == b"ftyp" and b"avi" not in content[8:64]:             # of the kin of MP4 avif, avis and HEIC are pictures
        if any(brand in content[8:64] for brand in HEIF_BRANDS):
            return "HEIC", _heic_decoder()
    elif not _raw(content):
        for kind in FORMATS:
            factory, accepts = Image.OPEN[kind]
            if accepts(content[:16]) is True:
                return kind, OURS.get(kind, factory)
    raise PictureError(_named(content))


def _heic_decoder():
    try:
        from pillow_heif import HeifImageFile                               # an extra that the owner may install
    except ImportError:
        raise PictureError(HEIC) from None
    return HeifImageFile


def _raw(content: bytes) -> bool:
    """Whether a TIFF is what a camera's sensor saw; some have a small picture in front that is not what was meant."""
    if content[:4] not in (b"II*\0", b"MM\0*"):
        return False
    return (content[8:10] == b"CR" or any(entry in content[:2**16] for entry in DNG_VERSION)
            or content[10:22] in ONLY_A_PREVIEW and any(entry in content[:512] for entry in OF_ANOTHER))


def _named(content: bytes) -> str:
    """A sentence for a file that no decoder takes: what it is, and what to do."""
    if content.startswith(b"%PDF"):
        return "this is a PDF document: export the page as PNG or JPEG"
    if content[8:10] == b'{"' or content.startswith(b"PK") and b"data.pkl" in content[:4096]:
        return "these are a model's weights and not a picture: drop them on the list of models"
    if _raw(content):
        return f"this is {RAW}, which cannot be read here: save the picture as JPEG or PNG"
    for place, mark, name in KNOWN:
        if content.startswith(mark, place):
            return f"this is {name}, which cannot be read here: save the picture as JPEG or PNG"
    if content.startswith(b"\x1f\x8b") and b"<svg" in _unpacked(content):
        return "this is a packed SVG drawing, which cannot be read here: export it as PNG"
    zipped = content.startswith(b"PK\3\4") and (b"[Content_Types]" in content[:4096] or b"mimetype" in content[:64])
    if zipped or content.startswith(b"\xd0\xcf\x11\xe0"):
        return "this is an office document and not a picture: save the picture in it as PNG or JPEG"
    if content.startswith((b"PK", b"\x1f\x8b", b"7z\xbc\xaf", b"Rar!", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")):
        return "this is a packed file and not a picture: unpack it, and choose the picture in it"
    if content.startswith(b"\0\5\x16\7"):
        return "this is what a Mac keeps beside a picture, and not the picture: choose the file whose name does not begin with ._"
    return _text(content)


def _text(content: bytes) -> str:
    text = content[:65536].lstrip(b"\xef\xbb\xbf\xff\xfe")                  # without byte order mark
    if text[1:2] == b"\0" or text[:1] == b"\0":                             # UTF-16
        text = text.replace(b"\0", b"")
    text = text.lstrip().lower()
    markup = re.search(rb"<(?:!doctype\s+|[\w-]+:)?(svg|html)\b", text) if text.startswith(b"<") else None
    if markup and markup[1] == b"svg":
        return "this is an SVG drawing, which cannot be read here: export it as PNG"
    if markup:
        return "this is a web page and not a picture: save the picture itself"
    if text.startswith(b"version https://git-lfs"):
        return "this is a Git LFS pointer and not the picture: fetch the picture itself with git lfs pull"
    if text.isascii() and re.fullmatch(rb"[\t-\r\x1b -~]+", text):
        return "this is text and not a picture: choose the picture itself"
    return "the file is not a picture in a format that can be read: use JPEG, PNG, WebP, GIF, AVIF, BMP or TIFF"


def _unpacked(content: bytes) -> bytes:
    """The beginning of what a gzip file holds, in small letters."""
    try:
        return zlib.decompressobj(31).decompress(content[:65536], 65536).lower()
    except zlib.error:
        return b""
