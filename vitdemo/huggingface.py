"""What the Hugging Face hub says of a repository's files, and in one sentence why it does not.

huggingface_hub asks, so that its settings hold: HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, a proxy.
"""

import contextlib
import re
import time
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from vitdemo import transfer
from vitdemo.transfer import Result
from vitdemo.zoo import Hub

SAFE, PICKLED = "model.safetensors", "pytorch_model.bin"                    # the second only where there is no first
PATIENCE = 45                                   # seconds for a question


class HubError(ValueError):
    """Weights cannot be had: one sentence."""


class Missing(HubError):
    """The repository has no such file."""


class Found(NamedTuple):
    """What the hub says of a file."""

    commit: str
    etag: str                                   # of a large file its SHA-256
    size: int | None
    url: str                                    # where it lies; signed where that is another host


def authorization(url: str) -> str | None:
    """The user's token, if `url` is on the hub itself: no other host may see it."""
    from huggingface_hub import constants
    from huggingface_hub.utils import build_hf_headers

    ours = urlsplit(url)[:2] == urlsplit(constants.ENDPOINT)[:2]            # scheme, host and port
    return build_hf_headers().get("authorization") if ours else None


def ask(question: Callable[[], Result], watch: Callable[[], None]) -> Result:
    """What the hub answers, in PATIENCE seconds; what `watch` raises ends the waiting."""
    until = time.monotonic() + PATIENCE

    def wait() -> None:
        watch()
        if time.monotonic() > until:
            raise HubError(f"the hub has not answered for {PATIENCE} seconds: check the network and try again")

    return transfer.attended(question, wait)


def weights(where: Hub) -> tuple[str, Found]:
    """The name of a repository's weights file and what the hub says of it."""
    repo, revision = where.repo, where.revision
    try:
        return where.file, about(repo, where.file, revision)
    except Missing:
        if where.file != SAFE:
            raise
    with contextlib.suppress(Missing):
        about(repo, f"{SAFE}.index.json", revision)
        raise HubError(f"{repo} keeps its weights in several files: only models whose weights are one file, {SAFE}, can be opened")
    with contextlib.suppress(Missing):
        return PICKLED, about(repo, PICKLED, revision)
    raise HubError(f"{repo} has no weights that can be opened: neither {SAFE} nor {PICKLED}")


def about(repo: str, file: str, revision: str) -> Found:
    """What the hub says of a file. Raises HubError."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url

    try:
        said = get_hf_file_metadata(hf_hub_url(repo, file, revision=revision))
    except Exception as error:                                              # of the library, and of the one it uses for HTTP
        raise _refusal(error, repo, file, revision) from error
    if not re.fullmatch(r"[\w-]{1,100}", said.commit_hash or "") or not re.fullmatch(r"\w[\w.-]{0,199}", said.etag or ""):
        raise HubError("what answered in place of the hub is none, perhaps a page that asks to log in: check the network and try again")
    return Found(said.commit_hash, said.etag, said.size, said.location)


def _refusal(error: Exception, repo: str, file: str, revision: str) -> HubError:
    """Why the hub did not say it, in a sentence."""
    from huggingface_hub import errors

    status = error.response.status_code if isinstance(error, errors.HfHubHTTPError) else None
    if isinstance(error, errors.HFValidationError):
        return HubError(f"{repo[:100]!r} is not the name of a repository: they look like user/name")
    if isinstance(error, errors.OfflineModeIsEnabled):
        return HubError(f"{repo} is not on this computer, and HF_HUB_OFFLINE forbids to download it: unset it and start again")
    if isinstance(error, errors.GatedRepoError):
        return HubError(f"{repo} asks for your consent: give it on the repository's page, and set HF_TOKEN to your token")
    if isinstance(error, errors.RepositoryNotFoundError):
        return HubError(f"there is no repository {repo}, or it is private: check the name, or set HF_TOKEN to a token that may read it")
    if isinstance(error, errors.RevisionNotFoundError):
        return HubError(f"{repo} has no revision {revision[:100]!r}")
    if status == 404:
        return Missing(f"{repo} has no file {file}")
    if status in (401, 403):
        return HubError(f"the hub does not let us read {repo} (it answered {status}): set HF_TOKEN to a token that may")
    if status:
        return HubError(f"the hub cannot give {repo} now (it answered {status}): try again in a few minutes")
    return HubError(f"{repo} is not on this computer, and the hub cannot be reached ({type(error).__name__}): check the network "
                    "and try again")
