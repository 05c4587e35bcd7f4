"""The file of right and wrong pictures: which are kept, how they are found, and what is said where it is broken."""

import pytest
import torch
from safetensors.torch import load, load_file, save

from vitdemo import mistakes
from vitdemo.data import Split

CLASSES = ("blue", "green", "red")


def looked_at(count: int, K: int = 3, seed: int = 0, size: tuple[int, int, int] = (3, 4, 5)) -> tuple[Split, torch.Tensor]:
    """A part of `count` pictures, each holding its own number, and random logits for it."""
    generator = torch.Generator().manual_seed(seed)
    images = (torch.arange(count) % 251).view(-1, 1, 1, 1).expand(count, *size).to(torch.uint8)
    return Split(images, torch.randint(K, (count,), generator=generator)), 3 * torch.randn(count, K, generator=generator)


def test_every_cell_holds_its_most_confident_pictures_in_order(tmp_path):
    split, logits = looked_at(300)
    mistakes.save(tmp_path / "m.safetensors", split, logits, CLASSES)
    shares, answers = logits.softmax(-1).max(1)
    for truth in range(3):
        for answer in range(3):
            found = mistakes.cell(tmp_path / "m.safetensors", truth, answer)
            inside = ((split.labels == truth) & (answers == answer)).nonzero()[:, 0]
            wanted = inside[shares[inside].argsort(descending=True)][:12]
            assert found.count == len(inside) > 12 and found.rows.tolist() == wanted.tolist()
            assert torch.equal(found.pictures, split.images[wanted]) and found.pictures.shape[1:] == (3, 4, 5)
            assert torch.allclose(found.confidence, shares[wanted])


def test_a_cell_without_pictures_is_empty_and_a_small_one_whole(tmp_path):
    labels = torch.tensor([0, 0, 1, 2])
    logits = torch.tensor([[5., 0, 0], [1, 2, 0], [0, 3, 0], [0, 0, 1]])
    mistakes.save(tmp_path / "m.safetensors", Split(torch.arange(4).view(4, 1, 1, 1).to(torch.uint8), labels), logits, CLASSES)
    empty, one = (mistakes.cell(tmp_path / "m.safetensors", *pair) for pair in ((2, 0), (0, 1)))
    assert (empty.count, empty.rows.tolist(), empty.pictures.shape, len(empty.confidence)) == (0, [], (0, 1, 1, 1), 0)
    assert (one.count, one.rows.tolist(), one.pictures.flatten().tolist()) == (1, [1], [1])
    assert one.confidence.item() == pytest.approx(logits[1].softmax(0)[1].item())


def test_with_many_classes_every_cell_gets_a_first_picture_before_one_gets_a_second(tmp_path):
    split, logits = looked_at(4000, K=30, size=(1, 2, 3))
    mistakes.save(tmp_path / "m.safetensors", split, logits, tuple(map(str, range(30))))
    kept = [mistakes.cell(tmp_path / "m.safetensors", i, j) for i in range(30) for j in range(30)]
    shown = [len(cell.rows) for cell in kept]
    assert sum(shown) == mistakes.MOST and sum(cell.count for cell in kept) == 4000
    assert all(shown[i] for i, cell in enumerate(kept) if cell.count)
    assert max(shown) <= 3                                                  # a second for most, a third for few


def test_large_pictures_are_kept_in_fewer_copies(tmp_path, monkeypatch):
    monkeypatch.setattr(mistakes, "MOST_BYTES", 600)                        # ten pictures of 60 bytes
    split, logits = looked_at(300)
    mistakes.save(tmp_path / "m.safetensors", split, logits, CLASSES)
    assert load_file(tmp_path / "m.safetensors")["pictures"].shape == (10, 3, 4, 5)
    assert all(len(mistakes.cell(tmp_path / "m.safetensors", i, j).rows) >= 1 for i in range(3) for j in range(3))


def test_a_later_look_replaces_the_file_whole(tmp_path):
    path = tmp_path / "m.safetensors"
    for seed in (0, 1):
        mistakes.save(path, *looked_at(50, seed=seed), CLASSES)
    split, logits = looked_at(50, seed=1)
    assert mistakes.cell(path, 0, 0).count == int(((split.labels == 0) & (logits.argmax(1) == 0)).sum())
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("pair", [(3, 0), (0, 3), (-1, 0), (0, -1), (10**20, 0)])
def test_a_pair_of_classes_that_is_none_is_refused(tmp_path, pair):
    mistakes.save(tmp_path / "m.safetensors", *looked_at(20), CLASSES)
    with pytest.raises(mistakes.MistakesError, match="there are 3 classes"):
        mistakes.cell(tmp_path / "m.safetensors", *pair)


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="not written yet") as caught:
        mistakes.cell(tmp_path / "m.safetensors", 0, 0)
    assert str(tmp_path) not in str(caught.value)


def test_a_damaged_file_is_one_sentence(tmp_path):
    path = tmp_path / "m.safetensors"
    mistakes.save(path, *looked_at(60), CLASSES)
    whole = path.read_bytes()
    parts = load(whole)
    for content in (b"", b"x" * 500, whole[:len(whole) // 2], whole[:40]):
        path.write_bytes(content)
        with pytest.raises(mistakes.MistakesError, match="damaged"):
            mistakes.cell(path, 0, 0)
    without = {name: part for name, part in parts.items() if name != "kept"}
    wild = {**parts, "kept": parts["kept"] + 1000}
    short = {**parts, "answers": parts["answers"][:7].clone()}
    for tensors, metadata in ((parts, None), (parts, {"classes": "many"}), (without, {"classes": "3"}), (wild, {"classes": "3"}), (short, {"classes": "3"})):
        path.write_bytes(save(tensors, metadata))
        with pytest.raises(mistakes.MistakesError, match="damaged"):
            mistakes.cell(path, 0, 0)
