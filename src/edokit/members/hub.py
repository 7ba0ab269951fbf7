"""Existing text-classification models, from the Hugging Face hub or a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import InputError
from edokit._types import Floats
from edokit.members.pretrained import (
    TO_PREDICT,
    choose_device,
    load_tokenizer,
    loading,
    local_folder,
    require_packages,
)
from edokit.members.recipe import Text
from edokit.members.texts import Texts
from edokit.scales import NOMINAL, Scale, check_same_scale

if TYPE_CHECKING:
    from edokit.predictions import Predictions

BATCH = 32
_SETS = "multi_label_classification"
"""What a model's configuration calls sets of labels."""
_UNNAMED = re.compile(r"label_\d+", re.IGNORECASE)
LabelMap = dict[str, str]
"""The class that each label of a model stands for."""


def score_models(
    models: Mapping[str, str],
    texts: Texts | Sequence[Text],
    *,
    classes: Sequence[str] | None = None,
    labels: Mapping[str, str] | None = None,
    device: str | None = None,
    step: Callable[[int, int, str], None] = lambda done, total, member: None,
) -> tuple[Predictions, dict[str, LabelMap]]:
    """Predict texts with text-classification models, and match their labels to classes.

    Models for several labels at once (``problem_type``) predict on a multi-label scale; all of
    them or none must do so.

    Parameters
    ----------
    models : mapping of str to str
        Hub id or folder of each model, by the name of the member that it becomes.
    texts : Texts or sequence of str or of (str, str)
        Texts with their item ids; without ids they are named 0, 1, 2, ….
    classes : sequence of str, default=None
        The classes in order. None: the labels of the first model.
    labels : mapping of str to str, default=None
        The class of a label, where the names differ; several labels may stand for one class.
        Labels that are only numbered stand for the classes in order.
    device : str, default=None
        Where to compute. None: a GPU if there is one.
    step : callable, default=no-op
        Called with the number of models done, of all models, and the name of the next.

    Returns
    -------
    predictions : Predictions
    labels : dict of str to dict
        The class of each label, by model.
    """
    from edokit.predictions import Predictions

    require_packages("a text-classification model", TO_PREDICT)
    if not models:
        raise InputError("no model is named to score texts with", "name one")
    checked = texts.checked() if isinstance(texts, Texts) else Texts.of(texts)
    order = None if classes is None else [str(name) for name in classes]
    maps: dict[str, LabelMap] = {}
    answers, scale = [], NOMINAL
    for done, (name, model) in enumerate(models.items()):
        step(done, len(models), name)
        network, model_labels = _load(model)
        sets = network.config.problem_type == _SETS
        model_scale = Scale("multi-label") if sets else NOMINAL
        scale = model_scale if done == 0 else scale
        check_same_scale(model_scale, f"model {name}", scale, "others")
        maps[name] = match_labels(model_labels, order, labels or {}, model)
        if order is None:
            order = list(dict.fromkeys(maps[name].values()))
        shares = _probabilities(network, model, checked.texts, device)
        pooled = np.zeros((len(shares), len(order)))
        for column, label in enumerate(model_labels):
            into = pooled[:, order.index(maps[name][label])]
            # Of several labels for one class, one is chosen at most, unless they come as sets.
            into[:] = np.maximum(into, shares[:, column]) if sets else into + shares[:, column]
        answers.append(pooled)
    step(len(models), len(models), "")
    table = Predictions.from_arrays(
        np.stack(answers, axis=1),
        items=checked.items,
        members=list(models),
        classes=order,
        groups=list(models),
        layout="NKC",
        scale=scale,
    )
    return table, maps


def match_labels(
    labels: Sequence[str],
    classes: Sequence[str] | None,
    renamed: Mapping[str, str],
    model: str,
) -> LabelMap:
    """The class of each of a model's labels, or an error that shows both."""
    class_of = {label: renamed.get(label, label) for label in labels}
    if classes is not None:
        by_name = {name.casefold(): name for name in classes}
        numbered = not renamed and all(_UNNAMED.fullmatch(label) for label in labels)
        if numbered and len(labels) == len(classes):
            by_name = {label.casefold(): name for label, name in zip(labels, classes, strict=True)}
        class_of = {
            label: renamed.get(label, by_name.get(label.casefold(), "")) for label in labels
        }
    if {*renamed} - {*labels} or (classes is not None and {*class_of.values()} != {*classes}):
        raise InputError(
            f"{model} has the labels {_quoted(labels)}, of which each must stand for one of the"
            f" classes {_quoted(classes or labels)}, and each class for one of them",
            f"say what a label stands for: --label {labels[0]}={(classes or labels)[0]}",
        )
    return class_of


def model_names(models: Sequence[str]) -> dict[str, str]:
    """``NAME=MODEL`` or ``MODEL`` by name; the name defaults to the last part of the id or path."""
    model_of: dict[str, str] = {}
    for text in models:
        name, equals, model = text.partition("=")
        if not equals:
            name, model = PurePath(text).name, text
        if not name or not model or name in model_of:
            raise InputError(
                f"models must have different names, but got {text!r}"
                + (f" beside {model_of[name]!r}" if name in model_of else ""),
                "write NAME=MODEL",
            )
        model_of[name] = model
    return model_of


def _load(model: str) -> tuple[Any, list[str]]:
    """The model and its labels, in the order of its outputs."""
    from transformers import AutoModelForSequenceClassification

    with loading(model):
        network, report = AutoModelForSequenceClassification.from_pretrained(
            local_folder(model), output_loading_info=True
        )
    missing = sorted(report["missing_keys"])
    if missing:
        raise InputError(
            f"the model must come with a trained classifier, but {model} has no weights for"
            f" {missing[0]}",
            "name a fine-tuned model, or fine-tune it with `edo train --recipe transformer`",
        )
    config = network.config
    if config.num_labels < 2 or config.problem_type == "regression":
        raise InputError(
            f"the model must choose among several labels, but {model} is for regression",
            "name a text-classification model",
        )
    return network, [str(config.id2label[k]) for k in range(config.num_labels)]


def _probabilities(network: Any, model: str, texts: Sequence[Text], device: str | None) -> Floats:
    import torch

    from edokit.members.recipes._network import in_batches
    from edokit.members.recipes._tokens import Reader

    place = choose_device(device)
    reader = Reader(load_tokenizer(model), 512)
    network = network.to(place).eval()

    def forward(target_mask: Any, **inputs: Any) -> Any:
        logits = network(**inputs).logits.float().cpu().double()
        sets = network.config.problem_type == _SETS
        return torch.sigmoid(logits) if sets else torch.softmax(logits, dim=-1)

    return in_batches(forward, reader(list(texts)), reader, BATCH, place)


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
