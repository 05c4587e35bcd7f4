"""Whether a training run fits into this machine's memory: a run that does not would take the page down with it."""

import os
from pathlib import Path

from vitdemo.config import TrainConfig, ViTConfig
from vitdemo.ui.fields import RequestError

SHARE = 0.6                                     # of the memory, for all runs together: the page and the system need the rest
BASE = 7 * 10**8                                # bytes of a process that has loaded torch and made a few steps
PER_PARAMETER = 16                              # bytes: weights, gradients or best weights, and two moments
OF_THE_DISK = 1 / 8                             # of the place for all runs, for one of them
PICTURE_COPIES = 3                              # as decoded, and cut into the two parts


def needed(vit: ViTConfig, train: TrainConfig, *, parameters: int, pictures: int) -> int:
    """About how many bytes a run takes at its peak, fitted to what three sizes took (within 15 %); attention is computed in pieces, so
    T x T weights never exist."""
    tokens = min(train.batch, pictures) * vit.tokens
    steps = 4 * tokens * vit.depth * (12 * vit.dim + 3 * vit.mlp_width)     # float32 kept for the way back: norms, q k v, branches, MLP
    rows, cols = vit.image
    return BASE + PER_PARAMETER * parameters + steps + PICTURE_COPIES * pictures * vit.channels * rows * cols


def check(bytes_needed: int, runs: int) -> None:
    """Raises RequestError where `runs` runs of that size would not fit."""
    most = SHARE * memory() / max(1, runs)
    if most and bytes_needed > most:
        raise RequestError(f"this run would need about {bytes_needed / 1e9:.1f} GB of memory and a run here may take {most / 1e9:.1f}: "
                           "choose a smaller model, image or batch")


def check_disk(parameters: int, most: int) -> None:
    """Raises RequestError where one run's weights, with its optimizer's state, would take too much of the `most` bytes of all runs."""
    kept = PER_PARAMETER * parameters
    if 0 < most * OF_THE_DISK < kept:
        raise RequestError(f"this run would keep about {kept / 1e6:,.0f} MB on the disk and a run here may keep "
                           f"{most * OF_THE_DISK / 1e6:,.0f}: choose a smaller model")


def memory() -> int:
    """Bytes of memory this process may use: the machine's, cut by a container's limit. 0 where nobody says."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):                           # Windows
        return 0
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            found = min(found, int(Path(name).read_text()))
        except (OSError, ValueError):                                       # "max" is no number: no limit
            continue
    return found
