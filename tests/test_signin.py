"""A page with a password: nothing is seen without it, guessing is slow, and behind it everything works."""

import asyncio
import logging
import re
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from conftest import WAIT, clear, picture_bytes, seeded, serving, watched
from PIL import Image
from playwright.sync_api import expect

from vitdemo import settings
from vitdemo.ui import launch_settings
from vitdemo.ui.signin import WAITING, checker

PASSWORD = "Öffne dich, 4 Mal"
# what is answered to anybody: the sign-in page with its looks, whether the page is well, and routes that know nothing of anybody
OPEN = {"/", "/healthz", "/login", "/logout", "/theme.css", "/robots.txt", "/favicon.ico", "/manifest.json", "/pwa_icon", "/assets/x", "/static/x", "/svelte/x",
        "/gradio_api/theme.css", "/gradio_api/user", "/gradio_api/token", "/gradio_api/app_id", "/gradio_api/login_check", "/gradio_api/startup-events",
        "/gradio_api/reset", "/gradio_api/cancel", "/gradio_api/heartbeat/x", "/pwa_icon/x", "/gradio_api/custom_component/x/x/x/x"}
NOT_THERE = (403, 404, 405, 422)


@pytest.fixture(scope="module")
def locked(colour_zip, tmp_path_factory):
    """(address, App) of a page with a password."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITDEMO_DATA", str(colour_zip.parent))
        patch.setenv("VITDEMO_RUNS", str(tmp_path_factory.mktemp("runs")))
        patch.setenv("VITDEMO_PASSWORD", PASSWORD)
        with serving(seeded()) as served:
            yield served


def routes(app) -> set[tuple[str, str]]:
    """(method, path) of every route that is served, with an x for every parameter."""
    found, waiting = set(), list(app.app.routes)
    while waiting:
        route = waiting.pop()
        waiting += getattr(getattr(route, "original_router", None), "routes", None) or []
        if getattr(route, "path", None):
            path = re.sub(r"\{[^}]+\}", "x", route.path)
            found |= {(method, path) for method in getattr(route, "methods", None) or ()}
    return found


def test_without_the_password_no_route_gives_anything(locked):
    url, app = locked
    known = routes(app.blocks)
    assert len(known) > 50 and ("POST", "/gradio_api/component_server") in known and ("GET", "/config") in known
    leaks = []
    for method, path in sorted(known - {(method, path) for method, path in known if path.rstrip("/") in OPEN or path == "/"}):
        answer = httpx.request(method, url.rstrip("/") + path, timeout=20, json={} if method == "POST" else None)
        if answer.status_code != 401 and answer.status_code not in NOT_THERE:
            leaks.append((method, path, answer.status_code))
    assert leaks == []
    for path in ("config", "gradio_api/info", "gradio_api/queue/data?session_hash=x", "gradio_api/call/explain/x", "gradio_api/file=x", "monitoring"):
        assert httpx.get(url + path, timeout=20).status_code == 401
    for path, sent in (("component_server", {"json": {"session_hash": "x", "component_id": 1, "fn_name": "ask", "data": {}}}),
                       ("upload", {"files": {"files": ("x.png", b"x")}}), ("queue/join", {"json": {"data": [], "session_hash": "x", "fn_index": 0}}),
                       ("run/predict", {"json": {"data": []}}), ("call/explain", {"json": {"data": []}})):
        assert httpx.post(f"{url}gradio_api/{path}", timeout=20, **sent).status_code == 401, path


def test_the_sign_in_page_shows_nothing_of_the_page_and_its_health_is_known(locked):
    url, _ = locked
    page = httpx.get(url, timeout=20).text
    assert "This page has a password" in page and "vd-" not in page and "cat.jpg" not in page           # what it has is the public endpoint's description
    assert httpx.get(f"{url}healthz", timeout=20).json() == {"status": "ok"}


def test_after_signing_in_a_browser_gets_the_whole_page(locked, browser):
    url, _ = locked
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    tab = watched(context)
    tab.goto(url)
    expect(tab.get_by_text("This page has a password")).to_be_visible()
    tab.get_by_label("username").fill("anybody")
    tab.get_by_label("password").fill("a guess")
    tab.get_by_role("button", name="Login").click()
    expect(tab.get_by_text("Incorrect")).to_be_visible()
    tab.complaints.clear()                                                  # the browser's own, about the refusal
    tab.get_by_label("username").fill("anybody")
    tab.get_by_label("password").fill(PASSWORD)
    tab.get_by_role("button", name="Login").click()
    expect(tab.locator(".vd-verdict")).not_to_be_empty(timeout=WAIT)
    before = tab.locator(".vd-seen").evaluate("canvas => canvas.toDataURL()")
    clear(tab)
    tab.locator("#vd-picture input[type=file]").set_input_files({"name": "x.png", "mimeType": "image/png", "buffer": picture_bytes(Image.new("RGB", (60, 40), "red"))})
    tab.wait_for_function("before => document.querySelector('.vd-seen').toDataURL() !== before", arg=before)
    tab.get_by_role("button", name="Rollout").first.click()                 # a server function
    expect(tab.locator(".vd-main")).to_have_attribute("aria-label", re.compile("rollout", re.I))
    tab.get_by_role("tab", name="Train").click()
    expect(tab.locator("#vd-lab").get_by_role("button", name=re.compile("^Start", re.I)).first).to_be_visible()
    assert tab.complaints == []
    assert all(cookie["httpOnly"] for cookie in context.cookies())
    context.close()


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Its result; in a thread of its own, since a browser's tests leave a loop behind."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def test_a_wrong_guess_takes_its_time_and_many_at_once_no_less_and_the_log_has_neither_name_nor_guess(caplog):
    async def guesses(count: int, right: int) -> tuple[float, list[bool]]:
        check, began = checker(PASSWORD, penalty=0.02), time.monotonic()
        answers = await asyncio.gather(*(check("somebody", f"guess {i}") for i in range(count)), *(check("me", PASSWORD) for _ in range(right)))
        return time.monotonic() - began, answers

    with caplog.at_level(logging.DEBUG):
        took, answers = run(guesses(10, 1))
    assert took >= 10 * 0.02 and answers == [False] * 10 + [True]
    assert "a wrong password was given" in caplog.text and not any(word in caplog.text for word in ("guess 0", "somebody", PASSWORD))
    took, answers = run(guesses(0, WAITING))
    assert took < 0.5 and all(answers)                                      # a class that signs in together
    took, answers = run(guesses(WAITING + 30, 0))
    assert not any(answers) and took < (WAITING + 10) * 0.04 + 1


@pytest.mark.parametrize("given", ["", "öffne dich, 4 Mal", PASSWORD + " ", " " + PASSWORD, PASSWORD + "\0", "\ud800", "x" * 10**6])
def test_what_is_not_the_password_is_not_the_password(given):
    assert run(checker(PASSWORD, penalty=0)("name", given)) is False and run(checker(PASSWORD, penalty=0)("", PASSWORD)) is True


def test_without_the_setting_nothing_is_asked_and_the_password_is_never_part_of_what_is_printed(monkeypatch):
    monkeypatch.delenv("VITDEMO_PASSWORD", raising=False)
    assert launch_settings()["auth"] is None and settings.read({"SPACE_ID": "a/b"}).password == "" == settings.read({"VITDEMO_PASSWORD": ""}).password
    kept = settings.read({"VITDEMO_PASSWORD": PASSWORD})
    assert kept.password == PASSWORD and PASSWORD not in repr(kept)
    monkeypatch.setenv("VITDEMO_PASSWORD", PASSWORD)
    assert PASSWORD not in repr(launch_settings())
