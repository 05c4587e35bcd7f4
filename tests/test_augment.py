"""Random changes to training pictures: what they may change, what they must leave, and that answers go with the pictures."""

import pytest
import torch

from vitdemo import augment


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_window_inside_shows_a_part_and_no_colour_that_is_not_there():
    images = torch.full((64, 3, 12, 16), 90, dtype=torch.uint8)
    images[:, :, :, 8:] = 200
    cropped = augment.resized_crop(images, 0.2, 0.5, seeded())
    assert cropped.shape == images.shape and cropped.min() > 89.9 and cropped.max() < 200.1
    shares = (cropped[:, 0] > 145).float().mean((1, 2))
    assert shares.min() < 0.1 and shares.max() > 0.9                        # windows lie anywhere


def test_a_window_around_shows_all_of_the_picture_on_one_plain_colour():
    images = torch.full((32, 1, 20, 20), 70, dtype=torch.uint8)
    small = augment.resized_crop(images, 2, 2, seeded(1))
    for picture in small[:, 0]:
        edge = torch.cat((picture[0], picture[-1], picture[:, 0], picture[:, -1]))
        around = max(edge.round().tolist(), key=edge.round().tolist().count)
        share = 1 - ((picture - around).abs() < 0.5).float().mean().item()
        if around != 70:
            assert 0.4 < share < 0.65                                       # half the window, and its blurred edge
    assert len({picture[0, 0].item() for picture in small[:, 0]} & {0.0, 128.0, 255.0}) == 3


def test_tint_changes_colours_within_bounds_and_nothing_at_strength_zero():
    images = torch.randint(256, (16, 3, 6, 5), generator=seeded(), dtype=torch.uint8)
    assert torch.allclose(augment.tint(images, 0, seeded()), images.float(), atol=1e-3)
    tinted = augment.tint(images, 0.5, seeded())
    assert tinted.min() >= 0 and tinted.max() <= 255 and (tinted - images.float()).abs().mean() > 5
    grey = augment.tint(torch.full((8, 1, 4, 4), 100, dtype=torch.uint8), 0.5, seeded())
    assert grey.min() >= 100 / 1.5 / (1 + 0.5 / 3) - 0.01 and grey.max() <= 150 * (1 + 0.5 / 3) + 0.01 and grey.std() > 5


def test_erase_covers_one_rectangle_of_the_chosen_share_and_leaves_the_rest():
    images = torch.randint(1, 255, (200, 3, 16, 20), generator=seeded(), dtype=torch.uint8)
    erased = augment.erase(images, 0.5, seeded())
    changed = (erased != images).any(1)                                     # (B, rows, cols)
    assert 0.35 < changed.any(2).any(1).float().mean() < 0.65
    for picture, where in zip(erased, changed, strict=True):
        rows, cols = where.any(1).nonzero(), where.any(0).nonzero()
        if len(rows):
            inside = picture[:, rows[0]:rows[-1] + 1, cols[0]:cols[-1] + 1]
            assert (inside.flatten(1).min(1).values == inside.flatten(1).max(1).values).all()
            assert inside[0].numel() <= 0.3 * 16 * 20 * 1.5
    assert torch.equal(augment.erase(images, 0, seeded()), images.float())


def test_answers_are_mixed_as_the_pixels_are():
    images = torch.cat((torch.zeros(40, 1, 16, 16), torch.full((40, 1, 16, 16), 100.0)))
    targets = torch.eye(2)[torch.tensor([0] * 40 + [1] * 40)]
    mixed, answers = augment.mix(images, targets, 1, seeded())
    assert torch.allclose(answers.sum(1), torch.ones(80)) and torch.allclose(mixed.mean((1, 2, 3)) / 100, answers[:, 1], atol=1e-4)
    kinds = {"cut" if ((picture == 0) | (picture == 100)).all() else "blend" for picture, answer in zip(mixed, answers, strict=True) if 0 < answer[0] < 1}
    assert kinds == {"cut", "blend"}
    same, answers = augment.mix(images, targets, 0, seeded())
    assert torch.equal(same, images) and torch.equal(answers, targets)


@pytest.mark.parametrize("change", [lambda x, g: augment.resized_crop(x, 0.3, 2, g), lambda x, g: augment.tint(x, 0.4, g),
                                    lambda x, g: augment.erase(x, 0.5, g), lambda x, g: augment.mix(x, torch.eye(6), 0.5, g)[0]])
def test_the_same_generator_makes_the_same_pictures_and_the_given_ones_stay(change):
    images = torch.randint(256, (6, 3, 9, 7), generator=seeded(), dtype=torch.uint8)
    kept = images.clone()
    assert torch.equal(change(images, seeded(3)), change(images, seeded(3))) and not torch.equal(change(images, seeded(3)), change(images, seeded(4)))
    assert torch.equal(images, kept)
