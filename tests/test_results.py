"""The store of answers: bounded in bytes, keyed by secrets, safe in threads."""

import gc
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from conftest import pretend
from PIL import Image

from vitdemo.explain import explain
from vitdemo.ui import results
from vitdemo.ui.results import REMEMBERED, Gone, Results, compact, size_of
from vitdemo.ui.slots import Busy, Slots
from vitdemo.ui.stock import Stock


@pytest.fixture(scope="module")
def result(tiny, photo):
    return explain(photo, tiny)


def test_what_is_kept_is_what_comes_back(result):
    results = Results()
    kept = results.get(results.keep(result)).explanation
    assert np.array_equal(kept.attention, result.attention) and kept.loaded is result.loaded and kept.picture.size == (300, 200)
    assert np.array_equal(kept.reads(3), result.reads(3)) and np.array_equal(kept.rollout(), result.rollout())


def test_keys_are_long_and_never_alike(result):
    results = Results()
    keys = {results.keep(result) for _ in range(50)}
    assert len(keys) == 50 and min(map(len, keys)) >= 20


@pytest.mark.parametrize("key", ["", "nothing", "a" * 1000])
def test_an_unknown_key_is_gone_with_a_sentence(key):
    with pytest.raises(Gone, match="please upload the picture again"):
        Results().get(key)


def test_the_result_used_least_recently_makes_room_by_bytes(result):
    size = size_of(compact(result))
    results = Results(limit_bytes=3 * size)
    first, second, third = (results.keep(result) for _ in range(3))
    results.get(first)
    fourth = results.keep(result)
    assert len(results) == 3 and results.bytes == 3 * size
    with pytest.raises(Gone):
        results.get(second)
    for key in (first, third, fourth):
        results.get(key)


def test_one_result_above_the_limit_is_kept_alone(result):
    results = Results(limit_bytes=1)
    old, new = results.keep(result), results.keep(result)
    assert len(results) == 1 and results.get(new)
    with pytest.raises(Gone):
        results.get(old)


def test_a_result_that_stays_makes_no_room(result):
    results = Results(limit_bytes=2 * size_of(compact(result)))
    first = results.keep(result, stays=True)
    others = [results.keep(result) for _ in range(5)]
    assert results.get(first) and results.get(others[-1]) and len(results) == 2


def test_what_nobody_asks_about_is_let_go_within_the_hour_that_the_page_promises(result, monkeypatch):
    assert results.LASTS + results.TIDY_EVERY < 3600
    kept, now = Results(), time.monotonic()
    forever, old, asked = kept.keep(result, stays=True), kept.keep(result), kept.keep(result)
    before = kept.bytes
    pretend(monkeypatch, results, "time", monotonic=lambda: now + results.LASTS / 2)
    kept.get(asked)
    pretend(monkeypatch, results, "time", monotonic=lambda: now + results.LASTS + 10)
    kept.tidy()
    assert len(kept) == 2 and kept.get(forever) and kept.get(asked) and kept.bytes < before
    with pytest.raises(Gone, match="upload the picture again"):
        kept.get(old)


def test_results_are_tidied_for_as_long_as_somebody_holds_them(result, monkeypatch):
    monkeypatch.setattr(results, "TIDY_EVERY", 0.01)
    monkeypatch.setattr(results, "LASTS", -1)
    kept = Results()
    key = kept.keep(result)
    others = set(threading.enumerate())                                     # those of pages that other tests serve
    results.tidying(kept)
    [thread] = [one for one in threading.enumerate() if one.name == "tidying" and one not in others]
    deadline = time.monotonic() + 20
    while len(kept) and time.monotonic() < deadline:
        time.sleep(0.01)
    with pytest.raises(Gone):
        kept.get(key)
    del kept
    gc.collect()
    thread.join(20)
    assert not thread.is_alive()


def test_a_large_picture_is_kept_small_and_its_patches_stay_where_they_were(tiny):
    pixels = np.zeros((1200, 4000, 3), np.uint8)
    pixels[:, 1500:2500] = (250, 120, 20)
    large = explain(Image.fromarray(pixels), tiny)
    kept = compact(large)
    assert kept.picture.size == (1600, 480) and kept.geometry.original == (480, 1600)
    assert np.allclose(np.array(kept.geometry.crop) * 2.5, large.geometry.crop) and kept.grid == kept.geometry.grid == large.geometry.grid
    assert size_of(kept) < 1600 * 480 * 4 + 100_000 and np.array_equal(kept.attention, large.attention)


@pytest.mark.parametrize("size", [(2, 2), (9000, 50), (60, 9000)])
def test_small_and_long_pictures_are_kept(tiny, size):
    kept = compact(explain(Image.new("RGB", size, (9, 99, 199)), tiny))
    assert max(kept.picture.size) <= 1600 and kept.geometry.original == (kept.picture.height, kept.picture.width)


def test_the_size_counts_all_memory_that_is_kept_alive_and_values_are_let_go(result):
    kept = compact(result)
    trace, counted = kept.trace, 3 * 2 * 16 * 10 * 4                        # queries and keys of 3 layers, 16 tokens of 10 numbers
    assert sum(t.untyped_storage().nbytes() for t in (*trace.queries, *trace.keys)) == counted
    assert size_of(result) - size_of(kept) == counted // 2                  # the values
    double = replace(kept, trace=trace._replace(keys=trace.queries))
    assert size_of(double) == size_of(kept) - counted // 2                  # shared memory counts once


def test_what_is_remembered_is_made_once_and_only_the_latest_stays(result):
    results = Results()
    kept, made = results.get(results.keep(result)), []
    for name in [0, 1, 0, *range(2, REMEMBERED + 1), 0, 1]:
        assert kept.remember(name, lambda name=name: made.append(name) or name) == name
    assert made.count(0) == 1 and made.count(1) == 2 and made.count(5) == 1


def test_forgetting_all_lets_go_of_what_holds_the_result_itself(result):
    results = Results()
    kept = results.get(results.keep(result))
    kept.remember("itself", lambda: kept)
    kept.forget_all()
    assert kept.remember("itself", lambda: None) is None


def test_a_model_of_the_stock_is_not_held_and_one_of_none_is(tiny, photo):
    stock = Stock(2**30)
    results, own = Results(stock=stock), stock.get("own", lambda: replace(tiny, model=type(tiny.model)(tiny.config).eval()))
    one, other = (results.get(results.keep(explain(photo, loaded))) for loaded in (own, tiny))
    assert one.explanation.loaded.model is not own.model and one.held() is own and one.explanation.loaded.classes == own.classes
    assert other.explanation.loaded is other.held() is tiny and one.explanation.loaded.config == own.config
    again = results.get(results.keep(one.explanation))                      # a kept one kept once more
    assert again.explanation.loaded.model is one.explanation.loaded.model and again.held() is own


def test_many_threads_keep_and_read_without_mixing(tiny):
    results, wrong = Results(), []

    def visit(seed):
        value = explain(Image.new("RGB", (20, 12), (seed * 8, 255 - seed * 8, 40)), tiny)
        key = results.keep(value)
        for _ in range(20):
            if not np.array_equal(results.get(key).explanation.attention, value.attention):
                wrong.append(seed)

    threads = [threading.Thread(target=visit, args=(seed,)) for seed in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(results) == 30 and results.bytes == sum(size_of(results.get(key).explanation) for key in list(results._kept))


def test_kept_tensors_take_part_in_gradients_later(result):
    results = Results()
    kept = results.get(results.keep(result)).explanation
    assert np.isfinite(kept.relevance(0)).all() and not any(t.requires_grad for t in kept.trace.queries)
    assert all(p.grad is None for p in kept.loaded.model.parameters()) and torch.is_grad_enabled()


def test_slots_let_few_work_and_turn_away_who_finds_the_line_full():
    slots, inside, free, refused = Slots(1, 1, patience=5), threading.Event(), threading.Event(), []

    def work():
        with slots.one(threading.Lock()):
            inside.set()
            free.wait(5)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert inside.wait(5)
    while slots._room._value:                                               # until the second one stands in line
        pass
    with pytest.raises(Busy), slots.one(threading.Lock()):
        refused.append("went in")
    free.set()
    for thread in threads:
        thread.join()
    with slots.one(threading.Lock()):
        pass
    assert not refused and slots._room._value == 2 and slots._working._value == 1


def test_slots_give_up_after_their_patience_and_leave_nothing_taken():
    slots, turn = Slots(1, 1, patience=0.05), threading.Lock()
    turn.acquire()
    with pytest.raises(Busy, match="try again"), slots.one(turn):
        pass
    turn.release()
    with pytest.raises(ZeroDivisionError), slots.one(turn):
        1 / 0
    assert not turn.locked() and slots._room._value == 2 and slots._working._value == 1
