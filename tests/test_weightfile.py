"""Files that are no checkpoint, or would do harm: each is refused by what it is."""

import gzip
import os
import zipfile
from pathlib import Path

import pytest
import safetensors.torch
import torch

from vitdemo.config import ViTConfig
from vitdemo.model import ViT
from vitdemo.weightfile import CheckpointError, read


class Touch:
    """Unpickling this would leave a trace."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def state() -> dict[str, torch.Tensor]:
    return dict(ViT(ViTConfig(image=12, patch=4, dim=10, depth=2, heads=2, classes=3)).state_dict())


def test_nothing_in_a_pickle_is_executed(tmp_path):
    torch.save({"model": state(), "x": Touch(tmp_path / "trace")}, tmp_path / "x.pt")
    with pytest.raises(CheckpointError, match=r"Python object \w+\.mkdir"):
        read(tmp_path / "x.pt")
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(("content", "message"), [
    (b"", "is empty"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git LFS pointer"),
    (b"\n <!DOCTYPE html><title>503</title>", "web page"),
    (gzip.compress(b"data", mtime=0), "gzip archive"),
    (b"hello, this is text", "neither safetensors nor"),
    (b"PK\x03\x04" + b"\0" * 100, "cut off"),
    (b"\x80\x02}q\x00.", "damaged or cut off"),
    ((2**60).to_bytes(8, "little") + b"{}", "damaged or cut off"),
    ((10**5).to_bytes(8, "little") + b"{" * 10**5, "damaged or cut off"),
], ids=lambda value: str(value)[:30])
@pytest.mark.parametrize("suffix", ["pt", "safetensors"])
def test_what_is_no_checkpoint_is_called_what_it_is_whatever_its_name(tmp_path, content, message, suffix):
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"^x\.{suffix} .*{message}"):
        read(path)


def test_missing_files_and_folders_are_refused_without_their_path(tmp_path):
    for path in (tmp_path / "x.pt", tmp_path):
        with pytest.raises(CheckpointError, match=f"there is no file called {path.name}$"):
            read(path)


@pytest.mark.parametrize("kind", ["safetensors", "pt", "legacy"])
def test_a_file_cut_off_anywhere_is_refused(tmp_path, kind):
    whole = tmp_path / "whole"
    if kind == "safetensors":
        safetensors.torch.save_file(state(), whole)
    else:
        torch.save(state(), whole, _use_new_zipfile_serialization=kind == "pt")
    read(whole)
    content = whole.read_bytes()
    for cut in (1, 7, 8, 9, 50, 500, len(content) // 2, len(content) - 100, len(content) - 1):
        (tmp_path / "part").write_bytes(content[:cut])
        with pytest.raises(CheckpointError):
            read(tmp_path / "part")


def test_tensors_of_every_kind_are_read_as_they_are_into_memory_of_their_own(tmp_path):
    generator = torch.Generator().manual_seed(0)
    kinds = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.bool, torch.float8_e4m3fn]
    written = {str(kind): torch.randint(0, 2, (3, 1, 5), generator=generator).to(kind) for kind in kinds}
    written |= {"one": torch.tensor(2.5), "none": torch.zeros(0, 4), "odd": torch.ones(3, dtype=torch.uint8)}          # what follows is not aligned
    safetensors.torch.save_file(written, tmp_path / "x", {"a": "b"})
    metadata, content = read(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"\xff" * (tmp_path / "x").stat().st_size)
    assert metadata == {"a": "b"} and content.keys() == written.keys()
    for name, tensor in written.items():
        assert content[name].dtype == tensor.dtype and content[name].shape == tensor.shape
        assert torch.equal(content[name].double(), tensor.double()), name


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", b"\0" * 10**7)
    with pytest.raises(CheckpointError, match="compressed zip"):
        read(tmp_path / "x.pt")
