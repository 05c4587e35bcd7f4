"""What the model bar asks: every field checked, one sentence for nonsense, a public host's limits, what is said of a model."""

import pytest
from conftest import seeded

from vitdemo import checkpoint, hub, settings, words, zoo
from vitdemo.config import Preprocessing
from vitdemo.runs import Scheduler
from vitdemo.ui.choosing import Choosing, facts
from vitdemo.ui.fetches import Fetches
from vitdemo.ui.fields import sentence
from vitdemo.ui.handover import Handover
from vitdemo.ui.models import Models
from vitdemo.ui.reach import Reach


def choosing(tiny, home, environment):
    owner = settings.read(environment)
    models = Models(tiny, Scheduler(home / "runs"), owner)

    def fetch(model, told):
        raise AssertionError(f"{model} must not be fetched")

    fetches = Fetches(needs=lambda model: not models.here(model), fetch=fetch, load=models.get)
    return Choosing(models, Handover(Reach(models._scheduler, models, None, owner)), fetches)


@pytest.fixture
def bar(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "cached", lambda where: None)
    return choosing(tiny, tmp_path, {})


@pytest.mark.parametrize("request_", [
    None, 7, [], "offer", {}, {"question": "steal"}, {"question": ["want"]}, {"question": "want"}, {"question": "want", "model": 7, "who": "me"},
    {"question": "want", "model": "box"}, {"question": "want", "model": "box", "who": "x" * 65}, {"question": "want", "model": "x" * 201, "who": "me"},
    {"question": "want", "model": "zoo:../../etc/passwd", "who": "me"}, {"question": "want", "model": "/etc/passwd", "who": "me"},
    {"question": "want", "model": "hub:../x", "who": "me"}, {"question": "cancel"}, {"question": "open"}, {"question": "open", "path": "/etc/passwd"},
    {"question": "open", "path": ["x"]}, {"question": "offer", "mine": "x"}, {"question": "offer", "mine": ["x"] * 51}, {"question": "offer", "mine": [7]},
])
def test_nonsense_gets_one_sentence(bar, request_):
    answer = bar.ask(request_)
    assert list(answer) == ["error"] and answer["error"].endswith(".") and "Traceback" not in answer["error"] and "/etc/passwd/" not in answer["error"]
    assert "number" not in answer["error"]                                  # none of them was unexpected


def test_the_offer_names_everything_and_what_it_costs(bar):
    offer = bar.ask({"question": "offer", "mine": ["0" * 32]})
    assert [one["model"] for one in offer["box"]][0] == "box" and offer["own"] == [] and offer["hub"]
    assert {one["model"] for one in offer["zoo"]} == {f"zoo:{entry.name}" for entry in zoo.ENTRIES}
    assert all(one["megabytes"] > 0 and not one["here"] and len(one["facts"]) == 4 for one in offer["zoo"])


def test_a_public_host_offers_small_models_and_no_others(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "cached", lambda where: None)
    bar = choosing(tiny, tmp_path, {"SPACE_ID": "a/b"})
    offer = bar.ask({"question": "offer"})
    assert not offer["hub"] and 0 < max(one["megabytes"] for one in offer["zoo"]) <= settings.SMALL_MEGABYTES
    large = next(entry for entry in zoo.ENTRIES if entry.megabytes > settings.SMALL_MEGABYTES)
    for model in ("hub:somebody/vit", f"zoo:{large.name}"):
        assert "error" in bar.ask({"question": "want", "model": model, "who": "me"})


def test_a_model_that_is_there_comes_with_what_is_known_of_it(bar, tiny):
    answer = bar.ask({"question": "want", "model": "box", "who": "me"})
    assert answer["state"] == "ready" and ["Classes", "3"] in answer["facts"] and answer["title"] == "The model in the box"
    assert answer["sides"] == [] and not answer["square"]                   # its pictures are no squares


def test_what_a_file_says_of_itself_is_shown_as_one_line_of_text():
    loaded = checkpoint.Loaded(seeded().model, (), Preprocessing(size=12), {"source": "<b>me\nand\u202eyou</b>", "licence": 7, "notes": ["one"] * 9}, "")
    pairs = facts(loaded)
    assert ["Source", "<b>me and you</b>"] in pairs and sum(name == "Note" for name, _ in pairs) == 6 and "Licence" not in dict(pairs)


@pytest.mark.parametrize(("text", "shown"), [("the disk is full", "The disk is full."), ("me/vit is gone", "me/vit is gone."), ("config.json is broken", "config.json is broken."),
                                             ("no.", "No."), ("really?", "Really?"), ("", ".")])
def test_a_sentence_begins_with_a_capital_unless_with_a_name(text, shown):
    assert sentence(text) == shown


def test_the_tiny_model_stands_beside_the_one_in_the_box_where_it_is_another(bar, tiny, tmp_path, monkeypatch):
    path = tmp_path / "small-tiny.safetensors"
    checkpoint.save(path, tiny.model, classes=tiny.classes, preprocessing=tiny.preprocessing, provenance={"test_accuracy": 0.5})
    monkeypatch.setattr(checkpoint, "tiny_path", lambda: path)
    assert [one["model"] for one in bar.ask({"question": "offer", "mine": []})["box"]] == ["box", "tiny"]
    monkeypatch.setattr(checkpoint, "box_path", lambda: path)
    assert [one["model"] for one in bar.ask({"question": "offer", "mine": []})["box"]] == ["box"]
    answer = bar.ask({"question": "want", "model": "tiny", "who": "me"})
    assert answer["state"] == "ready" and answer["title"] == words.MODEL_TINY and "right on" in answer["line"]
