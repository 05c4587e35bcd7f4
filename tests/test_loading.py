"""Any model by what a person calls it: the box, a published name, a file, a folder, a repository; and what is said where there is none."""

import io
import json
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch
from conftest import seeded
from hub_stand_in import HubStandIn
from parity import lively

import vitdemo
from vitdemo import beginning, checkpoint, hub, loading, zoo
from vitdemo.checkpoint import CheckpointError, HeadsNeeded
from vitdemo.config import Preprocessing, ViTConfig
from vitdemo.hub import HubError
from vitdemo.loading import load
from vitdemo.model import ViT
from vitdemo.zoo import Entry, Hub, Torchvision

CONFIG = ViTConfig(image=12, patch=4, dim=10, depth=2, heads=2, mlp_dim=14, classes=3)
WIDE = CONFIG.with_(mlp_dim=0)                  # four times the width
PICTURES = Preprocessing(size=(12, 12), mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6), interpolation="bilinear")
HF = {"model_type": "vit", "hidden_size": 10, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 14, "image_size": 12,
      "patch_size": 4, "layer_norm_eps": 1e-12, "id2label": {"0": "ant", "1": "bee", "2": "\u202ecat\n"}}


def model(config: ViTConfig = CONFIG) -> ViT:
    return lively(config)


def entry(where: Hub | Torchvision = Hub("somebody/tiny"), config: ViTConfig = CONFIG, naming: str = "timm") -> Entry:
    return Entry(name="tiny-s4", title="Tiny ViT-S/4", line="A small one.", where=where, megabytes=1, parameters=1, licence="Free",
                 learned_from="noise", reported=0.625, reported_as="top-1 on noise, by nobody", config=config, preprocessing=PICTURES,
                 naming=naming)


def dump(state: dict[str, torch.Tensor]) -> bytes:
    return safetensors.torch.save({name: tensor.contiguous() for name, tensor in state.items()})


def repository(folder: Path, config: dict | None = None, state: dict | None = None) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(dump(state or model().state_dict()))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def stand(monkeypatch, tmp_path):
    with HubStandIn() as made:
        made.settle(monkeypatch, tmp_path / "caches")
        yield made


@pytest.fixture
def published(stand, monkeypatch):
    """One published model, on the stand-in."""
    monkeypatch.setattr(zoo, "ENTRIES", (entry(),))
    stand.put("somebody/tiny", {"model.safetensors": dump(model().state_dict()), "config.json": b'{"architecture": "vit_tiny_patch4_12"}'})
    return stand


# ---- the box and published models


def test_the_box_is_what_nothing_and_box_name():
    assert load().config == load("box").config == checkpoint.load().config and vitdemo.load is load


def test_a_published_model_is_fetched_once_and_is_what_the_list_says(published):
    steps = []
    loaded = load("tiny-s4", told=lambda done, total: steps.append((done, total)))
    assert steps and len(published.gets("model.safetensors")) == 1
    assert loaded.config == CONFIG and loaded.preprocessing == PICTURES and loaded.name == "tiny-s4" and not loaded.model.training
    assert loaded.provenance == {"model": "Tiny ViT-S/4", "source": "somebody/tiny", "licence": "Free", "learned_from": "noise",
                                 "reported": "62.5% top-1 on noise, by nobody", "notes": []}
    images = torch.randn(2, 3, 12, 12)
    assert torch.equal(loaded.model(images), model()(images))
    published.close()
    assert load("tiny-s4", download=False).config == CONFIG                  # and from now on without a network


def test_a_published_models_config_is_the_lists_to_the_letter(published, monkeypatch):
    monkeypatch.setattr(zoo, "ENTRIES", (entry(config=WIDE),))
    published.put("somebody/tiny", {"model.safetensors": dump(model(WIDE).state_dict())})
    assert load("tiny-s4").config == WIDE


def test_a_published_model_may_be_called_by_its_repository(published):
    assert load("somebody/tiny").provenance["licence"] == "Free" and load(Hub("somebody/tiny")).name == "tiny-s4"


def test_weights_that_torchvision_publishes_are_opened_in_its_names(stand, monkeypatch):
    torchvision = pytest.importorskip("torchvision")
    theirs = torchvision.models.VisionTransformer(image_size=12, patch_size=4, num_layers=2, num_heads=2, hidden_dim=10, mlp_dim=14,
        num_classes=3).eval()
    torch.nn.init.normal_(theirs.heads.head.weight)
    weights, buffer = "ViT_B_32_Weights.IMAGENET1K_V1", io.BytesIO()
    torch.save(theirs.state_dict(), buffer)
    stand.put_torchvision(monkeypatch, weights, buffer.getvalue())
    monkeypatch.setattr(zoo, "ENTRIES", (entry(Torchvision(weights), naming="torchvision"),))
    loaded, images = load("tiny-s4"), torch.randn(2, 3, 12, 12)
    assert torch.allclose(loaded.model(images), theirs(images), atol=1e-5) and loaded.provenance["source"] == f"torchvision, {weights}"


def test_nothing_is_downloaded_where_that_is_not_wanted(published):
    for what in ("tiny-s4", "some/other"):
        with pytest.raises(HubError, match="not on this computer: fetch it with python -m vitdemo.hub " + what):
            load(what, download=False)
    assert not published.asked


@pytest.mark.parametrize("changes", [{"heads": 5, "eps": 1e-12}, {"classes": 4}, {"depth": 3}, {"image": (8, 12)}, {"registers": 1},
    {"layer_scale": True}], ids=str)
def test_weights_are_not_believed_against_the_list(published, monkeypatch, changes):
    monkeypatch.setattr(zoo, "ENTRIES", (entry(config=CONFIG.with_(**changes)),))
    if "heads" in changes:                                                  # what no tensor shows is the list's to say
        assert load("tiny-s4").config == CONFIG.with_(**changes)
    else:
        with pytest.raises(CheckpointError, match="the list of published models|are not 2 tokens|not 1 tokens"):
            load("tiny-s4")


def test_heads_given_for_a_published_model_must_be_its_own(published):
    assert load("tiny-s4", num_heads=2).config.heads == 2
    with pytest.raises(CheckpointError, match="tiny-s4 has 2 heads, not 5"):
        load("tiny-s4", num_heads=5)


# ---- repositories


def hugging_face(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Our weights under Hugging Face's names for a ViT."""
    renamed = {}
    for name, tensor in state.items():
        block = name.startswith("blocks.")
        front = f"vit.encoder.layer.{name.split('.')[1]}." if block else ""
        inner = ".".join(name.split(".")[2:]) if block else name
        if inner.startswith("attn.qkv."):
            for part, value in zip(("query", "key", "value"), tensor.chunk(3)):
                renamed[f"{front}attention.attention.{part}.{inner.split('.')[-1]}"] = value
            continue
        for ours, theirs in (("cls_token", "vit.embeddings.cls_token"), ("pos_embed", "vit.embeddings.position_embeddings"),
            ("head.", "classifier."),
                             ("patch_embed.proj.", "vit.embeddings.patch_embeddings.projection."), ("norm.", "vit.layernorm."),
                             ("attn.proj.", "attention.output.dense."),
                             ("mlp.fc1.", "intermediate.dense."), ("mlp.fc2.", "output.dense."), ("norm1.", "layernorm_before."),
                             ("norm2.", "layernorm_after.")):
            if inner.startswith(ours):
                renamed[front + theirs + inner.removeprefix(ours)] = tensor
    assert len(renamed) == len(state) + 4 * 2
    return renamed


def test_a_repository_is_fetched_and_its_files_say_how_to_use_it(stand):
    processor = {"image_processor_type": "ViTImageProcessor", "size": {"height": 12, "width": 12}, "resample": 2,
        "image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]}
    ours = model(CONFIG.with_(eps=1e-12))
    stand.put("user/repo", {"model.safetensors": dump(hugging_face(ours.state_dict())), "config.json": json.dumps(HF).encode(),
                            "preprocessor_config.json": json.dumps(processor).encode()})
    loaded = load("user/repo")
    assert loaded.config == CONFIG.with_(eps=1e-12) and loaded.classes == ("ant", "bee", "cat") and loaded.name == "repo"
    assert loaded.preprocessing == PICTURES.with_(fit="squash") and loaded.provenance["source"] == "user/repo"
    images = torch.randn(2, 3, 12, 12)
    assert torch.equal(loaded.model(images), ours(images))
    stand.close()
    assert load("user/repo").classes == load(Hub("user/repo"), download=False).classes == loaded.classes


@pytest.mark.parametrize("config", [{"model_type": "beit"}, {"architecture": "swin_tiny_patch4_window7_224"}], ids=str)
def test_a_repository_that_is_no_plain_vit_is_refused_before_its_weights_are_fetched(stand, config):
    stand.put("user/other", {"model.safetensors": b"x" * 100, "config.json": json.dumps(config).encode()})
    with pytest.raises(CheckpointError, match="not a plain ViT: relative positions"):
        load("user/other")
    assert not stand.gets("model.safetensors")


def test_a_repository_that_is_not_there_and_a_network_that_is_not_there_are_one_sentence_each(stand):
    with pytest.raises(HubError, match="there is no repository user/nothing"):
        load("user/nothing")
    stand.close()
    with pytest.raises(HubError, match="cannot be reached"):
        load("user/nothing")


# ---- files and folders


def test_a_file_that_does_not_say_its_heads_is_told_them_in_python_or_at_the_command_line(tmp_path):
    torch.save(model().state_dict(), tmp_path / "my.pth")
    for what in (tmp_path / "my.pth", str(tmp_path / "my.pth")):
        said = r"choose, for example .*num_heads=(\d+) in Python, --heads \1 on the command line\)$"
        with pytest.raises(HeadsNeeded, match=said) as refusal:
            load(what)
        assert refusal.value.choices and 2 in refusal.value.choices
        assert load(what, num_heads=2).config == CONFIG


def test_a_folder_is_opened_by_what_its_files_say(tmp_path):
    loaded = load(str(repository(tmp_path / "mine", HF, hugging_face(model().state_dict()))))
    assert loaded.config == CONFIG.with_(eps=1e-12) and loaded.name == "mine" and loaded.classes[0] == "ant"
    assert load(tmp_path / "mine").classes == loaded.classes
    assert load(tmp_path / "mine" / "model.safetensors").classes == loaded.classes                          # the file itself too
    assert load(f"{tmp_path}/mine/").config == loaded.config


def test_only_a_file_with_a_hubs_name_is_explained_by_what_lies_beside_it(tmp_path):
    folder = repository(tmp_path / "run", {"model_type": "beit"})
    (folder / "model.safetensors").rename(folder / "best.safetensors")
    assert load(folder / "best.safetensors", num_heads=2).config == CONFIG


def test_the_folder_of_a_run_is_its_best_weights(tmp_path):
    made = seeded()
    checkpoint.save(tmp_path / "best.safetensors", made.model, classes=made.classes, preprocessing=made.preprocessing,
        provenance={"seed": 3})
    (tmp_path / "config.json").write_text('{"vit": {}, "train": {}, "model": "vit-micro"}')
    (tmp_path / "last.pt").write_bytes(b"whatever")
    loaded = load(tmp_path)
    assert loaded.config == made.config and loaded.provenance == {"seed": 3} and loaded.name == "best"


def test_what_a_processor_does_otherwise_is_noted(tmp_path):
    folder = repository(tmp_path / "mine", HF)
    (folder / "preprocessor_config.json").write_text('{"size": 12, "resample": 1}')
    assert "lanczos" in load(folder).provenance["notes"][-1]


def test_a_published_name_means_the_same_wherever_the_program_is_started(published, tmp_path, monkeypatch):
    repository(tmp_path / "tiny-s4", HF)
    monkeypatch.chdir(tmp_path)
    assert load("tiny-s4").provenance["licence"] == "Free"
    assert load("./tiny-s4").classes[0] == load(Path("tiny-s4")).classes[0] == "ant"
    for name in ("tiny-s4", "box", "user/repo"):
        assert loading.anywhere(name) == name
    for name in ("./tiny-s4", "gone.pt"):
        assert loading.anywhere(name) == str(tmp_path / name)


# ---- what is none


@pytest.mark.parametrize(("what", "said"), [
    ("dino-s61", "'dino-s61'; published ones with such names are dino-s16"), ("DINO_S16", "dino-s16"), ("vit", "augreg-s16"),
    ("", "no model called ''"),
    ("a\0b", "no model called"), ("x" * 5000, "no model called"), ("<img src=x>\n", "no model called '<img src=x>"),
    ("/nowhere/at/all", "no file or folder called 'all'"),
    ("nowhere.pth", "no file called nowhere.pth"), (Path("nowhere/at/all"), "no file called all"),
    ("../secret", "no file or folder called 'secret'"),
], ids=lambda value: str(value)[:20])
def test_a_name_that_is_none_is_refused_in_one_sentence(what, said):
    with pytest.raises(CheckpointError, match=said) as refusal:
        load(what)
    assert len(str(refusal.value)) < 300 and "\n" not in str(refusal.value) and "nowhere/at" not in str(refusal.value)


# ---- what a loaded model can do


def test_a_thousand_classes_without_names_get_imagenets_and_a_note(tmp_path):
    config = CONFIG.with_(classes=1000)
    torch.save(model(config).state_dict(), tmp_path / "my.pth")
    loaded = load(tmp_path / "my.pth", num_heads=2)
    assert loaded.classes[0] == "tench" and loaded.classes[999] == "toilet tissue"
    assert "ImageNet's are assumed" in loaded.provenance["notes"][-1]
    torch.save({"model": model(config).state_dict(), "classes": [f"thing {i}" for i in range(1000)]}, tmp_path / "named.pth")
    assert load(tmp_path / "named.pth", num_heads=2).classes[999] == "thing 999"
    torch.save(model().state_dict(), tmp_path / "three.pth")
    assert load(tmp_path / "three.pth", num_heads=2).unnamed


def test_encode_gives_the_normed_hidden_states_of_all_tokens_without_gradients(tmp_path):
    timm = pytest.importorskip("timm")
    theirs = timm.models.VisionTransformer(img_size=12, patch_size=4, embed_dim=10, depth=2, num_heads=2, num_classes=3,
        reg_tokens=2).eval()
    for tensor in theirs.parameters():
        torch.nn.init.normal_(tensor, 0.1, 0.5, generator=torch.Generator().manual_seed(1))
    torch.save(theirs.state_dict(), tmp_path / "theirs.pth")
    loaded, images = load(tmp_path / "theirs.pth", num_heads=2), torch.randn(2, 3, 12, 20)
    hidden = loaded.encode(images[..., :12])
    assert hidden.shape == (2, 3 + 9, 10) and not hidden.requires_grad and loaded.config.prefix == 3
    assert torch.allclose(hidden, theirs.forward_features(images[..., :12]), atol=1e-5)
    assert loaded.encode(images).shape == (2, 3 + 15, 10)                   # a picture of another shape
    assert loaded.bytes == 4 * sum(tensor.numel() for tensor in theirs.parameters())


# ---- commands


def test_the_page_shows_what_its_owner_names_and_runs_start_from_that(published, tmp_path, monkeypatch):
    monkeypatch.delenv("VITDEMO_CHECKPOINT", raising=False)
    assert loading.shown().config == checkpoint.load().config
    monkeypatch.setenv("VITDEMO_CHECKPOINT", "tiny-s4")
    assert loading.shown().name == beginning.opened("box").name == beginning.opened("somebody/tiny").name == "tiny-s4"
    torch.save(model().state_dict(), tmp_path / "my.pth")
    monkeypatch.setenv("VITDEMO_CHECKPOINT", str(tmp_path / "my.pth"))
    with pytest.raises(HeadsNeeded):
        loading.shown()
    assert loading.shown(5).config.heads == 5
    monkeypatch.setenv("VITDEMO_HEADS", "2")
    assert loading.shown().config.heads == beginning.opened("box").config.heads == 2


@pytest.mark.parametrize("live", [False, True])
def test_a_download_is_shown_where_somebody_sees_it(published, capsys, monkeypatch, live):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: live, raising=False)
    assert loading.at_a_terminal("tiny-s4", 2).name == "tiny-s4"
    said = capsys.readouterr().err
    assert said.endswith("MB \n") and "tiny-s4: 0 of 0 MB" in said if live else said == ""


@pytest.mark.parametrize("arguments", [["--checkpoint", "dino-s61"], ["--checkpoint", "my.pth"], ["--checkpoint", "my.pth", "--heads", "3"],
                                       ["--checkpoint", "somebody/else"], ["--checkpoint", "."], ["--heads", "999"]], ids=" ".join)
def test_the_page_says_in_one_sentence_why_it_cannot_show_a_model_and_ends(stand, tmp_path, capsys, monkeypatch, arguments):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    import app

    monkeypatch.setattr("signal.signal", lambda *_: None)
    for name in ("VITDEMO_CHECKPOINT", "VITDEMO_HEADS", "GRADIO_TEMP_DIR"):
        monkeypatch.setenv(name, "")                                        # set back afterwards, whatever the program does
    monkeypatch.delenv("GRADIO_TEMP_DIR")
    torch.save(model().state_dict(), tmp_path / "my.pth")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "caches").mkdir(exist_ok=True)
    (tmp_path / "config.json").write_text('{"model_type": "swin"}')
    monkeypatch.setattr(sys, "argv", ["app.py", "--no-browser", *arguments])
    assert app.main() == 1
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1 and str(tmp_path) not in said and len(said) < 300
    assert hub.cached(Hub("somebody/else")) is None


def test_the_commands_take_published_names_too(published, photo, tmp_path, capsys, monkeypatch):
    from vitdemo import evaluate, explain_command

    monkeypatch.setattr(explain_command, "pictures", lambda result, klass: iter(()))
    assert explain_command.main([str(photo), "--out", str(tmp_path / "out"), "--checkpoint", "tiny-s4"]) == 0
    with pytest.raises(SystemExit):
        evaluate.main(["tiny-s5", "--data", str(tmp_path)])
    assert "there is no model called 'tiny-s5'; published ones with such names are tiny-s4" in capsys.readouterr().err


def test_a_run_may_start_from_a_published_model(published, colour_zip, tmp_path, capsys):
    from vitdemo import train_command

    command = ["--data", str(colour_zip), "--steps", "2", "--threads", "1", "--set", "evaluations=1", "--out", str(tmp_path / "run"), "--start"]
    assert train_command.main([*command, "tiny-s5"]) == 1
    assert "published ones with such names are tiny-s4" in capsys.readouterr().err and not (tmp_path / "run").exists()
    assert train_command.main([*command, "tiny-s4"]) == 0
    assert json.loads((tmp_path / "run" / "config.json").read_text())["start"] == "tiny-s4"
    ours, theirs = load(tmp_path / "run"), load("tiny-s4")
    assert ours.config == theirs.config.with_(classes=3) and ours.provenance["started_from"] == "tiny-s4"
