"""Predictions on new texts, of trained members or of models that were trained elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import numpy as np

from edokit._errors import InputError
from edokit._progress import Progress, no_progress
from edokit.members.contexts import Text
from edokit.members.existing import ExistingModel, LabelMap
from edokit.members.loaded import LoadedMembers
from edokit.members.spending import session
from edokit.members.texts import Texts
from edokit.scales import NOMINAL, check_same_scale

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations
    from edokit.predictions.core import Predictions


def score_members(
    folder: str | Path | Sequence[str | Path],
    texts: Texts | Annotations | Sequence[Text],
    members: Sequence[str] | None = None,
    *,
    device: str | None = None,
    trust: Sequence[str] = (),
    annotators: Mapping[str, Iterable[str]] | None = None,
    by_annotator: bool = False,
    budget: float | None = None,
    allow_http: bool = False,
    progress: Progress = no_progress,
) -> Predictions:
    """Predict texts with trained members.

    Parameters
    ----------
    folder : str, Path or sequence of these
        Folder that `train_members` or ``edo train`` wrote, or several of them.
    texts : Texts, Annotations or sequence of str or of (str, str)
        Texts with their item ids, or annotations with texts; without ids they are named 0, 1, 2, ….
    members : sequence of str, default=None
        Names of members. None: all of them.
    device : str, default=None
        Where recipes that use torch compute. None: a GPU if there is one.
    trust : sequence of str, default=()
        Packages beside scikit-learn whose types may be loaded and whose recipes may be imported.
    annotators : mapping of str to iterable of str, default=None
        Annotators known to label an item, by item: members that know annotators then predict the
        labels of these.
    by_annotator : bool, default=False
        Predict a row for each pair of an item and one of its ``annotators``, then the anonymous
        answer of each item (annotator ``""``). The members of a group with per-annotator
        supervision become one member, named like the group: the one trained on an annotator's
        labels predicts for that annotator, their mean for everybody else and anonymously.
    budget : float, default=None
        What the requests of this call to servers may cost together, in the unit of their prices.
        It is an error if they might cost more; all answers are kept.
    allow_http : bool, default=False
        Whether members may send texts, and your key, to other machines over http, unencrypted.
    progress : callable, default=no_progress
        Called with the number of members done, of all members, and the name of the next.

    Returns
    -------
    Predictions
        Probabilities of all members; those trained in folds give the mean over their folds. Rows
        are items or, ``by_annotator``, pairs of an item and an annotator, and anonymous answers.

    Raises
    ------
    InputError
        If the folder has no such members, or a text is missing.

    Examples
    --------
    >>> import tempfile
    >>> from edokit import Annotations
    >>> from edokit.members import Group, score_members, train_members
    >>> rows = {
    ...     "item": ["a"] * 2 + ["b"] * 2 + ["c"] * 2,
    ...     "annotator": ["x", "y"] * 3,
    ...     "label": ["no", "no", "yes", "yes", "yes", "yes"],
    ...     "text": ["a fine day"] * 2 + ["a rude bus"] * 2 + ["so rude"] * 2,
    ...     "split": ["train"] * 4 + ["dev"] * 2,
    ... }
    >>> group = Group("linear", members=1, supervision="soft")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trained = train_members(Annotations.from_table(rows), [group], out=f"{folder}/members")
    ...     predictions = score_members(f"{folder}/members", ["a fine bus", "how rude"])
    >>> predictions.members, predictions.probabilities.shape
    (('linear-01',), (2, 1, 2))
    """
    loaded = LoadedMembers(folder, members, device=device, trust=trust, keep=False)
    with session(budget=budget, allow_http=allow_http):
        return loaded.predict(
            texts, annotators=annotators, by_annotator=by_annotator, progress=progress
        )


def score_models(
    models: Mapping[str, str],
    texts: Texts | Sequence[Text],
    *,
    classes: Sequence[str] | None = None,
    labels: Mapping[str, str] | None = None,
    device: str | None = None,
    progress: Progress = no_progress,
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
    progress : callable, default=no_progress
        Called with the number of models done, of all models, and the name of the next.

    Returns
    -------
    predictions : Predictions
        Probabilities of the models, each of which is a member.
    labels : dict of str to dict
        The class of each label, by model.

    Raises
    ------
    InputError
        If a model can't be loaded, its labels do not fit the classes, or a text is missing.

    Examples
    --------
    >>> from edokit.members import score_models
    >>> models = {"toxic": "unitary/toxic-bert"}
    >>> predictions, labels = score_models(models, ["a first text"])  # doctest: +SKIP
    """
    from edokit.predictions.core import Predictions

    if not models:
        raise InputError("no model is named to score texts with", "name one", code="empty-option")
    checked_texts = Texts.from_texts(texts)
    class_names = None
    if classes is not None:
        class_names = [str(name) for name in classes]
    label_maps: dict[str, LabelMap] = {}
    answers = []
    scale = NOMINAL
    for done, (name, model) in enumerate(models.items()):
        progress(done, len(models), name)
        member = ExistingModel.read(model, class_names, labels, device=device)
        if done == 0:
            scale = member.scale
        check_same_scale(member.scale, f"model {name}", scale, "others")
        class_names = member.classes
        label_maps[name] = member.labels
        answers.append(member.predict_proba(checked_texts.texts))
    progress(len(models), len(models), "")
    table = Predictions.from_arrays(
        np.stack(answers, axis=1),
        items=checked_texts.items,
        members=list(models),
        classes=class_names,
        groups=list(models),
        layout="NKC",
        scale=scale,
    )
    return table, label_maps


def model_names(models: Sequence[str]) -> dict[str, str]:
    """Models by name, from texts ``NAME=MODEL`` or ``MODEL``.

    The name defaults to the last part of the hub id or path.
    """
    model_of: dict[str, str] = {}
    for text in models:
        name, equals, model = text.partition("=")
        if not equals:
            name = PurePath(text).name
            model = text
        if not name or not model or name in model_of:
            raise InputError(
                f"each model needs a name of its own and a hub id or folder, but got {text!r}",
                "write NAME=MODEL",
                code="duplicate-name",
            )
        model_of[name] = model
    return model_of
