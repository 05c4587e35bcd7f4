"""The stock of models: a budget of bytes, one maker at a time for each, nothing loaded twice, nothing held longer than needed, any device."""

import gc
import threading
import time
import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch
from asking import Page
from conftest import seeded
from PIL import Image
from torch import Tensor

from vitdemo import answers
from vitdemo.explain import explain
from vitdemo.runs import RunError
from vitdemo.ui import operated, stock, testing
from vitdemo.ui.questions import Questions
from vitdemo.ui.results import Gone, Results
from vitdemo.ui.stock import Recalled, Stock, bytes_of

BYTES = bytes_of(seeded())
LAST = {"kind": "attention", "direction": "reads", "token": None, "layer": 2, "head": "mean"}
WAY = {"klass": 1, "how": "mean", "insertion": False}


class Shelf:
    """Models by number, as they lie on a disk: counts how often each was loaded, and how many bytes of any are in memory at a time."""

    def __init__(self, limit: float, device: str = "cpu"):
        self.stock, self.loads, self.most = Stock(int(limit * BYTES), device), [], 0.0
        self._living = weakref.WeakSet()                                    # every weight of every model

    def make(self, number: int):
        self.loads.append(number)
        made = seeded(number)
        self._living.update(made.model.parameters())
        self.watch()
        return made

    def get(self, number: int, size: int = BYTES):
        return self.stock.get(number, lambda: self.make(number), size)

    def watch(self, *more: torch.nn.Module) -> float:
        """Models in memory, as multiples of one of these; `more` are counted from now on."""
        for model in more:
            self._living.update(model.parameters())
        places = {p.data_ptr(): p.untyped_storage().nbytes() for p in self._living}
        now = sum(places.values()) / BYTES
        self.most = max(self.most, now)
        return now


def at_once(count: int, work):
    """What `work(i)` gave or raised in as many threads, in order."""
    found, start = [None] * count, threading.Barrier(count)

    def one(i):
        start.wait()
        try:
            found[i] = work(i)
        except Exception as error:
            found[i] = error

    threads = [threading.Thread(target=one, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return found


def test_the_model_used_least_recently_gives_way_and_is_made_again_when_asked_for():
    shelf = Shelf(2)
    for number in (1, 2, 1, 3, 1, 3, 2):
        assert shelf.get(number).name == "seeded"
    assert shelf.loads == [1, 2, 3, 2] and len(shelf.stock) == 2 and shelf.stock.bytes == 2 * BYTES


def test_room_is_made_before_a_model_of_known_size_is_and_afterwards_for_others():
    shelf, kept = Shelf(2), []
    for number in range(5):
        shelf.stock.get(number, lambda number=number: kept.append(len(shelf.stock)) or shelf.make(number), BYTES)
    assert kept == [0, 1, 1, 1, 1] and shelf.most == 2
    shelf, kept = Shelf(2), []
    for number in range(5):
        shelf.stock.get(number, lambda number=number: kept.append(len(shelf.stock)) or shelf.make(number))
    assert kept == [0, 1, 2, 2, 2] and shelf.most == 3 and shelf.watch() == 2


def test_one_model_above_the_budget_is_kept_alone():
    shelf = Shelf(0.5)
    assert shelf.get(1) is shelf.get(1) and len(shelf.stock) == 1
    assert shelf.get(2) is shelf.get(2) and shelf.loads == [1, 2] and shelf.watch() == 1


def test_thirty_visitors_who_ask_for_one_model_at_once_get_the_same_loaded_once():
    shelf = Shelf(9)
    slow = lambda: (time.sleep(0.2), shelf.make(1))[1]
    found = at_once(30, lambda i: shelf.stock.get(1, slow, BYTES))
    assert len({id(one) for one in found}) == 1 and shelf.loads == [1] and not shelf.stock._making and not shelf.stock._coming


def test_while_a_model_is_on_its_way_all_others_are_had_at_once():
    shelf, begun, go_on = Shelf(9), threading.Event(), threading.Event()
    shelf.get(2)

    def slow():
        begun.set()
        assert go_on.wait(20)
        return shelf.make(1)

    loading = threading.Thread(target=lambda: shelf.stock.get(1, slow, BYTES), daemon=True)
    loading.start()
    assert begun.wait(20)
    assert shelf.get(2) and shelf.get(3) and shelf.loads == [2, 3] and loading.is_alive()
    go_on.set()
    loading.join(20)
    assert shelf.get(1) and shelf.loads == [2, 3, 1]


def test_a_failure_reaches_all_who_wait_is_not_remembered_and_holds_nothing_in_memory():
    shelf, tries, left = Shelf(2), [], []

    def fail():
        half = seeded(1).model                                              # what had been read when it failed
        left.extend(weakref.ref(p) for p in half.parameters())
        tries.append(1)
        time.sleep(0.2)
        raise RunError("gone")

    gc.disable()
    try:
        found = at_once(5, lambda i: shelf.stock.get(1, fail, BYTES))
        assert all(isinstance(one, RunError) for one in found) and 1 <= len(tries) <= 2
        found.clear()
        assert not any(ref() is not None for ref in left)                   # freed without waiting for the collector
    finally:
        gc.enable()
    assert shelf.get(1) and not shelf.stock._making and not shelf.stock._coming


def test_models_that_do_not_fit_together_are_made_one_after_the_other():
    shelf, inside, most = Shelf(2), [], []

    def slow(number):
        inside.append(number)
        most.append(len(inside))
        time.sleep(0.05)
        inside.remove(number)
        return shelf.make(number)

    at_once(6, lambda i: shelf.stock.get(i, lambda: slow(i), BYTES) and None)
    assert max(most) <= 2 and sorted(shelf.loads) == list(range(6)) and shelf.most <= 3 and len(shelf.stock) == 2      # one more than two: just handed out
    large = Shelf(0.5)
    assert all(one is None for one in at_once(4, lambda i: large.get(i) and None)) and sorted(large.loads) == list(range(4))


def test_a_model_that_gave_way_while_somebody_uses_it_is_taken_back_not_made_twice():
    shelf = Shelf(1)
    used = shelf.get(1)
    shelf.get(2)
    assert shelf.watch() == 2 and shelf.get(1) is used and shelf.loads == [1, 2] and len(shelf.stock) == 1
    del used
    shelf.get(2)
    assert shelf.watch() == 1 and shelf.loads == [1, 2, 2]


def test_weights_that_models_share_count_once():
    shelf = Shelf(2)
    one = shelf.get(1)
    bare = shelf.stock.get("bare", lambda: operated.without_positions(one))
    assert shelf.stock.bytes == BYTES and len(shelf.stock) == 2
    shelf.get(2)
    assert len(shelf.stock) == 3
    shelf.get(3)                                                            # of the shared weights a part stays, which makes no room
    assert shelf.stock.bytes <= 2 * BYTES and len(shelf.stock) == 2 and bare


def test_what_stands_for_a_model_answers_like_it_and_holds_none_of_it():
    shelf = Shelf(2)
    loaded = shelf.get(1)
    results = Results(stock=shelf.stock)
    kept = results.get(results.keep(explain(pictures()[0], loaded))).explanation.loaded
    stand_in = kept.model
    assert stand_in.config == loaded.config and bytes_of(kept) == BYTES
    images = torch.rand(1, 3, 12, 20)
    with torch.inference_mode():
        assert torch.equal(stand_in(images), loaded.model(images)) and torch.equal(stand_in.encode(images), loaded.model.encode(images))
    assert sum(p.numel() for p in stand_in.parameters()) * 4 == BYTES
    with pytest.raises(AttributeError):
        getattr(stand_in, "nothing")
    del loaded
    shelf.get(2), shelf.get(3)
    assert shelf.watch() == 2 and stand_in(images).shape == (1, 3) and shelf.loads == [1, 2, 3, 1]


def pictures():
    from PIL import Image

    return [Image.fromarray(np.random.default_rng(seed).integers(0, 255, (30, 40, 3), np.uint8)) for seed in range(5)]


def results_of_five(shelf: Shelf) -> list[Page]:
    """A page for each of five visitors, whose results of five models share one store."""
    results, box = Results(stock=shelf.stock), seeded(99)
    pages = [Page(explain(picture, shelf.get(number)), results, box) for number, picture in enumerate(pictures())]
    shelf.watch()
    return pages


def test_five_models_asked_for_in_turn_never_hold_more_than_the_budget_and_one_being_loaded():
    gc.disable()                                                            # nothing may depend on it
    try:
        for size, most in ((BYTES, 2), (0, 3)):                             # told beforehand, or not
            shelf = Shelf(2)
            for _ in range(2):
                for number in range(5):
                    shelf.get(number, size)
            assert shelf.most == most and shelf.watch() == 2 and len(shelf.loads) == 10
    finally:
        gc.enable()


def test_five_results_with_twins_surgery_and_tests_hold_no_more_models_than_the_budget(monkeypatch):
    monkeypatch.setattr(testing, "SLICE", 0)                                # as many breaks as there can be
    shelf = Shelf(2)
    twin, bare = relatives_watched(shelf, monkeypatch)
    gc.disable()
    try:
        pages = results_of_five(shelf)
        for page in pages:
            for question, fields in (("token", {"token": 3}), ("rollout", {}), ("facts", {}), ("twin", {}), ("relevance", {"klass": 1}), ("embedding", {}),
                                     ("surgery", {"masked": [2]}), ("surgery", {"positions": False}), ("test", {"view": LAST, **WAY}), ("occlusion", {"klass": 0}),
                                     ("test", {"view": LAST, **WAY, "how": "drop"})):
                answer = page.ask(question, **fields)                       # tests are left half done
                assert "error" not in answer, answer
                shelf.watch()
        assert shelf.most == 2 and twin and bare
        del answer
        assert shelf.watch() <= 2 and len(pages[0].results) == 5 + 5 * 3
        for page in pages:                                                  # and gone on with afterwards
            assert page.until_done("test", view=LAST, **WAY)[0]["shares"]
        assert shelf.watch() <= 2
    finally:
        gc.enable()


def relatives_watched(shelf, monkeypatch):
    """Twins and models without positions are watched as well; what was made of each kind."""
    from vitdemo.ui import questions

    made = {"untrained": [], "bare": []}
    for name, module, kind in (("untrained", questions, "untrained"), ("without_positions", operated, "bare")):
        def watched(loaded, original=getattr(module, name), kind=kind):
            relative = original(loaded)
            shelf.watch(relative.model)
            made[kind].append(1)
            return relative
        monkeypatch.setattr(module, name, watched)
    return made["untrained"], made["bare"]


def test_results_that_made_room_let_go_of_their_tests_and_pictures_at_once(monkeypatch):
    monkeypatch.setattr(testing, "SLICE", 0)
    shelf = Shelf(2)
    results = Results(limit_bytes=1, stock=shelf.stock)
    page = Page(explain(pictures()[0], shelf.get(1)), results, seeded(9))
    page.ask("test", view=LAST, **WAY)
    kept = weakref.ref(results.get(page.key))
    gc.disable()
    try:
        results.keep(explain(pictures()[1], shelf.get(1)))
        assert kept() is None
    finally:
        gc.enable()


def test_a_model_made_while_nobody_needs_gradients_has_them_for_those_who_do():
    shelf = Shelf(2)
    with torch.inference_mode():
        made = shelf.get(1)
    assert not any(p.is_inference() for p in made.model.parameters())
    assert np.isfinite(explain(Image.new("RGB", (20, 20), "red"), made).relevance(0)).all()


def test_answers_are_the_same_whether_the_model_stayed_or_was_recalled():
    roomy, tight = Shelf(20), Shelf(1)
    asked = (("relevance", {"klass": 2}), ("embedding", {}), ("surgery", {"masked": [1, 4], "order": list(range(15))[::-1]}), ("surgery", {"positions": False}),
             ("twin", {}), ("box", {}), ("take", {"kind": "npz", "view": LAST}))
    one, two = results_of_five(roomy)[1], results_of_five(tight)[1]
    for question, fields in asked:
        first, second = ({k: v for k, v in page.ask(question, **fields).items() if k != "key"} for page in (one, two))
        assert first == second, question
    assert one.until_done("test", view=LAST, **WAY)[0] == two.until_done("test", view=LAST, **WAY)[0]
    assert roomy.loads == list(range(5)) and len(tight.loads) > 5


def test_questions_that_need_no_model_do_not_load_it_again():
    shelf = Shelf(1)
    page = results_of_five(shelf)[0]
    shelf.loads.clear()
    for question, fields in (("token", {"token": 3}), ("rollout", {"up_to": 2}), ("facts", {}), ("similarity", {"token": 4}), ("take", {"kind": "png", "view": LAST})):
        assert "error" not in page.ask(question, **fields), question
    assert shelf.loads == []


def test_a_slice_of_a_test_loads_its_model_once_also_where_another_visitor_takes_its_place(monkeypatch):
    monkeypatch.setattr(testing, "SLICE", 600)                              # one is enough
    shelf = Shelf(1)
    pages = results_of_five(shelf)[:2]
    shelf.loads.clear()
    original, rival = testing.faithfulness.Hider.probabilities, 1

    def interrupted(self, hidden):
        shelf.get(rival)                                                    # between two steps
        return original(self, hidden)

    monkeypatch.setattr(testing.faithfulness.Hider, "probabilities", interrupted)
    assert pages[0].until_done("test", view=LAST, **WAY)[1] == 1
    assert shelf.loads.count(0) == 1


def test_a_model_that_is_gone_for_good_is_one_sentence_and_what_needs_none_is_still_answered():
    shelf = Shelf(1)
    page = results_of_five(shelf)[0]
    shelf.make = lambda number: (_ for _ in ()).throw(RunError("the weights of that run are no longer there"))
    answer = page.ask("relevance", klass=0)
    assert answer == {"error": "The weights of that run are no longer there.", "gone": True} and page.ask("token", token=1)["reads"]
    assert page.ask("test", view=LAST, **WAY)["gone"]
    with pytest.raises(Gone):
        page.results.get(page.key).held()


def test_a_model_of_nobodys_stock_stays_with_its_result():
    box = seeded(3)
    results = Results(stock=Shelf(1).stock)
    assert results.get(results.keep(explain(pictures()[0], box))).explanation.loaded is box


def test_the_same_model_at_another_size_is_recalled_at_that_size():
    shelf = Shelf(1)
    loaded = shelf.get(1)
    larger = replace(loaded, preprocessing=loaded.preprocessing.with_(size=(24, 40)))
    results = Results(stock=shelf.stock)
    kept = results.get(results.keep(explain(pictures()[0], larger)))
    assert isinstance(kept.explanation.loaded.model, Recalled) and kept.explanation.loaded.preprocessing.size == (24, 40)
    twin = Questions(results, seeded(9))._relative(kept.explanation.loaded, "untrained", lambda one: replace(seeded(5), preprocessing=loaded.preprocessing))
    assert twin.preprocessing.size == (24, 40)


# A machine with an accelerator is not needed: `moved` is the one function that moves anything, and here "there" means numbers of 64 bits,
# so that wherever something was not moved a layer refuses to work with numbers of two kinds, as it refuses those on two devices.

def abroad(value, device):
    """`stock.moved` to a device that every machine has."""
    if isinstance(value, torch.nn.Module):
        return value.double() if device == "there" else value.float()
    if isinstance(value, Tensor):
        abroad.moves += 1
        return value.double() if device == "there" else value.float()
    parts = [abroad(part, device) for part in value]
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


@pytest.fixture
def there(monkeypatch):
    abroad.moves = 0
    monkeypatch.setattr(stock, "moved", abroad)
    return "there"


def test_every_question_is_answered_alike_where_the_model_works_on_another_device(there, monkeypatch):
    here, far = Shelf(20), Shelf(20, there)
    monkeypatch.setattr(testing, "SLICE", 0)
    asked = (("token", {"token": 3}), ("rollout", {}), ("facts", {}), ("relevance", {"klass": 2}), ("similarity", {"token": 2}), ("colours", {}), ("norms", {}),
             ("embedding", {}), ("twin", {}), ("surgery", {"masked": [1, 4]}), ("surgery", {"positions": False}), ("take", {"kind": "npz", "view": LAST}))
    one, two = results_of_five(here)[0], results_of_five(far)[0]
    assert {p.dtype for p in far.get(0).model._model.parameters()} == {torch.float64} and abroad.moves > 0
    for question, fields in asked:
        first, second = (page.ask(question, **fields) for page in (one, two))
        assert first.keys() == second.keys() and "error" not in second, (question, second)
        if "top" in first:
            assert dict(first["top"]) == pytest.approx(dict(second["top"]), abs=1e-5), question
    for how in ("mean", "drop"):
        first, second = (page.until_done("test", view=LAST, **{**WAY, "how": how})[0] for page in (one, two))
        assert first["area"] == pytest.approx(second["area"], abs=1e-4) and first["map"] == pytest.approx(second["map"], abs=1e-4)
    kept = [page.results.get(page.key).explanation for page in (one, two)]
    assert np.allclose(kept[0].relevance(1), kept[1].relevance(1), atol=1e-5)
    assert {t.dtype for e in kept for t in (e.tensor, *e.trace.queries, e.trace.logits)} == {torch.float32}
    assert np.allclose(kept[0].attention, kept[1].attention, atol=1e-5) and far.get(0).model.patch_embed.proj.weight.dtype == torch.float32
    assert answers.embedding(kept[0].loaded) == answers.embedding(kept[1].loaded)


def test_a_model_without_positions_shares_its_weights_on_the_device_too(there):
    shelf = Shelf(9, there)
    one = shelf.get(1)
    bare = shelf.stock.get("bare", lambda: operated.without_positions(one))
    assert {p.data_ptr() for p in bare.model._model.parameters()} < {p.data_ptr() for p in one.model._model.parameters()}
    assert shelf.stock.bytes == 2 * BYTES                                   # 64 bits
