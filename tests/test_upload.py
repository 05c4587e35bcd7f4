"""The picture input in a browser: what the browser cannot show, and what is dropped beside pictures."""

import base64

from conftest import coloured, drawn, picture_bytes, upload
from playwright.sync_api import expect

DROP = """([where, files, words]) => {
    const given = new DataTransfer();
    for (const [name, kind, text] of files) given.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name, { type: kind }));
    if (words) given.setData("text/uri-list", words);
    const place = document.querySelector(where), drop = new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: given });
    place.dispatchEvent(new DragEvent("dragover", { bubbles: true, cancelable: true, dataTransfer: given }));
    place.dispatchEvent(drop);
    return drop.defaultPrevented; }"""


def dropped(tab, where: str, *files: tuple[str, str, bytes], words: str = "") -> bool:
    """Drop files or a link; whether the page took care of it, else the browser would open them in place of the page."""
    return tab.evaluate(DROP, [where, [[name, kind, base64.b64encode(content).decode()] for name, kind, content in files], words])


def test_a_file_that_the_browser_cannot_show_is_analysed_and_no_broken_picture_is_seen(visit):
    tab = visit()
    photo, remark, message = tab.locator("#vd-picture img"), tab.locator("#vd-picture [role=status]"), tab.locator(".vd-message")
    opening = drawn(tab, ".vd-seen")
    tiff, png = ("a.tif", "image/tiff", picture_bytes(coloured("red", 1), "TIFF")), ("b.png", "image/png", picture_bytes(coloured("blue", 1)))
    upload(tab, "a.tif", tiff[2], "image/tiff")
    expect(remark).to_have_text("Your browser cannot show this file here.")
    expect(photo).to_be_hidden()
    expect(tab.locator(".vd-main").first).to_be_visible()                   # it was read all the same
    assert dropped(tab, "#vd-picture", png, tiff)
    expect(remark).to_have_text("Of these 2 files the first was used.")
    expect(photo).to_be_visible()
    assert dropped(tab, "#vd-viewer", tiff)                                 # beside the input it is taken too
    expect(remark).to_contain_text("cannot show")
    tab.locator("#vd-examples button").first.click()
    expect(photo).to_be_visible()
    expect(remark).to_be_hidden()
    tab.wait_for_function("cat => document.querySelector('.vd-seen').toDataURL() === cat", arg=opening)             # else its answer would follow
    assert dropped(tab, "#vd-picture", words="https://example.org/cat.png")
    expect(message).to_contain_text("a link or text and not a picture")
    assert dropped(tab, "#vd-picture", ("photo.heic", "", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic"))
    expect(message).to_contain_text("HEIC")
    assert dropped(tab, "#vd-picture", ("none.png", "image/png", b""))
    expect(message).to_contain_text("0 bytes")
    tab.get_by_role("tab", name="Train").click()
    assert dropped(tab, "body", png)                                        # nothing happens, and the page stays
    expect(tab.locator("#vd-viewer")).to_be_hidden()
    assert [text for text in tab.complaints if "404" not in text] == []
