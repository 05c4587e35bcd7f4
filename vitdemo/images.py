"""An untrusted file -> an upright sRGB picture -> a model's input.

One function opens pictures for the page, the API, the command line and the data sets: format by content from an explicit list, size
read before anything is decoded, everything a file may carry (turning, colour profile, transparency, 16 bits, frames) resolved here.
"""

import io
import os
from math import ceil, sqrt
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image, ImageChops, ImageCms
from torch import Tensor

from vitdemo import formats, settings
from vitdemo.config import Preprocessing
from vitdemo.formats import PictureError
from vitdemo.geometry import WHOLE, Edges, Geometry, centred, whole_size

JPEG_PIXELS = 3                                 # a JPEG may have so many times the pixels: it is reduced while it is decoded
MAX_SCANS = 200                                 # of a progressive JPEG (real ones have about ten): each one costs a pass over all pixels
SLOW_PIXELS = 2_000_000                         # of the rare files that Pillow decodes in Python: some seconds
MAX_BYTES = 256 * 2**20
THINNEST = 200                                  # a longer side may be so many times the shorter one
MOST_PADDED = 2**24                             # pixels of a plain ground: a thin picture would need a very large one
PADDED = "All of it is seen, on a ground in the colour of its edge."
PAPER = (255, 255, 255)                         # what transparent parts are laid on

TURNS = dict(zip(range(2, 9), map(Image.Transpose, (0, 3, 1, 5, 4, 6, 2))))    # EXIF orientation -> what makes the stored pixels upright


class Picture(NamedTuple):
    """An opened picture: RGB, upright, sRGB."""

    image: Image.Image
    format: str
    notes: tuple[str, ...]          # sentences about what was done on the way


class Input(NamedTuple):
    """A picture as a model takes it."""

    tensor: Tensor                  # (1, C, rows, cols), float32, normalised
    seen: Image.Image               # the same pixels before normalisation
    geometry: Geometry


def open_picture(source: Any, *, max_pixels: int | None = None, enough: int = 0) -> Picture:
    """Open a path, bytes, a binary file or a PIL image. Raises PictureError, and nothing else, for what is no usable picture. Without
    `max_pixels` the owner's setting holds (`vitdemo.settings`). `enough`: a JPEG may be reduced while it is decoded as long as its shorter
    side keeps so many pixels, which takes a fraction of the time. Nothing of Pillow's or Python's process-wide state is changed, so threads
    may open pictures side by side."""
    max_pixels = max_pixels or settings.most_pixels()
    try:
        if isinstance(source, Image.Image):
            _refuse_size(*source.size, max_pixels)
            source.load()
            return _finish(source, source.format or "memory", [])
        return _decode(_bytes(source), max_pixels, enough)
    except PictureError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise PictureError(f"the picture has more than the {max_pixels / 1e6:g} megapixels that can be opened: make it smaller") from None
    except MemoryError:
        raise PictureError("there is not enough memory for this picture: use a smaller one") from None
    except Exception as error:                                              # decoders raise anything on broken input
        raise PictureError("the picture is broken or incomplete: save or download it again") from error


def see(image: Image.Image, preprocessing: Preprocessing, part: Edges | None = None) -> tuple[Image.Image, Edges]:
    """The pixels a model gets of a picture (mode L or RGB, by `channels`), and the edges of the part they show: `part`, where one is given,
    or by `fit` a centred one of the input's shape, or all of it; resized with antialiasing. A picture that already is such an input stays
    as it is."""
    (rows, cols), height, width = preprocessing.size, image.height, image.width
    crop = preprocessing.fit == "crop"
    if part is None:
        part = centred((height, width), (rows, cols), preprocessing.crop_fraction) if crop else (0, 0, height, width)
    mode = "L" if preprocessing.channels == 1 else "RGB"
    if image.mode != mode:
        image = image.convert(mode)
    if (height, width) != (rows, cols) or part != (0, 0, height, width):
        top, left, bottom, right = part
        method = Image.Resampling[preprocessing.interpolation.upper()]
        image = image.resize((cols, rows), method, box=(left, top, right, bottom), reducing_gap=4.0)
    return image, part


def to_input(picture: Picture | Image.Image, preprocessing: Preprocessing, patch: tuple[int, int], part: Edges | None = None) -> Input:
    """An opened picture as the input of a model with patches of `patch` (rows, cols) pixels; where the whole picture is to be seen, an
    input of its shape. Of a `part`, (top, left, bottom, right) as shares of its height and width, nothing else is seen."""
    image = picture.image if isinstance(picture, Picture) else picture
    if part is not None:
        part = _pixels(part, image)
    elif preprocessing.fit == "whole":
        preprocessing = preprocessing.with_(size=whole_size((image.height, image.width), preprocessing.size, patch))
    seen, crop = see(image, preprocessing, part)
    pixels = torch.from_numpy(np.array(seen).reshape(*preprocessing.size, preprocessing.channels)).permute(2, 0, 1)[None]
    return Input(normalise(pixels, preprocessing), seen, Geometry((image.height, image.width), crop, preprocessing.size, patch))


def padded(image: Image.Image, shape: tuple[int, int]) -> tuple[Image.Image, Edges]:
    """All of a picture in the middle of a plain ground that has the `shape` (rows to cols) of an input, in the colour that is most usual at
    the picture's own edge (the median); and where the picture lies on it, as shares of its height and width. A ground of more than
    MOST_PADDED pixels is made smaller, and the picture with it."""
    rows, cols = shape
    height, width = max(image.height, ceil(image.width * rows / cols)), max(image.width, ceil(image.height * cols / rows))
    if height * width > MOST_PADDED:
        share = sqrt(MOST_PADDED / (height * width))
        image = image.resize((max(1, int(share * image.width)), max(1, int(share * image.height))), Image.Resampling.LANCZOS)
        height, width = max(image.height, int(share * height)), max(image.width, int(share * width))
    if (height, width) == (image.height, image.width):
        return image, WHOLE
    pixels = np.asarray(image).reshape(image.height, image.width, -1)
    rim = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    ground = Image.new(image.mode, (width, height), tuple(int(value) for value in np.median(rim, axis=0)))
    top, left = (height - image.height) // 2, (width - image.width) // 2
    ground.paste(image, (left, top))
    return ground, (top / height, left / width, (top + image.height) / height, (left + image.width) / width)


def _pixels(part: Edges, image: Image.Image) -> Edges:
    """A part given in shares of a picture's sides, in its pixels; at least one each way."""
    top, left, bottom, right = (share * side for share, side in zip(part, (image.height, image.width) * 2, strict=True))
    top, left = min(top, image.height - 1), min(left, image.width - 1)
    return top, left, max(bottom, top + 1), max(right, left + 1)


def normalise(images: Tensor, preprocessing: Preprocessing) -> Tensor:
    """uint8 images (N, C, rows, cols) to float32 with the mean and deviation the model was trained with: (x/255 - mean) / std,
    as one multiplication and addition. The images stay as they are."""
    factor = torch.tensor([1 / (255 * std) for std in preprocessing.std], device=images.device)[:, None, None]
    offset = torch.tensor([-mean / std for mean, std in zip(preprocessing.mean, preprocessing.std)], device=images.device)[:, None, None]
    return torch.addcmul(offset, images.float(), factor)


def _bytes(source: Any) -> bytes:
    """The content of a path, a binary file or bytes, up to MAX_BYTES."""
    try:
        if isinstance(source, (bytes, bytearray, memoryview)):
            content = bytes(source[:MAX_BYTES + 1])
        elif hasattr(source, "read"):
            content = source.read(MAX_BYTES + 1)
        else:
            with open(os.fspath(source), "rb") as file:
                content = file.read(MAX_BYTES + 1)
    except TypeError:
        raise PictureError(f"a picture is a file, bytes or a PIL image, not {type(source).__name__}") from None
    except (OSError, ValueError) as error:
        raise PictureError(f"the file cannot be read ({type(error).__name__}): check its name and try again") from None
    if not isinstance(content, bytes):
        raise PictureError("a picture file must be opened in binary mode")
    if not content:
        raise PictureError("the file is empty (0 bytes): save or download it again")
    if len(content) > MAX_BYTES:
        raise PictureError(f"the file has more than {MAX_BYTES // 2**20} MB: use a smaller one")
    return content


def _decode(content: bytes, max_pixels: int, enough: int) -> Picture:
    """Find the decoder by content, check what the header says, decode, and resolve everything the file carries."""
    image, kind, first = formats.header(content)
    notes, (width, height) = [], image.size
    _refuse_size(width, height, max_pixels * (JPEG_PIXELS if kind == "JPEG" else 1))
    if image.tile and image.tile[0].codec_name in Image.DECODERS and width * height > SLOW_PIXELS:
        raise PictureError(f"the {kind} of {width} x {height} pixels is packed in a way that takes very long to read: save it as PNG or JPEG")
    if "progressive" in image.info and content.count(b"\xff\xda") > MAX_SCANS:
        raise PictureError(f"the JPEG has more than {MAX_SCANS} scans, far more than a photo needs: save it as an ordinary JPEG")
    reduction = max(2 if width * height > max_pixels else 1, min(width, height) // enough if enough else 1)
    if reduction > 1 and kind == "JPEG":
        image.draft(None, (max(width // reduction, 1), max(height // reduction, 1)))
    if width * height > max_pixels:
        notes.append(f"The photo of {width} × {height} pixels was reduced while it was read.")
    if first:
        notes.append("The picture moves: its first frame was used." if first == "frame" else f"The first {first} was used.")
    covered = image.tile[0].extents if kind == "GIF" and image.tile else None              # a frame may be smaller than its picture
    image.load()
    _refuse_size(*image.size, max_pixels, named=(max(width, image.width), max(height, image.height)))     # an HEIC says only now how large it is
    if covered and covered != (0, 0, *image.size):
        image = _surrounded(image, covered)
    return _finish(image, kind, notes)


def _refuse_size(width: int, height: int, most: int, named: tuple[int, int] | None = None) -> None:
    """Raises PictureError for a size that cannot be read; `named` is what the sentence says it was, where it was reduced meanwhile."""
    wide, high = named or (width, height)
    if width < 1 or height < 1:
        raise PictureError(f"the picture has no pixels ({wide} x {high}): save or download it again")
    if width * height > most:
        raise PictureError(f"the picture has {wide} x {high} pixels; at most {most / 1e6:g} megapixels can be opened: make it smaller")
    if max(width, height) > THINNEST * min(width, height):
        raise PictureError(f"the picture of {wide} x {high} pixels is too thin: use one at most {THINNEST} times as long as wide")


def _finish(image: Image.Image, kind: str, notes: list[str]) -> Picture:
    """Scale to 8 bits, convert to sRGB, lay on paper, turn."""
    turn, profile, alpha = _turn(image), image.info.get("icc_profile"), None
    if image.mode.startswith("I") or image.mode == "F":
        image, alpha = _eight_bits(image)
        notes.append("Its brightness was scaled over its own range.")
    elif image.has_transparency_data:
        layers = image.convert("RGBA")
        alpha = layers.getchannel("A")
        image = layers.convert("L" if image.mode in ("L", "LA") else "RGB")             # grey stays grey for a grey profile
        del layers                                                          # 160 MB of 40 megapixels
    elif image.mode in ("P", "1"):
        image = image.convert("RGB")
    image = _srgb(image, profile)
    if alpha is not None and alpha.getextrema()[0] < 255:
        if alpha.getextrema()[1] == 0:
            raise PictureError("the picture is fully transparent, so there is nothing to see in it: use one with visible parts")
        paper = Image.new("RGB", image.size, PAPER)
        paper.paste(image, mask=alpha)
        image = paper
        notes.append("Transparent parts were laid on white.")
    if turn is not None:
        image = image.transpose(turn)
    image.info = {}                     # all of it has been obeyed; kept, it would be obeyed again, or tell where a photo was taken
    return Picture(image, kind, tuple(notes))


def _turn(image: Image.Image) -> Image.Transpose | None:
    """What makes the picture upright according to its EXIF data; None where they are missing, broken or say it already is."""
    try:
        return TURNS.get(image.getexif().get(0x0112))
    except Exception:                                                       # whatever a broken EXIF block makes Pillow raise
        return None


def _surrounded(image: Image.Image, covered: tuple[int, int, int, int]) -> Image.Image:
    """A picture of which only the box `covered` (left, top, right, bottom) was drawn: the rest is transparent."""
    layers, drawn = image.convert("RGBA"), Image.new("L", image.size)
    drawn.paste(255, covered)
    layers.putalpha(ImageChops.darker(layers.getchannel("A"), drawn))
    return layers


def _eight_bits(image: Image.Image) -> tuple[Image.Image, Image.Image | None]:
    """16-bit, 32-bit and float pictures over their own range; a constant one becomes middle grey, what is not a number black. And what of
    them is not transparent, where one value means that."""
    values, low, high, clear, tags = np.asarray(image), np.inf, -np.inf, image.info.get("transparency"), getattr(image, "tag_v2", {})
    if image.mode == "I" and tags.get(258) == (32,) and tags.get(339, (1,)) == (1,):        # a TIFF's whole numbers without a sign
        values = values.view(np.uint32)
    stripes = [slice(row, row + 64) for row in range(0, len(values), 64)]   # float64 for a stripe at a time, not for 40 megapixels
    for stripe in stripes:
        part = values[stripe].astype(np.float64)
        finite = np.isfinite(part)
        low, high = min(low, part.min(where=finite, initial=np.inf)), max(high, part.max(where=finite, initial=-np.inf))
    if tags.get(262) == 0:                                                  # a TIFF whose least value is white
        low, high = high, low
    pixels = np.zeros(values.shape, np.uint8)
    for stripe in stripes:
        part = values[stripe].astype(np.float64)
        finite = np.isfinite(part)
        pixels[stripe][finite] = ((part[finite] - low) * (255 / (high - low))).round() if high != low else 128
    return Image.fromarray(pixels), Image.fromarray(np.where(values == clear, 0, 255).astype(np.uint8)) if isinstance(clear, int) else None


def _srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Colours as the file's profile means them; a broken profile or one for other colours is ignored."""
    if profile:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
            if converted is not None:
                return converted
        except Exception:                                                   # a broken profile, or one that is not for these colours
            pass
    return image.convert("RGB")
