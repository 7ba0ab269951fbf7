"""Members and the weights that pool them, trained together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tiny_transformer import texts_and_classes, tiny_model, torch

from edokit._errors import InputError
from edokit.members import MemberData
from edokit.members.pretrained import load_backbone
from edokit.members.recipes._end_to_end import EndToEndMembers
from edokit.objective import Settings
from edokit.scales import Scale
from edokit.torch import EDOHead

N, K = 64, 3


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


def labels(soft: np.ndarray, hard: np.ndarray) -> SimpleNamespace:
    """Labels of the pool, as annotations give them."""
    return SimpleNamespace(soft_labels=soft, hard_labels=lambda: hard)


def joint_data(**given: object) -> MemberData:
    """The last member is taught the contrary: it should count for little."""
    texts, classes = texts_and_classes(N, 0)
    dev_texts, dev_classes = texts_and_classes(24, 1)

    arguments = {
        "texts": texts,
        "targets": lambda epoch: np.eye(2)[np.column_stack([classes, classes, 1 - classes])],
        "annotations": labels(np.eye(2)[classes], classes),
        "dev_texts": dev_texts,
        "dev_soft_labels": np.eye(2)[dev_classes],
        "dev_hard_labels": dev_classes,
        **given,
    }
    return MemberData(**arguments)


def members(model: str, **options: object) -> EndToEndMembers:
    chosen = {"learning_rate": 2e-2, "epochs": 6, "patience": 0, "device": "cpu", **options}
    return EndToEndMembers(2, model=model, n_members=K, joint_learning_rate=5e-2, **chosen)


@pytest.fixture(scope="module")
def trained(model: str) -> tuple[EndToEndMembers, EDOHead]:
    head = EDOHead(K, settings=Settings(div=0.0))
    return members(model).fit(joint_data(), head=head, random_state=0), head


def test_the_loss_falls(trained: tuple[EndToEndMembers, EDOHead]) -> None:
    history = trained[0].history_
    assert history[-1]["loss"] < 0.7 * history[0]["loss"]
    assert min(report["dev_ce"] for report in history) < 0.5 * history[0]["dev_ce"]


def test_weights_learn_with_the_members(trained: tuple[EndToEndMembers, EDOHead]) -> None:
    ensemble, head = trained
    assert sum(ensemble.weights_) == pytest.approx(1.0)
    assert ensemble.size_ == np.count_nonzero(ensemble.weights_)
    theta = head.theta.detach()
    assert theta.abs().min() > 0
    assert theta[2] < min(theta[0], theta[1])


def test_every_member_answers(trained: tuple[EndToEndMembers, EDOHead]) -> None:
    ensemble, head = trained
    texts, classes = texts_and_classes(40, 7)
    shares = ensemble.predict_proba(texts)
    assert shares.shape == (40, K, 2)
    np.testing.assert_allclose(shares.sum(axis=2), 1.0)
    pooled = head.eval()(torch.from_numpy(shares)).detach().numpy()
    np.testing.assert_allclose(pooled, np.einsum("k,nkc->nc", ensemble.weights_, shares))
    assert (pooled.argmax(axis=1) == classes).mean() > 0.9


def test_the_gradient_reaches_the_backbone(model: str) -> None:
    # Without their own loss, members learn from the pool alone.
    ensemble = members(model, member_weight=0.0, epochs=3)
    ensemble.fit(joint_data(dev_texts=()), head=EDOHead(K), random_state=0)
    before = load_backbone(model).state_dict()
    after = ensemble._tuned.network.backbone.state_dict()
    layer = "encoder.layer.0.attention.self.value.weight"
    assert float((after[layer] - before[layer]).abs().max()) > 1e-3
    assert ensemble.history_[-1]["loss"] < ensemble.history_[0]["loss"]


def test_members_survive_the_disk(trained: tuple[EndToEndMembers, EDOHead], tmp_path: Path) -> None:
    ensemble, _ = trained
    texts, _ = texts_and_classes(5, 7)
    ensemble.save(tmp_path)
    loaded = EndToEndMembers.load(tmp_path)
    np.testing.assert_allclose(
        loaded.predict_proba(texts), ensemble.predict_proba(texts), rtol=0, atol=1e-7
    )
    assert (loaded.weights_, loaded.size_) == (ensemble.weights_, ensemble.size_)
    assert loaded.options() == {**ensemble.options(), "device": None}


def test_a_bad_option_in_a_folder_is_named_as_such(
    trained: tuple[EndToEndMembers, EDOHead], tmp_path: Path
) -> None:
    trained[0].save(tmp_path)
    kept = json.loads((tmp_path / "end_to_end.json").read_text())
    kept["options"]["epochs"] = 0
    (tmp_path / "end_to_end.json").write_text(json.dumps(kept))
    with pytest.raises(InputError, match=r"epochs is 0, but must be a whole number of at least 1"):
        EndToEndMembers.load(tmp_path)
    (tmp_path / "end_to_end.json").write_text(json.dumps({"options": {"n_classes": 2}}))
    with pytest.raises(InputError, match="scale is missing"):
        EndToEndMembers.load(tmp_path)


def test_sets_are_pooled_label_by_label(model: str) -> None:
    # The last member is taught the contrary of both labels.
    def chosen(texts: Sequence[str]) -> np.ndarray:
        return np.array([["rude" in text, "nice" in text] for text in texts], dtype=float)

    (texts, _), (dev_texts, _) = texts_and_classes(N, 0), texts_and_classes(24, 1)
    sets, dev = chosen(texts), chosen(dev_texts)
    data = joint_data(
        targets=lambda epoch: np.stack([sets, sets, 1 - sets], axis=1),
        annotations=labels(sets, sets.astype(int)),
        dev_soft_labels=dev,
        dev_hard_labels=dev.astype(int),
        scale=Scale("multi-label"),
    )
    ensemble = members(model, epochs=8).fit(data, random_state=0)
    found = ensemble.predict_proba(dev_texts)
    assert found.shape == (24, K, 2)
    pooled = np.einsum("k,nkl->nl", ensemble.weights_, found)
    assert ((pooled > 0.5) == dev).mean() > 0.9
    assert ensemble.weights_[-1] < 0.2


def test_what_does_not_fit_together_is_refused(model: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a head per member"):
        members(model, annotators=True).fit(joint_data(), head=EDOHead(K), random_state=0)
    with pytest.raises(InputError, match=r"end_to_end\.json"):
        EndToEndMembers.load(tmp_path)
    for use in (lambda m: m.predict_proba(["no"]), lambda m: m.save(tmp_path)):
        with pytest.raises(InputError, match="fitted"):
            use(members(model))
