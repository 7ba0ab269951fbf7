"""What a fit needs of predictions and labels: here in memory; `sharded` overrides it for shards."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from edokit._errors import InputError, counted, option
from edokit._io.digests import digest_parts
from edokit._io.documents import Json
from edokit._parallel import LOCAL
from edokit._progress import Progress
from edokit._types import Floats, HardLabels, Ints, Reals
from edokit.fitdata.layout import Layout
from edokit.fitdata.reading import ClassLabels, ReadOptions, ShardOptions
from edokit.metrics import MetricSums, metrics_of
from edokit.metrics.compute import DeferredMetrics, checked_metrics
from edokit.metrics.formulas import (
    cross_entropy,
    is_correct,
    manhattan,
    ranked_probability,
    wasserstein,
)
from edokit.objective.loss import CrossEntropy, Expansion, PoolTerm
from edokit.objective.pools import (
    average_groups,
    group_names,
    log_probabilities,
    member_rows,
    pool,
    sharpen,
    slices,
    softmax,
)
from edokit.objective.settings import CE, ObjectiveSettings, Pool
from edokit.objective.summaries import Problem, Summaries
from edokit.rows import Rows, lowest
from edokit.scales import NOMINAL, DeclaredScale, Scale, ScaleLike, check_same_scale

if TYPE_CHECKING:
    from edokit.annotations.core import Annotations, Ties
    from edokit.fitdata.sharded import ShardedData
    from edokit.predictions.core import Predictions
    from edokit.predictions.shards import Shards
    from edokit.runs.inputs import Input

# Numbers of pooled probabilities at a time, over all weightings.
_SCORES_BLOCK = 2**22
_FEW_CLASSES = 2


class Arrays(NamedTuple):
    """Predictions P [n, K, C], soft labels q [n, C] and hard labels y [n] of some rows.

    An item is one row; a set of labels is one row per label, next to each other.
    """

    P: Reals
    q: Floats
    y: HardLabels

    @classmethod
    def from_items(cls, P: Reals, q: Floats, y: ArrayLike, scale: Scale) -> Arrays:
        """Return the rows of arrays with one entry per item."""
        return cls(scale.rows(P), scale.rows(q), scale.row_codes(np.asarray(y)))

    def take(self, rows: Ints) -> Arrays:
        """Return the rows at these positions."""
        return Arrays(self.P[rows], self.q[rows], self.y[rows])


class AnnotationCounts(NamedTuple):
    """How much the labels of the fit data rest on."""

    annotations: int
    annotators: int


@dataclass(eq=False, repr=False)
class FitData:
    """Predictions of K members about N items of C classes, with their soft and hard labels.

    Data of every answer scale are rows of distributions here (`Scale.rows`): an item is one row, a
    set of L labels is L rows with two classes.

    Solvers, fit and search read data through this class alone, so that arrays in memory and shards
    on disk share one path. Make one with `from_arrays`, `from_predictions` or `open`.

    Attributes
    ----------
    members : tuple of str
        Names of the members, in the order of all weights.
    classes : tuple of str
        Names of the classes, in the order of all probabilities; for multi-label data, the labels.
    scale : Scale
        The answer scale.
    groups : tuple of str or None
        The group (recipe) each member belongs to, where known.
    counts : AnnotationCounts or None
        Annotations and annotators behind the labels, where known.
    all_rows : Rows or None
        The ids of the items, where they are in memory; of a part of the data, those of the whole.
    positions : ndarray of int or None
        The positions of the items among ``all_rows``; None where these are all of them.
    layout : Layout
        Which rows of the arrays belong together, made of the scale and the rows if not given.
    class_labels : tuple or None
        Class labels [C] in the type that the user gave; None where they are the names.
    inputs : mapping of str to Input
        The files that the data were read from, by role.
    annotations : Annotations or None
        Who gave which label, where the annotators have names and the data are in memory; of a part
        of the data, those of the whole.
    per_annotator_members : int
        How many members learned the labels of one annotator each, where that is known and the
        training kept to K ≤ min A_i.
    fewest_annotators : int
        How many annotators the least annotated item has, where there are such members.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.4, 0.6]]])
    >>> data = FitData.from_arrays(P, np.eye(2), np.array([0, 1]))
    >>> len(data), data.members
    (2, ('0', '1'))
    >>> data.evaluate(np.array([0.5, 0.5]))["f1"]
    1.0
    """

    arrays: Arrays | None
    members: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    groups: tuple[str, ...] | None = None
    counts: AnnotationCounts | None = None
    all_rows: Rows | None = None
    scale: Scale = NOMINAL
    positions: Ints | None = None
    layout: Layout = None  # type: ignore[assignment]
    class_labels: ClassLabels | None = None
    inputs: Mapping[str, Input] = field(default_factory=dict)
    annotations: Annotations | None = None
    per_annotator_members: int = 0
    fewest_annotators: int = 0

    def __post_init__(self) -> None:
        if self.layout is None:
            groups = None
            are_pairs = False
            if self.all_rows is not None:
                groups = self.all_rows.clusters
                are_pairs = self.all_rows.are_pairs
            self.layout = Layout.from_scale(self.scale, self.classes, groups, are_pairs=are_pairs)
        self.prepared: dict[Hashable, Any] = {}
        """What solvers have made ready of these data, for their next call."""
        self._known_sums: dict[tuple[bool, bool], Summaries] = {}

    def __repr__(self) -> str:
        return f"FitData({counted(len(self), 'item')}, {counted(len(self.members), 'member')})"

    @staticmethod
    def from_arrays(
        P: ArrayLike,
        q: ArrayLike,
        y: ArrayLike,
        *,
        members: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        groups: Sequence[str] | None = None,
        scale: ScaleLike = NOMINAL,
    ) -> FitData:
        """Data in memory.

        Parameters
        ----------
        P : array of shape (n_items, n_members, n_classes)
            Predicted probabilities.
        q : array of shape (n_items, n_classes)
            Soft labels.
        y : array of shape (n_items,)
            Hard labels, as positions of the classes; for multi-label data, 0 or 1 for each label
            (n_items, n_classes).
        members, classes : sequence of str, optional
            Names; 0, 1, … by default.
        groups : sequence of str, optional
            The group of each member.
        scale : Scale or str, default=nominal
            The answer scale; ``ordinal`` takes the names of the classes for positions.

        Returns
        -------
        FitData
        """
        _, n_members, n_classes = np.shape(P)
        if classes is None:
            classes = [str(code) for code in range(n_classes)]
        if members is None:
            members = [str(number) for number in range(n_members)]
        if groups is not None:
            groups = tuple(groups)
        answer_scale = DeclaredScale(scale).resolve(classes)
        probabilities = np.asarray(P, dtype=np.float64)
        soft_labels = np.asarray(q, dtype=np.float64)
        return FitData(
            Arrays.from_items(probabilities, soft_labels, y, answer_scale),
            tuple(members),
            tuple(classes),
            groups,
            scale=answer_scale,
        )

    @staticmethod
    def from_predictions(
        predictions: Predictions,
        annotations: Annotations,
        *,
        ties: Ties = "first",
        random_state: int = 0,
    ) -> FitData:
        """Data in memory, of predictions and annotations of the same items.

        Parameters
        ----------
        predictions : Predictions
            What each member predicts for each item.
        annotations : Annotations
            Labels of the same items in the same order, about the same classes, on the same
            scale.
        ties : {"first", "error", "random"}, default="first"
            How items get a hard label whose annotators are evenly split.
        random_state : int, default=0
            For ``ties="random"``.

        Returns
        -------
        FitData
        """
        scale = predictions.scale
        check_same_scale(scale, "predictions", annotations.scale, "annotations")
        counts = AnnotationCounts(len(annotations), len(annotations.annotators))
        y = annotations.majority_codes(ties, random_state)
        q = annotations.shares
        P = np.asarray(predictions.probabilities, dtype=np.float64)
        arrays = Arrays(scale.rows(P), scale.rows(q), scale.row_codes(y))
        per_annotator = 0
        if not annotations.rows.are_pairs:  # a pair has one annotator
            for name in predictions.members:
                supervision = predictions.member_info.get(name, {}).get("supervision")
                per_annotator += supervision == "per-annotator"
        fewest = 0
        if per_annotator:
            fewest = int(annotations.annotations_per_item.min())
        return FitData(
            arrays,
            predictions.members,
            predictions.classes,
            predictions.groups,
            counts,
            predictions.rows,
            scale,
            layout=_layout(annotations, predictions.classes),
            per_annotator_members=per_annotator,
            fewest_annotators=fewest,
        )

    @staticmethod
    def open(
        predictions: Shards | str | Path,
        annotations: Annotations | str | Path,
        *,
        split: str | Sequence[str] | None = None,
        jobs: int | None = None,
        engine: str = LOCAL,
        scratch: str | Path | None = None,
        ties: Ties = "first",
        random_state: int = 0,
        progress: Progress | None = None,
        **options: Any,
    ) -> ShardedData:
        """Shards of predictions with the annotations of their items; use it in a ``with``.

        Opening reads every shard once: it is checked, matched with the annotations by item id, and
        written as plain arrays into a cache, which later passes read and closing removes.

        Parameters
        ----------
        predictions : Shards, str or Path
            The shards, or their folder.
        annotations : Annotations, str or Path
            Anything that fits into memory, or a folder with a file for each shard, named like it.
        split : str or sequence of str, optional
            Only annotations of this split, or of these.
        jobs : int, optional
            Shards to work on at a time; by default one per core, as far as 2 GiB of memory go.
        engine : str, default="local"
            ``local``, or ``dask://host:port``.
        scratch : str or Path, optional
            The folder for the cache.
        ties, random_state
            As in `from_predictions`.
        progress : callable, optional
            Called with the shards done, the number of shards, and what is being done.
        **options
            Further arguments of `read_annotations`, such as ``classes`` and ``scale``; and
            ``learn`` ({"items", "pairs", "pairs+anonymous"}): what is learned from predictions for
            pairs of an item and an annotator.

        Returns
        -------
        FitData
        """
        from edokit.fitdata.sharded import ShardedData

        shards = ShardOptions(jobs=jobs, engine=engine, scratch=scratch, progress=progress)
        reading = ReadOptions.from_arguments(
            options, split=split, ties=ties, seed=random_state, shards=shards
        )
        return ShardedData.from_shards(predictions, annotations, reading)

    def close(self) -> None:
        """Remove what was written to disk for these data: the cache of shards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def in_memory(self) -> FitData:
        """Data in memory: all items, or a random sample if they do not fit."""
        return self

    @property
    def sample(self) -> Arrays:
        """Rows in memory: of all items, or of a random sample if they do not fit."""
        assert self.arrays is not None
        return self.arrays

    def __len__(self) -> int:
        """N, the number of items, or of pairs of an item and an annotator."""
        return len(self.sample.y) // self.rows_per_item

    @property
    def rows(self) -> Rows | None:
        """The ids of the items, where they are in memory."""
        if self.all_rows is None or self.positions is None:
            return self.all_rows
        return self.all_rows.take(self.positions)

    @property
    def n_items(self) -> int:
        """The number of distinct items; of pairs, fewer than N."""
        if self.all_rows is None:
            return len(self)
        return self.all_rows.count_items(self.positions)

    @property
    def n_fold_units(self) -> int:
        """The number of units that folds keep together: item groups if they are named, else items.

        An item without a group is a unit of its own.
        """
        if self.layout.groups is None:
            return len(self)
        return len(np.unique(self.layout.groups))

    @property
    def rows_per_item(self) -> int:
        """One; for multi-label data, one per label."""
        return self.layout.rows_per_item

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels of multi-label data; empty for other scales."""
        return self.layout.labels

    @property
    def row_classes(self) -> tuple[str, ...]:
        """Names of the classes of a row [C]."""
        return self.layout.row_classes

    @property
    def is_sampled(self) -> bool:
        """Whether the sample is smaller than the data."""
        return len(self.sample.y) < len(self) * self.rows_per_item

    def summaries(self, settings: ObjectiveSettings | None = None) -> Summaries:
        """Sums over all items, computed once.

        With ``settings``, those that these do not weigh may be left out.
        """
        if settings is None or settings.div or settings.needs_order:
            return self._sums(True, True)
        return self._sums(False, settings.ce is not CE.MEAN and settings.ce_weight > 0)

    def member_ce(self) -> Floats:
        """[K] cross-entropy of each member alone."""
        return np.asarray(self._sums(False, True).member_ce())

    def _sums(self, distances: bool, log_losses: bool) -> Summaries:
        for contents, sums in self._known_sums.items():
            if contents >= (distances, log_losses):
                return sums
        sums = Summaries.from_arrays(
            *self.sample, distances=distances, log_losses=log_losses, steps=self.layout.steps
        )
        self._known_sums[distances, log_losses] = sums
        return sums

    def problem(
        self,
        settings: ObjectiveSettings,
        *,
        all_terms: bool = True,
        with_items: bool = True,
        members: Ints | None = None,
    ) -> Problem:
        """The joint loss of these settings: terms of all items, a pool of those of the sample.

        Without ``all_terms``, terms that the settings do not weigh may be left out; without items,
        it has every term but the pool's cross-entropy. ``members`` are positions, in the order of
        the problem; None: all of them, in their order.
        """
        sums = self.summaries(None if all_terms else settings)
        class_weights = None
        if settings.class_weights:
            class_weights = sums.class_weights(self.row_classes)
        if members is not None:
            sums = sums.select(members)
        q = self.sample.q
        rows = np.zeros((sums.members, 0))
        if with_items:
            rows = self._member_rows(settings.pool, members)
        else:
            q = q[:0]
        return Problem(sums, rows, q, class_weights, settings.pool, self.layout.steps)

    def _member_rows(self, kind: Pool, members: Ints | None = None) -> Floats:
        """[K, n·C] what a pool adds up, of the sample; of these members, in this order."""
        key: Hashable = ("rows", kind)
        if members is not None:
            key = ("rows", kind, members.tobytes())
        if key not in self.prepared:
            if kind is Pool.LOG:
                rows = log_probabilities(self._member_rows(Pool.LINEAR, members))
            else:
                rows = member_rows(self.sample.P, members)
            self._drop_rows(kind)
            self.prepared[key] = rows
        return self.prepared[key]  # type: ignore[no-any-return]

    def _drop_rows(self, kind: Pool) -> None:
        """Forget the rows of some members, which may be as large as the data."""
        for key in list(self.prepared):
            if isinstance(key, tuple) and key[:2] == ("rows", kind) and len(key) == 3:
                del self.prepared[key]

    def expansions(
        self,
        weights: Floats,
        members: Ints | None = None,
        term: PoolTerm = CrossEntropy(),  # noqa: B008
    ) -> list[Expansion]:
        """A term of the pools with these weights [T, k], with gradients and Hessians.

        ``members`` [k] are those that the weights are of (all, if None).
        """
        P, q, _ = self.sample
        if members is not None:
            P = P[:, members]
        return [Expansion.from_term(term, P, q, v) for v in weights]

    def evaluate(
        self, weights: Floats, pool: Pool | str = Pool.LINEAR, temperature: float = 1.0
    ) -> Mapping[str, float | None]:
        """The metrics of the pool with these weights [K].

        In memory, they are computed when they are first read. Of shards, ``entropy_correlation``,
        which is not a sum over them, is None.
        """
        p, q, y = self.per_item(pooled(self.sample.P, weights, str(pool), temperature))
        order: Literal["C", "F"] = "C"
        if p.shape[1] <= _FEW_CLASSES:
            # numpy sums over few columns several times as fast in this order, to the same digits.
            order = "F"
        # Copies, since labels may be arrays of the user, who may change them.
        p = np.array(p, order=order)
        q = np.array(q, order=order)
        y = np.array(y)
        names = metrics_of(self.scale)
        return DeferredMetrics(partial(checked_metrics, names, p, q, y, self.scale))

    def per_item(self, rows: Floats) -> tuple[Floats, Floats, HardLabels]:
        """Predictions [n, C] for the rows of the sample, soft and hard labels: as of items."""
        layout = self.layout
        _, q, y = self.sample
        return layout.item_shares(rows), layout.item_shares(q), layout.item_labels(y)

    def scores(self, weights: Floats, pools: Sequence[Pool]) -> Scores:
        """What a search compares of the pools with these weights [T, K], as sums; in one pass."""
        _, q, y = self.sample
        classes = q.shape[1]
        width = self.rows_per_item
        names = ["f1", "ce", "md", "ce_squares"]
        if self.layout.steps is not None:
            names = ["f1", "ce", "md", "rps", "w1", "ce_squares", "rps_squares"]
        totals = {name: np.zeros(len(weights)) for name in names}
        for kind in dict.fromkeys(pools):
            trials = np.flatnonzero([pool is kind for pool in pools])
            rows = self._member_rows(kind)
            items = max(1, _SCORES_BLOCK // (len(weights) * classes * width))
            for s in slices(len(y), items * width):
                block = rows[:, s.start * classes : s.stop * classes]
                pooled_rows = (weights[trials] @ block).reshape(len(trials), -1, classes)
                if kind is Pool.LOG:
                    pooled_rows = softmax(pooled_rows)
                for trial, p in zip(trials, pooled_rows, strict=True):
                    for name, total in self._score_sums(p, q[s], y[s]).items():
                        totals[name][trial] += total
        return Scores(len(self), totals)

    def _score_sums(self, p: Floats, q: Floats, y: HardLabels) -> dict[str, float]:
        """Sums over items of what a search compares, of predictions p [n, C] for some rows."""
        item_means = self.layout.item_means
        ce = item_means(cross_entropy(p, q))
        sums = {
            "f1": item_means(is_correct(p, y)).sum(),
            "ce": ce.sum(),
            "ce_squares": np.square(ce).sum(),
            "md": item_means(manhattan(p, q)).sum(),
        }
        if self.layout.steps is not None:
            positions = np.array(self.scale.positions)
            rps = ranked_probability(p, q, positions)
            sums["rps"] = rps.sum()
            sums["rps_squares"] = np.square(rps).sum()
            sums["w1"] = wasserstein(p, q, positions).sum()
        return sums

    def draw(self, count: int) -> FitData:
        """At most this many items, in memory, ordered by content, whatever their order was.

        Which of more items they are depends on their ids (their positions, if they have none).
        """
        if len(self) <= count:
            return self._take(by_content(self.sample, self.members, self.rows_per_item))
        if self.all_rows is None:
            return self._take(np.arange(count)).draw(count)
        if self.positions is None:
            return self._take(self.all_rows.draw(count)).draw(count)
        return self._take(lowest(self.all_rows.keys[self.positions], count)).draw(count)

    def folds(self, count: int, random_state: int = 0) -> list[tuple[FitData, FitData]]:
        """For each of ``count`` folds the data without it and the fold alone.

        Every item is held out once; each hard label (for multi-label data, each set of labels) is
        spread evenly over the folds.
        """
        self._check_folds(count)
        folds = self.layout.folds(self.sample.y, count, random_state)
        parts = []
        for fold in range(count):
            training = np.flatnonzero(folds != fold)
            held_out = np.flatnonzero(folds == fold)
            parts.append((self._take(training), self._take(held_out)))
        return parts

    def _take(self, items: Ints) -> FitData:
        """The items at these positions."""
        if self.positions is None:
            positions = items
        else:
            positions = self.positions[items]
        return replace(
            self,
            arrays=self.sample.take(self.layout.row_positions(items)),
            positions=positions,
            layout=self.layout.take(items),
        )

    def as_whole(self) -> FitData:
        """The same items, where they are a part of the data, as data that end there.

        Ids, annotations and counts are then those of these items alone.
        """
        if self.positions is None:
            return self
        annotations = None
        counts = None
        if self.annotations is not None:
            annotations = self.annotations.take(self.positions)
            counts = AnnotationCounts(len(annotations), len(annotations.annotators))
        return replace(
            self,
            all_rows=self.rows,
            positions=None,
            annotations=annotations,
            counts=counts,
        )

    def label_summaries(self) -> list[Summaries]:
        """The summaries of each label of multi-label data, as of a question with two classes."""
        P, q, y = self.sample
        layout = self.layout.for_single_label()
        summaries = []
        for label in range(len(self.labels)):
            rows = slice(label, None, self.rows_per_item)
            question = replace(
                self,
                arrays=Arrays(P[rows], q[rows], y[rows]),
                classes=self.row_classes,
                scale=NOMINAL,
                layout=layout,
            )
            summaries.append(question._sums(distances=False, log_losses=False))
        return summaries

    def _check_folds(self, count: int) -> None:
        """Refuse more folds than there are units that folds keep together."""
        units = self.n_fold_units
        noun = "item"
        if self.layout.has_item_groups:
            noun = "group"
        if count > units:
            raise InputError(
                f"{count} folds are more than the {counted(units, noun)}",
                f"choose fewer: {option('folds')}",
                code="too-many-folds",
            )

    def grouped(self) -> FitData:
        """The same data with the mean of each group in place of its members."""
        names = self.member_groups()
        P, q, y = self.sample
        means = Arrays(average_groups(P, names), q, y)
        return replace(self, arrays=means, members=tuple(group_names(names)), groups=None)

    def member_groups(self) -> tuple[str, ...]:
        """The group of each member; one without a group is a group of its own."""
        if self.groups is None:
            raise InputError(
                f"{option('groups', True)} needs the group of each member, but these predictions"
                " have none",
                "name them (Predictions.grouped, `edo predictions join --group`), or leave"
                f" {option('groups')} out",
                code="missing-groups",
            )
        pairs = zip(self.members, self.groups, strict=True)
        return tuple(group or f"member {name}" for name, group in pairs)

    def describe(self) -> dict[str, Json]:
        """Items, members, classes and a digest: what tells these data from others."""
        description: dict[str, Json] = {
            "items": len(self),
            "members": list(self.members),
            "classes": list(self.classes),
        }
        if self.scale != NOMINAL:
            description["scale"] = self.scale.to_text(self.classes)
        description["digest"] = self._digest()
        return description

    def _digest(self) -> str:
        P, q, y = self.sample
        arrays = (P, q, y.astype(np.int64))
        return digest_parts(np.ascontiguousarray(array).tobytes() for array in arrays)


def _layout(annotations: Annotations, classes: Sequence[str]) -> Layout:
    """The layout of the rows of annotations, with these classes."""
    from edokit.datasets.item_groups import named_groups

    return Layout.from_scale(
        annotations.scale,
        classes,
        named_groups(annotations),
        has_item_groups=annotations.item_groups is not None,
        are_pairs=annotations.rows.are_pairs,
    )


def pooled(P: Reals, v: Floats, kind: str, temperature: float = 1.0) -> Floats:
    """[N, C] probabilities of the pool of P [N, K, C] with weights v [K], after sharpening."""
    return sharpen(np.asarray(pool(P, v, kind)), temperature)


def by_content(arrays: Arrays, members: Sequence[str], rows_per_item: int = 1) -> Ints:
    """[N] positions of the items, ordered by labels, summed predictions, and those by member."""
    P, q, y = arrays
    sums = np.sort(P, axis=1).sum(axis=1)  # the same whatever the order of the members
    by_member = P[:, np.argsort(members)].reshape(len(y), -1)
    # Numbers of at least 0 are ordered as their bytes are, the most significant first.
    rows = np.concatenate([y[:, None], q, sums, by_member], axis=1).astype(">f8")
    rows = rows.reshape(len(y) // rows_per_item, -1)
    return np.argsort(rows.view(f"V{8 * rows.shape[1]}").ravel(), kind="stable")


class Scores(MetricSums):
    """What a search compares, as sums over items for T weightings, [T] by name."""

    def estimates(self) -> list[dict[str, float]]:
        """F1, CE, MD and the standard error of CE, for each weighting; of ordered classes also RPS
        with its standard error, and W1."""
        sums = self.sums.items()
        means = {name: total / self.items for name, total in sums if total is not None}
        for name in ("ce", "rps"):
            if f"{name}_squares" in means:
                variance = np.maximum(means.pop(f"{name}_squares") - means[name] ** 2, 0.0)
                means[f"{name}_se"] = np.sqrt(variance / max(self.items - 1, 1))
        return [
            dict(zip(means, map(float, values), strict=True))
            for values in zip(*means.values(), strict=True)
        ]
