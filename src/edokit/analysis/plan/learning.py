"""The loss of a model that a budget could train, from models trained on parts of a pilot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edokit._types import Floats, Ints
from edokit.analysis.human_labels import HumanLabels
from edokit.annotations.core import Annotations
from edokit.rows import sums

# The loss of a trained model falls with this power of the items, as measured on LeWiDi.
EXPONENT = -0.25
FEWEST_TEXTS = 80
_MOST_TEXTS = 1200
_TRAINED_SHARES = (0.2, 0.4, 0.8)
_REPEATS = 6
# Repeats share the items of the pilot, so they vary less than runs on several pilots would. All
# together they count as this number of independent repeats.
_INDEPENDENT_REPEATS = 2


@dataclass(frozen=True, eq=False)
class TrainingRuns:
    """Models trained on parts of a pilot.

    Attributes
    ----------
    sizes : list of int
        Number of items that each model was trained on [R].
    inverse_counts : list of float
        Mean of 1 / (annotators of the item) over these items [R].
    losses : Floats
        Held-out loss of each model by item of the pilot [R, N]; NaN for items that it was trained
        on, or that are in a group with these.
    item_groups : Ints or None
        Items of the pilot with the same number belong together [N]; None: no items do.
    """

    sizes: Sequence[int]
    inverse_counts: Sequence[float]
    losses: Floats
    item_groups: Ints | None = None


def planned_losses(
    runs: TrainingRuns,
    items: Sequence[int],
    counts: Sequence[int],
    samples: int,
    rng: np.random.Generator,
) -> Floats:
    """Loss [samples, counts] of a model trained on these items with these annotators each.

    A power law of the number of items, loss = c + (a + b / annotators) · items^−¼ with a, b ≥ 0
    (as learning curves have; Hestness et al. 2017), fitted to the runs by least squares. Each
    sample draws the held-out items again, and weighs the runs at random (Bayesian bootstrap, Rubin
    1981): test loss and training both vary.
    """
    from scipy.optimize import nnls

    design = _curve_terms(runs.sizes, np.asarray(runs.inverse_counts))
    planned = _curve_terms(items, 1 / np.array(counts))
    is_held_out = ~np.isnan(runs.losses)
    losses = np.nan_to_num(runs.losses)
    unit_of_item = np.arange(losses.shape[1])
    if runs.item_groups is not None:
        unit_of_item = np.unique(runs.item_groups, return_inverse=True)[1]
    n_units = int(unit_of_item.max()) + 1
    resampled = np.zeros((samples, len(counts)))
    for sample in range(samples):
        weights = rng.multinomial(n_units, np.full(n_units, 1 / n_units))[unit_of_item]
        totals = is_held_out @ weights
        run_weights = np.sqrt(rng.gamma(_INDEPENDENT_REPEATS / _REPEATS, size=len(totals)))
        # With few groups, no held-out item of a run may be drawn.
        is_drawn = totals > 0
        means = (losses @ weights)[is_drawn] / totals[is_drawn]
        run_weights = run_weights[is_drawn]
        coefficients, _ = nnls(design[is_drawn] * run_weights[:, None], means * run_weights)
        resampled[sample] = planned @ coefficients
    return resampled


def _curve_terms(items: Sequence[int], inverse_counts: Floats) -> Floats:
    """Columns of c, a and b in c + (a + b / annotators) · items^−¼ [R, 3]."""
    power = np.asarray(items, dtype=np.float64) ** EXPONENT
    return np.column_stack([np.ones(len(power)), power, power * inverse_counts])


def train_on_parts(
    pilot: Annotations,
    labels: HumanLabels,
    rng: np.random.Generator,
    item_groups: Ints | None = None,
) -> TrainingRuns:
    """Train TF-IDF members on parts of the items, with one label each and with the usual number.

    Items with the same number in ``item_groups`` [N] are not both trained and tested on.
    """
    from edokit.members.recipe import MemberData
    from edokit.members.registry import find_recipe

    texts = pilot.whole_texts
    assert texts is not None
    items = rng.permutation(len(pilot.items))[:_MOST_TEXTS]
    usual_count = int(np.median(labels.counts))
    label_limits = [1]
    if usual_count > 1:
        label_limits.append(usual_count)
    classes = len(pilot.classes)
    sizes = []
    inverse_counts = []
    losses = []
    for share in _TRAINED_SHARES * _REPEATS:
        for limit in label_limits:
            trained = _shuffled(items, item_groups, rng)[: int(len(items) * share)]
            tested = np.setdiff1d(items, trained)
            if item_groups is not None:
                tested = tested[~np.isin(item_groups[tested], item_groups[trained])]
            targets, label_counts = _fewer_labels(labels, limit, rng)
            data = MemberData(
                [texts[i] for i in trained],
                _ConstantTargets(targets[trained]),
                scale=pilot.scale,
                classes=pilot.classes,
                corpus=tuple(texts[items]),
            )
            member = find_recipe("linear")(classes)  # type: ignore[call-arg]
            p = np.full((len(pilot.items), classes), 1 / classes)
            p[tested] = member.fit(data).predict_proba([texts[i] for i in tested])
            item_losses = np.full(len(pilot.items), np.nan)
            item_losses[tested] = labels.losses(p)[tested]
            sizes.append(len(trained))
            inverse_counts.append(float((1 / label_counts[trained]).mean()))
            losses.append(item_losses[np.sort(items)])
    sorted_groups = None
    if item_groups is not None:
        sorted_groups = item_groups[np.sort(items)]
    return TrainingRuns(sizes, inverse_counts, np.array(losses), sorted_groups)


def _shuffled(items: Ints, item_groups: Ints | None, rng: np.random.Generator) -> Ints:
    """The items in random order; those of a group follow each other."""
    if item_groups is None:
        return rng.permutation(items)
    place_of_group = rng.permutation(int(item_groups.max()) + 1)
    return items[np.argsort(place_of_group[item_groups[items]], kind="stable")]


@dataclass(frozen=True, eq=False)
class _ConstantTargets:
    """Targets that are the same in every epoch; `MemberData` asks for those of an epoch."""

    rows: npt.NDArray[np.float64]

    def __call__(self, epoch: int) -> npt.NDArray[np.float64]:
        return self.rows


def _fewer_labels(labels: HumanLabels, limit: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Soft labels [N, C] of at most ``limit`` random annotators, and how many there are [N]."""
    order = rng.permutation(len(labels.item_codes))
    order = order[np.argsort(labels.item_codes[order], kind="stable")]
    starts = np.cumsum(labels.counts) - labels.counts
    place = np.arange(len(order)) - np.repeat(starts, labels.counts)
    sampled = order[place < limit]
    label_counts = np.minimum(labels.counts, limit)
    totals = sums(labels.shares[sampled], labels.item_codes[sampled], len(label_counts))
    return totals / label_counts[:, None], label_counts
