"""Broken pictures: valid files of every accepted format with bytes flipped, cut, doubled, inserted and swapped, given to `open_picture`.

    python tests/benchmarks/mutations.py [--inputs 20000] [--seed 0] [--workers 2]      a table; exit 1 for anything but a picture or a sentence
    python tests/benchmarks/mutations.py --write NUMBER FILE [--seed 0]                 the input of that number, to look at it

Files in the folder that VITDEMO_CASES names are broken as well. Every input is made from the seed and its number alone. Workers are
processes that are watched from outside: one that crashes or takes too long is reported with its input's number, and replaced.
"""

import argparse
import io
import multiprocessing
import os
import re
import sys
import time
import warnings
import zlib
from collections import Counter, defaultdict
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from vitdemo.images import PictureError, open_picture  # noqa: E402

SLOW, HANGS = 5.0, 30.0                         # seconds that are too long for one input, and after which a worker is given up
MARKS = re.compile(rb"\xff[\xc0-\xfe]|IHDR|PLTE|IDAT|IEND|tRNS|iCCP|eXIf|fcTL|acTL|[!,](?=.)|VP8.|ANIM|ANMF|ALPH|EXIF|ICCP|"
                   rb"ftyp|meta|iloc|iinf|iprp|ipco|ispe|irot|mdat", re.DOTALL)
EXTREMES = (b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\xff\xff", b"\1\0\0\0", b"\0\0\0\1")


class Found(NamedTuple):
    number: int
    format: str
    outcome: str                    # "opened", "refused", or the name of what else came out
    seconds: float
    megabytes: float                # the process's peak above what it had before


def saved(image: Image.Image, kind: str, *, twice: bool = False, **options) -> bytes:
    """A picture as a file; `twice`: with a second one behind it."""
    buffer = io.BytesIO()
    if twice:
        options |= {"save_all": True, "append_images": [image.rotate(180)]}
    image.copy().save(buffer, kind, **options)                              # Pillow leaves an encoder's settings on what it saved
    return buffer.getvalue()


def valid_files() -> list[tuple[str, bytes]]:
    """(format, content) of the files that are broken."""
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (12, 18, 3), np.uint8)).resize((72, 48), Image.Resampling.BICUBIC)
    grey, clear, exif = noise.convert("L"), noise.convert("RGBA"), Image.Exif()
    clear.putalpha(grey)
    exif[0x0112] = 6
    sixteen = Image.fromarray(np.asarray(grey).astype(np.uint16) * 257)
    found = [("JPEG", saved(noise, "JPEG", exif=exif)), ("JPEG", saved(noise, "JPEG", progressive=True)), ("JPEG", saved(noise.convert("CMYK"), "JPEG")),
             ("JPEG", saved(noise, "MPO", twice=True)), ("PNG", saved(noise, "PNG", exif=exif)), ("PNG", saved(clear, "PNG")), ("PNG", saved(sixteen, "PNG")),
             ("PNG", saved(noise.quantize(16), "PNG", transparency=3)), ("PNG", saved(noise, "PNG", twice=True)), ("GIF", saved(noise, "GIF", twice=True)),
             ("GIF", saved(noise, "GIF", transparency=2, comment=b"words")), ("WEBP", saved(noise, "WEBP", exif=exif)), ("WEBP", saved(clear, "WEBP", lossless=True)),
             ("WEBP", saved(noise, "WEBP", twice=True)), ("AVIF", saved(noise, "AVIF", exif=exif)), ("AVIF", saved(clear, "AVIF")), ("BMP", saved(noise, "BMP")),
             ("BMP", saved(noise.quantize(16), "BMP")), ("TIFF", saved(noise, "TIFF", exif=exif)), ("TIFF", saved(noise, "TIFF", compression="tiff_lzw")),
             ("TIFF", saved(noise, "TIFF", compression="jpeg")), ("TIFF", saved(sixteen, "TIFF", compression="tiff_adobe_deflate")),
             ("TIFF", saved(grey.convert("F"), "TIFF", big_tiff=True)), ("TIFF", saved(noise, "TIFF", twice=True)), ("PPM", saved(noise, "PPM")),
             ("PPM", b"P6 18 12 1000\n" + bytes(range(216)) * 6), ("PPM", b"P3 6 4 15\n" + b"1 7 15 " * 24)]
    try:
        from pillow_heif import from_pillow
    except ImportError:
        pass
    else:
        for image in (noise, clear):
            buffer = io.BytesIO()
            from_pillow(image).save(buffer, quality=50)
            found.append(("HEIC", buffer.getvalue()))
    for path in sorted(Path(os.environ["VITDEMO_CASES"], "images").iterdir()) if os.environ.get("VITDEMO_CASES") else ():
        try:
            found.append((open_picture(path).format, path.read_bytes()))
        except PictureError:
            pass
    return found


def broken(content: bytes, generator: np.random.Generator) -> bytes:
    """The file after one to three mishaps; where it is a PNG, often with check sums that are right again."""
    data, is_png = bytearray(content), content.startswith(b"\x89PNG")
    for _ in range(generator.choice((1, 1, 2, 3))):
        if len(data) < 8:
            break
        places = [0, *(match.start() for match in MARKS.finditer(data)), len(data)]
        start, middle, end, last = sorted(int(place) for place in (generator.choice(places, 4) if generator.random() < 0.6 else generator.integers(0, len(data), 4)))
        mishap = generator.integers(-2, 8)
        if mishap <= 1:
            for place in generator.integers(0, len(data), generator.integers(1, 9)):
                data[place] = generator.integers(0, 256) if generator.random() < 0.5 else data[place] ^ 1 << int(generator.integers(0, 8))
        elif mishap == 2:
            del data[generator.integers(1, len(data)):]
        elif mishap == 3:
            del data[start:middle]
        elif mishap == 4:
            data[middle:middle] = data[start:middle] * int(generator.integers(1, 4))
        elif mishap == 5:
            data[start:start] = generator.bytes(int(generator.integers(1, 64)))
        elif mishap == 6:
            data[start:last] = data[end:last] + data[middle:end] + data[start:middle]
        else:
            place = min(start + int(generator.integers(0, 12)), len(data) - 4)
            data[place:place + 4] = EXTREMES[generator.integers(0, len(EXTREMES))]
    return mended(bytes(data)) if is_png and generator.random() < 0.7 else bytes(data)


def mended(content: bytes) -> bytes:
    """A PNG whose check sums fit what is in its chunks: otherwise hardly any mishap would get past them."""
    data, at = bytearray(content), 8
    while at + 12 <= len(data) and (end := at + 12 + int.from_bytes(data[at:at + 4], "big")) <= len(data):
        data[end - 4:end] = zlib.crc32(data[at + 4:end - 4]).to_bytes(4, "big")
        at = end
    return bytes(data)


def made(files: list[tuple[str, bytes]], seed: int, number: int) -> tuple[str, bytes]:
    kind, content = files[number % len(files)]
    return kind, broken(content, np.random.default_rng((seed, number)))


def peak(reset: bool) -> float:
    """The process's peak of memory in MB since the last reset, where the system tells (Linux)."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) / 1e3
    except (OSError, TypeError):
        return 0.0


def work(pipe: Connection, seed: int, numbers: range) -> None:
    """Open the inputs of `numbers`, and say before each one which it is, and after it what came out."""
    warnings.simplefilter("ignore")
    files = valid_files()
    open_picture(files[0][1])                                               # what is loaded once does not count
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)                            # libtiff writes a line for many inputs
    for number in numbers:
        kind, content = made(files, seed, number)
        pipe.send((number, kind))
        before, began = peak(reset=True), time.perf_counter()
        try:
            open_picture(content)
            outcome = "opened"
        except PictureError as error:
            outcome = "refused" if "\n" not in str(error) and len(str(error)) < 300 else "a refusal that is no sentence"
        except BaseException as error:
            outcome = type(error).__name__
        pipe.send(Found(number, kind, outcome, time.perf_counter() - began, peak(reset=False) - before))
    pipe.send(None)


def watch(seed: int, inputs: int, workers: int) -> list[Found]:
    """What came out of all inputs."""
    spawning, found, running = multiprocessing.get_context("spawn"), [], {}

    def start(numbers: range) -> None:
        if numbers:
            ours, theirs = spawning.Pipe()
            process = spawning.Process(target=work, args=(theirs, seed, numbers), daemon=True)
            process.start()
            theirs.close()
            running[ours] = [process, numbers, (numbers[0], "?"), time.monotonic()]

    for number in range(workers):
        start(range(number, inputs, workers))
    while running:
        ready = wait(list(running), timeout=1)
        for pipe, (process, numbers, (number, kind), since) in list(running.items()):
            try:
                said = pipe.recv() if pipe in ready else ()
            except EOFError:
                said = "crashed"
            if not said and said is not None and time.monotonic() - since > HANGS:
                process.kill()
                said = "took too long"
            if isinstance(said, Found):
                found.append(said)
            if isinstance(said, str) and kind == "?":
                raise SystemExit("a worker could not even begin: its words stand above")
            if isinstance(said, str):
                found.append(Found(number, kind, said, time.monotonic() - since, 0.0))
                start(numbers[numbers.index(number) + 1:])
            if isinstance(said, str) or said is None:
                process.join()
                del running[pipe]
            elif said:
                running[pipe][2:] = (said[0], said[1]), time.monotonic()
    return found


def table(found: list[Found]) -> str:
    lines = ["| format | inputs | opened | refused | other exceptions | crashes and hangs | slowest, ms | peak, MB |", "|---|---|---|---|---|---|---|---|"]
    by_format = defaultdict(list)
    for one in found:
        by_format[one.format].append(one)
        by_format["all"].append(one)
    for name in sorted(by_format, key=lambda name: (name == "all", name)):
        rows = by_format[name]
        count = Counter(one.outcome for one in rows)
        ended = count["crashed"] + count["took too long"]
        other = len(rows) - count["opened"] - count["refused"] - ended
        lines.append(f"| {name} | {len(rows):,} | {count['opened']:,} | {count['refused']:,} | {other} | {ended} | {1e3 * max(one.seconds for one in rows):.0f} "
                     f"| {max(one.megabytes for one in rows):.0f} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--write", nargs=2, metavar=("NUMBER", "FILE"))
    args = parser.parse_args()
    if args.write:
        Path(args.write[1]).write_bytes(made(valid_files(), args.seed, int(args.write[0]))[1])
        return 0
    found = watch(args.seed, args.inputs, args.workers)
    print(table(found))
    wrong = [one for one in found if one.outcome not in ("opened", "refused") or one.seconds > SLOW]
    for one in sorted(wrong)[:20]:
        print(f"input {one.number} ({one.format}): {one.outcome}, {one.seconds:.1f} s")
    return 1 if wrong or len(found) != args.inputs else 0


if __name__ == "__main__":
    sys.exit(main())
