"""Many visitors and greedy ones: who finds no place hears so in words, and the next picture works."""

import asyncio
import threading
from types import SimpleNamespace

import pytest
from conftest import coloured, picture_bytes, upload
from gradio.queueing import Queue
from playwright.sync_api import expect

from vitdemo import words
from vitdemo.explain import explain
from vitdemo.ui import REST, explore, fair
from vitdemo.ui.results import Gone, Results
from vitdemo.ui.slots import OF_ONE, Busy, Slots


class StandIn:
    """A queue as far as `be_fair` looks into it."""

    def __init__(self):
        self.event_queue_per_concurrency_id = {"infer": SimpleNamespace(queue=[])}

    async def push(self, body, request, username):
        self.event_queue_per_concurrency_id["infer"].queue.append(SimpleNamespace(session_hash=body.session_hash))
        return True, "number", "success"


def test_one_page_has_few_places_in_the_line_and_the_others_keep_theirs():
    queue = StandIn()
    fair.be_fair(queue, of_one=3)
    said = [asyncio.run(queue.push(SimpleNamespace(session_hash=name), None, None)) for name in ["greedy"] * 200 + ["modest", None, None, None, None]]
    assert [success for success, *_ in said] == [True] * 3 + [False] * 197 + [True] * 5
    assert said[3][2] == "queue_full" and said[3][1].endswith(".")
    queue.event_queue_per_concurrency_id["infer"].queue.pop(0)
    assert asyncio.run(queue.push(SimpleNamespace(session_hash="greedy"), None, None))[0]                 # one was served


def test_the_pages_own_queue_is_fair_and_sleeps_while_nobody_asks(page):
    assert page[1].blocks._queue.push.__qualname__.startswith("be_fair") and page[1].blocks._queue.max_size == fair.MOST
    assert hasattr(Queue(True, 1, 0.1, None, page[1].blocks), "sleep_when_free") and page[1].blocks._queue.sleep_when_free >= REST


def test_one_visitors_questions_leave_slots_to_others():
    slots, turns, free, inside = Slots(2, 8, patience=20), [threading.Lock() for _ in range(2)], threading.Event(), []

    def work(turn):
        with slots.one(turn, whose=turn):
            inside.append(turn)
            free.wait(20)

    threads = [threading.Thread(target=work, args=(turns[0],)) for _ in range(OF_ONE)]
    for thread in threads:
        thread.start()
    while slots._inside[turns[0]] < OF_ONE:                                 # one works, the others stand in line for it
        pass
    with pytest.raises(Busy, match="earlier questions"), slots.one(turns[0], whose=turns[0]):
        pass
    with slots.one(turns[1], whose=turns[1]):                               # somebody else goes past them
        pass
    free.set()
    for thread in threads:
        thread.join()
    assert len(inside) == OF_ONE and not slots._inside


def test_small_results_are_kept_up_to_a_number(tiny):
    results = Results(most=3)
    keys = [results.keep(explain(coloured("red", seed, (12, 20)), tiny)) for seed in range(5)]
    assert len(results) == 3 and results.get(keys[-1])
    with pytest.raises(Gone):
        results.get(keys[1])


def test_a_refused_picture_is_told_apart_from_one_that_never_came(tmp_path):
    assert fair.refusal({"path": "/etc/passwd"})["message"] == words.NOT_AN_UPLOAD
    assert fair.refusal("x")["message"] == words.NOT_AN_UPLOAD and fair.refusal()["message"] == words.CROWDED


def test_a_full_queue_answers_in_words_and_the_page_goes_on(visit, page, monkeypatch):
    tab = visit()
    with monkeypatch.context() as full:
        full.setattr(page[1].blocks._queue, "max_size", 0)
        upload(tab, "red.png", picture_bytes(coloured("red", 1, (60, 100))))
        expect(tab.locator(".vd-message")).to_have_text(words.CROWDED)
        expect(tab.locator(".vd-body")).to_be_hidden()
    upload(tab, "blue.png", picture_bytes(coloured("blue", 2, (60, 100))))
    expect(tab.locator(".vd-verdict")).to_be_visible()


def test_a_picture_that_was_cleared_or_overtaken_while_it_was_analysed_is_not_the_last_one_shown(visit, monkeypatch):
    analyse, begun, free = explore.analyse, threading.Event(), threading.Event()

    def slowly(*given, **settings):
        begun.set()
        free.wait(20)
        return analyse(*given, **settings)

    tab = visit()
    monkeypatch.setattr(explore, "analyse", slowly)
    upload(tab, "red.png", picture_bytes(coloured("red", 1, (60, 100))))
    assert begun.wait(20)
    tab.locator("#vd-picture").get_by_role("button", name="clear").or_(tab.locator("#vd-picture").get_by_role("button", name="remove")).first.click()
    with tab.expect_response(lambda answer: "queue/join" in answer.url and answer.request.post_data_json["data"][0] is None):
        free.set()
    expect(tab.locator(".vd-message")).to_have_text(words.NO_PICTURE)
    expect(tab.locator(".vd-body")).to_be_hidden()

    begun.clear(), free.clear()
    upload(tab, "red.png", picture_bytes(coloured("red", 1, (60, 100))))
    assert begun.wait(20)
    upload(tab, "blue.png", picture_bytes(coloured("blue", 2, (60, 100))))
    free.set()
    tab.wait_for_function("""() => { const [r, , b] = document.querySelector('.vd-seen').getContext('2d').getImageData(3, 3, 1, 1).data;
        return document.querySelector('.vd').dataset.state === 'shown' && b > r + 60; }""")
