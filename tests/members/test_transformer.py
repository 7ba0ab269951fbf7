"""Fine-tuned members learn, stop, repeat themselves, survive the disk and say what is wrong."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tiny_transformer import LONGEST, lesson, texts_and_classes, tiny_model, torch

from edokit import EDOWarning, MissingExtraError, Scale
from edokit.members import Member, MemberData
from edokit.members.pretrained import load_backbone
from edokit.members.recipes._training import new_reader
from edokit.members.recipes.transformer import TransformerMember
from edokit.metrics import rps
from tests.errors import raises_code


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


def member(model: str, **options: object) -> TransformerMember:
    chosen = {"learning_rate": 2e-2, "epochs": 5, "patience": 0, "device": "cpu", **options}
    return TransformerMember(2, model=model, **chosen)


@pytest.fixture(scope="module")
def fitted(model: str) -> TransformerMember:
    return member(model).fit(lesson(), random_state=3)


def test_loss_and_dev_ce_fall(fitted: TransformerMember) -> None:
    losses = [report["loss"] for report in fitted.history_]
    dev = [report["dev_ce"] for report in fitted.history_]
    assert losses[-1] < 0.5 * losses[0]
    assert min(dev) < 0.5 * dev[0]


def test_a_member_answers_with_distributions_in_the_order_of_the_texts(
    fitted: TransformerMember,
) -> None:
    texts, classes = texts_and_classes(40, 7)
    probabilities = fitted.predict_proba(texts)
    assert probabilities.shape == (40, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert (probabilities.argmax(axis=1) == classes).mean() > 0.9
    one_by_one = np.concatenate([fitted.predict_proba([text]) for text in texts[:5]])
    np.testing.assert_allclose(one_by_one, probabilities[:5], atol=1e-6)


def test_the_same_seed_gives_the_same_member_and_another_seed_another(
    model: str, fitted: TransformerMember
) -> None:
    texts, _ = texts_and_classes(10, 7)
    again = member(model).fit(lesson(), random_state=3)
    np.testing.assert_array_equal(again.predict_proba(texts), fitted.predict_proba(texts))
    other = member(model).fit(lesson(), random_state=4)
    assert np.abs(other.predict_proba(texts) - fitted.predict_proba(texts)).max() > 1e-6


def test_training_leaves_other_peoples_random_numbers_alone(model: str) -> None:
    def after(training: bool) -> list[float]:
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002
        if training:
            member(model, epochs=1).fit(lesson(n=16), random_state=3)
        return [float(torch.rand(())), float(np.random.rand())]  # noqa: NPY002

    assert after(training=True) == after(training=False)


def test_what_was_saved_predicts_the_same_and_holds_nothing_executable(
    fitted: TransformerMember, tmp_path: Path
) -> None:
    texts, _ = texts_and_classes(10, 7)
    fitted.save(tmp_path)
    loaded = TransformerMember.load(tmp_path)
    np.testing.assert_allclose(
        loaded.predict_proba(texts), fitted.predict_proba(texts), rtol=0, atol=1e-7
    )
    assert loaded.get_params() == {**fitted.get_params(), "device": None}
    assert (loaded.history_, loaded.best_epoch_) == (fitted.history_, fitted.best_epoch_)
    assert {path.suffix for path in tmp_path.iterdir()} == {".json", ".safetensors"}


def test_a_member_is_the_backbone_of_another(fitted: TransformerMember, tmp_path: Path) -> None:
    folder = tmp_path / "members" / "first"
    folder.mkdir(parents=True)
    fitted.save(folder)
    encoder = fitted._tuned.network.backbone.state_dict()
    again = load_backbone(str(folder)).state_dict()
    assert {
        name: bool(torch.equal(again[name], encoder[name])) for name in encoder
    } == dict.fromkeys(again, True)
    further = member(str(folder), epochs=1).fit(lesson(), random_state=5)
    texts, classes = texts_and_classes(40, 7)
    assert (further.predict_proba(texts).argmax(axis=1) == classes).mean() > 0.9


def test_the_best_epoch_comes_back(model: str) -> None:
    # Targets turn around after the third epoch: from there on the dev CE gets worse.
    _, classes = texts_and_classes(64, 0)
    eye = np.eye(2)
    turning = lesson(targets=lambda epoch: eye[classes] if epoch < 3 else eye[1 - classes])
    tuned = member(model, epochs=5).fit(turning, random_state=0)
    dev = [report["dev_ce"] for report in tuned.history_]
    assert tuned.best_epoch_ == int(np.argmin(dev)) + 1 <= 3
    probabilities = tuned.predict_proba(turning.dev_texts)
    ce = -(turning.dev_soft_labels * np.log(probabilities)).sum(axis=1).mean()
    assert ce == pytest.approx(min(dev), abs=1e-6)


def test_patience_ends_training(model: str) -> None:
    _, classes = texts_and_classes(64, 0)
    wrong = lesson(targets=lambda epoch: np.eye(2)[1 - classes])
    tuned = member(model, epochs=12, patience=2).fit(wrong, random_state=0)
    assert len(tuned.history_) == tuned.best_epoch_ + 2 < 12


def test_targets_are_asked_for_in_every_epoch(model: str) -> None:
    asked = []

    def targets(epoch: int) -> np.ndarray:
        asked.append(epoch)
        return np.eye(2)[np.random.default_rng(epoch).integers(0, 2, 64)]

    member(model, epochs=3).fit(lesson(targets=targets), random_state=0)
    assert asked[-3:] == [0, 1, 2]


def test_without_dev_texts_the_last_epoch_counts(model: str) -> None:
    alone = lesson(dev_texts=(), dev_soft_labels=None, dev_hard_labels=None)
    tuned = member(model, epochs=2).fit(alone, random_state=0)
    assert tuned.best_epoch_ is None
    assert [sorted(report) for report in tuned.history_] == [["epoch", "epochs", "loss"]] * 2


def test_soft_targets_are_learned_as_shares(model: str) -> None:
    _, classes = texts_and_classes(64, 0)
    shares = np.where(classes[:, None] == [0, 1], 0.8, 0.2)
    dev_texts, dev_classes = texts_and_classes(24, 1)
    dev_shares = np.where(dev_classes[:, None] == [0, 1], 0.8, 0.2)
    soft = lesson(targets=lambda epoch: shares, dev_soft_labels=dev_shares)
    tuned = member(model, epochs=8).fit(soft, random_state=0)
    assert np.abs(tuned.predict_proba(dev_texts) - dev_shares).mean() < 0.1


def test_manhattan_distance_is_another_loss(model: str) -> None:
    _, classes = texts_and_classes(64, 0)
    shares = np.where(classes[:, None] == [0, 1], 0.8, 0.2)
    soft = lesson(targets=lambda epoch: shares)
    tuned = member(model, loss="md", epochs=6).fit(soft, random_state=0)
    losses = [report["loss"] for report in tuned.history_]
    assert losses[-1] < losses[0] < 2.0


def test_all_options_together_train(model: str) -> None:
    pairs = [(text, "thanks please\nno") for text in texts_and_classes(64, 0)[0]]
    dev = [(text, "no") for text in texts_and_classes(24, 1)[0]]
    tuned = member(
        model,
        adversarial=0.1,
        layer_decay=0.9,
        pooling="mean+target",
        speaker_tags=True,
        epochs=6,
    ).fit(lesson(texts=pairs, dev_texts=dev), random_state=0)
    dev_ce = [report["dev_ce"] for report in tuned.history_]
    assert min(dev_ce) < 0.7 * dev_ce[0]


def test_a_member_reads_in_the_order_that_it_was_trained_in(model: str, tmp_path: Path) -> None:
    pairs = [(text, "thanks please no") for text in texts_and_classes(64, 0)[0]]
    dev = [(text, "no") for text in texts_and_classes(24, 1)[0]]
    tuned = member(model, pooling="mean+target", context_first=True, epochs=2)
    tuned.fit(lesson(texts=pairs, dev_texts=dev), random_state=0)
    wanted = tuned.predict_proba(dev)
    tuned.save(tmp_path)
    np.testing.assert_array_equal(TransformerMember.load(tmp_path).predict_proba(dev), wanted)
    state = json.loads((tmp_path / "transformer.json").read_text())
    state["options"]["context_first"] = False
    (tmp_path / "transformer.json").write_text(json.dumps(state))
    assert not np.allclose(TransformerMember.load(tmp_path).predict_proba(dev), wanted)


def test_half_precision_trains_and_is_undone(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "edokit.members.recipes._network.half_precision",
        lambda device: torch.autocast(device.type, torch.bfloat16),
    )
    tuned = member(model, epochs=4).fit(lesson(), random_state=3)
    assert tuned.history_[-1]["dev_ce"] < tuned.history_[0]["dev_ce"]
    weights = tuned._tuned.network.state_dict().values()
    assert all(weight.dtype == torch.float32 for weight in weights if weight.is_floating_point())
    texts, _ = texts_and_classes(10, 7)
    tuned.save(tmp_path)
    loaded = TransformerMember.load(tmp_path)
    np.testing.assert_allclose(
        loaded.predict_proba(texts), tuned.predict_proba(texts), rtol=0, atol=1e-7
    )


# Known annotators


def judged(**changed: object) -> SimpleNamespace:
    """The sincere one and the contrary one label every text; a third one labels a few."""
    _, classes = texts_and_classes(64, 0)
    given: dict[str, object] = {
        "items": range(64),
        "annotators": ["sincere", "contrary", "rare"],
        "item_codes": np.concatenate([np.arange(64), np.arange(64), np.arange(4)]),
        "annotator_codes": np.repeat([0, 1, 2], [64, 64, 4]),
        "label_codes": np.concatenate([classes, 1 - classes, classes[:4]]),
        "label_probabilities": None,
    }
    return SimpleNamespace(**{**given, **changed})


def everyone(**given: object) -> MemberData:
    """The sincere and the contrary one, who are a coin to those who do not know them."""
    _, classes = texts_and_classes(24, 1)
    dev = judged(
        items=range(24),
        item_codes=np.repeat(np.arange(24), 2),
        annotator_codes=np.tile([0, 1], 24),
        label_codes=np.column_stack([classes, 1 - classes]).ravel(),
    )
    coin = {
        "targets": lambda epoch: np.full((64, 2), 0.5),
        "dev_soft_labels": np.full((24, 2), 0.5),
    }
    return lesson(**{"annotations": judged(), "dev_annotations": dev, **coin, **given})


KNOWN = {"annotators": True, "annotator_learning_rate": 0.1, "epochs": 12}


@pytest.fixture(scope="module")
def people(model: str) -> TransformerMember:
    return member(model, **KNOWN).fit(everyone(), random_state=0)


def test_contrary_people_get_contrary_answers(people: TransformerMember) -> None:
    texts, classes = texts_and_classes(40, 7)
    sincere, contrary = (
        people.predict_proba(texts, annotators=[[name]] * 40).argmax(axis=1)
        for name in people.annotators_[:2]
    )
    assert (sincere == classes).mean() > 0.9
    assert (contrary == 1 - classes).mean() > 0.9
    assert np.abs(people.predict_proba(texts) - 0.5).max() < 0.2
    assert people.history_[-1]["dev_known_ce"] < people.history_[0]["dev_known_ce"]


def test_an_annotator_that_is_not_known_gets_exactly_the_anonymous_answer(
    people: TransformerMember,
) -> None:
    texts, _ = texts_and_classes(5, 7)
    anonymous = people.predict_proba(texts)
    probabilities = people.predict_proba(
        texts, annotators=[["stranger"], ["sincere"], [], ["new", "other"], [""]]
    )
    np.testing.assert_array_equal(probabilities[[0, 2, 3, 4]], anonymous[[0, 2, 3, 4]])
    assert np.abs(probabilities[1] - anonymous[1]).max() > 0.1


def test_a_panel_is_the_mean_of_its_annotators_in_any_order(people: TransformerMember) -> None:
    texts, _ = texts_and_classes(6, 7)
    names = [*people.annotators_, "stranger"]
    each = [people.predict_proba(texts, annotators=[[name]] * 6) for name in names]
    panel = people.predict_proba(texts, annotators=[names] * 6)
    np.testing.assert_allclose(panel, np.mean(each, axis=0), atol=1e-6)
    order = [3, 5, 0, 1, 4, 2]
    other_probabilities = people.predict_proba(
        [texts[i] for i in order], annotators=[names[::-1]] * 6
    )
    np.testing.assert_allclose(other_probabilities, panel[order], atol=1e-6)


def test_a_text_is_encoded_once_for_all_its_annotators(
    people: TransformerMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = count_encoded(monkeypatch)
    people.predict_proba(
        ["nice day"] * 3 + ["no"] * 2, annotators=[[name] for name in [*"abc", "rare", "a"]]
    )
    assert sum(sizes) == 2


def test_known_annotators_survive_the_disk(people: TransformerMember, tmp_path: Path) -> None:
    texts, _ = texts_and_classes(5, 7)
    people.save(tmp_path)
    loaded = TransformerMember.load(tmp_path)
    assert loaded.known_annotators == ("sincere", "contrary", "rare")
    for panel in (None, [["contrary"], ["rare"], [], ["x"], ["sincere", "rare"]]):
        np.testing.assert_allclose(
            loaded.predict_proba(texts, annotators=panel),
            people.predict_proba(texts, annotators=panel),
            atol=1e-7,
        )


def test_options_that_are_gone_by_now_do_not_matter(
    people: TransformerMember, tmp_path: Path
) -> None:
    people.save(tmp_path)
    file = tmp_path / "transformer.json"
    saved = json.loads(file.read_text())
    file.write_text(json.dumps({**saved, "options": {**saved["options"], "link": "softmax"}}))
    assert TransformerMember.load(tmp_path).known_annotators == people.known_annotators


def test_a_decoder_reads_pairs_of_texts_and_knows_annotators(tmp_path: Path) -> None:
    model = tiny_model(tmp_path / "gemma", decoder=True)
    texts, _ = texts_and_classes(64, 0)
    dev_texts, dev_classes = texts_and_classes(24, 1)
    pairs, dev = ([(text, "no thanks") for text in some] for some in (texts, dev_texts))
    tuned = member(model, **KNOWN, adversarial=0.1, layer_decay=0.9)
    tuned.fit(everyone(texts=pairs, dev_texts=dev), random_state=0)
    sincere = tuned.predict_proba(dev, annotators=[["sincere"]] * 24)
    assert (sincere.argmax(axis=1) == dev_classes).mean() > 0.8
    (tmp_path / "saved").mkdir()
    tuned.save(tmp_path / "saved")
    loaded = TransformerMember.load(tmp_path / "saved")
    np.testing.assert_allclose(
        loaded.predict_proba(dev, annotators=[["sincere"]] * 24), sincere, atol=1e-6
    )


# Answer scales


def test_points_of_a_scale_are_learned(model: str, tmp_path: Path) -> None:
    scale = Scale("ordinal", (1.0, 2.0, 4.0))
    rude = [text.count("rude") for text, _ in zip(*texts_and_classes(64, 0), strict=True)]
    dev_rude = [text.count("rude") for text, _ in zip(*texts_and_classes(24, 1), strict=True)]
    shares = np.array([[0.8, 0.2, 0.0], [0.0, 0.2, 0.8]])
    targets = shares[np.minimum(rude, 1)]
    dev = shares[np.minimum(dev_rude, 1)]
    data = lesson(
        targets=lambda epoch: targets, dev_soft_labels=dev, dev_hard_labels=None, scale=scale
    )
    for options in ({}, {"loss": "rps"}, {"loss": "ce+rps"}):
        tuned = member(model, epochs=8, **options)
        tuned.n_classes = 3
        tuned.fit(data, random_state=0)
        scores = [report["dev_rps"] for report in tuned.history_]
        assert tuned.best_epoch_ == int(np.argmin(scores)) + 1
        probabilities = tuned.predict_proba(data.dev_texts)
        assert rps(probabilities, dev, scale.positions) == pytest.approx(min(scores))
        assert min(scores) < 0.3 * scores[0]
    tuned.save(tmp_path)
    loaded = TransformerMember.load(tmp_path)
    assert loaded.scale_ == scale
    np.testing.assert_allclose(loaded.predict_proba(data.dev_texts), probabilities, atol=1e-7)


@pytest.mark.parametrize("annotators", [False, True])
def test_sets_are_learned_label_by_label(model: str, tmp_path: Path, annotators: bool) -> None:
    def labels(texts: Any) -> np.ndarray:
        return np.array([["rude" in text, "nice" in text] for text in texts], dtype=float)

    data = lesson(n=128, scale=Scale("multi-label"))
    targets = labels(data.texts)
    dev = labels(data.dev_texts)
    eager = judged(
        items=range(128),
        annotators=["sincere", "eager"],
        item_codes=np.repeat(np.arange(128), 2),
        annotator_codes=np.tile([0, 1], 128),
        label_codes=None,
        label_probabilities=np.stack([targets, np.ones_like(targets)], axis=1).reshape(-1, 2),
    )
    data = replace(
        data,
        targets=lambda epoch: targets,
        annotations=eager,
        dev_soft_labels=dev,
        dev_hard_labels=dev.astype(np.int32),
    )
    options = {**KNOWN, "epochs": 12} if annotators else {"epochs": 12}
    tuned = member(model, **options).fit(data, random_state=0)
    texts, _ = texts_and_classes(60, 7)
    who = [["sincere"]] * 60 if annotators else None
    probabilities = tuned.predict_proba(texts, annotators=who)
    assert ((probabilities > 0.5) == labels(texts)).mean() > 0.85
    if annotators:
        assert tuned.predict_proba(texts, annotators=[["eager"]] * 60).mean() > 0.9
    tuned.save(tmp_path)
    loaded = TransformerMember.load(tmp_path)
    np.testing.assert_allclose(
        loaded.predict_proba(texts, annotators=who), probabilities, atol=1e-7
    )


def test_a_loss_of_ordinal_scales_is_refused_on_others(model: str) -> None:
    with raises_code("unordered-scale", "loss='rps'"):
        member(model, loss="rps").fit(lesson(), random_state=0)


# One class only


def test_targets_of_one_class_make_a_constant_member(model: str, tmp_path: Path) -> None:
    ones = np.tile([0.0, 1.0], (64, 1))
    data = replace(lesson(targets=lambda epoch: ones), scale=Scale("ordinal", (1, 2)))
    with pytest.warns(EDOWarning, match="64 targets are the same"):
        constant = member(model).fit(data, random_state=0)
    probabilities = constant.predict_proba(["what", "ever"])
    np.testing.assert_allclose(probabilities, [[1 / 66, 65 / 66]] * 2)
    constant.save(tmp_path)
    loaded = TransformerMember.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(["what", "ever"]), probabilities)
    assert loaded.scale_ == data.scale


# Memory


def count_encoded(monkeypatch: pytest.MonkeyPatch, check: Any = None) -> list[int]:
    """How many texts the network encodes, batch by batch; ``check`` sees each batch before."""
    from edokit.members.recipes._network import MemberNetwork

    features = MemberNetwork.features
    sizes = []

    def counted(self, **inputs):
        size = len(inputs["input_ids"])
        if check is not None:
            check(self, size)
        sizes.append(size)
        return features(self, **inputs)

    monkeypatch.setattr(MemberNetwork, "features", counted)
    return sizes


def fail_above(monkeypatch: pytest.MonkeyPatch, most: int, training_only: bool = True) -> None:
    """Make the network run out of memory for batches larger than ``most``."""

    def check(network: Any, size: int) -> None:
        if size > most and (network.training or not training_only):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    count_encoded(monkeypatch, check)


def test_too_large_a_batch_is_an_error_that_names_the_option(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_above(monkeypatch, 8)
    with raises_code("too-little-memory", "16", "batch_size"):
        member(model, batch_size=16).fit(lesson(), random_state=3)


def test_too_large_a_batch_of_predictions_names_the_option(
    fitted: TransformerMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, _ = texts_and_classes(40, 7)
    fail_above(monkeypatch, 15, training_only=False)
    with raises_code("too-little-memory", "eval_batch_size"):
        fitted.predict_proba(texts)


# What is refused


def test_texts_must_be_texts(model: str) -> None:
    for odd, said in ((None, "missing"), (float("nan"), "missing"), (7, "int")):
        texts = [*lesson().texts[:-1], odd]
        with raises_code("not-a-text", f"text 64 of 64 is {said}"):
            member(model).fit(lesson(texts=texts), random_state=0)


def test_known_annotators_need_annotations(model: str, people: TransformerMember) -> None:
    with raises_code("missing-labels"):
        member(model, annotators=True).fit(lesson(), random_state=0)
    with raises_code("lengths-differ", "2 texts", "1 list"):
        people.predict_proba(["no", "no"], annotators=[["sincere"]])


def test_a_gpu_that_is_not_there_is_refused(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with raises_code("unknown-device", "device='cuda'"):
        member(model, device="cuda").fit(lesson(), random_state=0)
    with raises_code("unknown-device", "'abacus'"):
        member(model, device="abacus").fit(lesson(), random_state=0)


def test_a_folder_that_is_no_model_is_refused(model: str, tmp_path: Path) -> None:
    for given in (str(tmp_path), str(tmp_path / "nowhere"), __file__):
        with raises_code("unknown-model", given):
            member(given).fit(lesson(), random_state=0)
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in Path(model).iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    (broken / "model.safetensors").write_bytes(b"cut off")
    with raises_code("unloadable-model", str(broken)) as caught:
        member(str(broken)).fit(lesson(), random_state=0)
    assert "\n" not in str(caught.value)


def test_weights_that_lack_parameters_are_warned_about(model: str, tmp_path: Path) -> None:
    for path in Path(model).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.warns(EDOWarning, match="16 of the model's parameters"):
        member(str(tmp_path), epochs=1).fit(lesson(n=16), random_state=0)


def test_a_model_without_room_for_a_pair_of_texts_cuts_them(model: str) -> None:
    endless = [("nice " * 50, "rude " * 50)] * 8
    tokens = new_reader(member(model), model)(endless)
    assert {len(text["input_ids"]) for text in tokens} == {LONGEST}


def test_training_that_diverges_is_an_error(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "edokit.members.recipes._network.row_losses",
        lambda kind, logits, targets, steps: logits.sum(dim=-1) * float("nan"),
    )
    with raises_code("diverged-training", "epoch 1"):
        member(model).fit(lesson(), random_state=0)


def epochs_by_dev(
    model: str, monkeypatch: pytest.MonkeyPatch, scores: list[float], **options: Any
) -> TransformerMember:
    """A member whose epochs have these CE on dev, whatever it predicts."""
    coming = iter(scores)

    def given(*_: object, **__: object) -> dict[str, float]:
        return {"ce": next(coming), "f1": 0.9}

    monkeypatch.setattr("edokit.members.recipes._training.compute_metrics", given)
    return member(model, epochs=len(scores), **options).fit(lesson(n=16, n_dev=8), random_state=0)


def test_patience_counts_epochs_since_the_best_one(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = [0.5, 0.6, 0.4, 0.4, 0.5, 0.1]
    tuned = epochs_by_dev(model, monkeypatch, scores, patience=2)
    assert [report["dev_ce"] for report in tuned.history_] == scores[:5]
    assert tuned.best_epoch_ == 3


def test_by_ce_the_lowest_wins_and_the_first_of_equals(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = [0.5, 0.4, 0.4, 0.6]
    tuned = epochs_by_dev(model, monkeypatch, scores, patience=0)
    assert (len(tuned.history_), tuned.best_epoch_) == (4, 2)
    assert epochs_by_dev(model, monkeypatch, scores, patience=1).best_epoch_ == 2


def test_by_f1_the_highest_wins_and_small_gains_do_not_keep_it_training(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    coming = iter([0.80, 0.85, 0.855, 0.845, 0.9])

    def given(*_: object, **__: object) -> dict[str, float]:
        return {"ce": 0.5, "f1": next(coming)}

    monkeypatch.setattr("edokit.members.recipes._training.compute_metrics", given)
    options = {"epochs": 5, "patience": 2, "epoch_metric": "f1", "least_gain": 0.01}
    tuned = member(model, **options).fit(lesson(n=16, n_dev=8), random_state=0)
    assert (len(tuned.history_), tuned.best_epoch_) == (4, 3)


def test_a_folder_without_a_member_is_refused(tmp_path: Path) -> None:
    with raises_code("missing-file", "transformer.json"):
        TransformerMember.load(tmp_path)


def test_a_missing_package_names_the_extra(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with raises_code("missing-package", ".[transformers]", kind=MissingExtraError):
        member(model).fit(lesson(), random_state=0)


def test_it_is_a_recipe() -> None:
    assert Member in TransformerMember.__mro__
    assert TransformerMember.capabilities.trains_on_device


def test_adapters_leave_the_encoder_frozen_and_are_merged_into_what_is_saved(
    model: str, tmp_path: Path
) -> None:
    tuned = member(model, adapter_rank=4, epochs=12).fit(lesson(), random_state=3)
    texts, classes = texts_and_classes(40, 7)
    probabilities = tuned.predict_proba(texts)
    assert (probabilities.argmax(axis=1) == classes).mean() > 0.9
    before = load_backbone(model)
    after = tuned._tuned.network.backbone
    words = "embeddings.word_embeddings.weight"
    assert torch.equal(after.state_dict()[words], before.state_dict()[words])
    layer = "encoder.layer.0.attention.self.query.weight"
    change = after.state_dict()[layer] - before.state_dict()[layer]
    assert 1 <= torch.linalg.matrix_rank(change, atol=1e-5) <= 4
    tuned.save(tmp_path)
    np.testing.assert_allclose(
        TransformerMember.load(tmp_path, device="cpu").predict_proba(texts), probabilities
    )


def test_adapters_and_an_adversarial_step_exclude_each_other() -> None:
    with raises_code("conflicting-options", "adversarial=1.0", "adapter_rank=8"):
        TransformerMember(2, adapter_rank=8, adversarial=1.0)


def test_an_instruction_is_read_before_every_text(model: str) -> None:
    plain = member(model)
    instructed = member(model, instruction="please stop")
    pair = [("nice day", "you are late")]
    words = new_reader(instructed, model)(pair)[0]["input_ids"]
    rest = new_reader(plain, model)(pair)[0]["input_ids"]
    start = new_reader(plain, model)(["please stop"])[0]["input_ids"][:3]
    np.testing.assert_array_equal(words, [*start, *rest[1:]])
