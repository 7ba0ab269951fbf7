"""`disagreement_card`: what a dataset paper or a model card needs to say about disagreement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from edokit._errors import InputError
from edokit._progress import Progress, no_progress
from edokit.analysis.card.result import DisagreementCard
from edokit.analysis.diagnose import diagnose, read_source
from edokit.analysis.diagnose.result import Diagnosis
from edokit.analysis.plan import plan
from edokit.analysis.plan.result import Plan
from edokit.annotations.core import Annotations
from edokit.metrics import best_possible, main_metrics


def disagreement_card(
    annotations: Annotations | str | Path,
    *,
    by: Sequence[str] | str | None = None,
    diagnosis: Diagnosis | None = None,
    name: str = "",
    random_state: int = 0,
    progress: Progress = no_progress,
) -> DisagreementCard:
    """Describe who labelled a dataset, and how they disagree, for a paper or a model card.

    Parameters
    ----------
    annotations : Annotations, str or Path
        Who labelled which item how, as for `diagnose`.
    by : str or sequence of str, optional
        Attributes of the annotators to compare; by default all that people have.
    diagnosis : Diagnosis, optional
        A diagnosis of these annotations, if there is one already; else one is made.
    name : str, default=""
        Name of the dataset, for the title.
    random_state : int, default=0
        Seed of the permutations.
    progress : callable, default=no_progress
        As for `diagnose`.

    Returns
    -------
    DisagreementCard

    Raises
    ------
    InputError
        If the annotations are empty, or an attribute can't be used.

    Examples
    --------
    >>> import edokit
    >>> annotations = edokit.simulate("two-camps", random_state=0, items=(60, 1, 1)).annotations
    >>> card = edokit.disagreement_card(annotations, by=[])
    >>> [section.title for section in card.sections()][:3]
    ['Who labelled', 'Agreement', 'Structure or noise']
    >>> "Krippendorff's alpha" in card.markdown()
    True
    """
    if isinstance(annotations, str | Path):
        annotations = read_source(Path(annotations))
    if diagnosis is None:
        if by is None and isinstance(annotations, Annotations):
            by = [attribute.name for attribute in annotations.people.attributes]
        diagnosis = diagnose(annotations, by=by, random_state=random_state, progress=progress)
    soft_labels = np.asarray(annotations.soft_labels)
    best = best_possible(
        soft_labels,
        annotations.scale.hard(soft_labels),
        metrics=main_metrics(annotations.scale),
        scale=annotations.scale,
    )
    levels = {}
    for attribute in annotations.people.attributes:
        levels[attribute.name] = dict(zip(attribute.levels, attribute.people, strict=True))
    return DisagreementCard(diagnosis, levels, best, _plan_or_none(annotations), name)


def _plan_or_none(annotations: Annotations) -> Plan | None:
    """How many annotators an item needs; None where no item has labels of two annotators."""
    try:
        return plan(annotations, train=False)
    except InputError as error:
        if error.code != "too-few-labels":
            raise
        return None
