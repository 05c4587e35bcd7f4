"""How long threads that wait for each other hold their cores. Imported before torch, whose threads come with it."""

import os

LOOKS = "3000"                                  # whether the others are ready, before a thread sleeps; GNU OpenMP has a hundred times as many


def briefly() -> None:
    """Threads of GNU OpenMP, torch's on Linux, soon let go of their cores. Where one of them waits for its turn behind any other program, it
    gets none as long as the others hold theirs by looking for it: beside one busy program a training of two threads stood still. What somebody
    chose stays. The library reads this once, when it is loaded; processes started from here inherit it."""
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", LOOKS)
