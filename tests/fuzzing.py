"""Hand-made requests at a page over plain HTTP: every component, event and route that its /config names, with everything that does not belong there."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx

MARK = "marker-of-a-file-that-nobody-uploaded"
META = {"_type": "gradio.FileData"}
FIELDS = ("key", "token", "view", "klass", "run", "runs", "mine", "path", "paths", "film", "set", "sets", "do", "data", "minutes", "start", "model", "who", "side", "fit",
          "serial", "example", "query", "part", "beside", "up_to", "fusion", "discard", "masked", "order", "positions", "how", "insertion", "kind", "opacity", "log", "layer",
          "title", "truth", "answer", "part", "settings", "network", "classes", "owner", "browser", "dry", "race", "vote", "steps", "seed", "name", "label", "files", "zip", "look")
VIEWS = ("attention", "rollout", "relevance", "occlusion", "similarity", "colours", "norms", "mean attention")
ROUTES = ("config", "gradio_api/info", "gradio_api/info?all_endpoints=true", "gradio_api/openapi.json", "openapi.json", "docs", "redoc", "monitoring", "monitoring/summary",
          "monitoring/x", "gradio_api/monitoring/summary", "gradio_api/startup-events", "gradio_api/queue/status", "gradio_api/queue/data?session_hash={guess}",
          "gradio_api/queue/data", "gradio_api/call/explain/{guess}", "gradio_api/call/{guess}/{guess}", "gradio_api/upload_progress?upload_id={guess}",
          "gradio_api/proxy=http://127.0.0.1:9/x", "gradio_api/proxy={path}", "proxy={path}", "gradio_api/file={path}", "file={path}", "gradio_api/file/{path}",
          "gradio_api/file=http://127.0.0.1:9/x", "gradio_api/file=HTTPS://127.0.0.1:9/x", "theme.css", "static/{path}", "assets/{path}", "svelte/{path}",
          "custom_component/{guess}/client/component/{path}", "gradio_api/custom_component/gradio/client/component/{path}", "gradio_api/runs", "gradio_api/run-history/records",
          "gradio_api/vibe-code", "gradio_api/mcp", "gradio_api/mcp/sse", "gradio_api/deep_link?session_hash={guess}", "?deep_link={path}", "login", "logout", "gradio_api/user",
          "gradio_api/token", "gradio_api/login_check", "gradio_api/app_id", "gradio_api/stream/{guess}/{guess}/1/playlist.m3u8", "gradio_api/stream/{guess}/{guess}/1/playlist-file",
          "gradio_api/profiling/traces", "gradio_api/dev/reload", "pwa_icon/{path}", "manifest.json", "robots.txt", "{path}", "healthz/{path}", "?__theme={path}", "?example={path}")
POSTS = ("gradio_api/reset", "gradio_api/cancel", "gradio_api/queue/join", "gradio_api/run/predict", "gradio_api/run/explain", "gradio_api/call/explain", "gradio_api/call/v2/explain",
         "gradio_api/component_server", "gradio_api/upload", "gradio_api/vibe-edit", "gradio_api/vibe-code", "gradio_api/run-history/connect", "gradio_api/process_recording",
         "gradio_api/stream/{guess}", "gradio_api/stream/{guess}/close", "login", "gradio_api/mcp", "healthz")


class Sent(NamedTuple):
    """One request, so that it can be printed and sent again."""

    method: str
    path: str
    body: bytes | None
    kind: str = "application/json"

    def __str__(self) -> str:
        return f"{self.method} /{self.path} {self.kind} {self.body[:600] if self.body else b''!r}"


class Fuzzer:
    """Makes requests for the page at `url`; `secret` is the path of a picture that nobody uploaded, `homes` are folders that no answer may name."""

    def __init__(self, url: str, seed: int, secret: Path, homes: tuple[Path, ...]):
        self.url, self.random, self.secret, self.homes = url, random.Random(seed), secret, homes
        self.client = httpx.Client(timeout=20, limits=httpx.Limits(max_keepalive_connections=0))
        config = self.client.get(f"{url}config").json()
        self.components = [part["id"] for part in config["components"]]
        self.events = [(dependency["id"], len(dependency["inputs"]), dependency.get("api_name")) for dependency in config["dependencies"]]
        self.functions = sorted({name for part in config["components"] for name in part["props"].get("server_fns") or ()} | {"ask", "link"})
        self.upload = self.client.post(f"{url}gradio_api/upload", files={"files": ("x.png", secret.read_bytes().replace(MARK.encode(), b""))}).json()[0]
        self.doors = [part["id"] for part in config["components"] if self._is_door(part["id"])]
        self.questions = {door: self._questions(door) for door in self.doors}
        keys = re.findall(r'"key": ?"([\w-]{16,})"', json.dumps(config))
        self.keys = keys or ["x"]

    def _is_door(self, component: int) -> bool:
        return self._ask(component, {}).status_code == 200

    def _ask(self, component: int, data: Any) -> httpx.Response:
        return self.client.post(f"{self.url}gradio_api/component_server", json={"session_hash": "x", "component_id": component, "fn_name": "ask", "data": data})

    def _questions(self, door: int) -> list[str]:
        """The names of a door's questions, as its refusal lists them."""
        said = self._ask(door, {"question": "?"}).json()["error"]
        return re.search(r"must be one of (.+), not ", said)[1].split(", ")

    def value(self, depth: int = 0) -> Any:
        """Anything but what belongs there; now and then what does."""
        pick = self.random.choice
        paths = (str(self.secret), "/etc/passwd", "../../../../etc/passwd", f"{Path(self.upload).parent}/../../../{self.secret}", "/proc/self/environ", "", "/", ".", "\0", "C:\\x",
                 f"file://{self.secret}", "data:image/png;base64,iVBORw0KGgo=", "http://127.0.0.1:9/x.png", "https://127.0.0.1:9/", "//127.0.0.1:9/x", "~/.ssh/id_rsa", self.upload,
                 self.upload + "/..", self.upload + "\0", "a" * 5000)
        plain = (None, True, False, 0, 1, -1, 7, 2**31, 10**30, -10**40, 1.5, float("nan"), float("inf"), -float("inf"), "", "x", "NaN", "0" * 32, "recorded", "box", "zoo:dino-s16",
                 "hub:a/b", "\ud800", "\u202e<b>x</b>", "<img src=x onerror=alert(1)>", "x" * 20_000, "';--", "{{7*7}}", "${7*7}", "%s%n", [], {}, [[]], pick(self.keys), "cifar10", "mnist")
        if depth > 2:
            return pick(plain)
        way = self.random.random()
        if way < 0.4:
            return pick(plain)
        if way < 0.6:
            return pick(paths)
        if way < 0.8:
            file = {"path": pick(paths), "url": pick((None, "", *paths)), "orig_name": "x.png", "size": self.value(3), "mime_type": pick((None, "image/png", "text/html"))}
            return file if pick((True, False)) else {**file, "meta": pick((META, META, {}, {"_type": "x"}, 7)), "is_stream": pick((False, True, 7))}
        if way < 0.9:
            return [self.value(depth + 1) for _ in range(self.random.randrange(5))]
        if way < 0.93:
            return json.loads("[" * 200 + "]" * 200)
        return {pick(FIELDS): self.value(depth + 1) for _ in range(self.random.randrange(5))}

    def question(self, door: int) -> Any:
        """A question as a front end asks it, but for what its fields hold."""
        pick = self.random.choice
        fields = {name: self.value() for name in self.random.sample(FIELDS, self.random.randrange(8))}
        sound = {"key": pick(self.keys), "klass": 0, "run": "recorded", "token": 1, "view": {"kind": pick(VIEWS), **({pick(FIELDS): self.value(2)} if pick((0, 1)) else {})}}
        kept = {name: value for name, value in sound.items() if pick((0, 1, 1))}
        return {**kept, **({} if pick((0, 1)) else fields), "question": pick(self.questions[door])} if pick((0, 1, 1, 1)) else self.value()

    def requests(self) -> Iterator[Sent]:
        """Without end; the first ones go through all components, events and routes in turn."""
        for component in [*self.components, -1, 10**9, "x", None]:
            for name in (*self.functions, "__init__", "postprocess", "preprocess", "get_config"):
                yield self.posted("gradio_api/component_server", self.served(component, name))
        for number, inputs, name in [*self.events, (-1, 1, None), (10**6, 1, None), ("x", 1, "x")]:
            for many in {0, inputs, inputs + 1}:
                yield self.posted("gradio_api/run/predict", self.event(number, many))
            yield self.posted(f"gradio_api/call/{name}", {"data": [self.value() for _ in range(inputs)]})
        for path in ROUTES:
            yield Sent("GET", self.filled(path), None)
        for path in POSTS:
            yield self.posted(self.filled(path), self.value())
        while True:
            yield self.any()

    def any(self) -> Sent:
        pick = self.random.choice
        way = self.random.random()
        if way < 0.45:
            door = pick(self.doors)
            return self.posted("gradio_api/component_server", {**self.served(door, pick(self.functions)), "data": self.question(door)})
        if way < 0.55:
            return self.posted("gradio_api/component_server", self.served(pick(self.components), pick((*self.functions, "__class__", "", self.value(3)))))
        if way < 0.75:
            number, inputs, _ = pick(self.events)
            return self.posted("gradio_api/run/predict", self.event(number, inputs))
        if way < 0.85:
            return Sent("GET", self.filled(pick(ROUTES)), None)
        if way < 0.95:
            return self.posted(self.filled(pick(POSTS)), pick((self.value(), {"data": self.value(), "session_hash": self.value(3), "event_id": self.value(3), "fn_index": self.value(3)})))
        return Sent("POST", self.filled(pick(POSTS)), self.random.randbytes(self.random.randrange(400)), pick(("application/json", "multipart/form-data; boundary=x", "multipart/form-data", "")))

    def served(self, component: Any, name: Any) -> dict[str, Any]:
        return {"session_hash": "x", "component_id": component, "fn_name": name, "data": self.value()}

    def event(self, number: Any, inputs: int) -> dict[str, Any]:
        return {"data": [self.value() for _ in range(inputs)], "fn_index": number, "session_hash": "fuzz", "event_data": self.value(), "trigger_id": self.value(3)}

    def filled(self, path: str) -> str:
        return path.format(guess="".join(self.random.choices("0123456789abcdef", k=32)), path=self.random.choice(
            ("/etc/passwd", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", str(self.secret), f"x/..//{self.secret}", "%00", "C:/x", "~root")))

    def posted(self, path: str, body: Any) -> Sent:
        return Sent("POST", path, json.dumps(body).encode())

    def wrong(self, sent: Sent) -> str:
        """What is wrong with the answer to a request; "" where nothing is."""
        try:
            status, text = self.answer(sent)
        except httpx.TimeoutException:
            return "no answer within 20 s"
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
            return f"the connection ended: {error}"
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError):
            return ""
        unexpected = "server's log" in text and "component_server" in sent.path           # a door knows all that may be asked
        if unexpected or any(word in text for word in ("Traceback (most", "site-packages", MARK, "root:x:0")):
            return f"{status}: {text[:600]}"
        named = [str(home) for home in self.homes if str(home) in text.replace(self.upload, "").replace(str(self.secret), "")]
        return f"{status}: it names {named[0]}: {text[:600]}" if named else ""

    def answer(self, sent: Sent) -> tuple[int, str]:
        """(status, text) of an answer; of a stream of events, the first part."""
        headers = {"content-type": sent.kind} if sent.kind and sent.body else None
        with self.client.stream(sent.method, self.url + sent.path, content=sent.body, headers=headers) as answer:
            text, events = "", "text/event-stream" in answer.headers.get("content-type", "")
            if events:
                answer.request.extensions["timeout"]["read"] = 1.0
            try:
                for part in answer.iter_text():
                    text += part
                    if len(text) > 3_000_000 or events:
                        break
            except (httpx.RemoteProtocolError, httpx.ReadTimeout) as error: # Gradio breaks off the stream of a session that is none
                if not events:
                    raise error
            return answer.status_code, text
