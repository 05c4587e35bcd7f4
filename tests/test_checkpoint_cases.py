"""The shared hard checkpoints, every one of them: which load, as what, and which are refused by what they are."""

import os
from pathlib import Path

import pytest
import torch

from vitdemo.checkpoint import CheckpointError, HeadsNeeded, list_checkpoints, load
from vitdemo.config import ViTConfig

CASES = Path(os.environ["VITDEMO_CASES"]) / "checkpoints" if "VITDEMO_CASES" in os.environ else None
needs_cases = pytest.mark.skipif(CASES is None or not CASES.is_dir(), reason="VITDEMO_CASES does not name the folder of shared hard inputs")

TEN = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
EQUAL = {  # equal logits to ck_good.pt; True: the head count must be given
    "ck_good.pt": False, "ck_good.safetensors": True, "ck_tagged_cuda0.pt": False, "ck_under_state_dict_key.pt": True,
    "ck_raw_state_dict.pt": True,
    "ck_config_missing.pt": True, "ck_prefix_module.pt": False, "ck_prefix_orig_mod.pt": False, "ck_prefix_module_orig_mod.pt": False,
    "ck_class_names_html.pt": False, "ck_class_order_reversed.pt": False,
}
OTHERS = {  # load, as something else
    "ck_fp16.pt": {}, "ck_heads_lie_8.pt": {"heads": 8}, "ck_4_registers_pos_21.pt": {"registers": 4, "prefix": 5, "position_rows": 5},
    "ck_extra_dist_token.pt": {"prefix": 2, "position_rows": 1}, "ck_image_64_pos_65.pt": {"image": (64, 64), "grid": (8, 8)},
    "ck_patch_4.pt": {"patch": (4, 4), "grid": (8, 8)}, "ck_classes_100.pt": {"classes": 100},
}
REFUSED = {
    "ck_missing_cls_token.pt": "missing 'cls_token'", "ck_missing_head.pt": "missing 'head.weight', 'head.bias'",
    "ck_empty_dict.pt": "holds no weights",
    "ck_nan_weight.pt": "not finite", "ck_config_hostile.pt": "image as a whole number from 0 to 4096",
    "ck_numpy_scalar.pt": "Python object numpy",
    "ck_pickle_exec.pt": "Python object", "ck_text.pt": "git LFS pointer", "ck_html_error_page.pt": "web page", "ck_zero_byte.pt": "empty",
    "ck_half_written.pt": "cut off", "ck_truncated.safetensors": "damaged or cut off", "cifar-10-python.tar.gz": "gzip archive",
}


@needs_cases
def test_no_shared_case_is_forgotten():
    assert {path.name for path in CASES.iterdir()} == {*EQUAL, *OTHERS, *REFUSED, "ck_leftover.pt.tmp"}
    assert "ck_leftover.pt.tmp" not in [path.name for path in list_checkpoints(CASES)]


@needs_cases
@pytest.mark.parametrize(("name", "asked"), EQUAL.items())
def test_a_shared_good_case_gives_the_same_logits(name, asked):
    if asked:
        with pytest.raises(HeadsNeeded):
            load(CASES / name)
    loaded, images = load(CASES / name, heads=4 if asked else None), torch.randn(2, 3, 32, 32)
    assert torch.equal(loaded.model(images), load(CASES / "ck_good.pt").model(images))
    assert loaded.config == ViTConfig(image=32, patch=8, dim=16, depth=2, heads=4, mlp_dim=32, classes=10)
    names = {"ck_class_names_html.pt": ("<img src=x onerror=alert(1)>", *TEN[1:]), "ck_class_order_reversed.pt": TEN[::-1]}.get(name, TEN)
    assert loaded.classes == (names if not asked else tuple(f"class {i}" for i in range(10)))


@needs_cases
@pytest.mark.parametrize(("name", "expected"), OTHERS.items())
def test_a_shared_unusual_case_loads_as_what_it_is(name, expected):
    loaded = load(CASES / name)
    assert {key: getattr(loaded.config, key) for key in expected} == expected
    assert all(p.dtype == torch.float32 for p in loaded.model.parameters())
    logits = loaded.model(torch.randn(1, 3, *loaded.config.image))
    assert logits.shape == (1, len(loaded.classes)) and logits.isfinite().all()


@needs_cases
@pytest.mark.parametrize(("name", "message"), REFUSED.items())
def test_a_shared_bad_case_is_refused_by_name(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=message) as refusal:
        load(CASES / name)
    assert str(CASES) not in str(refusal.value) and len(str(refusal.value)) < 400 and "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())
