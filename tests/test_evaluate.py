"""Accuracy, per class, confusion, and labels that go by name."""


import pytest
import torch

from vitdemo import checkpoint, data, evaluate
from vitdemo.chance import share_error
from vitdemo.config import Preprocessing, ViTConfig
from vitdemo.model import ViT


def test_a_report_counts_as_by_hand():
    report = evaluate.Report(("a", "b", "c"), ((3, 1, 0), (2, 4, 0), (0, 0, 0)))
    assert report.n == 10 and report.accuracy == 0.7 and report.standard_error == share_error(0.7, 10)
    assert report.per_class == {"a": 0.75, "b": pytest.approx(2 / 3), "c": None}
    assert report.to_json()["confusion"] == [[3, 1, 0], [2, 4, 0], [0, 0, 0]]


def test_the_confusion_matrix_has_true_classes_in_rows_and_answers_in_columns():
    model = ViT(ViTConfig(image=(4, 4), patch=(4, 4), dim=4, depth=1, heads=1, classes=3))
    with torch.no_grad():
        model.head.weight.zero_()
        model.head.bias.copy_(torch.tensor([0.0, 0.0, 1.0]))                # always answers class 2
    split = data.Split(torch.zeros(5, 3, 4, 4, dtype=torch.uint8), torch.tensor([0, 0, 1, 2, 2]))
    report = evaluate.evaluate(model, split, Preprocessing(size=(4, 4)), ("a", "b", "c"))
    assert report.confusion == ((0, 0, 2), (0, 0, 1), (0, 0, 2)) and report.accuracy == 0.4


def test_prediction_does_not_depend_on_the_batch_and_restores_the_mode():
    model = ViT(ViTConfig(image=(4, 4), patch=(2, 2), dim=8, depth=2, heads=2, classes=3)).train()
    images = torch.randint(0, 256, (7, 3, 4, 4), dtype=torch.uint8)
    one, two = (evaluate.predict(model, images, Preprocessing(size=(4, 4)), batch=size) for size in (2, 7))
    assert torch.allclose(one, two, atol=1e-6) and model.training and not one.requires_grad


def test_labels_go_by_name_and_by_place_only_where_no_name_is_shared():
    split = data.Split(torch.zeros(3, 3, 4, 4), torch.tensor([0, 1, 1]))
    assert evaluate.labels_in_order(split, ("cat", "dog"), ("dog", "bird", "cat")).labels.tolist() == [2, 0, 0]
    assert evaluate.labels_in_order(split, ("x", "y"), ("class 0", "class 1")).labels.tolist() == [0, 1, 1]
    with pytest.raises(data.DataError, match="does not know the class 'wolf'"):
        evaluate.labels_in_order(split, ("cat", "wolf"), ("cat", "dog"))
    with pytest.raises(data.DataError, match="3 classes and the model knows 2"):
        evaluate.labels_in_order(split, ("x", "y", "z"), ("class 0", "class 1"))
    with pytest.raises(data.DataError, match="does not know the class 'x'"):
        evaluate.labels_in_order(split, ("x", "y"), ("a", "b"))


def test_calibration_counts_as_by_hand():
    confidence = torch.tensor([0.95, 0.91, 0.99, 0.55, 0.58])                # of five answers in two classes
    logits = torch.stack((confidence.log(), (1 - confidence).log()), dim=1)
    report = evaluate.Report.of(logits, torch.tensor([0, 0, 1, 0, 1]), ("a", "b"))
    assert report.confusion == ((3, 0), (2, 0)) and [part.count for part in report.calibration] == [0, 0, 0, 0, 0, 2, 0, 0, 0, 3]
    high, low = report.calibration[9], report.calibration[5]
    assert high.confidence == pytest.approx(0.95) and high.right == pytest.approx(2 / 3) and low.right == 0.5
    assert report.expected_calibration_error == pytest.approx(3 / 5 * (0.95 - 2 / 3) + 2 / 5 * (0.565 - 0.5))
    assert report.confidence == pytest.approx((0.95 + 0.91 + 0.99 + 0.55 + 0.58) / 5)
    told = report.to_json()
    assert told["calibration"][9] == [3, pytest.approx(0.95), pytest.approx(2 / 3)] and told["ece"] == report.expected_calibration_error
    assert told["calibration"][0] == [0, 0.0, 0.0]


def test_a_model_that_is_as_sure_as_it_is_right_has_no_calibration_error():
    labels = torch.tensor([0] * 7 + [1] * 3)
    report = evaluate.Report.of(torch.tensor([0.7, 0.3]).log().expand(10, 2), labels, ("a", "b"))
    assert report.expected_calibration_error == pytest.approx(0, abs=1e-6) and report.accuracy == 0.7


def test_a_prediction_asks_between_batches_and_can_be_ended_there():
    model = ViT(ViTConfig(image=(4, 4), patch=(2, 2), dim=8, depth=1, heads=2, classes=3)).train()
    model.blocks[0].eval()                                                  # as of a frozen part
    asked = []

    def ask():
        asked.append(True)
        if len(asked) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        evaluate.predict(model, torch.zeros(9, 3, 4, 4, dtype=torch.uint8), Preprocessing(size=(4, 4)), batch=2, between=ask)
    assert len(asked) == 3 and model.training and not model.blocks[0].mlp.training


def test_a_model_that_wants_its_pictures_otherwise_than_data_sets_are_read_is_told_of(colour_zip, tiny, tmp_path, capsys):
    for wish, note in (({}, ""), ({"fit": "squash", "interpolation": "bilinear"}, "fit squash, interpolation bilinear"), ({"crop_fraction": 0.875}, "crop_fraction 0.875")):
        path = tmp_path / "model.safetensors"
        checkpoint.save(path, tiny.model, classes=tiny.classes, preprocessing=tiny.preprocessing.with_(**wish), provenance={})
        assert evaluate.main([str(path), "--data", str(colour_zip)]) == 0
        told = capsys.readouterr()
        assert "accuracy" in told.out and (note in told.err if note else told.err == ""), told.err
