"""`check_labels`: which single labels are least likely, and should be checked first."""

from __future__ import annotations

from pathlib import Path

from edokit._errors import InputError
from edokit._types import Floats
from edokit.analysis.fit_items import is_fit_folder, load_fit_items
from edokit.analysis.human_labels import HumanLabels
from edokit.analysis.labels.result import LabelCheck
from edokit.analysis.labels.statistics import predict_labels
from edokit.annotations.core import Annotations


def check_labels(source: Annotations | str | Path) -> LabelCheck:
    """Rank single labels by how unlikely they are: slips, misread texts, careless clicks.

    A label is predicted from the labels of the item's other annotators, from how its annotator
    differs from others on other items, and, where there is an ensemble, from its answer to the
    text, which it gave without seeing the item's labels. The first label of each annotator for an
    item is checked.

    Parameters
    ----------
    source : Annotations, str or Path
        Annotations, or a file of them, which are compared with each other alone; or the folder of
        `run` or `fit`, with the data of its fit.

    Returns
    -------
    LabelCheck

    Raises
    ------
    InputError
        If labels are probabilities, or there is nothing to compare them with.

    Examples
    --------
    Ann slipped once:

    >>> from edokit import Annotations, check_labels
    >>> labels = [["a", "a", "a"], ["b", "b", "b"]] * 20 + [["b", "a", "a"]]
    >>> annotations = Annotations.from_matrix(labels, annotators=["ann", "ben", "cho"])
    >>> check = check_labels(annotations)
    >>> label = check.first(1)[0]
    >>> label.item, label.annotator, label.label, label.suggestion
    ('40', 'ann', 'b', 'a')
    >>> label.reason
    'none of 2 others agrees, and it is even less likely for ann'
    """
    pool = None
    if isinstance(source, Annotations):
        annotations = source
    elif is_fit_folder(Path(source)):
        annotations, pool = load_fit_items(Path(source)).labels_and_answers()
    else:
        from edokit.datasets.read import read_annotations

        annotations = read_annotations(source)
    return check_annotations(annotations, pool)


def check_annotations(annotations: Annotations, pool: Floats | None) -> LabelCheck:
    """Rank the labels of annotations by how unlikely they are.

    ``pool`` [N, C] has an ensemble's cross-fitted answers, in the order of the items and the
    classes; NaN for items without one.
    """
    labels = HumanLabels(annotations)
    if not labels.are_hard:
        raise InputError(
            "the labels are probabilities, which are neither right nor wrong",
            "give single labels, a row for each annotator and item",
            code="missing-labels",
        )
    if labels.n_classes < 2:
        raise InputError(
            "there is a single class, so no label is less likely than another",
            "check that this is the right column of labels",
            code="too-few-classes",
        )
    if pool is None and not labels.has_several.any():
        raise InputError(
            "no item has labels of two annotators, so there is nothing to compare a label with",
            "give the folder of `edo run` on this table, whose ensemble answers for the texts",
            code="too-few-labels",
        )
    return LabelCheck(labels, predict_labels(labels, pool))
