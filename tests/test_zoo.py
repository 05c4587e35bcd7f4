"""The table of published models against those who publish them: timm, torchvision and transformers, each building its own model."""

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image

from vitdemo import foreign, images, zoo
from vitdemo.config import ViTConfig
from vitdemo.model import ViT

EVERY = pytest.mark.parametrize("entry", zoo.ENTRIES, ids=lambda entry: entry.name)
OF_TIMM = [entry for entry in zoo.ENTRIES if entry.naming == "timm"]
OF_TORCHVISION = [entry for entry in zoo.ENTRIES if entry.naming == "torchvision"]


def published(entry: zoo.Entry) -> torch.nn.Module:
    """The same model, built on the meta device by the code of those who publish it."""
    with torch.device("meta"):
        if isinstance(entry.where, zoo.Torchvision):
            models = pytest.importorskip("torchvision.models")
            weights = models.get_weight(entry.where.weights)
            builder = entry.where.weights.partition("_Weights")[0].lower()
            return models.get_model(builder, weights=None, image_size=weights.meta["min_size"][0])
        if entry.naming == "timm":
            return pytest.importorskip("timm").create_model(entry.where.repo.removeprefix("timm/"))
        transformers = pytest.importorskip("transformers")
        assert entry.where.repo == "google/vit-base-patch16-224"            # whose settings are the defaults
        return transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=1000, attn_implementation="sdpa"))


def shapes(state: dict[str, torch.Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def as_stored(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """torchvision's files are older than its names for the MLP, which it renames on loading; all others are stored as they are called."""
    return {name.replace(".mlp.0.", ".mlp.linear_1.").replace(".mlp.3.", ".mlp.linear_2."): tensor for name, tensor in state.items()}


def ours(config: ViTConfig) -> ViT:
    with torch.device("meta"):
        return ViT(config)


@EVERY
def test_an_entry_is_the_published_model_name_by_name_and_shape_by_shape(entry):
    theirs, model = published(entry), ours(entry.config)
    assert sum(p.numel() for p in theirs.parameters()) == sum(p.numel() for p in model.parameters()) == entry.parameters
    # memory that nobody writes to is never handed out, so that H/14 costs none here
    found = foreign.understand({name: torch.empty(tensor.shape) for name, tensor in as_stored(theirs.state_dict()).items()})
    assert shapes(found.state) == shapes(model.state_dict())
    assert found.source == entry.naming
    unseen = {"heads": entry.config.heads, "eps": entry.config.eps, "mlp_dim": 0}           # what no tensor shows
    assert found.config.with_(**unseen) == entry.config
    heads = {getattr(module, name) for module in theirs.modules() for name in ("num_heads", "num_attention_heads") if hasattr(module, name)}
    assert heads == {entry.config.heads}
    assert {module.eps for module in theirs.modules() if isinstance(module, torch.nn.LayerNorm)} == {entry.config.eps}


@pytest.mark.parametrize("name", ["augreg-ti16", "deit-ti16-distilled", "dino-s8", "dinov2-s14", "dinov2-s14-registers", "google-b16",
                                  "torchvision-b32", "swag-b16"])
@torch.no_grad()
def test_with_one_block_a_model_of_each_family_answers_as_the_published_one(name, tmp_path):
    entry, generator = zoo.find(name), torch.Generator().manual_seed(3)
    theirs, config = published(entry).eval(), entry.config.with_(depth=1)
    for module in list(theirs.modules()):
        for part, child in list(module.named_children()):
            if isinstance(child, (torch.nn.Sequential, torch.nn.ModuleList)) and len(child) == entry.config.depth:
                setattr(module, part, child[:1])
    theirs.to_empty(device="cpu")
    for tensor in theirs.parameters():
        tensor.normal_(0.02, 0.1, generator=generator)
    state = theirs.state_dict()
    if entry.naming == "Hugging Face":                                      # whose files have other names than the model in memory
        theirs.save_pretrained(tmp_path)
        state = safetensors.torch.load_file(tmp_path / entry.where.file)
    model = ours(config).eval()
    model.load_state_dict(foreign.understand(state).state, assign=True)
    pictures = torch.randn(1, 3, *config.image, generator=generator)
    if config.classes:
        answer, expected = model(pictures), theirs(pictures)
        expected = getattr(expected, "logits", expected)
    else:
        answer, expected = model.encode(pictures), theirs.forward_features(pictures)
    assert expected.std() > 0.1 and (answer - expected).abs().max() < 1e-4 * expected.abs().max()


@pytest.mark.parametrize("entry", OF_TIMM, ids=lambda entry: entry.name)
def test_timm_says_the_same_of_its_models(entry):
    timm = pytest.importorskip("timm")
    stated, preprocessing = timm.get_pretrained_cfg(entry.where.repo.removeprefix("timm/")), entry.preprocessing
    assert stated.hf_hub_id == entry.where.repo and entry.where.file == "model.safetensors"
    assert stated.num_classes == entry.config.classes
    assert stated.license == entry.licence.lower().replace(" ", "-")
    assert stated.input_size == (entry.config.channels, *entry.config.image) and preprocessing.size == entry.config.image
    assert (stated.mean, stated.std, stated.interpolation) == (preprocessing.mean, preprocessing.std, preprocessing.interpolation)
    assert stated.crop_mode == "center" and preprocessing.fit == "crop"
    assert preprocessing.crop_fraction == preprocessing.size[0] / math.floor(preprocessing.size[0] / stated.crop_pct)


@pytest.mark.parametrize("entry", OF_TORCHVISION, ids=lambda entry: entry.name)
def test_torchvision_says_the_same_of_its_weights(entry):
    models = pytest.importorskip("torchvision.models")
    weights, preprocessing = models.get_weight(entry.where.weights), entry.preprocessing
    stated = weights.transforms()
    assert weights.meta["num_params"] == entry.parameters
    assert abs(weights.meta["_file_size"] * 2**20 / 1e6 - entry.megabytes) < 1
    assert weights.meta["_metrics"]["ImageNet-1K"]["acc@1"] / 100 == pytest.approx(entry.reported, abs=1e-9)
    assert [preprocessing.size[0]] == stated.crop_size and preprocessing.size == entry.config.image and preprocessing.fit == "crop"
    assert preprocessing.crop_fraction == stated.crop_size[0] / stated.resize_size[0]
    assert [list(preprocessing.mean), list(preprocessing.std)] == [stated.mean, stated.std]
    assert stated.interpolation.value == preprocessing.interpolation
    assert ("SWAG" in weights.meta.get("license", "")) == entry.licence.startswith("CC BY-NC")
    assert weights.url.startswith("https://")


def their_input(entry: zoo.Entry, picture: Image.Image) -> torch.Tensor:
    """The picture prepared by the code of those who publish the model, (3, rows, cols)."""
    if isinstance(entry.where, zoo.Torchvision):
        return pytest.importorskip("torchvision.models").get_weight(entry.where.weights).transforms()(picture)
    if entry.naming == "timm":
        data = pytest.importorskip("timm").data
        stated = data.resolve_data_config(pretrained_cfg=pytest.importorskip("timm").get_pretrained_cfg(entry.where.repo[5:]).to_dict())
        return data.create_transform(**stated)(picture)
    processor = pytest.importorskip("transformers").ViTImageProcessor()     # its defaults are the published preprocessor_config.json
    return processor(picture, return_tensors="pt")["pixel_values"][0]


@EVERY
def test_a_picture_is_prepared_as_by_those_who_publish_the_model(entry):
    side = 2 * round(entry.preprocessing.size[0] / entry.preprocessing.crop_fraction)      # so that no half pixels are lost in cropping
    shape = (side, side) if entry.preprocessing.fit == "crop" else (side, 3 * side // 2)
    rough = Image.fromarray(np.random.default_rng(5).integers(0, 256, (19, 23, 3), dtype=np.uint8))
    picture = rough.resize(shape[::-1], Image.Resampling.BICUBIC)
    seen, theirs = images.to_input(picture, entry.preprocessing, entry.config.patch).tensor[0], their_input(entry, picture)
    step = 1 / 255 / min(entry.preprocessing.std)                           # one grey level
    assert seen.shape == theirs.shape and (seen - theirs).abs().max() < 2.01 * step


def test_class_names_are_torchvisions_and_only_for_a_thousand_logits():
    names = zoo.class_names(ViTConfig())
    assert len(names) == 1000 and names[0] == "tench" and names[207] == "golden retriever" and names[999] == "toilet tissue"
    for classes in (0, 3, 999, 21843):
        assert zoo.class_names(ViTConfig(classes=classes)) is None
    models = pytest.importorskip("torchvision.models")
    for entry in OF_TORCHVISION:
        assert tuple(models.get_weight(entry.where.weights).meta["categories"]) == names


def test_every_entry_is_found_by_a_plain_name_and_nothing_else_is():
    names = [entry.name for entry in zoo.ENTRIES]
    for field in ("name", "title", "line", "where"):
        assert len({getattr(entry, field) for entry in zoo.ENTRIES}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) and zoo.find(name).name == name for name in names)
    assert zoo.find("") is zoo.find("DINO-S16") is zoo.find("dino") is None
    assert {"augreg-ti16", "deit-s16-distilled", "dino-s16", "dinov2-s14-registers", "google-b16", "torchvision-b16"} <= set(names)


@EVERY
def test_what_a_visitor_reads_is_short_and_whole(entry):
    assert entry.line.endswith(".") and entry.line.count(". ") == 0 and 40 < len(entry.line) <= 120
    assert len(entry.title) < 40 and len(entry.learned_from) < 90 and len(entry.licence) < 70 and len(entry.reported_as) < 80
    assert entry.megabytes == round(entry.parameters * 4 / 1e6)
    assert entry.reported is None or 0.5 < entry.reported < 0.95
    assert ("linear classifier" in entry.reported_as) == (entry.config.classes == 0)
    assert entry.preprocessing.channels == entry.config.channels


def test_the_table_costs_nothing_to_import():
    script = "import sys, vitdemo.zoo; print(sorted({'torch', 'torchvision', 'numpy', 'huggingface_hub'} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path(zoo.__file__).parent.parent)
    assert said.stdout.strip() == "[]"
