"""Every text of the page stands in `vitdemo/words.py`: the front ends name what they say, and nothing there is said by nobody."""

import re

import pytest

from vitdemo import front, words

FRONTS = (front.VIEWER, front.LAB, front.MODEL)
USED = re.compile(r"\bWORDS\.(\w+)")
NAMED = re.compile(r"\[\[(\w+)]]")
LITERAL = re.compile(r'(\b(?:text|title|placeholder|alt): ?|"aria-(?:label|valuetext)"[:,] ?)?"((?:[^"\\\n]|\\.)*)"')
SENTENCE = re.compile(r"[A-Za-z]{2,},? [a-z]{2,}")                          # several words: somebody reads them
CODE = re.compile("v[dlm]-|[0-9]px|[.#[][a-z]+[] :]|^(?:image|text)/|solid|serif|gradio|webkit|^(?:aria|data)-"
                  "|^(?:select|button|input|canvas|shift)\\b")             # classes, selectors, styles, keys of a keyboard
KEYS = {"mean attention", "class token", "distillation token"}             # names that the server is asked by


def scripts(name: str):
    """(file, text without comments) of every script that front end alone uses, and of the shared ones."""
    own = {"viewer": ["upload.js", "head.js"]}.get(name, [])
    for path in [*sorted((front.FOLDER / name).glob("*.js")), *sorted((front.FOLDER / "shared").glob("*.js")), *(front.FOLDER / one for one in own)]:
        yield path, re.sub(r"(^|\s)//.*", "", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", FRONTS)
def test_what_a_front_end_says_is_known_and_nothing_is_known_that_nobody_says(name):
    used = {word for _, text in scripts(name) for word in USED.findall(text)} | set(NAMED.findall((front.FOLDER / name / "page.html").read_text(encoding="utf-8")))
    assert used <= set(front.words_of(name))
    assert set(words.FRONT[name]) <= used


def test_what_is_shared_is_said_by_two_front_ends_or_a_shared_script():
    for word in words.FRONT["shared"]:
        places = {path.parent.name for name in FRONTS for path, text in scripts(name) if re.search(rf"\bWORDS\.{word}\b", text)}
        places |= {name for name in FRONTS if f"[[{word}]]" in (front.FOLDER / name / "page.html").read_text(encoding="utf-8")}
        assert "shared" in places or len(places) > 1, word


@pytest.mark.parametrize("name", FRONTS)
def test_no_script_holds_a_text_of_its_own(name):
    found = []
    for path, text in scripts(name):
        for line in text.splitlines():
            for attribute, literal in LITERAL.findall(line):
                if (SENTENCE.search(literal) or attribute and re.search("[A-Za-z]{2}", literal)) and literal not in KEYS and not CODE.search(literal):
                    found.append(f"{path.name}: {literal}")
    assert found == []


def test_values_are_filled_in_where_a_page_would_do_it(browser):
    tab = browser.new_page()
    phrase = re.search(r"const phrase = .*?;\n", (front.FOLDER / "shared" / "00-make.js").read_text(encoding="utf-8"), re.DOTALL)[0]
    tab.evaluate(f"() => {{ {phrase} window.phrase = phrase; }}")
    said = "{n} of {all} {n|picture|pictures}, {gone}"
    assert tab.evaluate("said => [1, 2, 0].map((n) => phrase(said, { n, all: '<b>' }))", said) == [
        "1 of <b> picture, {gone}", "2 of <b> pictures, {gone}", "0 of <b> pictures, {gone}"]
    tab.close()
