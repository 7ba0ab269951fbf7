"""Models that people already have: text-classification models, and scikit-learn pipelines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from edokit._errors import InputError, errors_in, examples, local_path, option
from edokit._io.atomic import discard, whole_folder
from edokit._io.documents import Document, Names, read_model, write_json
from edokit._io.skops import read_estimator_file, write_estimator
from edokit._types import Floats
from edokit.members.folder import member_cards, new_manifest, read_manifest, scale_of
from edokit.members.groups import check_folder_name
from edokit.members.jobs import (
    EXISTING,
    MANIFEST,
    MEMBERS,
    card_fields,
    write_card,
)
from edokit.members.pretrained import (
    TO_PREDICT,
    check_code,
    choose_device,
    load_tokenizer,
    loading,
    local_folder,
    public_name,
    require_packages,
    vocabulary_size,
)
from edokit.members.recipe import Annotators, Context, Member, Text, joined, with_context
from edokit.members.texts import Texts
from edokit.scales import NOMINAL, Scale, check_same_scale

if TYPE_CHECKING:
    from edokit.predictions.core import Predictions

BATCH = 32
_FILE, _ESTIMATOR = "existing.json", "estimator.skops"
# What a model's configuration calls sets of labels.
_SETS = "multi_label_classification"
_UNNAMED = re.compile(r"label_\d+", re.IGNORECASE)
# The class that each label of a model stands for.
LabelMap = dict[str, str]


class _Pipeline:
    """A scikit-learn classifier of texts; a context follows its text."""

    scale = NOMINAL

    def __init__(self, path: Path, trust: Sequence[str]) -> None:
        self.estimator = read_estimator_file(path, trust)
        classes = getattr(self.estimator, "classes_", None)
        if not isinstance(classes, np.ndarray) or not hasattr(self.estimator, "predict_proba"):
            raise InputError(
                f"{path} must hold a fitted classifier with probabilities, but holds"
                f" {type(self.estimator).__name__}",
                "fit a pipeline that reads texts, and save it with skops.io.dump",
            )
        self.labels = [str(label) for label in classes]

    def predict_proba(self, texts: Sequence[Text]) -> Floats:
        return np.asarray(self.estimator.predict_proba([joined(text) for text in texts]))

    def save(self, folder: Path) -> None:
        write_estimator(self.estimator, folder / _ESTIMATOR)


class _Network:
    """A text-classification model of the Hugging Face hub, or in a folder."""

    def __init__(self, model: str, device: str | None) -> None:
        require_packages("a text-classification model", TO_PREDICT)
        from transformers import AutoModelForSequenceClassification

        from edokit.members.recipes._tokens import Reader

        folder = local_folder(model)
        check_code(folder)
        with loading(model):
            self.network, report = AutoModelForSequenceClassification.from_pretrained(
                folder, output_loading_info=True
            )
        config, missing = self.network.config, sorted(report["missing_keys"])
        if missing:
            raise InputError(
                f"the model must come with a trained classifier, but {model} has no weights for"
                f" {missing[0]}",
                "name a fine-tuned model, or fine-tune it with `edo train --recipe transformer`",
            )
        if config.num_labels < 2 or config.problem_type == "regression":
            raise InputError(
                f"the model must choose among several labels, but {model} is for regression",
                "name a text-classification model",
            )
        self.labels = [str(config.id2label[k]) for k in range(config.num_labels)]
        self.scale = Scale("multi-label") if config.problem_type == _SETS else NOMINAL
        self.device = choose_device(device)
        self.network = self.network.to(self.device).eval()
        self.reader = Reader(load_tokenizer(model), 512, vocabulary=vocabulary_size(model))

    def predict_proba(self, texts: Sequence[Text]) -> Floats:
        import torch

        from edokit.members.recipes._network import in_batches

        def forward(target_mask: Any, **inputs: Any) -> Any:
            logits = self.network(**inputs).logits.float().cpu().double()
            sets = self.network.config.problem_type == _SETS
            return torch.sigmoid(logits) if sets else torch.softmax(logits, dim=-1)

        return in_batches(forward, self.reader(list(texts)), self.reader, BATCH, self.device)

    def save(self, folder: Path) -> None:
        self.network.save_pretrained(folder)
        self.reader.tokenizer.save_pretrained(folder)


class SavedLabels(Document):
    """The content of ``existing.json``."""

    model: str
    classes: Names
    labels: dict[str, str]


class ExistingModel(Member):
    """A model that was trained elsewhere, whose labels stand for the classes.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    model : str
        Where it comes from: a hub id, a folder, or a file that skops wrote.
    device : str, default=None
        Where a text-classification model computes. None: a GPU if there is one.
    """

    multi_label = True

    def __init__(self, n_classes: int, *, model: str = "", device: str | None = None) -> None:
        self.n_classes, self.model, self.device = n_classes, model, device
        self.classes: list[str] = []
        self.labels: LabelMap = {}
        self._model: _Pipeline | _Network  # once it is read

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
        source = _Pipeline(path, trust) if path.is_file() else _Network(model, device)
        class_of = match_labels(source.labels, classes, labels or {}, model)
        names = list(dict.fromkeys(class_of.values())) if classes is None else list(classes)
        member = cls(len(names), model=public_name(model), device=device)
        member.classes, member.labels, member._model = names, class_of, source
        return member

    @property
    def scale(self) -> Scale:
        """Its answer scale."""
        return self._model.scale

    def predict_proba(
        self, texts: Sequence[Text], context: Context = None, annotators: Annotators = None
    ) -> Floats:
        """Probabilities [N, C]; labels that stand for one class are added up."""
        source = self._model
        shares = source.predict_proba(with_context(texts, context))
        pooled = np.zeros((len(shares), self.n_classes))
        for column, label in enumerate(source.labels):
            into = pooled[:, self.classes.index(self.labels[label])]
            # Of sets, several labels may be chosen at once: the likeliest counts.
            share = shares[:, column]
            into[:] = np.maximum(into, share) if source.scale.is_multi_label else into + share
        return pooled

    def save(self, folder: Path) -> None:
        """Write the model with skops, or as safetensors, and what its labels stand for."""
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
            f"{model} has the labels {examples(labels, 20)}, of which each must stand for one of"
            f" the classes {examples(classes or labels, 20)}, and each class for one of them",
            f"say what a label stands for: --label {labels[0]}={(classes or labels)[0]}",
        )
    return class_of


def add_member(
    folder: str | Path,
    name: str,
    model: str | Path,
    *,
    labels: Mapping[str, str] | None = None,
    classes: Sequence[str] | None = None,
    trust: Sequence[str] = (),
    overwrite: bool = False,
) -> dict[str, str]:
    """Add a model that you have to a folder of such models, where it is a member like any other.

    `score_members` and `Bundle.create` take this folder beside those of trained members.

    Parameters
    ----------
    folder : str or Path
        A new folder, or one of models that were added before.
    name : str
        The name of the member.
    model : str or Path
        A fitted scikit-learn classifier of texts that ``skops.io.dump`` wrote, the folder of a
        Hugging Face text-classification model, or its hub id.
    labels : mapping of str to str, default=None
        The class of a label, where the names differ; several labels may stand for one class.
        Labels that are only numbered stand for the classes in order.
    classes : sequence of str, default=None
        The classes of a new folder, in order. None: the labels of the model.
    trust : sequence of str, default=()
        Packages beside scikit-learn whose types the file may hold.
    overwrite : bool, default=False
        Whether to replace a member of this name.

    Returns
    -------
    dict of str to str
        The class of each label of the model.

    Raises
    ------
    InputError
        If the model can't be read, its labels do not fit the classes, or the name is taken.

    Examples
    --------
    >>> edokit.add_member("members", "polite", "polite.skops")  # doctest: +SKIP
    {'no': 'no', 'yes': 'yes'}
    """
    from edokit.runs.folder import output_folder

    folder = local_path(folder)
    check_folder_name(name)
    if not overwrite and (folder / MEMBERS / name).exists():
        raise InputError(
            f"{folder} has a member {name!r} already",
            f"choose another name, or replace it with {option('overwrite', True)}",
        )
    with output_folder(folder, "members", overwrite=overwrite):
        if any(card["recipe"] != EXISTING for card in member_cards(folder).values()):
            raise InputError(
                f"{folder} holds trained members, whose manifest and predictions are of a training",
                "add the model to another folder, and name both where members predict",
            )
        manifest = read_manifest(folder) if (folder / MANIFEST).exists() else None
        if manifest is not None:
            present = manifest["data"]["classes"]
            if classes is not None and sorted(classes) != sorted(present):
                raise InputError(
                    f"the members in {folder} have the classes {examples(present, 20)}, not"
                    f" {examples(classes, 20)}",
                    f"leave {option('classes')} out",
                )
            classes = present
        member = ExistingModel.read(str(model), classes, labels, trust=trust)
        if manifest is None:
            manifest = new_manifest(member.classes, member.scale)
        scale = scale_of(manifest["data"])
        check_same_scale(member.scale, f"model {name}", scale, f"members in {folder}")
        card = {
            "recipe": EXISTING,
            "options": {"model": member.model},
            "fingerprint": "",
            "kept": True,
            "seconds": 0.0,
            **card_fields(member, member.classes, member.scale),
        }
        discard(folder / MEMBERS / name)
        with whole_folder(folder / MEMBERS / name) as member_folder:
            member.save(member_folder)
            write_card(card, member_folder)
        # It reads texts with and without a context.
        entry = {"name": name, "group": name, "recipe": EXISTING, "kept": True, "pairs": None}
        others = [listed for listed in manifest["members"] if listed["name"] != name]
        write_json({**manifest, "members": [*others, entry]}, folder / MANIFEST)
    return member.labels


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
        As in `add_member`.
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
    from edokit.predictions.core import Predictions

    if not models:
        raise InputError("no model is named to score texts with", "name one")
    checked = Texts.of(texts)
    order = None if classes is None else [str(name) for name in classes]
    maps: dict[str, LabelMap] = {}
    answers, scale = [], NOMINAL
    for done, (name, model) in enumerate(models.items()):
        step(done, len(models), name)
        member = ExistingModel.read(model, order, labels, device=device)
        scale = member.scale if done == 0 else scale
        check_same_scale(member.scale, f"model {name}", scale, "others")
        order, maps[name] = member.classes, member.labels
        answers.append(member.predict_proba(checked.texts))
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


def model_names(models: Sequence[str]) -> dict[str, str]:
    """``NAME=MODEL`` or ``MODEL`` by name; the name defaults to the last part of the id or path."""
    model_of: dict[str, str] = {}
    for text in models:
        name, model = text.split("=", 1) if "=" in text else (PurePath(text).name, text)
        if not name or not model or name in model_of:
            raise InputError(
                f"models must have different names, but got {text!r}", "write NAME=MODEL"
            )
        model_of[name] = model
    return model_of
