"""A hub of Hugging Face's kind, the host that its large files lie on, and torchvision's download host, all of them on this computer.

    with HubStandIn() as stand:
        stand.put("user/repo", {"model.safetensors": weights, "config.json": b"{}"})
        stand.put_torchvision(monkeypatch, "ViT_B_32_Weights.IMAGENET1K_V1", weights)
        stand.settle(monkeypatch, tmp_path)             # this process now uses it, with empty caches in tmp_path
        environment = stand.environment(tmp_path)       # or a child process does, with the same caches

It is what huggingface_hub's download needs and no more: HEAD and GET of /user/repo/resolve/REVISION/FILE, with X-Repo-Commit, X-Error-Code
and so on. Files that end in .safetensors, .bin or .pth are large: they carry X-Linked-Etag (their SHA-256) and X-Linked-Size, and lie on
another host, to which the hub sends one by an address that is signed.

`stand.script["model.safetensors"] = ["cut", "good"]` says how the next GETs of a file go, the last word for all that follow; without an
entry they are good:
    good        Range is obeyed (206, or 416 after the end)
    whole       Range is ignored (200)
    other part  Range is answered with the file's beginning (206)
    slow        it takes about `stand.seconds`
    cut         the connection ends after the half of what was to come
    hang        it falls silent there, until `stand.go_on.set()`
    wrong       other bytes, as many
    login       a page of another length
    a number    that status, 404 or 503 for instance
`stand.asked` holds (method, path, headers) of every request, `stand.gets(file)` the GETs of one. `stand.close()` makes connections be
refused. `put(..., state="gated" or "private")` wants "Bearer secret" as the token.
"""

import contextlib
import hashlib
import http.server
import os
import threading
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGE = (".safetensors", ".bin", ".pth")


class HubStandIn:
    """See above. Closed at the end of a `with`."""

    def __init__(self) -> None:
        self.repos: dict[str, tuple[str, dict[str, bytes], str]] = {}       # commit, files, state
        self.script: dict[str, list] = {}
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.seconds = 1.0
        self.go_on = threading.Event()
        self._servers = [_Server(self), _Server(self)]
        self.url = f"http://127.0.0.1:{self._servers[0].server_port}"       # of the hub
        self.store = f"http://localhost:{self._servers[1].server_port}"     # of its large files, and of torchvision's

    def __enter__(self) -> "HubStandIn":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        self.go_on.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self._servers = []

    def put(self, repo: str, files: dict[str, bytes], *, state: str = "open") -> str:
        """A repository with these files and no other; returns its new commit."""
        commit = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self.repos[repo] = commit, files, state
        return commit

    def put_torchvision(self, monkeypatch, weights: str, content: bytes) -> str:
        """Weights at an address that torchvision holds for its own from now on; returns the file's name."""
        from torchvision.models import get_weight

        name = f"{weights.split('_Weights')[0].lower()}-{hashlib.sha256(content).hexdigest()[:8]}.pth"
        self.repos["torchvision"] = "", {**self.repos.get("torchvision", ("", {}))[1], name: content}, "open"
        monkeypatch.setattr(get_weight(weights).value, "url", f"{self.store}/torchvision/{name}")
        return name

    def settle(self, monkeypatch, folder: Path) -> None:
        """huggingface_hub reads its environment once, when it is imported: here its constants are set."""
        from huggingface_hub import constants

        values = {"ENDPOINT": self.url, "HUGGINGFACE_CO_URL_TEMPLATE": self.url + "/{repo_id}/resolve/{revision}/{filename}",
                  "HF_HUB_CACHE": str(folder / "huggingface" / "hub"), "HF_TOKEN_PATH": str(folder / "huggingface" / "token"), "HF_HUB_OFFLINE": False}
        for name, value in values.items():
            monkeypatch.setattr(constants, name, value)
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("TORCH_HOME", str(folder / "torch"))

    def environment(self, folder: Path, **more: str) -> dict[str, str]:
        """What a child process is started with to use the stand-in, and the caches that `settle` gives this process."""
        ours = ("HF_", "HUGGING", "TRANSFORMERS_OFFLINE", "XDG_CACHE", "HTTP_PROXY", "ALL_PROXY")
        kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(ours)}
        return kept | {"HF_ENDPOINT": self.url, "HF_HOME": str(folder / "huggingface"), "TORCH_HOME": str(folder / "torch")} | more

    def gets(self, file: str) -> list[dict[str, str]]:
        """The headers of every GET that reached a file's bytes."""
        return [headers for method, path, headers in self.asked if method == "GET" and path.split("?")[0].endswith("/" + file)]

    def how(self, file: str) -> str | int:
        script = self.script.get(file) or ["good"]
        return script.pop(0) if len(script) > 1 else script[0]


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, stand: HubStandIn):
        self.stand = stand
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, *_) -> None:
        """Whoever asked went away: no news."""


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, *_) -> None:
        pass

    def _answer(self) -> None:
        stand = self.server.stand
        stand.asked.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}))
        path = unquote(urlsplit(self.path).path).strip("/")
        if "/resolve/" in path:
            self._resolve(*path.split("/resolve/"))
        else:
            repo, file = path.rsplit("/", 1)
            self._bytes(file, stand.repos.get(repo, ("", {}, ""))[1].get(file))

    def _resolve(self, repo: str, rest: str) -> None:
        revision, file = rest.split("/", 1)
        commit, files, state = self.server.stand.repos.get(repo, ("", {}, ""))
        trusted = self.headers.get("Authorization") == "Bearer secret"
        if not commit or (state == "private" and not trusted):
            return self._head(401, {"X-Error-Code": "RepoNotFound"})
        if state == "gated" and not trusted:
            return self._head(401, {"X-Error-Code": "GatedRepo"})
        if revision not in ("main", commit):
            return self._head(404, {"X-Error-Code": "RevisionNotFound"})
        if file not in files:
            return self._head(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
        content = files[file]
        if file.endswith(LARGE):
            return self._head(302, {"X-Repo-Commit": commit, "X-Linked-Etag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Linked-Size": str(len(content)),
                                    "Location": f"{self.server.stand.store}/{repo}/{file}?Signature=known-to-few"})
        etag = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        if self.command == "HEAD":
            return self._head(200, {"X-Repo-Commit": commit, "ETag": f'"{etag}"', "Content-Length": str(len(content))})
        return self._bytes(file, content)

    def _head(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": "0"} | headers).items():
            self.send_header(name, value)
        self.end_headers()

    def _bytes(self, file: str, content: bytes | None) -> None:
        how = self.server.stand.how(file) if content is not None else 404
        if isinstance(how, int):
            return self._head(how, {})
        if how == "wrong":
            content = bytes(255 - byte for byte in content)
        elif how == "login":
            content = b"<html>please log in"
        ranged = "Range" in self.headers and how not in ("whole", "login")
        since = int(self.headers["Range"][6:-1]) if ranged and how != "other part" else 0
        if ranged and since >= len(content):
            return self._head(416, {"Content-Range": f"bytes */{len(content)}"})
        part = {"Content-Range": f"bytes {since}-{len(content) - 1}/{len(content)}"} if ranged else {}
        self._head(206 if ranged else 200, part | {"Content-Length": str(len(content) - since)})
        with contextlib.suppress(OSError):                                  # whoever asked went away
            self._send(content[since:], how)

    def _send(self, content: bytes, how: str) -> None:
        stand = self.server.stand
        if how == "slow":
            step = max(1, len(content) // 200)
            for begin in range(0, len(content), step):
                self.wfile.write(content[begin : begin + step])
                self.wfile.flush()
                time.sleep(stand.seconds / 200)
            return
        self.wfile.write(content[: len(content) // 2] if how in ("cut", "hang") else content)
        self.wfile.flush()
        if how == "hang":
            stand.go_on.wait(20)
