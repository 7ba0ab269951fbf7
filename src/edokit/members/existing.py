"""Models that people already have: text-classification models, and scikit-learn pipelines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edokit._errors import InputError, errors_in, examples, option
from edokit._io.documents import Document, Names, read_model, write_json
from edokit._io.skops import read_estimator_file, write_estimator
from edokit._types import Floats
from edokit.members.contexts import Context, Text, join_context, with_context
from edokit.members.pretrained import (
    PREDICTION_PACKAGES,
    check_code,
    choose_device,
    load_tokenizer,
    loading,
    local_folder,
    public_name,
    require_packages,
    vocabulary_size,
    without_messages,
)
from edokit.members.recipe import Annotators, Capabilities, Member
from edokit.scales import NOMINAL, Scale, unordered_scale

if TYPE_CHECKING:
    import torch

BATCH = 32
_FILE = "existing.json"
_ESTIMATOR = "estimator.skops"
# The problem type, in a model's configuration, of multi-label classifiers.
_MULTI_LABEL = "multi_label_classification"
# A label without a name of its own.
_NUMBERED = re.compile(r"label_\d+", re.IGNORECASE)
# The class of each label of a model.
LabelMap = dict[str, str]


class _SklearnClassifier:
    """A scikit-learn classifier of texts; contexts are appended to texts."""

    scale = NOMINAL

    def __init__(self, path: Path, trust: Sequence[str]) -> None:
        self.estimator = read_estimator_file(path, trust)
        classes = getattr(self.estimator, "classes_", None)
        if not isinstance(classes, np.ndarray) or not hasattr(self.estimator, "predict_proba"):
            raise InputError(
                f"{path} must hold a fitted classifier with probabilities, but holds"
                f" {type(self.estimator).__name__}",
                "fit a pipeline that reads texts, and save it with skops.io.dump",
                code="unsupported-model",
            )
        self.labels = [str(label) for label in classes]

    def predict_proba(self, texts: Sequence[Text]) -> Floats:
        return np.asarray(self.estimator.predict_proba([join_context(text) for text in texts]))

    def save(self, folder: Path) -> None:
        write_estimator(self.estimator, folder / _ESTIMATOR)


class _NetworkClassifier:
    """A text-classification model of the Hugging Face hub, or in a folder."""

    def __init__(self, model: str, device: str | None) -> None:
        require_packages("a text-classification model", PREDICTION_PACKAGES)
        from transformers import AutoModelForSequenceClassification

        from edokit.members.recipes._tokens import Reader

        folder = local_folder(model)
        check_code(folder)
        with loading(model):
            self.network, report = AutoModelForSequenceClassification.from_pretrained(
                folder, output_loading_info=True
            )
        config = self.network.config
        missing = sorted(report["missing_keys"])
        if missing:
            raise InputError(
                f"the model must come with a trained classifier, but {model} has no weights for"
                f" {missing[0]}",
                "name a fine-tuned model, or fine-tune it with `edo train --recipe transformer`",
                code="unsupported-model",
            )
        if config.num_labels < 2 or config.problem_type == "regression":
            raise InputError(
                f"the model must choose among several labels, but {model} is for regression",
                "name a text-classification model",
                code="unsupported-model",
            )
        self.labels = [str(config.id2label[k]) for k in range(config.num_labels)]
        self.scale = unordered_scale(config.problem_type == _MULTI_LABEL)
        self.device = choose_device(device)
        self.network = self.network.to(self.device).eval()
        self.reader = Reader(load_tokenizer(model), 512, vocabulary=vocabulary_size(model))

    def predict_proba(self, texts: Sequence[Text]) -> Floats:
        import torch

        from edokit.members.recipes._network import in_batches

        def forward(target_mask: torch.Tensor, **inputs: torch.Tensor) -> torch.Tensor:
            logits = self.network(**inputs).logits.float().cpu().double()
            if self.scale.is_multi_label:
                return torch.sigmoid(logits)
            return torch.softmax(logits, dim=-1)

        return in_batches(forward, self.reader(list(texts)), self.reader, BATCH, self.device)

    def save(self, folder: Path) -> None:
        with without_messages():
            self.network.save_pretrained(folder)
            self.reader.tokenizer.save_pretrained(folder)


class SavedLabels(Document):
    """The content of ``existing.json``."""

    model: str
    classes: Names
    labels: dict[str, str]


class ExistingModel(Member):
    """A model that was trained elsewhere, whose labels are mapped to the classes.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    model : str
        Where it comes from: a hub id, a folder, or a file that skops wrote.
    device : str, default=None
        Where a text-classification model computes. None: a GPU if there is one.
    """

    capabilities = Capabilities(device=True, multi_label=True, pretrained="model", trust=True)

    def __init__(self, n_classes: int, *, model: str = "", device: str | None = None) -> None:
        self.n_classes = n_classes
        self.model = model
        self.device = device
        self.classes: list[str] = []
        self.labels: LabelMap = {}
        self._model: _SklearnClassifier | _NetworkClassifier  # set by `read`

    @classmethod
    def read(
        cls,
        model: str,
        classes: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        *,
        device: str | None = None,
        trust: Sequence[str] = (),
    ) -> ExistingModel:
        """Read a model, and match its labels to classes; parameters as of `add_member`."""
        path = Path(model).expanduser()
        source: _SklearnClassifier | _NetworkClassifier
        if path.is_file():
            source = _SklearnClassifier(path, trust)
        else:
            source = _NetworkClassifier(model, device)
        class_of = match_labels(source.labels, classes, labels or {}, model)
        if classes is None:
            names = list(dict.fromkeys(class_of.values()))
        else:
            names = list(classes)
        member = cls(len(names), model=public_name(model), device=device)
        member.classes = names
        member.labels = class_of
        member._model = source
        return member

    @property
    def scale(self) -> Scale:
        """Its answer scale."""
        return self._model.scale

    def predict_proba(
        self, texts: Sequence[Text], context: Context = None, annotators: Annotators = None
    ) -> Floats:
        """Probabilities [N, C]; those of labels of the same class are added up."""
        source = self._model
        shares = source.predict_proba(with_context(texts, context))
        codes = [self.classes.index(self.labels[label]) for label in source.labels]
        return source.scale.merged_columns(shares, codes, self.n_classes)

    def save(self, folder: Path) -> None:
        """Write the model with skops, or as safetensors, and the classes of its labels."""
        self._model.save(folder)
        saved = SavedLabels(model=self.model, classes=self.classes, labels=self.labels)
        write_json(saved.model_dump(), folder / _FILE)

    @classmethod
    def load(
        cls, folder: Path, *, device: str | None = None, trust: Sequence[str] = ()
    ) -> ExistingModel:
        """Read what ``save`` wrote; types of packages beside scikit-learn need your ``trust``."""
        path = folder / _FILE
        saved = read_model(path, SavedLabels, title="an existing model", hint="add it again")
        pipeline = folder / _ESTIMATOR
        source = str(pipeline if pipeline.exists() else folder)
        with errors_in(path):
            member = cls.read(source, saved.classes, saved.labels, device=device, trust=trust)
        member.model = saved.model
        return member


def match_labels(
    labels: Sequence[str],
    classes: Sequence[str] | None,
    declared_classes: Mapping[str, str],
    model: str,
) -> LabelMap:
    """The class of each of a model's labels, or an error that shows both.

    ``declared_classes`` has the class of some labels. Of the others, those that are only numbered
    get the classes in order; other names are matched without regard to case.
    """
    if classes is None:
        class_of = {label: declared_classes.get(label, label) for label in labels}
        are_all_matched = True
    else:
        class_by_name = {name.casefold(): name for name in classes}
        are_numbered = not declared_classes and all(_NUMBERED.fullmatch(label) for label in labels)
        if are_numbered and len(labels) == len(classes):
            class_by_name = {
                label.casefold(): name for label, name in zip(labels, classes, strict=True)
            }
        class_of = {}
        for label in labels:
            default = class_by_name.get(label.casefold(), "")
            class_of[label] = declared_classes.get(label, default)
        are_all_matched = set(class_of.values()) == set(classes)
    unknown = set(declared_classes) - set(labels)
    if unknown or not are_all_matched:
        expected = classes or labels
        raise InputError(
            f"{model} has the labels {examples(labels, 20)}, which must map onto the classes"
            f" {examples(expected, 20)}: each label to one class, each class from some label",
            f"name the class of a label: {option('labels', {labels[0]: expected[0]})}",
            code="unknown-label",
        )
    return class_of
