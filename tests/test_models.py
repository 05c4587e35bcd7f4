"""Which model is meant by an id, whether it may be asked for and is here, and what is said of it; each loaded once, again when a run wrote better weights."""

import os
import re
import threading
import time

import pytest
import torch
from conftest import COLOURS, seeded

from vitdemo import checkpoint, hub, loading, settings, words, zoo
from vitdemo.explain import explain
from vitdemo.runs import RunError, Scheduler
from vitdemo.ui import stock
from vitdemo.ui.models import BOX, RECORDED, Models
from vitdemo.ui.questions import Questions
from vitdemo.ui.results import Gone, Results
from vitdemo.zoo import Hub

SPACE = {"SPACE_ID": "somebody/vitdemo"}


@pytest.fixture
def scheduler(tmp_path):
    return Scheduler(tmp_path / "runs", queue=9)                            # never started


@pytest.fixture
def models(tiny, scheduler):
    return Models(tiny, scheduler, settings.read({}))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """What has been fetched to this computer: `cache(where)` puts a file there. Loading any of it gives a small model and is counted."""
    files = {}

    def put(where):
        path = tmp_path / f"{len(files)}.safetensors"
        path.write_bytes(b"weights" * 10)
        files[where] = path
        return path

    def load(what, download=True):
        assert download is False
        put.loads.append(what)
        return seeded(len(put.loads))

    put.loads = []
    monkeypatch.setattr(hub, "cached", files.get)
    monkeypatch.setattr(loading, "load", load)
    return put


def run_with(scheduler, seed: int = 1, **config) -> str:
    run_id = scheduler.submit(config)
    write(scheduler.read(run_id).best, seed)
    return run_id


def write(path, seed: int) -> None:
    made = seeded(seed)
    checkpoint.save(path, made.model, classes=list(COLOURS), preprocessing=made.preprocessing, provenance={})
    os.utime(path, ns=(seed * 10**9, seed * 10**9))


def test_the_box_is_had_under_three_names_and_is_never_in_the_way(models, tiny):
    assert all(models.get(name) is tiny and models.here(name) for name in (None, "", BOX)) and len(models.stock) == 0
    assert models.source(BOX) == models.source(None) == "cifar10" and models.describe(BOX, tiny) == models.describe(None, tiny) == "The model in the box."
    assert models.where(BOX) is None


def test_the_box_and_all_others_work_on_the_device_that_the_owner_names(tiny, scheduler, monkeypatch):
    monkeypatch.setattr(stock, "moved", lambda value, device: value)        # whatever the device is
    monkeypatch.setattr(settings, "device", lambda: "mps")
    models = Models(tiny, scheduler, settings.read({}))
    assert all(isinstance(models.get(model).model, stock.Elsewhere) for model in (None, run_with(scheduler)))
    assert models.get(BOX).config == tiny.config and models.get(BOX).classes == tiny.classes


def test_a_published_model_is_loaded_once_it_is_here_and_never_fetched(models, cache):
    entry = zoo.find("dino-s16")
    assert not models.here("zoo:dino-s16") and models.where("zoo:dino-s16") == entry.where
    with pytest.raises(RunError, match=re.escape(f"fetch it ({entry.megabytes} MB).")):
        models.get("zoo:dino-s16")
    cache(entry.where)
    loaded = models.get("zoo:dino-s16")
    assert models.here("zoo:dino-s16") and models.get("zoo:dino-s16") is loaded and cache.loads == ["dino-s16"]
    assert models.source("zoo:dino-s16") == entry.learned_from
    assert models.describe("zoo:dino-s16", loaded) == f"{entry.title}: {entry.reported:.1%} {entry.reported_as}."


def test_thirty_visitors_who_ask_for_one_published_model_at_once_load_it_once(models, cache, monkeypatch):
    cache(zoo.find("dino-s16").where)
    quick, found = loading.load, []
    monkeypatch.setattr(loading, "load", lambda *args, **more: (time.sleep(0.2), quick(*args, **more))[1])
    threads = [threading.Thread(target=lambda: found.append(models.get("zoo:dino-s16"))) for _ in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 30 and len({id(one) for one in found}) == 1 and cache.loads == ["dino-s16"]


def test_answers_through_the_box_do_not_wait_for_a_model_that_is_being_loaded(models, cache, monkeypatch, photo, tiny):
    cache(zoo.find("dino-s16").where)
    begun, go_on, quick = threading.Event(), threading.Event(), loading.load
    monkeypatch.setattr(loading, "load", lambda *args, **more: (begun.set(), go_on.wait(20), quick(*args, **more))[2])
    results = Results(stock=models.stock)
    questions, key = Questions(results, tiny), results.keep(explain(photo, models.get(None)))
    waiting = threading.Thread(target=models.get, args=("zoo:dino-s16",), daemon=True)
    waiting.start()
    assert begun.wait(20)
    for question in ("token", "relevance", "twin", "surgery", "facts"):
        assert "error" not in questions.ask({"question": question, "key": key, "token": 1, "klass": 0}), question
    assert explain(photo, models.get(BOX)).classes and models.here("zoo:dino-s16") and waiting.is_alive()
    go_on.set()
    waiting.join(20)
    assert not waiting.is_alive() and cache.loads == ["dino-s16"]


@pytest.mark.parametrize("name", ["", "nothing", "dino-s16 ", "../dino-s16", "DINO-S16", "x" * 1000])
def test_a_published_model_that_nobody_knows_is_a_sentence(models, cache, name):
    for ask in (models.get, models.here, models.check, models.where, models.source, lambda name: models.describe(name, seeded())):
        with pytest.raises(RunError, match=r"^There is no model called .+\.$") as refused:
            ask(f"zoo:{name}")
        assert len(str(refused.value)) < 200


def test_only_the_models_that_the_owner_lists_can_be_asked_for(tiny, scheduler, cache):
    def names(**environment):
        return {entry.name for entry in Models(tiny, scheduler, settings.read(environment)).listed()}

    everything = {entry.name for entry in zoo.ENTRIES}
    assert names() == everything and names(VITDEMO_MODELS="none") == set() and names(VITDEMO_MODELS="dino-s16") == {"dino-s16"}
    assert names(**SPACE) == {entry.name for entry in zoo.ENTRIES if entry.megabytes <= 400} < everything
    large = next(entry.name for entry in zoo.ENTRIES if entry.megabytes > 400)
    assert names(**SPACE, VITDEMO_MODELS=f"small, {large}") == names(**SPACE) | {large}
    few = Models(tiny, scheduler, settings.read({"VITDEMO_MODELS": "dino-s16"}))
    cache(zoo.find("dino-s8").where)
    with pytest.raises(RunError, match="no model called"):
        few.get("zoo:dino-s8")                                              # though it is here
    with pytest.raises(ValueError, match="VITDEMO_MODELS .* 'dino-x' is none of them"):
        Models(tiny, scheduler, settings.read({"VITDEMO_MODELS": "dino-s16,dino-x"}))


def test_any_model_of_a_hub_can_be_asked_for_at_home_and_none_on_a_public_host(models, tiny, scheduler, cache):
    where = Hub("some-body/my.vit_2")
    assert models.where("hub:some-body/my.vit_2") == where and not models.here("hub:some-body/my.vit_2")
    with pytest.raises(RunError, match="some-body/my.vit_2 is not on this computer yet"):
        models.get("hub:some-body/my.vit_2")
    cache(where)
    loaded = models.get("hub:some-body/my.vit_2")
    assert models.get("hub:some-body/my.vit_2") is loaded and models.source("hub:some-body/my.vit_2") == "" and cache.loads == [where]
    assert models.describe("hub:some-body/my.vit_2", loaded) == "The model some-body/my.vit_2."
    for environment in (SPACE, {"VITDEMO_HUB": "0"}):
        with pytest.raises(RunError, match="^On this host only the models in the list"):
            Models(tiny, scheduler, settings.read(environment)).get("hub:some-body/my.vit_2")


@pytest.mark.parametrize("name", ["", "x", "a/b/c", "../x", "a/..", "/etc/passwd", "a /b", "a/b\n", "a\\b/c", "https://x/y", "a/" + "b" * 300])
def test_what_is_no_name_of_a_repository_is_a_sentence(models, cache, name):
    with pytest.raises(RunError, match=r"^A model on a hub is called user/name, not .+\.$"):
        models.get(f"hub:{name}")


def test_what_a_published_file_has_against_it_reaches_the_visitor_as_its_sentence(models, cache, monkeypatch):
    cache(zoo.find("dino-s16").where)

    def refuse(*_, **__):
        raise checkpoint.CheckpointError("not a plain ViT: relative positions")

    monkeypatch.setattr(loading, "load", refuse)
    with pytest.raises(RunError, match=r"^Not a plain ViT: relative positions\.$"):
        models.get("zoo:dino-s16")


def test_a_run_that_wrote_better_weights_is_loaded_again_and_its_old_results_keep_their_own_model(models, scheduler, photo):
    run_id = run_with(scheduler, 1)
    first = models.get(run_id)
    results = Results(stock=models.stock)
    kept = results.get(results.keep(explain(photo, first)))
    write(scheduler.read(run_id).best, 2)
    second = models.get(run_id)
    assert second is not first and models.get(run_id) is second and kept.held() is first
    assert torch.equal(second.model.head.weight, seeded(2).model.head.weight)
    models.stock._kept.clear()
    del first
    with pytest.raises(Gone, match="no longer there"):                      # never other weights in their place
        kept.held()
    write(scheduler.read(run_id).best, 1)
    assert torch.equal(kept.held().model.head.weight, seeded(1).model.head.weight)


def test_a_run_that_is_deleted_says_so_and_its_results_answer_while_its_model_is_in_memory(models, scheduler, photo):
    run_id = run_with(scheduler, 1)
    results = Results(stock=models.stock)
    questions, key = Questions(results, models.box), results.keep(explain(photo, models.get(run_id)))
    scheduler.read(run_id).best.unlink()
    with pytest.raises(RunError, match=re.escape(words.RUN_MODEL_GONE)):
        models.get(run_id)
    assert "map" in questions.ask({"question": "relevance", "key": key, "klass": 0})
    models.stock._kept.clear()
    assert questions.ask({"question": "relevance", "key": key, "klass": 0}) == {"error": words.RUN_MODEL_GONE, "gone": True}
    assert "reads" in questions.ask({"question": "token", "key": key, "token": 0})


def test_weights_replaced_while_they_were_about_to_be_read_are_read_as_they_are(models, scheduler, monkeypatch):
    run_id, replaced = run_with(scheduler, 1), []
    original = models.stock.get

    def late(key, make, size=0):
        if not replaced:
            replaced.append(write(scheduler.read(run_id).best, 2))
        return original(key, make, size)

    monkeypatch.setattr(models.stock, "get", late)
    assert torch.equal(models.get(run_id).model.head.weight, seeded(2).model.head.weight)


def test_the_stock_is_told_how_large_a_model_is_before_it_is_loaded(models, scheduler, cache, monkeypatch):
    told, run_id, original = {}, run_with(scheduler), models.stock.get
    monkeypatch.setattr(models.stock, "get", lambda key, make, size: told.update({key[0]: size}) or original(key, make, size))
    cache(zoo.find("dino-s16").where)
    models.get("zoo:dino-s16"), models.get(run_id)
    assert told == {"zoo:dino-s16": 4 * zoo.find("dino-s16").parameters, run_id: scheduler.read(run_id).best.stat().st_size}


def test_many_runs_share_a_budget(tiny, scheduler):
    models = Models(tiny, scheduler, settings.read({"VITDEMO_MODELS_MB": "1"}))
    size = os.path.getsize(scheduler.read(run_with(scheduler)).best)
    models.stock._limit = 2 * size
    for seed in range(4):
        models.get(run_with(scheduler, seed))
    assert 1 <= len(models.stock) <= 2 and models.stock.bytes <= 2 * size


def test_runs_files_and_the_recorded_one_are_named(models, scheduler, tiny):
    named = {run_with(scheduler, title="mine"): "The model you trained “mine”.", run_with(scheduler, title="a file", imported=True): "The model a file.", RECORDED: None}
    for run_id, sentence in named.items():
        said = models.describe(run_id, tiny)
        assert said == sentence or run_id == RECORDED and said.startswith("The model of the recorded run")
    assert models.source(run_with(scheduler, data="mnist")) == "mnist" and models.here(RECORDED) and models.where(RECORDED) is None


@pytest.mark.parametrize("model_id", ["0" * 32, "../..", "x", 7, ["a"], {"a": 1}, True, "zoo", "ZOO:dino-s16", "box "])
def test_what_is_no_id_is_a_sentence(models, model_id):
    with pytest.raises(RunError):
        models.get(model_id)
