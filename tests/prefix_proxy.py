"""A small reverse proxy for tests: what stands below a prefix goes to a page elsewhere, with a stream's lines as they come; and a page of
another host that embeds it."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

PASSED_BACK = {"content-type", "set-cookie", "cache-control", "content-disposition", "location", "etag"}
# what Hugging Face allows the frame that a Space is shown in
SANDBOX = "allow-downloads allow-forms allow-modals allow-popups allow-popups-to-escape-sandbox allow-same-origin allow-scripts"


@contextlib.contextmanager
def proxied(target: str, prefix: str) -> Iterator[tuple[str, list[str]]]:
    """(address of the page behind the proxy, paths asked for that lie outside the prefix)."""
    outside: list[str] = []
    client = httpx.Client(base_url=target, timeout=60, limits=httpx.Limits(max_connections=100, max_keepalive_connections=0))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"                                       # a stream ends where the connection does

        def _pass(self) -> None:
            if self.path == "/favicon.ico":                                 # a browser asks every host for one on its own
                self.send_response(204)
                self.end_headers()
                return
            if not self.path.startswith(f"{prefix}/"):
                outside.append(self.path)
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            told = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "accept-encoding")}
            told |= {"host": self.headers["host"], "x-forwarded-host": self.headers["host"], "x-forwarded-proto": "http", "accept-encoding": "identity"}
            with client.stream(self.command, self.path.removeprefix(prefix), headers=told, content=body) as answer:
                self.send_response(answer.status_code)
                for name, value in answer.headers.items():
                    if name in PASSED_BACK:
                        self.send_header(name, value)
                self.end_headers()
                with contextlib.suppress(OSError, httpx.HTTPError):         # the browser or the page went away
                    for part in answer.iter_raw():
                        self.wfile.write(part)
                        self.wfile.flush()

        do_GET = do_POST = do_HEAD = do_DELETE = _pass

        def log_message(self, *_: object) -> None:
            pass

    with _serving(Handler) as url:
        yield f"{url}{prefix}/", outside
    client.close()


@contextlib.contextmanager
def embedding(url: str) -> Iterator[str]:
    """The address of a page of another origin with `url` in a frame of 1200 x 800 pixels, sandboxed as on a Space."""
    html = (f'<!doctype html><html lang="en"><title>outer</title><body><iframe title="inner" src="{url}" width="1200" height="800" '
            f'sandbox="{SANDBOX}"></iframe></body></html>').encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(html)

        def log_message(self, *_: object) -> None:
            pass

    with _serving(Handler) as outer:
        yield outer.replace("127.0.0.1", "localhost")                       # another origin than the page's


@contextlib.contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
