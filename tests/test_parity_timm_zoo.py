"""timm's vit_*, deit* and flexivit* models, made small: each says the same as ours, or is refused by a sentence that names it.

Models that differ only in size are one kind, of which the first is tried; VITDEMO_ALL_OF_TIMM=1 tries all.
"""

import os
import re
from collections import Counter

import pytest
import torch
from torch import nn

from parity import pictures, shaken
from vitdemo import naming
from vitdemo.checkpoint import CheckpointError, load

timm = pytest.importorskip("timm")
SIZES = r"_(tiny|xsmall|small|little|medium|betwixt|base|large|huge|gigantic|giantopt|so\d+m2?|wee)(?=_)|_(patch)?\d+$|(?<=patch)\d+"
UNSEEN = r"rpn|siglip_gap"              # another block or another GELU, which no tensor shows: a config beside the weights must say it
OF_FIXED_SIZE = r"r_s16|mci|sapiens|_r26|_r50|resnet"   # cannot be made small; their names alone are tried, from weights without numbers


def names() -> list[str]:
    found = [name for name in timm.list_models() if re.match(r"vit_|deit|flexivit|test_vit", name)]
    kinds = {re.sub(SIZES, "", name): name for name in reversed(found)}
    return found if os.environ.get("VITDEMO_ALL_OF_TIMM") else list(kinds.values())


def small(name: str) -> nn.Module:
    side = 3 * int((re.search(r"patch(\d+)", name) or [0, 16])[1])
    size = {"embed_dim": 24, "depth": 1, "num_heads": 2, "num_classes": 3}
    try:
        return timm.create_model(name, img_size=side, **size)
    except TypeError:                   # the model takes any size
        return timm.create_model(name, **size)


def told(name: str, folder) -> str:
    """What a person hears of the model `name`: "equal", "other numbers", or why it is refused."""
    with torch.no_grad():
        try:
            if re.search(OF_FIXED_SIZE, name):
                with torch.device("meta"):
                    naming.translate(timm.create_model(name).state_dict())
                return "translated"
            theirs = shaken(small(name))
            torch.save(theirs.state_dict(), folder / "x.pt")
            loaded = load(folder / "x.pt", heads=2)
        except CheckpointError as refusal:
            return str(refusal)
        images = pictures(loaded.config.image)
        expected = theirs(images)
        mine = loaded.model(images) if loaded.config.classes else loaded.model.encode(images)[:, 0]
        return "equal" if torch.allclose(mine, expected, rtol=1e-4, atol=1e-4) else "other numbers"


def test_each_model_of_timm_says_the_same_or_is_refused_by_name(tmp_path):
    heard = {name: told(name, tmp_path) for name in names()}
    refused = {name: words for name, words in heard.items() if words not in ("equal", "other numbers")}
    assert all(60 < len(words) < 300 and "\n" not in words for words in refused.values()), refused
    wrong = {name for name, words in heard.items() if words == "other numbers"}
    assert all(re.search(UNSEEN, name) for name in wrong), wrong
    count = Counter(re.sub(r" *[(;].*", "", words) for words in heard.values())
    kinds = [words for words in count if words.startswith("the file is not a plain ViT: ")]
    assert count["equal"] >= 20 and len(kinds) >= 9 and sum(count[words] for words in kinds) >= len(refused) - 5, count    # newer ones may come
