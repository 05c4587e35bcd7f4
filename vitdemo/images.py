"""An untrusted file -> an upright sRGB picture -> a model's input, and the geometry between the three.

One function opens pictures for the page, the API, the command line and the data sets: format by content from an explicit list, size
read before anything is decoded, everything a file may carry (turning, colour profile, transparency, 16 bits, frames) resolved here.
"""

import io
import os
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image, ImageCms, ImageOps
from torch import Tensor

from vitdemo.config import Preprocessing

FORMATS = ("JPEG", "PNG", "GIF", "WEBP", "AVIF", "BMP", "TIFF", "PPM")         # Pillow finds MPO (phone photos) by way of JPEG
MAX_PIXELS = 40_000_000
MAX_JPEG_PIXELS = 4 * MAX_PIXELS                # those can be reduced while they are decoded
MAX_BYTES = 256 * 2**20
THINNEST = 200                                  # a longer side may be so many times the shorter one
PAPER = (255, 255, 255)                         # what transparent parts are laid on


class PictureError(ValueError):
    """A file that is no usable picture; the message is one sentence that says what is wrong and what to do."""


class Picture(NamedTuple):
    """An opened picture: RGB, upright, sRGB."""

    image: Image.Image
    format: str
    notes: tuple[str, ...]          # sentences about what was done on the way


@dataclass(frozen=True)
class Geometry:
    """Where the model's patches lie on the upright picture. Sizes are (rows, cols), edges (top, left, bottom, right), in pixels."""

    original: tuple[int, int]
    crop: tuple[float, float, float, float]     # the part of the original the model sees
    size: tuple[int, int]                       # of the model's input
    patch: tuple[int, int]

    @property
    def grid(self) -> tuple[int, int]:
        """Patches as (rows, cols)."""
        return self.size[0] // self.patch[0], self.size[1] // self.patch[1]

    def patch_rectangle(self, row: int, col: int) -> tuple[float, float, float, float]:
        """Edges of one patch on the original. Raises ValueError outside the grid."""
        rows, cols = self.grid
        if not (0 <= row < rows and 0 <= col < cols):
            raise ValueError(f"there is no patch in row {row}, column {col} of a grid of {rows} x {cols}")
        top, left, bottom, right = self.crop
        tall, wide = (bottom - top) / rows, (right - left) / cols
        return top + row * tall, left + col * wide, top + (row + 1) * tall, left + (col + 1) * wide

    def patch_at(self, down: float, across: float) -> tuple[int, int] | None:
        """(row, col) of the patch at a point of the original; None where the model does not look."""
        top, left, bottom, right = self.crop
        if not (top <= down < bottom and left <= across < right):
            return None
        rows, cols = self.grid
        row, col = int((down - top) / (bottom - top) * rows), int((across - left) / (right - left) * cols)
        return min(row, rows - 1), min(col, cols - 1)


class Input(NamedTuple):
    """A picture as a model takes it."""

    tensor: Tensor                  # (1, C, rows, cols), float32, normalised
    seen: Image.Image               # the same pixels before normalisation
    geometry: Geometry


def open_picture(source: Any, *, max_pixels: int = MAX_PIXELS) -> Picture:
    """Open a path, bytes, a binary file or a PIL image. Raises PictureError, and nothing else, for what is no usable picture."""
    if isinstance(source, Image.Image):
        return _finish(source, source.format or "memory", [])
    content = _bytes(source)
    _refuse_known(content)
    Image.init()                                                            # load the decoders; costs something once only
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                                     # Pillow warns about odd metadata and large sizes
        try:
            with Image.open(io.BytesIO(content), formats=FORMATS) as image:
                return _decode(image, max_pixels)
        except PictureError:
            raise
        except Image.DecompressionBombError:
            raise PictureError(f"the picture claims more pixels than can be opened; at most {max_pixels // 10**6} megapixels can") from None
        except Image.UnidentifiedImageError:
            raise PictureError("the file is not a picture in a format that can be read: use JPEG, PNG, WebP, GIF, AVIF, BMP or TIFF") from None
        except MemoryError:
            raise PictureError("there is not enough memory for this picture: use a smaller one") from None
        except Exception as error:                                          # decoders raise anything on broken input
            raise PictureError(f"the picture is broken or incomplete ({type(error).__name__}): save or download it again") from None


def see(image: Image.Image, preprocessing: Preprocessing) -> tuple[Image.Image, tuple[float, float, float, float]]:
    """The pixels a model gets of an RGB picture, and the edges of the part they show: the largest centred box of the input's shape,
    cut by `crop_fraction`, resized with antialiasing. A picture that already is such an input stays as it is."""
    rows, cols = preprocessing.size
    height, width = image.height, image.width
    scale = min(height / rows, width / cols) * preprocessing.crop_fraction
    tall, wide = rows * scale, cols * scale
    top, left = (height - tall) / 2, (width - wide) / 2
    if preprocessing.channels == 1:
        image = image.convert("L")
    if (height, width) != (rows, cols) or preprocessing.crop_fraction != 1:
        method = Image.Resampling[preprocessing.interpolation.upper()]
        image = image.resize((cols, rows), method, box=(left, top, left + wide, top + tall), reducing_gap=4.0)
    return image, (top, left, top + tall, left + wide)


def to_input(picture: Picture | Image.Image, preprocessing: Preprocessing, patch: tuple[int, int]) -> Input:
    """An opened picture as the input of a model with patches of `patch` (rows, cols) pixels."""
    image = picture.image if isinstance(picture, Picture) else picture
    seen, crop = see(image, preprocessing)
    pixels = torch.from_numpy(np.array(seen).reshape(*preprocessing.size, preprocessing.channels)).permute(2, 0, 1)[None]
    return Input(normalise(pixels, preprocessing), seen, Geometry((image.height, image.width), crop, preprocessing.size, patch))


def normalise(images: Tensor, preprocessing: Preprocessing) -> Tensor:
    """uint8 images (N, C, rows, cols) to float32 with the mean and deviation the model was trained with: (x/255 - mean) / std."""
    std = torch.tensor(preprocessing.std)[:, None, None]
    mean = torch.tensor(preprocessing.mean)[:, None, None]
    return images.float().mul_(1 / (255 * std)).sub_(mean / std)


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


def _refuse_known(content: bytes) -> None:
    """Name the formats people bring that are not read, by their first bytes."""
    start = content[:1024].lstrip().lower()
    if content[4:8] == b"ftyp" and content[8:12] in (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"):
        if b"avif" not in content[8:64]:
            raise PictureError("this is an HEIC photo, which cannot be read here: save it as JPEG (on an iPhone: share, options, most compatible)")
    if start.startswith((b"<svg", b"<?xml", b"<!doctype svg")) and b"<svg" in content[:65536].lower():
        raise PictureError("this is an SVG drawing, which cannot be read here: export it as PNG")
    if start.startswith(b"%pdf"):
        raise PictureError("this is a PDF document: export the page as PNG or JPEG")
    if start.startswith((b"<!doctype html", b"<html")):
        raise PictureError("this is a web page and not a picture: save the picture itself")


def _decode(image: Image.Image, max_pixels: int) -> Picture:
    """Check what the header says, decode, and resolve everything the file carries."""
    notes, kind = [], image.format
    width, height = image.size
    if width < 1 or height < 1:
        raise PictureError(f"the picture has no pixels ({width} x {height}): save or download it again")
    if width * height > max_pixels:
        if kind not in ("JPEG", "MPO") or width * height > MAX_JPEG_PIXELS:
            raise PictureError(f"the picture has {width} x {height} pixels; at most {max_pixels // 10**6} megapixels can be opened: make it smaller")
        half = 1
        while (width // half) * (height // half) > max_pixels:
            half *= 2
        image.draft(None, (width // half, height // half))
        notes.append(f"The photo of {width} × {height} pixels was reduced while it was read.")
    _refuse_thin(width, height)
    if getattr(image, "is_animated", False) and kind != "MPO":
        notes.append("The first page was used." if kind == "TIFF" else "The picture moves: its first frame was used.")
    image.load()
    return _finish(image, kind, notes)


def _refuse_thin(width: int, height: int) -> None:
    if max(width, height) > THINNEST * max(1, min(width, height)):
        raise PictureError(f"the picture of {width} x {height} pixels is too thin to see anything in: use one that is less than {THINNEST} times as long as wide")


def _finish(image: Image.Image, kind: str, notes: list[str]) -> Picture:
    """Turn, scale to 8 bits, convert to sRGB, lay on paper."""
    _refuse_thin(*image.size)
    profile = image.info.get("icc_profile")
    image = _upright(image)
    if image.mode.startswith("I") or image.mode == "F":
        image = _eight_bits(image)
        notes.append("Its brightness was scaled over its own range.")
    alpha = None
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        image = image.convert("RGBA")
        alpha = image.getchannel("A")
        image = image.convert("RGB")
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
    return Picture(image, kind, tuple(notes))


def _upright(image: Image.Image) -> Image.Image:
    """Turned as its EXIF data say; broken data are ignored."""
    try:
        return ImageOps.exif_transpose(image) if "exif" in image.info or image.getexif() else image
    except Exception:                                                       # whatever a broken EXIF block makes Pillow raise
        return image


def _eight_bits(image: Image.Image) -> Image.Image:
    """16-bit, 32-bit and float pictures over their own range; a constant one becomes middle grey, what is not a number black."""
    values = np.asarray(image).astype(np.float64)
    finite = np.isfinite(values)
    low, high = (values[finite].min(), values[finite].max()) if finite.any() else (0.0, 0.0)
    scaled = (values - low) * (255 / (high - low)) if high > low else np.full_like(values, 128)
    return Image.fromarray(np.where(finite, scaled, 0).clip(0, 255).round().astype(np.uint8))


def _srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Colours as the file's profile means them; a broken profile or one for other colours is ignored."""
    if profile:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            converted = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
            if converted is not None:
                return converted
        except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
            pass
    return image.convert("RGB")
