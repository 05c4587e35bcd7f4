"""What a run begins with: any model's encoder under a fresh head, the page's own model for "box", and files that do not say their heads."""

import pytest
import torch
from conftest import seeded, tiny_config

from vitdemo import beginning, checkpoint
from vitdemo.config import ConfigError, Preprocessing
from vitdemo.data import Split
from vitdemo.plan import Plan, plan

KINDS = {
    "class token": {}, "registers": {"registers": 3}, "registers without positions": {"registers": 3, "prefix_positions": 1},
    "mean": {"pool": "mean", "class_token": False}, "mean beside a class token": {"pool": "mean"}, "mean with its own norm": {"pool": "mean", "norm_at": "pooled"},
    "a head of two layers": {"head": "mlp"}, "distilled": {"distilled": True}, "no head": {"classes": 0}, "grey": {"channels": 1},
    "waves": {"positions": "sinusoidal"}, "no positions": {"positions": "none"}, "layer scale": {"layer_scale": True},
}


def started(source: checkpoint.Loaded, classes: int = 5) -> beginning.Beginning:
    channels, (rows, cols) = source.config.channels, source.preprocessing.size
    pictures = Split(torch.zeros(4, channels, rows, cols, dtype=torch.uint8), torch.tensor([0, 1, 2, 3]))
    return beginning.beginning(plan(start="box"), source, pictures, classes)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_encoder_stays_as_it_is_under_a_linear_head_that_is_all_zero(kind):
    model = seeded(**KINDS[kind])
    channels = model.config.channels
    looks = Preprocessing(size=model.config.image, channels=channels, mean=(0.3,) * channels, std=(0.2,) * channels, crop_fraction=0.9, fit="squash")
    source = checkpoint.Loaded(model.model, model.classes, looks, {}, "source")
    begun = started(source)
    images = torch.randn(2, channels, 12, 20, generator=torch.Generator().manual_seed(3))
    assert torch.equal(begun.model.eval().encode(images), source.model.encode(images))
    assert begun.model(images).shape == (2, 5) and not begun.model(images).any() and begun.model.config.head == "linear"
    assert begun.preprocessing == looks.with_(crop_fraction=1.0, fit="crop")
    with torch.no_grad():
        begun.model.patch_embed.proj.weight.add_(1)                         # the run's weights are not those of the page's model
    assert not torch.equal(begun.model.encode(images), source.model.encode(images))


def test_positions_are_resampled_where_a_models_pictures_have_another_size_than_its_weights():
    made = seeded()
    source = checkpoint.Loaded(made.model, made.classes, Preprocessing(size=(20, 28)), {}, "source")
    begun = started(source)
    images = torch.randn(2, 3, 20, 28, generator=torch.Generator().manual_seed(3))
    assert begun.model.config.image == (20, 28) and torch.allclose(begun.model.encode(images), source.model.encode(images), atol=1e-5)


def test_the_model_in_the_box_is_the_one_that_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.delenv("VITDEMO_CHECKPOINT", raising=False)
    assert beginning.opened("box").config == checkpoint.load().config
    made = seeded()
    checkpoint.save(tmp_path / "owners.safetensors", made.model, classes=made.classes, preprocessing=made.preprocessing, provenance={})
    monkeypatch.setenv("VITDEMO_CHECKPOINT", str(tmp_path / "owners.safetensors"))
    assert beginning.opened("box").config == tiny_config()


def test_a_file_that_does_not_say_its_heads_is_told_them_by_the_plan(tmp_path):
    made = seeded(image=(12, 12))
    torch.save(made.model.state_dict(), tmp_path / "theirs.pt")
    with pytest.raises(checkpoint.HeadsNeeded):
        beginning.opened(str(tmp_path / "theirs.pt"))
    wanted = Plan.from_json(plan(start=str(tmp_path / "theirs.pt"), heads=2).to_json())
    found = beginning.opened(wanted.start, wanted.heads)
    assert found.config.heads == 2 and wanted.heads == 2
    older = plan(start="box").to_json()
    del older["heads"]
    assert Plan.from_json(older).heads == 0
    for wrong in ({"heads": 3}, {"start": "box", "heads": -1}, {"start": "box", "heads": 2.0}, {"start": "box", "heads": True}):
        with pytest.raises(ConfigError, match="heads are a whole number"):
            plan(**wrong)
