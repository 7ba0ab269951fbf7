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
    folder_or_id,
    load_tokenizer,
    loading,
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
    """Predictions of models (name -> hub id or folder), and how their labels were understood.

    Labels are matched to ``classes`` by name; ``labels`` says otherwise (label -> class, several
    labels may stand for one class). Labels that are only numbered stand for the classes in order.
    Without ``classes`` they are the first model's labels. Models that were trained for several
    labels at once predict on a multi-label scale, all of them or none.
    """
    from edokit.predictions import Predictions

    require_packages("a text-classification model", TO_PREDICT)
    if not models:
        raise InputError("no model is named to score texts with", "name one")
    asked = texts.checked() if isinstance(texts, Texts) else Texts.of(texts)
    order = None if classes is None else [str(name) for name in classes]
    maps: dict[str, LabelMap] = {}
    answers, scale = [], NOMINAL
    for done, (name, model) in enumerate(models.items()):
        step(done, len(models), name)
        network, own = _load(model)
        sets = network.config.problem_type == _SETS
        own_scale = Scale("multi-label") if sets else NOMINAL
        scale = own_scale if done == 0 else scale
        check_same_scale(own_scale, f"model {name}", scale, "others")
        maps[name] = match_labels(own, order, labels or {}, model)
        if order is None:
            order = list(dict.fromkeys(maps[name].values()))
        shares = _probabilities(network, model, asked.texts, device)
        pooled = np.zeros((len(shares), len(order)))
        for column, label in enumerate(own):
            into = pooled[:, order.index(maps[name][label])]
            # Of several labels for one class, one is chosen at most, unless they come as sets.
            into[:] = np.maximum(into, shares[:, column]) if sets else into + shares[:, column]
        answers.append(pooled)
    step(len(models), len(models), "")
    table = Predictions.from_arrays(
        np.stack(answers, axis=1),
        items=asked.items,
        members=list(models),
        classes=order,
        groups=list(models),
        layout="NKC",
        scale=scale,
    )
    return table, maps


def match_labels(
    own: Sequence[str], classes: Sequence[str] | None, given: Mapping[str, str], model: str
) -> LabelMap:
    """The class of each of a model's labels, or an error that shows both."""
    strange = [label for label in given if label not in own]
    if strange:
        raise InputError(
            f"a mapped label must be one of the model's ({_shown(own)}), but {model} has no"
            f" {strange[0]!r}",
            "check the spelling",
        )
    if classes is None:
        return {label: given.get(label, label) for label in own}
    same = {name.casefold(): name for name in classes}
    mapped = {label: given.get(label, same.get(label.casefold(), "")) for label in own}
    numbered = all(_UNNAMED.fullmatch(label) for label in own)
    if not given and numbered and len(own) == len(classes):
        mapped = dict(zip(own, classes, strict=True))
    wrong = [label for label in own if mapped[label] not in classes]
    if wrong:
        raise InputError(
            f"every label of a model must stand for one of the classes {_shown(classes)}, but"
            f" {model} has {_shown(own)}",
            f"say what it stands for: --label {wrong[0]}={classes[0]}",
        )
    silent = [name for name in classes if name not in mapped.values()]
    if silent:
        raise InputError(
            f"every class must be a label of the model, but no label of {model} ({_shown(own)})"
            f" stands for {_shown(silent)}",
            f"map one with --label LABEL={silent[0]}",
        )
    return mapped


def model_names(models: Sequence[str]) -> dict[str, str]:
    """``NAME=MODEL`` or ``MODEL`` by name; the name defaults to the last part of the id or path."""
    named: dict[str, str] = {}
    for text in models:
        name, equals, model = text.partition("=")
        if not equals:
            name, model = PurePath(text).name, text
        if not name or not model or name in named:
            raise InputError(
                f"models must have different names, but got {text!r}"
                + (f" beside {named[name]!r}" if name in named else ""),
                "write NAME=MODEL",
            )
        named[name] = model
    return named


def _load(model: str) -> tuple[Any, list[str]]:
    """The model and its labels, in the order of its outputs."""
    from transformers import AutoModelForSequenceClassification

    with loading(model):
        network, report = AutoModelForSequenceClassification.from_pretrained(
            folder_or_id(model), output_loading_info=True
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

    chosen = choose_device(device)
    reader = Reader(load_tokenizer(model), 512)
    network = network.to(chosen).eval()

    def forward(target_mask: Any, **inputs: Any) -> Any:
        logits = network(**inputs).logits.float().cpu().double()
        sets = network.config.problem_type == _SETS
        return torch.sigmoid(logits) if sets else torch.softmax(logits, dim=-1)

    return in_batches(forward, reader(list(texts)), reader, BATCH, chosen)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
