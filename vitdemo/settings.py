"""What the owner of a machine may switch, read from the environment in this one place, and how many cores there really are."""

import os
import platform
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

SMALL_MEGABYTES = 400           # what a click may download on a public host, where the owner says nothing else
DEVICES = ("cuda", "mps", "cpu")                # in order of preference


@dataclass(frozen=True)
class Settings:
    """Owner's settings with defaults that are safe on a public host; the environment variable stands beside each."""

    data_folder: Path | None        # VITDEMO_DATA: a folder that may hold cifar10.zip and mnist.zip, which are then used
    cache_folder: Path              # VITDEMO_CACHE: decoded data sets and downloads
    runs_folder: Path               # VITDEMO_RUNS: training runs
    checkpoint: Path | None         # VITDEMO_CHECKPOINT: the model to show instead of the one in the box
    heads: int                      # VITDEMO_HEADS: how many that model has, where nothing else says it; 0: something does
    public: bool                    # SPACE_ID is set: a public host
    zero_gpu: bool                  # SPACES_ZERO_GPU is set: a public host that lends a GPU for one call at a time
    root_path: str                  # VITDEMO_ROOT_PATH: where a proxy serves the page, as /lab/vitdemo; "" for the host's own root
    password: str = field(repr=False)           # VITDEMO_PASSWORD: what a visitor must give before seeing anything; "" for nothing
    training: bool                  # VITDEMO_TRAINING: 0 switches the Train tab's start button off
    max_minutes: float              # VITDEMO_MAX_MINUTES: the longest run a visitor may start
    runs_at_once: int               # VITDEMO_RUNS_AT_ONCE: how many runs train at the same time
    queue: int                      # VITDEMO_QUEUE: how many runs may wait
    upload_megabytes: int           # VITDEMO_UPLOAD_MB: the largest file a visitor may upload, a checkpoint included
    uploads_megabytes: int          # VITDEMO_UPLOADS_MB: all that is uploaded within an hour, of all visitors together
    megapixels: float               # VITDEMO_MEGAPIXELS: the largest picture that is opened
    models: tuple[str, ...]         # VITDEMO_MODELS: the published models that may be asked for: names, "all", "small" (SMALL_MEGABYTES)
    hub: bool                       # VITDEMO_HUB: whether any other model of a hub may be asked for by its name; never on a public host
    models_megabytes: int           # VITDEMO_MODELS_MB: models in memory, all together
    max_pictures: int               # VITDEMO_MAX_PICTURES: how many pictures a visitor's own set may hold
    sets_megabytes: int             # VITDEMO_SETS_MB: visitors' own sets, all together
    runs_megabytes: int             # VITDEMO_RUNS_MB: all runs together; 0 gives them the whole disk
    keep_hours: float               # VITDEMO_KEEP_HOURS: when finished runs and own sets are deleted; 0 keeps them

    @property
    def clocked(self) -> bool:
        """Whether the minutes of a run are limited for the sake of others: then nothing may be done that no clock counts."""
        return self.public or self.max_minutes < 60

    @property
    def most_seconds(self) -> float:
        """How long a run may take in all, with its start, looks and test; 0 for as long as it likes."""
        return 3 * 60 * self.max_minutes + 300 if self.clocked else 0

    @property
    def sets_folder(self) -> Path:
        """Where visitors' own sets of pictures live."""
        return self.runs_folder / "sets"


def read(environment: dict[str, str] | None = None) -> Settings:
    """The settings of this process. Raises ValueError with the variable's name when a value makes no sense."""
    env = os.environ if environment is None else environment
    public = bool(env.get("SPACE_ID"))
    cache = _path(env, "VITDEMO_CACHE") or user_cache(env) / "vitdemo"
    return Settings(
        data_folder=_path(env, "VITDEMO_DATA"),
        cache_folder=cache,
        runs_folder=_path(env, "VITDEMO_RUNS") or cache / "runs",
        checkpoint=_path(env, "VITDEMO_CHECKPOINT"),
        heads=int(_number(env, "VITDEMO_HEADS", 0, 0, 256)),
        public=public,
        zero_gpu=lends(env),
        root_path=_root(env, "VITDEMO_ROOT_PATH"),
        password=env.get("VITDEMO_PASSWORD") or "",
        training=_number(env, "VITDEMO_TRAINING", 0 if lends(env) else 1, 0, 1) == 1,
        max_minutes=_number(env, "VITDEMO_MAX_MINUTES", 3 if public else 60, 0.05, 10_000),
        runs_at_once=int(_number(env, "VITDEMO_RUNS_AT_ONCE", 1, 1, 64)),
        queue=int(_number(env, "VITDEMO_QUEUE", 8, 0, 1000)),
        upload_megabytes=int(_number(env, "VITDEMO_UPLOAD_MB", 20 if public else 2000, 1, 10_000)),
        uploads_megabytes=int(_number(env, "VITDEMO_UPLOADS_MB", 1000 if public else 10_000, 1, 10_000_000)),
        megapixels=_megapixels(env),
        models=_names(env, "VITDEMO_MODELS", "small" if public else "all"),
        hub=_number(env, "VITDEMO_HUB", 1, 0, 1) == 1 and not public,
        models_megabytes=int(_number(env, "VITDEMO_MODELS_MB", 4000, 1, 10_000_000)),
        max_pictures=int(_number(env, "VITDEMO_MAX_PICTURES", 2000 if public else 20_000, 2, 2_000_000)),
        sets_megabytes=int(_number(env, "VITDEMO_SETS_MB", 1000 if public else 4000, 1, 10_000_000)),
        runs_megabytes=int(_number(env, "VITDEMO_RUNS_MB", 8000 if public else 0, 0, 10_000_000)),
        keep_hours=_number(env, "VITDEMO_KEEP_HOURS", 6 if public else 0, 0, 100_000),
    )


def most_pixels(environment: dict[str, str] | None = None) -> int:
    """Pixels of the largest picture that is opened: read for every picture, so nothing else is."""
    return round(_megapixels(os.environ if environment is None else environment) * 10**6)


def device(environment: dict[str, str] | None = None) -> str:
    """Where models work: VITDEMO_DEVICE, or the first of DEVICES that this machine has. Raises ValueError for one that it has not."""
    import torch  # only whoever uses models needs it

    env = os.environ if environment is None else environment
    there = {"cuda": torch.cuda.is_available() and not lends(env), "mps": torch.backends.mps.is_available(), "cpu": True}
    asked = env.get("VITDEMO_DEVICE") or "auto"
    if asked == "auto":
        return next(name for name in DEVICES if there[name])
    if asked not in there:
        raise ValueError(f"VITDEMO_DEVICE must be auto, {', '.join(DEVICES)}, not {asked!r}")
    if not there[asked]:
        raise ValueError(f"VITDEMO_DEVICE asks for {asked!r}, which this machine or its PyTorch does not have: leave it out, or say cpu")
    return asked


def lends(env: dict[str, str]) -> bool:
    """Whether this is a ZeroGPU Space, where the page's own process has no GPU though torch says so, and no run may last."""
    return env.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def user_cache(env: dict[str, str]) -> Path:
    """The platform's folder for things that can be made again."""
    if env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"])
    if sys.platform == "win32":
        return Path(env.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")


def cores(root: Path = Path("/")) -> int:
    """CPU cores this process may use: its affinity, cut by the quotas of its container and of the groups around it (cgroup v2 or v1), of
    which a part of a core counts for nothing, since threads beyond a quota wait for one another. At least 1. `root` holds proc and sys."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([count, *map(int, _quotas(root))]))


def shared_threads(processes: int) -> int:
    """Threads for each of `processes` that train as one on this host, where nobody else is to be answered."""
    return max(1, cores() // processes)


def training_threads(runs: int = 1) -> int:
    """Threads for each of the `runs` that the page may train at the same time: visitors must still be answered, so one core is left alone,
    and the runs share the others (but each takes one)."""
    return max(1, (cores() - 1) // runs)


def machine() -> str:
    """This machine in a few words, for the record of a training run."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{name}, {cores()} cores, {platform.system()}"


def _quotas(root: Path) -> list[float]:
    """The cores that the groups of this process may use, wherever there is a limit: those of its own group and of the groups around it."""
    found = []
    for controllers, path in _groups(root):
        version1 = "cpu" in controllers.split(",")
        if controllers and not version1:
            continue
        files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if version1 else ("cpu.max",)
        folder, names = root / "sys/fs/cgroup" / ("cpu" if version1 else ""), Path(path.lstrip("/")).parts
        for group in (folder.joinpath(*names[:depth]) for depth in range(len(names) + 1)):
            try:
                quota, period = " ".join((group / name).read_text() for name in files).split()
                found += [int(quota) / int(period)] * (int(quota) > 0)      # -1 is no limit
            except (OSError, ValueError, ZeroDivisionError):                # nor is "max", and a group that cannot be seen
                continue
    return found


def _groups(root: Path) -> list[tuple[str, str]]:
    """(names of version 1's controllers, or "" for version 2; path) of each control group of this process, see cgroups(7)."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except (OSError, ValueError):               # ValueError: a name that is no UTF-8
        lines = []
    return [(controllers, path) for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") > 1)] or [("", "/"), ("cpu", "/")]


def _megapixels(env: dict[str, str]) -> float:
    return _number(env, "VITDEMO_MEGAPIXELS", 40, 0.1, 170)                 # beyond that Pillow itself refuses


def _path(env: dict[str, str], name: str) -> Path | None:
    return Path(env[name]).expanduser() if env.get(name) else None


def _root(env: dict[str, str], name: str) -> str:
    """A path on a host, or a whole address, without the slash at its end."""
    text = (env.get(name) or "").rstrip("/")
    if text and not re.fullmatch(r"(https?://[\w.:\[\]-]+)?(/[\w.~-]+)*", text, re.ASCII):
        raise ValueError(f"{name} must be a path like /lab/vitdemo or a whole address, not {text!r:.80}")
    return text


def _names(env: dict[str, str], name: str, default: str) -> tuple[str, ...]:
    """The names of a list with commas; "none" is an empty one."""
    names = tuple(part.strip().lower() for part in (env.get(name) or default).split(",") if part.strip())
    return () if names == ("none",) else names


def _number(env: dict[str, str], name: str, default: float, low: float, high: float) -> float:
    text = env.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        raise ValueError(f"{name} must be a number from {low} to {high}, not {text!r}")
    return value
