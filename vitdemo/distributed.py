"""Training on several processes, one per device, through PyTorch's own engine:

    torchrun --nproc-per-node 2 -m vitdemo.train --preset class --out RUN

Every process draws the whole batch and its augmentation and learns from its own slice, so the run is the one that a single process would
have made. Process 0 keeps the time and writes.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, distributed, nn

from vitdemo import settings


class World(NamedTuple):
    """Which of how many processes this one is."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")
    here: int = 1                   # how many of them work on this machine

    def slice(self, batch: Tensor) -> Tensor:
        """This process's rows of the global `batch`."""
        return batch.tensor_split(self.size)[self.rank]

    def wrap(self, model: nn.Module) -> nn.Module:
        """`model` with gradients that are the mean over all processes."""
        return model if self.size == 1 else nn.parallel.DistributedDataParallel(model)

    def mean(self, value: Tensor) -> Tensor:
        """The mean of everybody's `value`."""
        if self.size > 1:
            distributed.all_reduce(value)
        return value / self.size

    def told(self, value: float) -> float:
        """What process 0 says `value` is."""
        if self.size == 1:
            return value
        said = torch.tensor([value], dtype=torch.float64, device=self.device)
        distributed.broadcast(said, src=0)
        return said.item()

    def all_ready(self, ready: bool) -> bool:
        """Whether everybody is `ready`, said when everybody has come here: nobody goes on, or ends, without the others."""
        if self.size == 1:
            return ready
        waiting = torch.tensor([float(not ready)], device=self.device)
        distributed.all_reduce(waiting)
        return waiting.item() == 0

    @contextlib.contextmanager
    def first(self) -> Iterator[None]:
        """Process 0 goes through the block before the others do: it leaves decoded pictures for them. Where it fails there, they do with a
        ValueError."""
        if self.rank:
            if self.told(0.0):
                raise ValueError(f"process {self.rank} of {self.size} ends: the first one did, and says why")
            yield
            return
        try:
            yield
        except BaseException:
            self.told(1.0)
            raise
        self.told(0.0)


@contextlib.contextmanager
def joined() -> Iterator[World]:
    """The processes that torchrun started, this one among them; a world of one without torchrun. gloo on CPUs, NCCL on GPUs, of which each
    process takes one, unless VITDEMO_DEVICE wants another device. Raises ValueError for one that this machine has not."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if settings.device() == "cuda" else torch.device("cpu")
    if size == 1:
        yield World(device=device)
        return
    if device.type == "cuda":
        gpus, here = torch.cuda.device_count(), int(os.environ.get("LOCAL_WORLD_SIZE", device.index + 1))
        if here > gpus:
            raise ValueError(f"this machine has {gpus} GPU{'s' * (gpus != 1)}, and {here} processes here want one each: "
                             "start fewer, or let them work on the processor with VITDEMO_DEVICE=cpu")
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield World(distributed.get_rank(), size, device, int(os.environ.get("LOCAL_WORLD_SIZE", size)))
    finally:
        distributed.destroy_process_group()


def ended(code: int) -> int:
    """`code`, for this process to exit with. One of several exits here, at once: gloo's threads outlive their group, and one that asks for
    Python's lock while the interpreter is being taken down aborts the process, so that a run that is over and written would count as failed."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        with contextlib.suppress(OSError):                                  # nobody reads any more
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    return code
