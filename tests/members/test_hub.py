"""Models that people already have become members, their labels understood or refused."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_transformer import tiny_model

from edokit.members import score_models
from edokit.members.existing import match_labels
from edokit.members.pretrained import DOWNLOAD, load_backbone, load_tokenizer, local_folder
from edokit.members.score import model_names
from tests.errors import raises_code

TEXTS = ["lovely day", "you are late again please stop it", "rude"]


def classifier(folder: Path, labels: list[str], **config: object) -> str:
    """A random text-classification model with these labels."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification
    from transformers.utils import logging

    logging.disable_progress_bar()
    tiny_model(folder)
    torch.manual_seed(len(labels))
    settings = BertConfig.from_pretrained(folder).to_dict()
    settings |= {"id2label": dict(enumerate(labels)), "label2id": {}, "num_labels": len(labels)}
    BertForSequenceClassification(BertConfig(**{**settings, **config})).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def polite(tmp_path_factory: pytest.TempPathFactory) -> str:
    return classifier(tmp_path_factory.mktemp("polite"), ["Polite", "Rude"])


def test_a_model_gives_what_its_pipeline_gives(polite: str) -> None:
    from transformers import pipeline

    table, maps = score_models({"mine": polite}, TEXTS, classes=["polite", "rude"])
    assert maps == {"mine": {"Polite": "polite", "Rude": "rude"}}
    assert table.classes == ("polite", "rude")
    run = pipeline("text-classification", model=polite, top_k=None, device="cpu")
    theirs = [{one["label"]: one["score"] for one in answer} for answer in run(TEXTS)]
    expected = [[answer["Polite"], answer["Rude"]] for answer in theirs]
    np.testing.assert_allclose(table.probabilities[:, 0], expected, atol=1e-5)


def test_classes_are_the_models_labels_unless_declared(polite: str) -> None:
    table, _ = score_models({"mine": polite}, TEXTS)
    assert table.classes == ("Polite", "Rude")


def test_the_order_of_declared_classes_holds(polite: str) -> None:
    straight, _ = score_models({"mine": polite}, TEXTS, classes=["polite", "rude"])
    turned, _ = score_models({"mine": polite}, TEXTS, classes=["rude", "polite"])
    np.testing.assert_array_equal(straight.probabilities, turned.probabilities[:, :, ::-1])


def test_several_labels_may_stand_for_one_class(tmp_path: Path) -> None:
    three = classifier(tmp_path, ["fine", "rude", "hateful"])
    table, maps = score_models(
        {"three": three},
        TEXTS,
        classes=["polite", "rude"],
        labels={"fine": "polite", "hateful": "rude"},
    )
    assert maps["three"] == {"fine": "polite", "rude": "rude", "hateful": "rude"}
    np.testing.assert_allclose(table.probabilities.sum(axis=2), 1, atol=1e-6)


def test_models_stand_side_by_side(tmp_path: Path, polite: str) -> None:
    numbered = classifier(tmp_path, ["LABEL_0", "LABEL_1"])
    table, maps = score_models({"a": polite, "b": numbered}, TEXTS, classes=["polite", "rude"])
    assert table.members == ("a", "b")
    assert maps["b"] == {"LABEL_0": "polite", "LABEL_1": "rude"}


def test_pairs_are_read_as_pairs(polite: str) -> None:
    alone, _ = score_models({"mine": polite}, ["rude"])
    paired, _ = score_models({"mine": polite}, [("rude", "lovely day")])
    assert (alone.probabilities != paired.probabilities).any()


@pytest.mark.parametrize(
    ("own", "classes", "given"),
    [
        (["a", "b"], ["0", "1"], {}),
        (["LABEL_0", "LABEL_1", "LABEL_2"], ["0", "1"], {}),
        (["a", "b"], ["0", "1"], {"a": "0"}),
        (["a", "b"], ["0", "1"], {"a": "0", "b": "0"}),
        (["a", "b"], ["0", "1"], {"c": "0"}),
        (["a", "b"], ["0", "1"], {"a": "2", "b": "1"}),
    ],
)
def test_labels_that_do_not_fit_the_classes_are_refused(
    own: list[str], classes: list[str], given: dict[str, str]
) -> None:
    labels = ", ".join(map(repr, own))
    with raises_code("unknown-label", "m has", labels, "'0', '1'"):
        match_labels(own, classes, given, "m")


def test_a_model_without_a_trained_classifier_is_refused(tmp_path: Path) -> None:
    with raises_code("unsupported-model", "classifier.bias"):
        score_models({"bare": tiny_model(tmp_path)}, TEXTS)


def test_a_model_for_several_labels_at_once_gives_each_a_probability(tmp_path: Path) -> None:
    sets = {"problem_type": "multi_label_classification"}
    many = classifier(tmp_path / "many", ["a", "b"], **sets)
    found, _ = score_models({"many": many}, TEXTS)
    assert found.scale.is_multi_label
    one = classifier(tmp_path / "one", ["a", "b"])
    single, _ = score_models({"one": one}, TEXTS)
    # The same weights: a softmax over two logits is the sigmoid of their difference.
    logits = np.log(found.probabilities / (1 - found.probabilities))
    same = 1 / (1 + np.exp(logits[..., 0] - logits[..., 1]))
    np.testing.assert_allclose(same, single.probabilities[..., 1], atol=1e-4)
    joined, _ = score_models({"many": many}, TEXTS, classes=["c"], labels={"a": "c", "b": "c"})
    np.testing.assert_allclose(
        joined.probabilities[..., 0], found.probabilities.max(axis=2), atol=1e-6
    )
    with raises_code("scales-differ", "one", "nominal", "multi-label"):
        score_models({"many": many, "one": one}, TEXTS)


def test_tokens_that_a_model_does_not_know_are_one_clear_message(tmp_path: Path) -> None:
    model = classifier(tmp_path, ["no", "yes"], vocab_size=6)
    with raises_code("unsupported-model", "tokenizer", " 6 "):
        score_models({"mine": model}, TEXTS)


def test_a_model_is_loaded_also_where_stderr_is_closed(polite: str) -> None:
    code = (
        "import os, sys\nfrom transformers.utils import logging\n"
        "from edokit.members.pretrained import load_tokenizer\n"
        "os.close(2)\nload_tokenizer(sys.argv[1])"
    )
    assert subprocess.run([sys.executable, "-c", code, polite], check=False).returncode == 0


def test_a_model_for_regression_is_refused(tmp_path: Path) -> None:
    model = classifier(tmp_path, ["a", "b"], problem_type="regression")
    with raises_code("unsupported-model", "regression"):
        score_models({"number": model}, TEXTS)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Addresses that were asked for; none of them answers."""
    asked: list[object] = []

    def refuse(*arguments: object, **_: object) -> None:
        asked.append(arguments)
        raise OSError("the network is not there")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return asked


def test_a_hub_id_that_is_not_here_is_one_line_and_no_download(no_network: list[object]) -> None:
    for load in (local_folder, load_tokenizer, load_backbone):
        with raises_code("unknown-model", "hf download org/nowhere"):
            load("org/nowhere")
    assert not no_network


def test_a_download_that_is_asked_for_gives_up_soon(
    no_network: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DOWNLOAD, "1")
    with raises_code("failed-download", "'org/nowhere'"):
        load_backbone("org/nowhere")
    assert 1 <= len(no_network) <= 3  # not for a minute


def test_a_hub_id_that_was_downloaded_needs_no_network(
    polite: str, no_network: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = tmp_path / "models--org--polite"
    shutil.copytree(polite, cached / "snapshots" / "abc")
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text("abc")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    from_cache, _ = score_models({"mine": "org/polite"}, TEXTS)
    from_folder, _ = score_models({"mine": polite}, TEXTS)
    np.testing.assert_array_equal(from_cache.probabilities, from_folder.probabilities)
    assert not no_network


def test_models_are_named_after_their_last_part_or_as_told() -> None:
    assert model_names(["org/model-a", "b=org/model-a"]) == {
        "model-a": "org/model-a",
        "b": "org/model-a",
    }


@pytest.mark.parametrize("given", [["org/a", "other/a"], ["=x"], ["x="]])
def test_models_without_names_of_their_own_are_refused(given: list[str]) -> None:
    with raises_code("duplicate-name", repr(given[-1])):
        model_names(given)


def test_no_model_is_refused() -> None:
    with raises_code("empty-option"):
        score_models({}, TEXTS)
