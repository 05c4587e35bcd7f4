"""What the page leaves in a browser and what it asks of others: no cookie of anybody's, and nothing from elsewhere."""

from urllib.parse import urlparse

from playwright.sync_api import expect

REMEMBERED = {"vitdemo-runs", "vitdemo-sets", "vitdemo-shown", "vitdemo-race", "vitdemo-browser"}


def test_no_answer_of_the_page_sets_a_cookie_and_the_browser_holds_none(visit, page):
    tab = visit()
    answers = []
    tab.on("response", lambda response: answers.append(response))
    tab.reload()                                                            # now from the first answer on
    expect(tab.locator(".vd-verdict")).not_to_be_empty()
    tab.get_by_role("tab", name="Train").click()
    tab.locator(".vl-amount").fill("0.02")
    tab.get_by_role("button", name="Start training").click()
    expect(tab.locator(".vl-status")).to_be_visible()
    tab.locator(".vl-status").get_by_role("button", name="Stop").click()
    expect(tab.locator(".vl-state")).to_have_text("Stopped", timeout=60_000)
    tab.get_by_role("tab", name="About").click()
    expect(tab.get_by_text("sets no cookie")).to_be_visible()
    assert len(answers) > 10 and [answer.url for answer in answers if "set-cookie" in answer.all_headers()] == []
    assert tab.context.cookies() == [] and tab.evaluate("document.cookie") == ""
    assert tab.evaluate("sessionStorage.length") == 0
    kept = set(tab.evaluate("Object.keys(localStorage)"))
    assert "vitdemo-browser" in kept and {name for name in kept if name.startswith("vitdemo")} <= REMEMBERED
    hosts = {urlparse(url).hostname for url in tab.asked if urlparse(url).scheme in ("http", "https")}
    assert hosts == {urlparse(page[0]).hostname}
