"""Offline to the last byte: a whole walk through the page, an analysis and a training run, with every connection of the processes written down."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from conftest import WAIT, drawn, watched
from playwright.sync_api import expect

ROOT = Path(__file__).resolve().parents[1]
# of every Python process below: what it looks up and where it connects to, one JSON line each
WATCH = """
import json, os, sys
def watch(event, given):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        with open(os.environ["WATCHED"], "a", encoding="utf-8") as file:
            file.write(json.dumps([os.getpid(), event, repr(given[1] if event in ("socket.connect", "socket.sendto") else given[0])]) + "\\n")
sys.addaudithook(watch)
with open(os.environ["WATCHED"], "a", encoding="utf-8") as file:
    file.write(json.dumps([os.getpid(), "begins", ""]) + "\\n")
"""
HOME = re.compile(r"""^(\(?b?['"](127\.0\.0\.1|localhost|::1|0\.0\.0\.0)['"].*|None|b?['"]/.*|['"]['"])$""")


@pytest.fixture(scope="module")
def watched_page(colour_zip, tmp_path_factory):
    """(address, file of what its processes did) of the program as a person starts it."""
    home = tmp_path_factory.mktemp("offline")
    (home / "sitecustomize.py").write_text(WATCH, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {name: value for name, value in os.environ.items() if name not in ("GRADIO_TEMP_DIR", "HF_HUB_OFFLINE")} | {
        "PYTHONPATH": str(home), "WATCHED": str(home / "watched"), "VITDEMO_DATA": str(colour_zip.parent), "VITDEMO_CACHE": str(home / "cache"), "TMPDIR": str(home)}
    process = subprocess.Popen([sys.executable, "app.py", "--no-browser", "--port", str(port)], cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url, deadline = f"http://127.0.0.1:{port}/", time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}healthz").status_code == 200:
                break
        except httpx.HTTPError:
            time.sleep(0.1)
    yield url, home / "watched"
    process.terminate()
    process.wait(20)


def test_a_whole_walk_asks_nobody_but_the_page_itself(watched_page, browser, photo):
    url, record = watched_page
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, accept_downloads=True)
    tab = watched(context)
    tab.goto(url)
    expect(tab.locator(".vd-verdict")).not_to_be_empty(timeout=WAIT)
    before = drawn(tab, ".vd-seen")
    tab.locator("#vd-examples button").nth(1).click()
    tab.wait_for_function("before => document.querySelector('.vd-seen').toDataURL() !== before", arg=before)
    for sheet in ("Believe it or test it", "Layer by layer", "Head facts", "Patch surgery", "Filters and positions", "Take it home"):
        tab.get_by_role("tab", name=sheet).click()
        expect(tab.get_by_role("tab", name=sheet)).to_have_attribute("aria-selected", "true")
        if sheet == "Believe it or test it":
            tab.get_by_role("button", name="Test this map").click()
            expect(tab.locator("#vd-viewer")).to_contain_text(re.compile("chance"))
    with tab.expect_download():
        tab.get_by_role("button", name="PNG").first.click()
    tab.get_by_role("tab", name="About").click()
    expect(tab.get_by_text("What this is")).to_be_visible()
    tab.get_by_role("tab", name="Train").click()
    tab.locator(".vl-amount").fill("0.05")
    tab.get_by_role("button", name="Start training").click()
    expect(tab.locator(".vl-state")).to_have_text(re.compile("Finished|Stopped"), timeout=90_000)
    fonts = tab.evaluate("Array.from(document.fonts).filter(font => font.status === 'error').map(font => font.family)")
    assert fonts == [] and tab.complaints == []
    assert [asked for asked in tab.asked if not asked.startswith((url, "data:", "blob:"))] == []
    context.close()

    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    processes = {line[0] for line in lines if line[1] == "begins"}
    assert len(processes) >= 2, "the run's own process was not watched"
    assert {line[1] for line in lines} >= {"begins", "socket.connect"}, "nothing was written down"
    abroad = [line for line in lines if line[1] != "begins" and not HOME.match(line[2])]
    assert abroad == []


@pytest.mark.parametrize(("given", "home"), [("('127.0.0.1', 80)", True), ("'localhost'", True), ("('::1', 5, 0, 0)", True), ("None", True), ("b'127.0.0.1'", True), ("'/run/x'", True),
                                             ("'example.org'", False), ("('10.0.0.1', 80)", False), ("b'api.gradio.app'", False), ("('127.0.0.1.example.org', 1)", False)])
def test_what_is_abroad_is_told_from_home(given, home):
    assert bool(HOME.match(given)) is home
