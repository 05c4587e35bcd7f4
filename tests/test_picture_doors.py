"""Every door a picture may come through opens it with the same function: the same answer, or the same sentence, capital and full stop aside."""

import base64
import io
import json
import os
import struct
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from conftest import coloured, picture_bytes
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError
from lab_visitor import Visitor, uploaded
from PIL import Image

from vitdemo import checkpoint, explain_command
from vitdemo.explain import explain, main
from vitdemo.images import PictureError, open_picture
from vitdemo.picturesets import Sets
from vitdemo.ui.analysis import analyse
from vitdemo.ui.look import Look
from vitdemo.ui.models import Models
from vitdemo.ui.results import Results


def hard_inputs(photo: Path) -> dict[str, bytes]:
    """Name -> content of small files of every kind, good and bad."""
    red, exif, clear = coloured("red", 1, (24, 40)), Image.Exif(), coloured("green", 2).convert("RGBA")
    exif[0x0112] = 6
    clear.putalpha(Image.linear_gradient("L").resize(clear.size))
    header = struct.pack(">IIBBBBB", 20_000, 20_000, 1, 0, 0, 0, 0)
    bomb = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    return {
        "photo.jpg": photo.read_bytes(), "turned.jpg": picture_bytes(red, "JPEG", exif=exif), "no suffix": picture_bytes(red, "PNG"),
        "猫 (1) #50% & co.png": picture_bytes(red, "WEBP"), "clear.gif": picture_bytes(clear, "PNG"), "moves.gif": picture_bytes(red, "GIF", save_all=True, append_images=[coloured("blue", 1, (24, 40))]),
        "sixteen.tif": picture_bytes(Image.fromarray(np.arange(960, dtype=np.uint16).reshape(24, 40) * 50), "TIFF"), "new.avif": picture_bytes(red, "AVIF"),
        "cmyk.jpg": picture_bytes(red.convert("CMYK"), "JPEG"), "<b>bold<b>.png": picture_bytes(red.convert("P"), "PNG"),
        "zero.png": b"", "text.png": b"hello", "page.jpg": b"<!doctype html><p>404", "drawing.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        "photo.heic": b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "cut.png": picture_bytes(red, "PNG")[:400], "cut.jpg": photo.read_bytes()[:900], "bomb.png": bomb + bytes(12),
        "thin.png": picture_bytes(Image.new("L", (1, 900)), "PNG"), "nothing.png": picture_bytes(Image.new("RGBA", (9, 9)), "PNG"), "raw.cr2": b"II*\0\x10\0\0\0CR\2\0" + bytes(99),
        "drawing.psd": b"8BPS\0\1" + bytes(99), "film.mp4": b"\0\0\0\x18ftypmp42\0\0\0\0isommp42", "model.pt": b"PK\3\4" + bytes(26) + b"archive/data.pkl",
    }


def meant(sentence: str) -> str:
    """A sentence without its capital and full stop."""
    return sentence[:1].lower() + sentence[1:].rstrip(".")


@pytest.fixture(scope="module")
def files(tmp_path_factory, photo) -> dict[str, Path]:
    """Name -> file: our own hard inputs, and those of the shared folder where there is one."""
    folder, found = tmp_path_factory.mktemp("hard"), {}
    for number, (name, content) in enumerate(hard_inputs(photo).items()):
        found[name] = folder / f"{number}{Path(name).suffix}"
        found[name].write_bytes(content)
    shared = os.environ.get("VITDEMO_CASES")
    return found | ({path.name: path for path in sorted(Path(shared, "images").iterdir())} if shared else {})


@pytest.fixture(scope="module")
def expected(files, tiny) -> dict[str, tuple[list[float], str]]:
    """Name -> (probabilities, sentence) by `explain`; one of the two is empty."""
    found = {}
    for name, path in files.items():
        try:
            found[name] = explain(path, tiny).probabilities.tolist(), ""
        except PictureError as refusal:
            found[name] = [], str(refusal)
    assert sum(bool(sentence) for _, sentence in found.values()) >= 14 and sum(not sentence for _, sentence in found.values()) >= 10
    return found


def agrees(found: tuple[list[float], str], expected: tuple[list[float], str]) -> bool:
    return meant(found[1]) == meant(expected[1]) and np.allclose(found[0], expected[0], atol=1e-6)


def test_the_pages_handler_says_what_explain_says(files, expected, tiny, tmp_path):
    visitor = Visitor(tmp_path, tiny)
    models, results = Models(tiny, visitor.scheduler), Results()
    for name, path in files.items():
        value = analyse(str(path), Look(), models, results)
        assert meant(value["message"]) == meant(expected[name][1]), name
        assert value.get("failed", False) is bool(value["message"]) and ("top" in value) is not bool(value["message"])
        if not value["message"]:
            assert np.allclose(sorted(share for _, share in value["top"]), sorted(expected[name][0]), atol=1e-6), name
            assert value["top"][0][0] == tiny.classes[int(np.argmax(expected[name][0]))]


def at_once(ask, files: dict[str, Path]) -> dict[str, tuple[list[float], str]]:
    """What several visitors get who ask at the same time, each with their own files."""
    with ThreadPoolExecutor(6) as visitors:
        return dict(zip(files, visitors.map(ask, files), strict=True))


def test_gradios_client_gets_what_explain_says(files, expected, page):
    client = Client(page[0], verbose=False)

    def ask(name: str) -> tuple[list[float], str]:
        try:                                                                # by itself the client waits for ever
            return client.submit(handle_file(str(files[name])), api_name="/explain").result(timeout=60)["probabilities"], ""
        except AppError as refusal:
            return [], str(refusal)

    for name in files:                                                      # one after the other: a page has few places in the line
        found = ask(name)
        assert agrees(found, expected[name]), (name, found[1], expected[name][1])


def test_plain_http_gets_what_explain_says(files, expected, page):
    with httpx.Client(base_url=page[0], timeout=60, limits=httpx.Limits(max_keepalive_connections=0)) as http:
        def ask(name: str) -> tuple[list[float], str]:
            sent = http.post("gradio_api/upload", files={"files": (name, files[name].read_bytes(), "image/png")})
            value = {"path": sent.json()[0], "meta": {"_type": "gradio.FileData"}}
            event = http.post("gradio_api/call/explain", json={"data": [value, "box"]}).json()["event_id"]
            kind, data = http.get(f"gradio_api/call/explain/{event}").text.split("event: ")[-1].split("\ndata: ")
            answer = json.loads(data.strip())
            return (answer[0]["probabilities"], "") if kind == "complete" else ([], answer if isinstance(answer, str) else answer["error"])

        for name, found in at_once(ask, files).items():
            assert agrees(found, expected[name]), (name, found[1], expected[name][1])


def test_the_command_says_what_explain_says(files, expected, tiny, tmp_path, monkeypatch, capsys):
    saved = tmp_path / "m.safetensors"
    checkpoint.save(saved, tiny.model, classes=tiny.classes, preprocessing=tiny.preprocessing, provenance={})
    monkeypatch.setattr(explain_command, "pictures", lambda *_: ())         # what is drawn is no question of how a picture is opened
    monkeypatch.setattr(explain_command, "report", lambda *_: "")
    for name, path in files.items():
        try:
            assert main([str(path), "--out", str(tmp_path / "out"), "--checkpoint", str(saved)]) == 0
            with np.load(tmp_path / "out" / "maps.npz") as maps:
                found = maps["probabilities"].tolist(), ""
        except SystemExit as ended:
            assert ended.code == 1
            found = [], capsys.readouterr().err.strip()
        assert agrees(found, expected[name]), (name, found[1], expected[name][1])
        capsys.readouterr()


def test_a_films_picture_and_a_sets_picture_get_the_same_sentence(files, expected, tiny, tmp_path):
    visitor, said = Visitor(tmp_path / "home", tiny), {}
    set_id = visitor.ask("set", do="new", title="mine")["set"]["id"]
    for name in ("photo.jpg", "turned.jpg", "clear.gif", "sixteen.tif", *(name for name in files if expected[name][1])):
        sent = uploaded("one.png", files[name].read_bytes())
        answer = visitor.ask("start", data="cifar10", minutes=1, film=[sent], mine=[])
        said["film"] = answer.get("error", "")
        if "run" in answer:
            visitor.ask("delete", run=answer["run"])
        said["set"] = visitor.ask("set", do="add", set=set_id, klass="things", path=sent).get("error", "")
        for door, sentence in said.items():
            if "already" not in sentence:                                   # two of the files hold the same bytes
                assert meant(sentence) == meant(expected[name][1]), (name, door, sentence)


def test_a_zip_of_pictures_names_each_ones_sentence(files, expected, tmp_path):
    refused = {name: path for name, path in files.items() if expected[name][1]}
    with zipfile.ZipFile(tmp_path / "own.zip", "w") as archive:
        for klass in ("red", "blue"):
            archive.writestr(f"{klass}/ok.png", picture_bytes(coloured(klass, 5), "PNG"))
        for number, path in enumerate(refused.values()):
            archive.writestr(f"red/{number}.png", path.read_bytes())
    made = Sets(tmp_path / "sets", max_pictures=200, max_bytes=10**8).from_zip(tmp_path / "own.zip")
    told = [line.partition(": ")[2] for line in made.skipped]
    assert len(told) == len(refused) and all(meant(expected[name][1]) in map(meant, told) for name in refused)


def test_a_camera_picture_inside_a_request_gets_the_same_sentence(files, expected, tiny, tmp_path):
    visitor = Visitor(tmp_path / "home", tiny)
    set_id = visitor.ask("set", do="new", title="mine")["set"]["id"]
    for name in ("photo.jpg", "zero.png", "text.png", "cut.png", "photo.heic", "bomb.png"):
        data = f"data:image/jpeg;base64,{base64.b64encode(files[name].read_bytes()).decode()}"
        answer = visitor.ask("set", do="add", set=set_id, klass="things", data=data)
        assert meant(answer.get("error", "")) == meant(expected[name][1]), name


def test_nothing_in_the_package_opens_pictures_in_another_way():
    """`filmsheet` reads back pictures that the run itself wrote."""
    package = Path(__file__).resolve().parent.parent / "vitdemo"
    found = {path.name for path in package.rglob("*.py") if any(word in path.read_text(encoding="utf-8") for word in ("Image.open(", "decode_image", "read_image", "imread"))}
    assert found <= {"filmsheet.py", "formats.py"}
    assert open_picture(io.BytesIO(picture_bytes(coloured("red", 1)))).format == "PNG"
