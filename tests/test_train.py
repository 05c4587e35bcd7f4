"""Training: the pieces, exact resumption, what ends a run, frozen encoders, and two hundred steps on real data."""

import itertools
import math
from types import SimpleNamespace

import pytest
import torch

from vitdemo import augment, batches, budget, data, muon, precision, recorder, train
from vitdemo import model as vit
from vitdemo.cnn import SmallCNN
from vitdemo.config import Preprocessing, TrainConfig, ViTConfig
from vitdemo.data import Split
from vitdemo.model import ViT
from vitdemo.optimizers import optimizers
from vitdemo.plan import plan
from vitdemo.presets import PRESETS, SIZES

SMALL = ViTConfig(image=(12, 12), patch=(4, 4), dim=10, depth=2, heads=2, classes=3)
LOOK = Preprocessing(size=(12, 12))


def pictures(n: int = 60, seed: int = 0) -> Split:
    """Three classes that differ in colour."""
    labels = torch.arange(n) % 3
    noise = torch.randint(0, 120, (n, 3, 12, 12), generator=torch.Generator().manual_seed(seed))
    noise[torch.arange(n), labels] += 100
    return Split(noise.byte(), labels)


def fresh(config: ViTConfig = SMALL) -> ViT:
    return ViT(config, torch.Generator().manual_seed(1))


def run(config: TrainConfig, model: ViT, **options) -> list[train.Step]:
    return list(train.fit(model, pictures(), pictures(9, seed=7), config, preprocessing=LOOK, **options))


SHORT = TrainConfig(epochs=4, batch=16, evaluations=2, shift=1)


@pytest.mark.parametrize("optimizer", ["muon", "adamw", "adam"])
def test_every_optimizer_learns_three_colours(optimizer):
    steps = run(SHORT.with_(optimizer=optimizer, epochs=12, lr=5e-3, label_smoothing=0.0), fresh())
    assert steps[0].step == 0 and steps[0].accuracy is not None and steps[-1].progress == 1
    assert steps[-1].accuracy > 0.8 and steps[-1].loss < 0.7


def test_muon_takes_the_matrices_of_the_blocks_and_nothing_is_left_out_or_taken_twice():
    model = fresh(SMALL.with_(registers=2, layer_scale=True, distilled=True))
    muon, rest = optimizers(model, SHORT)
    names = {id(p): name for name, p in model.named_parameters()}
    of_muon = [names[id(p)] for group in muon.param_groups for p in group["params"]]
    assert all(name.startswith("blocks.") and name.endswith("weight") for name in of_muon) and len(of_muon) == 8
    undecayed = [names[id(p)] for p in rest.param_groups[1]["params"]]
    assert {"cls_token", "pos_embed", "reg_token", "head.bias", "blocks.0.ls1.gamma"} <= set(undecayed)
    assert sorted(of_muon + undecayed + [names[id(p)] for p in rest.param_groups[0]["params"]]) == sorted(names.values())
    assert {names[p]: parts for p, parts in muon.stacked.items()} == {f"blocks.{i}.attn.qkv.weight": 3 for i in range(2)}


def test_the_rate_rises_then_falls_to_zero():
    config = TrainConfig(minutes=1, warmup=0.1)
    assert [round(budget.rate(p, config), 3) for p in (0, 0.05, 0.1, 0.55, 1)] == [0, 0.5, 1, 0.5, 0]
    assert budget.rate(0.5, config.with_(decay="none", warmup=0.0)) == 1
    assert round(budget.rate(1, config.with_(decay="cosine")), 6) == 0


def test_a_run_begins_small_and_ends_at_full_size():
    config = TrainConfig(minutes=1, stages=(0.5, 0.75, 1.0), stage_ends=(0.45, 0.75))
    vit = SIZES["vit-micro"].config
    assert [budget.stage_size(p, config, vit) for p in (0, 0.44, 0.45, 0.74, 0.75, 1)] == [(16, 16), (16, 16), (24, 24), (24, 24), (32, 32), (32, 32)]
    assert budget.stage_size(0, config, SMALL) == (8, 8) and budget.stage_size(0, config, SMALL.with_(image=(12, 20))) == (8, 8)


def test_an_epoch_shows_every_picture_once_and_each_epoch_in_another_order():
    split = Split(torch.arange(10)[:, None].byte(), torch.arange(10))
    config = TrainConfig(epochs=1)
    steps = [batch.labels.tolist() for batch in itertools.islice(batches.batches(split, 5, config), 4)]
    epochs = steps[0] + steps[1], steps[2] + steps[3]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(10)) and epochs[0] != epochs[1]
    assert next(batches.batches(split, 5, config.with_(seed=1))).labels.tolist() != steps[0]
    for step in range(4):                                                   # a run that is resumed goes on in the same order
        assert [batch.labels.tolist() for batch in itertools.islice(batches.batches(split, 5, config, step), 4 - step)] == steps[step:]


@pytest.mark.parametrize(("pictures", "batch", "size"), [(47_500, 128, 128), (5, 8, 5), (100, 64, 50), (101, 64, 50), (64, 64, 64), (90, 64, 45), (1, 1, 1)])
def test_of_few_pictures_an_epoch_leaves_out_almost_none(pictures, batch, size):
    assert batches.batch_size(pictures, batch) == size and size <= batch
    assert pictures - pictures // size * size < 0.05 * pictures + 1


def test_a_shifted_crop_is_a_window_of_the_padded_picture_and_a_flip_a_mirror():
    images = torch.arange(1, 1 + 4 * 3 * 5 * 7).view(4, 3, 5, 7)
    moved = augment.shifted_crop(images, 2, torch.Generator().manual_seed(0))
    padded = torch.nn.functional.pad(images, (2, 2, 2, 2))
    for before, after in zip(padded, moved, strict=True):
        windows = [before[:, r:r + 5, c:c + 7] for r in range(5) for c in range(5)]
        assert any(torch.equal(after, window) for window in windows)
    assert not torch.equal(moved, images) and augment.shifted_crop(images, 0, torch.Generator()) is images
    flipped = augment.flip(images, torch.Generator().manual_seed(0))
    kinds = {("same" if torch.equal(a, b) else "mirror" if torch.equal(a, b.flip(2)) else "other") for a, b in zip(flipped, images, strict=True)}
    assert kinds == {"same", "mirror"}


def test_mixing_ends_where_it_is_told_to():
    def learned(**changes):
        model = fresh()
        steps = [step for step in run(SHORT.with_(**changes), model) if step.step]
        return [step.loss for step in steps], [step.progress for step in steps], model.state_dict()

    mixed, progress, _ = learned(mix=1.0)
    halves, _, _ = learned(mix=1.0, mix_end=0.5)
    before = sum(done < 0.5 for done in progress) + 1                       # steps that began in the first half
    assert 1 < before < len(mixed) and halves[:before] == mixed[:before] and halves[before] != mixed[before]
    never, _, weights = learned(mix=1.0, mix_end=0.0)
    plain, _, same = learned()
    assert never == plain and all(torch.equal(weights[name], same[name]) for name in same)


@pytest.mark.parametrize(("stop_at", "changes"), [(1, {}), (7, {}), (7, {"crop_least": 0.4, "crop_most": 2, "tint": 0.3, "erase": 0.3, "mix": 0.5, "mix_end": 0.6})])
def test_a_run_of_epochs_stopped_and_resumed_gives_the_weights_of_one_left_alone_bit_by_bit(stop_at, changes):
    whole, halves, config = fresh(), fresh(), SHORT.with_(**changes)
    run(config, whole)
    state = train.State(halves, config)
    for step in train.fit(halves, pictures(), pictures(9, 7), config, preprocessing=LOOK, state=state):
        if step.step == stop_at:
            break
    saved = {k: v for k, v in state.state_dict().items()}
    resumed = fresh()
    again = train.State(resumed, config)
    again.load_state_dict(saved)
    rest = run(config, resumed, state=again)
    assert rest[0].step == stop_at + 1
    assert all(torch.equal(a, b) for a, b in zip(whole.state_dict().values(), resumed.state_dict().values(), strict=True))


def test_a_run_of_minutes_ends_when_its_clock_says_so_and_evaluation_does_not_count():
    ticks = iter(range(1000))
    steps = run(TrainConfig(minutes=0.2, batch=16, evaluations=3), fresh(), clock=lambda: float(next(ticks)))
    assert steps[-1].seconds == 12 and len(steps) == 13
    assert [s.step for s in steps if s.accuracy is not None] == [0, 4, 8, 12]


def test_minutes_that_count_everything_leave_time_for_every_look_and_the_test():
    ticks, config = iter(range(1000)), TrainConfig(minutes=0.5, clock="all", batch=16, evaluations=3)
    state = train.State(fresh(), config)
    steps = run(config, state.model, state=state, clock=lambda: float(next(ticks)), tested=27)
    looks = [s.step for s in steps if s.accuracy is not None]
    # a step and a look take a second each: 30 in all are 4 looks, the test of three times as many pictures, and the rest is training
    assert len(looks) == 4 and steps[-1].seconds + state.look_seconds + 3 == 30 and steps[-1].seconds == 23
    assert [s.progress for s in steps] == sorted(s.progress for s in steps) and steps[-1].progress == 1


def test_a_last_look_that_is_quicker_than_foreseen_ends_the_run_all_the_same():
    now, quick = [0.0], []

    def clock() -> float:
        now[0] += 0.1 if quick else 1.0
        return now[0]

    config = TrainConfig(minutes=0.5, clock="all", batch=16, evaluations=1)
    state = train.State(fresh(), config)
    steps = []
    for step in train.fit(state.model, pictures(), pictures(9), config, preprocessing=LOOK, state=state, clock=clock, tested=27):
        steps.append(step)
        if step.progress > 0.9:
            quick.append(step.step)                                         # from here on everything takes a tenth of the time
    assert [s.step for s in steps if s.accuracy is not None] == [0, steps[-1].step] and state.looks == 1
    assert steps[-1].progress == 1 and [s.progress for s in steps] == sorted(s.progress for s in steps)


def watched(config, takes):
    """The state and the steps of a run where a step takes a second, and every look as long as the next of `takes`."""
    now, pause, rest = [0.0], [], iter(takes)

    def clock() -> float:
        now[0] += pause.pop() if pause else 1.0
        return now[0]

    state = train.State(fresh(), config)
    steps = train.fit(state.model, pictures(), pictures(9), config, preprocessing=LOOK, state=state, clock=clock, tested=9, between=lambda: pause or pause.append(next(rest)))
    return state, list(steps)


@pytest.mark.parametrize(("minutes", "look", "made"), [(1.0, 2, 4), (1.0, 6, 3), (1.0, 18, 1), (1.0, 80, 1), (3.0, 80, 1), (3.0, 18, 3)])
def test_however_slow_looks_are_a_run_trains_for_a_fifth_of_its_minutes_and_looks_when_that_is_over(minutes, look, made):
    _, steps = watched(TrainConfig(minutes=minutes, clock="all", batch=16, evaluations=4), itertools.repeat(look))
    assert sum(s.accuracy is not None for s in steps) == 1 + made and steps[-1].accuracy is not None
    assert steps[-1].seconds == pytest.approx(max(12 * minutes, 60 * minutes - (2 + made) * look), abs=1.5)          # the test takes as long as a look
    assert [s.progress for s in steps] == sorted(s.progress for s in steps) and steps[-1].progress == 1


@pytest.mark.parametrize("takes", [[20, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [6, 7, 7.5, 6.5, 8, 9, 10, 11, 12, 13, 14], [13.4, 14.5, 9, 3, 3, 3, 3, 3, 3, 3, 3]])
def test_looks_that_change_their_pace_stay_apart_and_progress_never_goes_back(takes):
    state, steps = watched(TrainConfig(minutes=3, clock="all", batch=16, evaluations=10), takes)
    looks = [s.progress for s in steps if s.accuracy is not None]
    assert len(looks) == 1 + state.planned >= 3 and max(b - a for a, b in zip(looks, looks[1:])) < 1.7 / state.planned      # evenly, but for the reckoning
    assert min(b - a for a, b in zip(looks, looks[1:])) > 0.4 / state.planned
    assert [s.progress for s in steps] == sorted(s.progress for s in steps) and steps[-1].progress == 1


def test_a_step_that_lasts_as_long_as_several_looks_lets_them_go():
    """A computer that sleeps or is busy: the looks it missed are not made one after the other."""
    now, state = [0.0], train.State(fresh(), config := TrainConfig(minutes=1, batch=16, evaluations=10))

    def clock() -> float:
        now[0] += 30 if state.step == 4 and now[0] < 30 else 1
        return now[0]

    steps = run(config, state.model, state=state, clock=clock)
    looks = [s.progress for s in steps if s.accuracy is not None]
    assert min(b - a for a, b in zip(looks, looks[1:])) > 0.04 and looks[-1] == 1 and max(b - a for a, b in zip(looks, looks[1:])) > 0.4
    assert state.looks == len(looks) - 1 == 6 and state.looks_ahead == 0


def test_a_loss_that_is_no_number_ends_the_run_before_the_step_is_taken():
    model = fresh()
    steps = train.fit(model, pictures(), pictures(9), SHORT.with_(lr=10.0, clip=0.0), preprocessing=LOOK)
    next(steps), next(steps)
    with torch.no_grad():
        model.blocks[0].mlp.fc1.weight[0, 0] = float("nan")
    before = {k: v.clone() for k, v in model.state_dict().items()}
    with pytest.raises(train.TrainingError, match="stopped being a number at step 2.*smaller learning rate"):
        next(steps)
    assert all(torch.equal(v.nan_to_num(), before[k].nan_to_num()) for k, v in model.state_dict().items())


@pytest.mark.parametrize(("train_part", "said"), [
    (Split(torch.zeros(0, 3, 12, 12).byte(), torch.zeros(0).long()), "0 to learn from"),
    (Split(torch.zeros(4, 1, 12, 12).byte(), torch.zeros(4).long()), r"\(1, 12, 12\)"),
    (Split(torch.zeros(4, 3, 12, 12).byte(), torch.full((4,), 3)), "4 classes"),
])
def test_data_that_do_not_fit_the_model_are_refused(train_part, said):
    with pytest.raises(data.DataError, match=said):
        next(train.fit(fresh(), train_part, pictures(9), SHORT, preprocessing=LOOK))


def test_five_pictures_and_a_batch_of_eight_train():
    steps = list(train.fit(fresh(), pictures(5), pictures(3), SHORT.with_(batch=8), preprocessing=LOOK))
    assert steps[-1].step == 4


def test_a_run_of_steps_takes_so_many_and_its_looks_carry_the_logits_they_count():
    steps = run(TrainConfig(steps=5, batch=16, evaluations=2), fresh())
    assert [s.step for s in steps] == [0, 1, 2, 3, 4, 5] and [s.progress for s in steps][-2:] == [0.8, 1.0]
    looks = [s for s in steps if s.accuracy is not None]
    assert [s.step for s in looks] == [0, 3, 5] and all(s.logits is None for s in steps if s not in looks)
    for look in looks:
        right = look.logits.argmax(1) == pictures(9, seed=7).labels
        assert look.logits.shape == (9, 3) and look.logits.dtype == torch.float32 and look.accuracy == pytest.approx(right.float().mean().item())


@pytest.mark.parametrize("network", [ViT, SmallCNN])
def test_a_frozen_encoder_stays_bit_by_bit_and_only_the_head_is_held_by_the_optimizers(network):
    model = network(SMALL, torch.Generator().manual_seed(1))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    config = TrainConfig(steps=6, batch=16, freeze=True, evaluations=1)
    state = train.State(model, config)
    held = {id(p) for optimizer in state.optimizers for group in optimizer.param_groups for p in group["params"]}
    assert held == {id(p) for p in model.head.parameters()}
    run(config, model, state=state)
    changed = {name for name, tensor in model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {"head.weight", "head.bias"}                          # a CNN's running statistics stay too
    assert all(p.grad is None for name, p in model.named_parameters() if not name.startswith("head"))


@pytest.mark.parametrize("optimizer", ["muon", "adamw", "adam"])
def test_a_head_may_learn_at_a_rate_of_its_own_also_after_a_resume(optimizer):
    config = TrainConfig(steps=3, batch=16, optimizer=optimizer, head_rate=10, lr=1e-3, decay="none", warmup=0.0, evaluations=1)
    model = fresh(SMALL.with_(distilled=True))
    state = train.State(model, config)
    saved = train.State(model, config)
    saved.load_state_dict(state.state_dict())
    run(config, model, state=saved)
    names = {id(p): name for name, p in model.named_parameters()}
    rates = {names[id(p)]: group["lr"] for optimizer in saved.optimizers for group in optimizer.param_groups for p in group["params"]}
    assert set(rates) == set(names.values())
    muon = config.muon_lr if optimizer == "muon" else 1e-3
    for name, rate in rates.items():
        assert rate == pytest.approx(1e-2 if name.startswith("head") else muon if name.startswith("blocks.") and name.endswith("weight") and "norm" not in name else 1e-3), name


def test_a_small_cnn_learns_three_colours():
    steps = run(SHORT.with_(optimizer="adamw", epochs=12, lr=5e-3, label_smoothing=0.0), SmallCNN(SMALL, torch.Generator().manual_seed(1)))
    assert steps[-1].accuracy > 0.8


class Enough(Exception):
    pass


def cut_short(config: TrainConfig, unknown: tuple[str, ...] = ()) -> tuple[train.State, train.State]:
    """The state of a run that ended in the look after step 6, and that of one which goes on from its file."""
    def ask():
        if state.step == 6:
            raise Enough

    state = train.State(fresh(), config)
    with pytest.raises(Enough):
        run(config, state.model, state=state, between=ask)
    again = train.State(fresh(), config)
    again.load_state_dict({name: value for name, value in state.state_dict().items() if name not in unknown})
    return state, again


def test_a_look_can_be_cut_short_and_a_resumed_run_makes_it_up():
    config = TrainConfig(steps=6, batch=16, evaluations=2)
    state, again = cut_short(config)
    assert state.step == 6 and state.looks == 1 and not state.complete
    rest = run(config, again.model, state=again)
    assert [(s.step, s.accuracy is not None) for s in rest] == [(6, True)] and again.complete and run(config, again.model, state=again) == []


@pytest.mark.parametrize("unknown", [(), ("due",), ("due", "planned", "progress")])         # to the version that saved it
def test_a_look_that_was_cut_short_in_the_middle_is_made_up_before_the_next_step(unknown):
    config = TrainConfig(steps=12, batch=16, evaluations=2)
    whole = run(config, (undisturbed := fresh()))
    state, again = cut_short(config, unknown)
    assert (state.step, state.looks, state.owed) == (6, 0, True)
    rest = run(config, again.model, state=again)
    assert [(s.step, s.accuracy) for s in rest if s.accuracy is not None] == [(s.step, s.accuracy) for s in whole if s.accuracy is not None and s.step]
    assert math.isnan(rest[0].loss) and all(torch.equal(a, b) for a, b in zip(again.model.state_dict().values(), undisturbed.state_dict().values(), strict=True))


@pytest.mark.parametrize(("minutes", "clock", "each", "expected"), [
    (3, "all", 1 / 650, 10_000), (1, "all", 1 / 650, 3900), (1, "all", 1 / 100, 1000), (1, "training", 1 / 100, 10_000), (0, "training", 1 / 100, 10_000), (3, "all", 0.0, 10_000)])
def test_the_test_takes_a_tenth_of_the_minutes_at_most_but_a_thousand_pictures_at_least(minutes, clock, each, expected):
    config = TrainConfig(minutes=minutes, steps=0 if minutes else 9, clock=clock)
    assert budget.pictures_tested(10_000, config, each) == expected and budget.pictures_tested(7, config, each) == 7


def test_two_hundred_steps_on_the_real_cifar10_beat_three_in_ten(real_data):
    """The same number of steps everywhere, so the result does not depend on the machine's speed."""
    dataset = data.load(real_data / "cifar10.zip")
    part, held = data.hold_out(dataset.train, 0.05, seed=0)
    config = PRESETS["class"].train.with_(minutes=0, epochs=1, stages=(0.5, 1.0), stage_ends=(0.9,), evaluations=1)
    mean, std = data.statistics(part)
    model = ViT(SIZES["vit-micro"].config, torch.Generator().manual_seed(0))
    shuffled = torch.randperm(len(part), generator=torch.Generator().manual_seed(0))[:25_600]      # all ten classes
    steps = list(train.fit(model, part[shuffled], held, config, preprocessing=Preprocessing(mean=mean, std=std)))
    assert len(held.labels.unique()) == 10 and steps[-1].step == 200 and steps[0].accuracy < 0.2
    assert steps[-1].accuracy > 0.3


@pytest.mark.parametrize("side", [8, 12])
def test_a_step_learns_the_same_whichever_way_attention_is_computed(side, monkeypatch):
    inputs, labels, found = torch.randn(6, 3, side, side, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 2] * 2), []
    for few in (0, 64):
        monkeypatch.setattr(vit, "FEW_TOKENS", few)
        model = fresh()
        loss = train.learn(train.State(model, TrainConfig(steps=9, zero_head=False, precision="float32")), model, inputs, labels, 0.5)
        found.append((loss, torch.cat([p.grad.flatten() for p in model.parameters()])))
    (one, gradients), (other, others) = found
    assert one == pytest.approx(other, abs=1e-5) and gradients.norm() > 0.1 and torch.allclose(gradients, others, atol=1e-5)


def test_bfloat16_is_taken_where_it_is_quick(monkeypatch):
    def way(device: str, side: int, wanted: str = "auto") -> bool:
        with precision.computing(torch.device(device), (side, side), (4, 4), wanted):
            return torch.is_autocast_enabled(device)

    for quick in (True, False):
        monkeypatch.setattr(precision, "quick_at_bfloat16", lambda quick=quick: quick)
        assert way("cpu", 32) == quick and not way("cpu", 32, "float32") and not way("cpu", 64)
    assert not torch.is_autocast_enabled("cpu")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: including_emulation)      # an older GPU, which only imitates it
    assert not precision.in_bfloat16(torch.device("cuda"), (32, 32), (4, 4), "auto")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    assert precision.in_bfloat16(torch.device("cuda"), (256, 256), (4, 4), "auto")


@pytest.mark.parametrize("few", [1, 128])
@pytest.mark.parametrize("quick", [True, False])
def test_muon_multiplies_in_bfloat16_where_it_is_quick_whatever_the_pictures_size(quick, few, monkeypatch):
    monkeypatch.setattr(precision, "quick_at_bfloat16", lambda: quick)
    monkeypatch.setattr(precision, "FEW_TOKENS", few)
    taken, iteration = [], muon.orthogonal
    monkeypatch.setattr(muon, "orthogonal", lambda *given: taken.append(given[-1]) or iteration(*given))
    for wanted in ("auto", "float32"):
        run(SHORT.with_(epochs=0, steps=1, precision=wanted), fresh())
        assert taken and {*taken} == {torch.bfloat16 if quick and wanted == "auto" else torch.float32}
        taken.clear()


@pytest.mark.parametrize("all_of_them", [True, False])
def test_processes_on_unlike_machines_iterate_in_numbers_that_all_of_them_have(all_of_them, monkeypatch):
    monkeypatch.setattr(precision, "quick_at_bfloat16", lambda: True)
    state = train.State(fresh(), SHORT)
    train._agree(state, SimpleNamespace(all_ready=lambda mine: mine and all_of_them))
    assert state.optimizers[0].numbers == (torch.bfloat16 if all_of_them else torch.float32)


@pytest.mark.parametrize(("quick", "side", "changes", "said"), [
    (True, 32, {}, "bf16 autocast and Muon's iteration in bf16 in training, float32 elsewhere"), (False, 32, {}, "float32"),
    (True, 32, {"optimizer": "adamw"}, "bf16 autocast in training, float32 elsewhere"), (True, 32, {"precision": "float32"}, "float32"),
    (True, 64, {"stages": (), "stage_ends": ()}, "Muon's iteration in bf16 in training, float32 elsewhere")])
def test_a_file_says_in_which_numbers_it_was_learned(quick, side, changes, said, monkeypatch):
    monkeypatch.setattr(precision, "quick_at_bfloat16", lambda: quick)
    wanted = plan(preset="class", changes={**changes, "image": (side, side)})
    parts = recorder.Parts("colours", 8, Split(torch.zeros(0), torch.zeros(0)), None, (), LOOK)
    assert recorder.provenance(wanted, None, parts, fresh())["precision"] == said


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_is_the_same_in_one_step_and_written_out_and_that_only_over_few_tokens(dtype, monkeypatch):
    fused, called = torch.nn.functional.scaled_dot_product_attention, []
    monkeypatch.setattr(vit.F, "scaled_dot_product_attention", lambda *qkv: called.append(1) or fused(*qkv))
    for tokens, learning in ((5, True), (vit.FEW_TOKENS, True), (vit.FEW_TOKENS + 1, True), (5, False)):
        generator = torch.Generator().manual_seed(tokens)
        q, k, v = (torch.randn(2, 3, tokens, 8, generator=generator).to(dtype).requires_grad_(learning) for _ in range(3))
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            found = vit.attend(q, k, v, learning=learning)
        assert found.dtype == dtype and bool(called) == (tokens > vit.FEW_TOKENS or not learning and dtype == torch.float32)
        assert torch.allclose(found.float(), fused(*(t.detach().float() for t in (q, k, v))), atol=1e-5 if dtype == torch.float32 else 3e-2)
        called.clear()


def test_a_run_in_bfloat16_keeps_its_weights_and_its_loss_in_float32_and_learns(monkeypatch):
    monkeypatch.setattr(precision, "quick_at_bfloat16", lambda: True)
    model = fresh()
    steps = run(TrainConfig(steps=60, batch=30, evaluations=2, clip=1.0), model)
    assert all(p.dtype == torch.float32 for p in model.parameters()) and steps[-1].accuracy > 0.8
