"""PNG and GIF files without what has no bearing on their first picture, before a decoder sees them.

Texts, times and private parts can be broken, unpack to a thousand times their size, or come in millions that take a decoder minutes; what
is not there can do nothing. Nothing is decoded here: a file is walked part by part, and what cannot be walked is left to the decoder.
"""

import struct
import zlib
from typing import NamedTuple

PNG_PROFILE = 2**20                             # bytes of an unpacked colour profile; the decoder refuses pictures with larger ones
PNG_XMP = 2**16                                 # bytes of a description, which may say how the camera was held
PNG_ASIDE = (b"tRNS", b"eXIf", b"iCCP", b"acTL")            # besides those that every decoder must know, which begin with a capital
XMP = b"XML:com.adobe.xmp\0\0"


class Gif(NamedTuple):
    """The first frame of a GIF, and whether others follow it."""

    content: bytes
    moves: bool


def png(content: bytes) -> bytes:
    """A PNG's pixels and what says how to show them (W3C PNG, section 11); an optional chunk that arrived damaged is left out as well."""
    kept, at, left_out = [content[:8]], 8, False
    while at + 12 <= len(content):
        length, name = struct.unpack_from(">I4s", content, at)
        end = at + 12 + length
        if end > len(content):
            break
        if name[:1].isupper() or _counts(name, content, at, end):
            kept.append(content[at:end])
        else:
            left_out = True
        at = end
        if name == b"IEND":
            return b"".join(kept) if left_out else content
    return b"".join((*kept, content[at:])) if left_out else content


def gif(content: bytes) -> Gif:
    """A GIF's first frame with the graphic control before it (GIF89a, sections 20 to 23), without comments and what else may stand between."""
    if len(content) < 13:
        return Gif(content, False)
    at = 13 + _colours(content[10])
    kept, control, found = content[:at], b"", b""
    while at < len(content) and content[at] != 0x3B:
        kind = content[at]
        if kind not in (0x2C, 0x21):                                        # decoders pass over what is neither frame nor extension
            at += 1
            continue
        if kind == 0x2C and found:
            return Gif(kept + found + b";", True)
        begin = at
        at += 2 if kind == 0x21 else 11 + _colours(content[at + 9]) if at + 9 < len(content) else 11
        while at < len(content) and content[at]:
            at += 1 + content[at]
        at += 1
        if at > len(content):
            return Gif(kept + found + b";" if found else content, False)    # cut off: within the first frame the decoder will say so
        if kind == 0x2C:
            found = control + content[begin:at]
        elif content[begin + 1] == 0xF9:
            control = content[begin:at]
    return Gif(kept + found + b";", False)


def _counts(name: bytes, content: bytes, at: int, end: int) -> bool:
    """Whether an optional chunk bears on the picture, is whole and not too large."""
    if name == b"iTXt":
        return end - at < PNG_XMP and content.startswith(XMP, at + 8)
    if name not in PNG_ASIDE or zlib.crc32(content[at + 4:end - 4]) != int.from_bytes(content[end - 4:end], "big"):
        return False
    if name != b"iCCP":
        return True
    unpacker = zlib.decompressobj()
    try:
        unpacker.decompress(content[content.index(b"\0", at + 8, end) + 2:end - 4], PNG_PROFILE)
    except (ValueError, zlib.error):
        return False
    return unpacker.eof


def _colours(flags: int) -> int:
    """Bytes of the table of colours that the flags of a GIF's screen or frame announce."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0
